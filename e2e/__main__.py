"""`make e2e`: the suite against a cluster; the images are given to it unless it is told that it has
them.

    python -m e2e [PYTEST ARGUMENTS, such as -k tour, or e2e/test_1_tour.py]

With E2E_KUBECONFIG the cluster is yours, and has to find the images by itself: E2E_OPERATOR_IMAGE
and E2E_SPARK_IMAGE name two of them, localhost/versitygw:1 is the S3 server's,
localhost/hudi-e2e-broker:dev the broker's.
"""

from __future__ import annotations

import os
import subprocess
import sys

from e2e.cluster import by_hand, kind
from e2e.support.operator import OPERATOR_IMAGE, ROOT, SPARK_IMAGE


def main() -> int:
    """Give the cluster its images, run pytest."""
    if not os.environ.get("E2E_KUBECONFIG"):
        cluster = kind if kind.is_chosen() else by_hand
        cluster.up()
        cluster.load([OPERATOR_IMAGE, SPARK_IMAGE])
    asked = sys.argv[1:]
    # Without a place pytest would look where `make test` does.
    places = [] if any((ROOT / each.partition("::")[0]).exists() for each in asked) else ["e2e"]
    command = [sys.executable, "-m", "pytest", *asked, *places]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
