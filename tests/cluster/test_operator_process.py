"""The operator as a process beside a real API server: it watches, reconciles, ends cleanly, and another takes over from one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from tests.support import kubelet, spark_operators
from tests.support.api_server import ApiServer
from tests.support.manifests import ingest, manifest, spec

ROOT = Path(__file__).resolve().parents[2]
EXIT_SECONDS_MAX = 10.0
TAKEOVER_SECONDS_MAX = 30.0
KINDS_SECONDS_MAX = 90.0
"""It asks every ten seconds what is served, and holds an answer for half a minute."""
IMAGE = "registry.example/hudi-spark@sha256:" + "0" * 64


@contextmanager
def operator(server: ApiServer, namespace: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable, "-m", "hudi_operator", "run", "--image", IMAGE, "--namespace", namespace,
        "--lease-namespace", namespace, "--kubeconfig", str(server.kubeconfig), "--probe-host", "127.0.0.1", "--probe-port", "0",
    ]  # fmt: skip
    paths = os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app"))
    # The option alone tells where the API server is.
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**environment, "PYTHONPATH": paths},
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


def lands(landing: Path, number: int) -> None:
    rows = pa.table({"id": [f"k{number}-{i}" for i in range(5)], "ts": pa.array([number] * 5, pa.int64())})
    pq.write_table(rows, landing / f"{number}.parquet")


def applied(server: ApiServer, namespace: str, landing: Path, transform: str = "", **more: Any) -> None:
    source = {"type": "Files", "path": f"file://{landing}/", "format": "parquet"}
    document = spec(
        location=f"file://{landing.parent / 'lake'}",
        ingest=[ingest(source=source, transform=[{"sql": transform}] if transform else [])],
        **more,
    )
    server.apply({**manifest("flights", **document), "metadata": {"name": "flights", "namespace": namespace}})


def touched(server: ApiServer, namespace: str) -> None:
    """A change that nobody reads, so that the table is looked at now."""
    moment = str(time.monotonic())
    done = server.kubectl("annotate", "ht", "flights", "-n", namespace, "--overwrite", f"example/touched={moment}")
    assert done.returncode == 0, done.stderr


def status(server: ApiServer, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = server.get("ht", "flights", "-n", namespace).get("status", {})
    return found


def pod_runs(server: ApiServer, namespace: str, folder: Path) -> None:
    def one() -> dict[str, Any] | None:
        return next(iter(kubelet.waiting(server, namespace)), None)

    pod = kubelet.eventually(one, "no pod is started")
    kubelet.run(server, pod, folder / pod["metadata"]["name"])


def has_records(server: ApiServer, namespace: str, number: int) -> Callable[[], bool]:
    return lambda: (status(server, namespace).get("data") or {}).get("records") == number


def reasons(server: ApiServer, namespace: str) -> set[str]:
    return {each["reason"] for each in server.get("events.events.k8s.io", "-n", namespace)["items"]}


def test_it_watches_reconciles_and_ends_in_time(
    server: ApiServer, namespace: str, landing: Path, tmp_path: Path
) -> None:
    lands(landing, 1)
    with operator(server, namespace, tmp_path / "log") as process:
        applied(server, namespace, landing)
        pod_runs(server, namespace, tmp_path)
        kubelet.eventually(has_records(server, namespace, 5), "the end of the Job is not seen")
        kubelet.eventually(lambda: {"Started", "Succeeded"} <= reasons(server, namespace), "an event is missing")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(EXIT_SECONDS_MAX) == 0, (tmp_path / "log").read_text()
        assert time.monotonic() - began < EXIT_SECONDS_MAX
    table = server.get("ht", "flights", "-n", namespace)
    assert "finalizers" not in table["metadata"]
    assert not any("kopf" in name for name in table["metadata"].get("annotations", {}))
    assert server.get("lease", "hudi-operator", "-n", namespace)["spec"].get("holderIdentity") is None


@pytest.mark.timeout(180)
def test_another_takes_over_from_one_that_was_killed_and_repeats_nothing(
    server: ApiServer, namespace: str, landing: Path, tmp_path: Path
) -> None:
    lands(landing, 1)
    with ExitStack() as stack:
        first = stack.enter_context(operator(server, namespace, tmp_path / "first.log"))
        kubelet.eventually(
            lambda: server.kubectl("get", "lease", "hudi-operator", "-n", namespace).returncode == 0, "no leader"
        )
        second = stack.enter_context(operator(server, namespace, tmp_path / "second.log"))
        applied(server, namespace, landing)
        kubelet.eventually(lambda: kubelet.waiting(server, namespace), "no pod is started")
        first.kill()
        first.wait()
        began = time.monotonic()
        pod_runs(server, namespace, tmp_path)
        kubelet.eventually(has_records(server, namespace, 5), "nobody has taken over")
        assert time.monotonic() - began < TAKEOVER_SECONDS_MAX
        lands(landing, 2)
        touched(server, namespace)
        pod_runs(server, namespace, tmp_path)
        kubelet.eventually(has_records(server, namespace, 10), "the second file is not taken")
        phases = ["Succeeded", "Succeeded"]
        kubelet.eventually(
            lambda: [run["phase"] for run in status(server, namespace)["runs"]] == phases,
            "the end of a Job is not seen",
        )
        assert len(server.get("jobs", "-n", namespace)["items"]) == 2
        assert second.poll() is None


@pytest.mark.timeout(300)
def test_a_spark_operator_that_is_installed_later_is_used_and_heard(
    server: ApiServer, namespace: str, landing: Path, tmp_path: Path
) -> None:
    """No pod tells of an application that got no driver: the application itself is watched."""
    there = [version for version in (KUBEFLOW, APACHE) if spark_operators.is_served(server, version)]
    spark_operators.serve(server, *there, served=False)
    lands(landing, 1)

    def stalled() -> bool:
        conditions = {each["type"]: each["reason"] for each in status(server, namespace).get("conditions", ())}
        return conditions.get("Stalled") == "LauncherNotServed"

    def application() -> str | None:
        items = server.get("sparkapplications.v1beta2.sparkoperator.k8s.io", "-n", namespace)["items"]
        return items[0]["metadata"]["name"] if items else None

    def told() -> bool:
        message = "the SparkApplication is FAILED: quota exceeded"
        return any(run.get("message") == message for run in status(server, namespace).get("runs", ()))

    with operator(server, namespace, tmp_path / "log"):
        applied(server, namespace, landing, "select * from source", spark={"launcher": "SparkOperator"})
        kubelet.eventually(stalled, "the missing launcher is not told")
        spark_operators.install(server, KUBEFLOW, real=False)
        name = kubelet.eventually(application, "it is not used", KINDS_SECONDS_MAX)
        spark_operators.tell(server, KUBEFLOW, namespace, name, "FAILED", "quota exceeded")
        kubelet.eventually(told, "its end is not heard", KINDS_SECONDS_MAX)
    spark_operators.serve(server, *there, served=True)
