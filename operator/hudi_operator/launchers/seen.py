"""What has become of an attempt in a cluster: its job's own word if there is one, else what
Kubernetes says of its driver.

An attempt lives as long as its driver's pod does, whatever is said of the object that made the pod;
without a pod, the object decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_operator.api.parsing import parse
from hudi_operator.api.status import RunStatus
from hudi_operator.launchers.base import REASON_OF_EXIT_CODE, ended
from hudi_operator.manifests.pods import CONTAINER, DRIVER_CONTAINER, RUN
from hudi_table.model.job.jobspec import JobResult

MESSAGE_LENGTH_MAX = 400
_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})
"""Why a container waits that is on its way."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt's object says: that it has `ended`, or why it has not yet begun. `finished`:
    when, RFC 3339."""

    ended: bool = False
    message: str = ""
    finished: str | None = None


def run_as_seen(document: Mapping[str, Any], verdict: Verdict, driver: Mapping[str, Any] | None) -> RunStatus:
    """The run of an object, with what its driver's pod tells."""
    run = _run_of(document)
    end = _terminated(driver) if driver is not None else None
    if end is None and driver is not None and driver.get("status", {}).get("phase") not in ("Failed", "Succeeded"):
        return replace(run, message=_hindrance(driver) or run.message)
    if end is None and not verdict.ended:
        if driver is None:
            return replace(run, message=verdict.message[:MESSAGE_LENGTH_MAX] or run.message)
        verdict = Verdict(ended=True, message=verdict.message)
    end = end or {}
    finished = end.get("finishedAt") or verdict.finished
    try:
        return ended(run, JobResult.from_json(end.get("message") or ""), finished)
    except (ValueError, TypeError):
        return _lost(run, verdict, end, driver or {}, finished)


def _lost(
    run: RunStatus, verdict: Verdict, end: Mapping[str, Any], driver: Mapping[str, Any], finished: str | None
) -> RunStatus:
    code = end.get("exitCode")
    status = driver.get("status", {})
    lines = str(end.get("message") or "").strip().splitlines()
    sentences = [
        verdict.message or "the driver has ended",
        *([f"the container ended with code {code}, {end.get('reason') or 'no reason'}"] if code is not None else []),
        *(str(status[name]) for name in ("reason", "message") if status.get(name)),
        *(lines[-1:] if lines else []),
    ]
    return replace(
        run,
        phase="Lost",
        finished=finished,
        reason=REASON_OF_EXIT_CODE.get(code) if isinstance(code, int) else None,
        message=": ".join(text[:MESSAGE_LENGTH_MAX] for text in sentences),
    )


def _containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = pod.get("status", {}).get("containerStatuses") or ()
    return [each for each in found if each["name"] in (CONTAINER, DRIVER_CONTAINER)]


def _terminated(pod: Mapping[str, Any]) -> dict[str, Any] | None:
    return next(
        (each["state"]["terminated"] for each in _containers(pod) if each.get("state", {}).get("terminated")), None
    )


def _hindrance(pod: Mapping[str, Any]) -> str:
    """Why a driver does not start, where Kubernetes says so."""
    for each in _containers(pod):
        waiting = each.get("state", {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _ORDINARY:
            return f"{waiting['reason']}: {waiting.get('message', '')}"[:MESSAGE_LENGTH_MAX].rstrip(": ")
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"[:MESSAGE_LENGTH_MAX]
        if condition["type"] == "PodReadyToStartContainers" and condition["status"] == "False":
            return "its pod has no sandbox, network or volumes yet; kubectl hudi why says what keeps them"
    return ""


def _run_of(document: Mapping[str, Any]) -> RunStatus:
    """The run as the plan described it; of an object whose annotation was lost, what its name
    says."""
    try:
        described = json.loads(document["metadata"].get("annotations", {}).get(RUN, ""))
    except ValueError:
        described = {}
    run, _ = parse(RunStatus, described, "run")
    return run or RunStatus(document["metadata"]["name"], "", "Running", 0, 0)
