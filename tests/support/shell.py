"""A person at a terminal whose kubectl has the plugin, and what such a person makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.api_server import ApiServer
from tests.support.manifests import ingest, manifest, spec

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shell:
    """A person at a terminal, whose kubectl has the plugin."""

    server: ApiServer
    namespace: str
    path: str

    def __call__(self, *arguments: str, kubeconfig: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": self.path,
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app")),
            "KUBECONFIG": kubeconfig or str(self.server.kubeconfig),
        }
        return subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=False, env=environment)

    def hudi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self("hudi", *arguments, "-n", self.namespace)

    def good(self, *arguments: str, code: int = 0) -> str:
        done = self.hudi(*arguments)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def document(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.good(*arguments, "-o", "json", code=code))


def path_with_plugin(server: ApiServer, folder: Path) -> str:
    """A PATH with kubectl and the plugin, as an installer would write it."""
    script = folder / "kubectl-hudi"
    call = "import sys; from hudi_operator.cli.kubectl.program import main; sys.exit(main())"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{call}' \"$@\"\n")
    script.chmod(0o755)
    return os.pathsep.join([str(folder), str(server.programs), "/usr/bin", "/bin"])


def lands(landing: Path, number: int) -> None:
    """Ten rows for ten partitions."""
    keys = [f"k{number}-{i}" for i in range(10)]
    rows = pa.table({"id": keys, "ts": pa.array([number] * 10, pa.int64()), "day": [f"d{i}" for i in range(10)]})
    pq.write_table(rows, landing / f"{number}.parquet")


def made(server: ApiServer, namespace: str, **changes: Any) -> None:
    """Apply the HudiTable `flights`."""
    body = manifest("flights", **spec(**changes))
    body["metadata"]["namespace"] = namespace
    server.apply(body)


def made_with_files(server: ApiServer, namespace: str, folder: Path) -> None:
    """Apply the HudiTable `flights`, which has a file to take."""
    (folder / "landing").mkdir()
    lands(folder / "landing", 1)
    source = {"type": "Files", "path": f"file://{folder / 'landing'}/", "format": "parquet"}
    made(server, namespace, location=f"file://{folder / 'lake'}", ingest=[ingest(source=source)])
