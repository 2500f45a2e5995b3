"""A job for launcher tests: `python -m tests.support.stub_job SPEC RESULT` does what the spec's
`work` says.

`{"do": "succeed"}`, `"fail"`, `"die"` (no result, exit code 76), `"sleep"` (until it is killed),
and it tells its credentials in `seen` as a digest, never in plain text.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from hudi_table.model.job.jobspec import JobResult, JobSpec


def main() -> int:
    spec = JobSpec.from_json(Path(sys.argv[1]).read_text())
    with open(spec.progress, "a") as progress:
        progress.write(json.dumps({"message": f"{spec.work['do']} now"}) + "\n")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY", "")
    seen = hashlib.sha256(secret.encode()).hexdigest()
    Path(sys.argv[2]).with_name("seen").write_text(seen)
    match spec.work["do"]:
        case "sleep":
            time.sleep(600)
        case "die":
            sys.stderr.write("something broke\n")
            return 76
        case "fail":
            Path(sys.argv[2]).write_text(
                JobResult(spec.attempt, "Failed", error_class="InvalidData", message="column 'id' is null").to_json()
            )
            return 64
        case "succeed":
            Path(sys.argv[2]).write_text(
                JobResult(spec.attempt, "Succeeded", instants=("20260101000000000",)).to_json()
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
