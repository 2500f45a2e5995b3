"""The operator as a process beside a real API server: it watches, reconciles, ends cleanly, and
another takes over from one that was killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from tests.support import kubelet, spark_operators
from tests.support.api_server import ApiServer
from tests.support.operator_process import FedTable, operator

EXIT_SECONDS_MAX = 10.0
TAKEOVER_SECONDS_MAX = 30.0
KINDS_SECONDS_MAX = 90.0
"""It asks every ten seconds what is served, and holds an answer for half a minute."""


@pytest.fixture
def flights(server: ApiServer, namespace: str, tmp_path: Path) -> FedTable:
    return FedTable(server, namespace, "flights", tmp_path)


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
    server: ApiServer, namespace: str, flights: FedTable, tmp_path: Path
) -> None:
    flights.lands(1)
    with operator(server, namespace, tmp_path / "log") as process:
        flights.create()
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
    server: ApiServer, namespace: str, flights: FedTable, tmp_path: Path
) -> None:
    flights.lands(1)
    with ExitStack() as stack:
        first = stack.enter_context(operator(server, namespace, tmp_path / "first.log"))
        kubelet.eventually(lambda: server.has("lease", "hudi-operator", "-n", namespace), "no leader")
        second = stack.enter_context(operator(server, namespace, tmp_path / "second.log"))
        flights.create()
        kubelet.eventually(lambda: kubelet.waiting(server, namespace), "no pod is started")
        first.kill()
        first.wait()
        began = time.monotonic()
        pod_runs(server, namespace, tmp_path)
        kubelet.eventually(has_records(server, namespace, 5), "nobody has taken over")
        assert time.monotonic() - began < TAKEOVER_SECONDS_MAX
        flights.lands(2)
        flights.touch("now")
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
    server: ApiServer, namespace: str, flights: FedTable, tmp_path: Path
) -> None:
    """No pod tells of an application that got no driver: the application itself is watched."""
    there = [version for version in (KUBEFLOW, APACHE) if spark_operators.is_served(server, version)]
    spark_operators.serve(server, *there, served=False)
    flights.lands(1)

    def stalled() -> bool:
        conditions = {each["type"]: each["reason"] for each in status(server, namespace).get("conditions", ())}
        return conditions.get("Stalled") == "LauncherNotServed"

    def application() -> str | None:
        # A look that somebody asks for: by itself it looks once in a minute.
        flights.touch(int(time.monotonic()))
        items = server.done("GET", f"/apis/{KUBEFLOW}/namespaces/{namespace}/{spark_operators.PLURAL}")["items"]
        return items[0]["metadata"]["name"] if items else None

    def told() -> bool:
        message = "the SparkApplication is FAILED: quota exceeded"
        # What held it up before is told after it.
        return any(str(run.get("message")).startswith(message) for run in status(server, namespace).get("runs", ()))

    with operator(server, namespace, tmp_path / "log"):
        flights.create("select * from source where hash(1) is not null", spark={"launcher": "SparkOperator"})
        kubelet.eventually(stalled, "the missing launcher is not told")
        spark_operators.install(server, KUBEFLOW, real=False)
        name = kubelet.eventually(application, "it is not used", KINDS_SECONDS_MAX)
        spark_operators.tell(server, KUBEFLOW, namespace, name, "FAILED", "quota exceeded")
        kubelet.eventually(told, "its end is not heard", KINDS_SECONDS_MAX)
    spark_operators.serve(server, *there, served=True)
