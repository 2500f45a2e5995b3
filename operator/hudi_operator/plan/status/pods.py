"""What keeps the pod of an attempt from starting, as Kubernetes says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hudi_operator.api.documents import Document

_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})
_NO_START = frozenset(
    {
        "FailedScheduling", "FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady", "FailedMount", "FailedAttachVolume",
        "FailedBinding", "Failed", "ErrImageNeverPull", "InspectFailed", "BackOff", "Evicted", "OutOfcpu", "OutOfmemory", "Preempting",
    }
)  # fmt: skip
"""Reasons of events by which scheduler and kubelet say that a pod does not start; no other place
reports a sandbox that cannot be made."""


def start_events(events: Iterable[Document]) -> dict[str, Document]:
    """The newest event of each pod, by name, that says why it does not start. `events`: oldest
    first."""
    found = (event for event in events if (event.get("involvedObject") or {}).get("kind") == "Pod")
    return {str(event["involvedObject"].get("name")): event for event in found if event.get("reason") in _NO_START}


def is_starting(pod: Document) -> bool:
    """Whether none of its containers has run yet."""
    return (pod.get("status") or {}).get("phase") in ("Pending", None)


def troubles(pod: Document) -> Iterator[tuple[str, str]]:
    """(reason, message) of whatever stands against a pod that is to run."""
    status = pod.get("status") or {}
    if status.get("phase") not in ("Pending", "Running", None):
        return
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield str(condition.get("reason")), str(condition.get("message"))
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting: dict[str, Any] = (container.get("state") or {}).get("waiting") or {}
        if waiting and waiting.get("reason") not in _ORDINARY:
            yield str(waiting.get("reason")), str(waiting.get("message") or container.get("image"))
