"""The kubelet, played by a test: it runs the job of a pod in this process and reports its end as
Kubernetes would."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hudi_operator.manifests.pods import JOB_SPEC
from hudi_spark.jobs.__main__ import main as run_job
from hudi_table.model.job.jobspec import JobResult
from tests.support.api_server import ApiServer

T = TypeVar("T")
MERGE = "application/merge-patch+json"
WAIT_SECONDS = 120.0
FINISHED = "2026-01-01T00:05:00Z"


def eventually(found: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS) -> T:
    """What `found` gives once it is true. Raises AssertionError that says `what` is wrong."""
    limit = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < limit, what
        time.sleep(0.05)
    return value


def pods(server: ApiServer, namespace: str) -> list[dict[str, Any]]:
    """The pods of a namespace."""
    return list(server.done("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])


def waiting(server: ApiServer, namespace: str) -> list[dict[str, Any]]:
    """Pods whose container has not run."""
    return [pod for pod in pods(server, namespace) if pod["status"]["phase"] == "Pending"]


def end(server: ApiServer, pod: dict[str, Any], code: int, message: str = "", reason: str = "Completed") -> None:
    """Report that the container of a pod has ended."""
    ended = {"exitCode": code, "reason": reason, "message": message, "finishedAt": FINISHED}
    container = _container(pod, {"terminated": ended})
    _report(server, pod, {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]})


def waits(server: ApiServer, pod: dict[str, Any], reason: str, message: str) -> None:
    """Report that the container of a pod cannot start."""
    container = _container(pod, {"waiting": {"reason": reason, "message": message}})
    _report(server, pod, {"phase": "Pending", "containerStatuses": [container]})


def evict(server: ApiServer, pod: dict[str, Any], message: str) -> None:
    """Report that a pod was ended by its node, which says nothing of its containers."""
    _report(server, pod, {"phase": "Failed", "reason": "Evicted", "message": message})


def result(attempt: str, outcome: str) -> str:
    """What a job writes that ended well."""
    return JobResult(attempt, outcome).to_json()


def _container(pod: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    spec = pod["spec"]["containers"][0]
    about = {"name": spec["name"], "image": spec["image"], "imageID": "", "ready": False, "restartCount": 0}
    return {**about, "state": state}


def _report(server: ApiServer, pod: dict[str, Any], status: dict[str, Any]) -> None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    server.done("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status}, MERGE)


def run(server: ApiServer, pod: dict[str, Any], folder: Path) -> None:
    """Run what the pod is to run, with the real job, and report its end."""
    executed(pod, folder)
    reported(server, pod, folder)


def executed(pod: dict[str, Any], folder: Path) -> None:
    """Run what the pod is to run; what came of it stays in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    spec, message = folder / "job-spec.json", folder / "termination-log"
    spec.write_text(pod["metadata"]["annotations"][JOB_SPEC])
    message.write_text("")
    (folder / "exit-code").write_text(str(run_job([str(spec), str(message)])))


def reported(server: ApiServer, pod: dict[str, Any], folder: Path) -> None:
    """Report the end of a pod that was executed there. Raises AssertionError if the API server does
    not take it."""
    code = int((folder / "exit-code").read_text())
    end(server, pod, code, (folder / "termination-log").read_text(), "Error" if code else "Completed")
