"""The operator as a process beside a test's API server, and tables that are fed from folders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_operator.api.names import API_VERSION, PLURALS
from tests.support.api_server import ApiServer
from tests.support.manifests import ingest, manifest, spec
from tests.support.volumes import job_pods

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "registry.example/hudi-spark@sha256:" + "0" * 64
ROWS_A_FILE = 5


def started(server: ApiServer, namespace: str, log: Path, *more: str) -> subprocess.Popen[bytes]:
    """An operator of one namespace, whose Lease lies there too, with more arguments; the caller
    ends it."""
    command = [
        sys.executable, "-m", "hudi_operator", "run", "--image", IMAGE, "--namespace", namespace,
        "--lease-namespace", namespace, "--kubeconfig", str(server.kubeconfig), "--probe-host", "127.0.0.1", "--probe-port", "0",
        *job_pods(log.parent), *more,
    ]  # fmt: skip
    paths = os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app"))
    # The option alone tells where the API server is.
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | {"PYTHONPATH": paths}
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)


@contextmanager
def operator(server: ApiServer, namespace: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An operator that is killed with the context, if it is still there."""
    process = started(server, namespace, log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@dataclass(frozen=True)
class FedTable:
    """A HudiTable whose rows come from the files of a folder."""

    server: ApiServer
    namespace: str
    name: str
    folder: Path

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def lands(self, number: int) -> None:
        """A file of new rows arrives, whole."""
        self.landing.mkdir(parents=True, exist_ok=True)
        keys = [f"k{number}-{i}" for i in range(ROWS_A_FILE)]
        rows = pa.table({"id": keys, "ts": pa.array([number] * ROWS_A_FILE, pa.int64())})
        unfinished = self.folder / f"{number}.unfinished"
        pq.write_table(rows, unfinished)
        unfinished.rename(self.landing / f"{number}.parquet")

    def create(self, transform: str = "", **changes: Any) -> None:
        """Apply the resource; `changes` are of its spec, `transform` is of its ingest."""
        self.landing.mkdir(parents=True, exist_ok=True)
        source = {"type": "Files", "path": f"file://{self.landing}/", "format": "parquet"}
        steps = [{"sql": transform}] if transform else []
        document = spec(location=f"file://{self.lake}", ingest=[ingest(source=source, transform=steps)], **changes)
        self.server.apply(
            {**manifest(self.name, **document), "metadata": {"name": self.name, "namespace": self.namespace}}
        )

    def touch(self, moment: object) -> None:
        """A change that nobody reads, so that the table is looked at now."""
        body = {"metadata": {"annotations": {"example/touched": str(moment)}}}
        path = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURALS['HudiTable']}/{self.name}"
        self.server.done("PATCH", path, body, "application/merge-patch+json")
