"""The rim of a job process: JobSpec in, JobResult out, an exit code by error class when there can
be no result."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hudi_spark.jobs.index import measure_index
from hudi_spark.jobs.ingest import run_ingest
from hudi_spark.jobs.ingests.bootstrap import run_bootstrap
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.purge import run_purge
from hudi_spark.jobs.service import run_service
from hudi_table.errors import HudiError, InvalidRequestError, InvariantError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.service.services import ServiceType

USAGE = 64
TERMINATION_BYTES_MAX = 4096
"""Of a container's termination message; the kubelet cuts what is longer."""
COLLECTED_FROM = 50_000
"""New objects at which the collector looks for cycles. A client of Kafka hands out 20,000 messages
at a time, which are in none: looked at for every 700, Python's own number, each took 0.1 to 0.2 µs
more, a tenth (tried)."""
WORK: dict[str, Callable[[JobSpec, Progress], JobResult]] = {
    "Ingest": run_ingest,
    "Bootstrap": run_bootstrap,
    "Purge": run_purge,
    **dict.fromkeys((kind.value for kind in ServiceType), run_service),
}


def main(arguments: list[str]) -> int:
    """Run a job and return its exit code: 0 when it succeeded or had nothing to do."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m hudi_spark.jobs SPEC.json RESULT.json\n")
        return USAGE
    spec, attempt = None, ""
    try:
        spec = _read(Path(arguments[0]))
        attempt = spec.attempt
        result, code = _run(spec, Path(arguments[1])), 0
    except HudiError as error:
        traceback.print_exc()
        result = JobResult(attempt, "Failed", error_class=error.name(), message=str(error))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - the rim: whatever else went wrong is a bug, and said to be one
        traceback.print_exc()
        result = JobResult(
            attempt, "Failed", error_class=InvariantError.name(), message=f"{type(error).__name__}: {error}"
        )
        code = InvariantError.exit_code
    path = Path(arguments[1])
    in_place = path.exists()
    _write(path, result, in_place=in_place)
    _end_spark()
    # The work is done and told: whatever befalls the measuring, even the end of the process, takes nothing of it back.
    index = _index(spec) if spec is not None and code == 0 else {}
    if index:
        _write(path, replace(result, index=index), in_place=in_place)
    return code


def _index(spec: JobSpec) -> dict[str, Any]:
    """What is measured of the index; nothing where that fails, for a later job measures again."""
    try:
        return measure_index(spec)
    except Exception:  # noqa: BLE001 - the rim: the job has done its work
        traceback.print_exc()
        return {}


def _read(path: Path) -> JobSpec:
    try:
        return JobSpec.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as error:
        raise InvalidRequestError(f"{path} cannot be read as a JobSpec: {error}", path=str(path)) from error


def _run(spec: JobSpec, path: Path) -> JobResult:
    kind = str(spec.work.get("type"))
    if kind not in WORK:
        raise InvalidRequestError(f"work of type {kind!r} is not done by this release; it does {', '.join(WORK)}")

    def leave(result: JobResult) -> None:
        _write(path, result, in_place=path.exists())
        _end_spark()
        os._exit(0)

    with Progress(spec.progress, leave) as progress:
        return WORK[kind](spec, progress)


def _end_spark() -> None:
    """Once the result is reported, the job ends what it has started elsewhere. Only a job that had
    a Spark loads its modules."""
    if "hudi_spark.jobs.session" in sys.modules:
        sys.modules["hudi_spark.jobs.session"].end_executors()


def _write(path: Path, result: JobResult, *, in_place: bool) -> None:
    """The result appears whole: whoever finds it reads all of it. A file that is written `in_place`
    is what Kubernetes reads when the container has ended, up to a bound; it can be written and not
    replaced, so what it says already is written over in one go."""
    if in_place:
        data = result.within(TERMINATION_BYTES_MAX).to_json().encode()
        with path.open("r+b", buffering=0) as file:
            file.write(data.ljust(path.stat().st_size))
        return
    part = path.with_name(f"{path.name}.part")
    part.write_text(result.to_json(), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    gc.set_threshold(COLLECTED_FROM)
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a JVM gateway's threads must not delay or change the end
