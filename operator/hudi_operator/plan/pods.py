"""What keeps the pod of an attempt from starting, as Kubernetes says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hudi_operator.api.documents import Document

_ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})


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
