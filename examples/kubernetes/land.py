"""Puts files of the flights into the bucket `landing` of the tour's S3 server, and makes the tour's
buckets if need be.

    python examples/kubernetes/land.py first http://127.0.0.1:7070
    python examples/kubernetes/land.py later http://127.0.0.1:7070

The credentials are those of the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. What
`first` and `later` are is said in examples/flights/generate.py.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.flights import generate

BUCKETS = ("lake", "landing")
PHASES = {"first": generate.first, "later": generate.later}


def make_buckets(client: Any) -> None:
    """Make the tour's buckets, unless they are there. `client` is boto3's."""
    there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    for bucket in BUCKETS:
        if bucket not in there:
            client.create_bucket(Bucket=bucket)


def land(client: Any, phase: str, prefix: str = "flights/") -> generate.Landing:
    """Write the files of a phase. `client` is boto3's."""
    make_buckets(client)
    with tempfile.TemporaryDirectory() as folder:
        landed = PHASES[phase](Path(folder))
        for path in sorted(Path(folder).iterdir()):
            client.upload_file(str(path), "landing", prefix + path.name)
    return landed


def main(arguments: list[str]) -> int:
    """Run one phase and tell what it wrote."""
    if len(arguments) != 2 or arguments[0] not in PHASES:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    import boto3  # type: ignore[import-untyped]

    client = boto3.client("s3", endpoint_url=arguments[1], region_name="us-east-1")
    sys.stdout.write(land(client, arguments[0]).told() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
