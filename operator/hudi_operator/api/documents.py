"""Reading resources as documents, of whatever release: what is not there is nothing. For people's
eyes; reconciling parses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CONTINUOUS = "continuous:"
"""How the batch of a continuous driver's run begins."""
Document = Mapping[str, Any]


def name_of(document: Document) -> str:
    """Its name."""
    return str(document["metadata"]["name"])


def namespace_of(document: Document) -> str:
    """Its namespace."""
    return str(document["metadata"].get("namespace", ""))


def status_of(document: Document) -> Document:
    """Its status, empty if nobody has written one."""
    found: Document = document.get("status") or {}
    return found


def table_of(service: Document) -> str:
    """The name of the HudiTable that a TableService is about."""
    return str(service.get("spec", {}).get("tableRef", {}).get("name", ""))


def conditions_of(document: Document) -> Sequence[Document]:
    """All conditions."""
    return list(status_of(document).get("conditions") or ())


def condition_of(document: Document, kind: str) -> Document:
    """One condition, empty if there is none."""
    return next((each for each in conditions_of(document) if each.get("type") == kind), {})


def is_true(document: Document, kind: str) -> bool:
    """Whether a condition is True."""
    return condition_of(document, kind).get("status") == "True"


def runs_of(document: Document) -> list[Document]:
    """The attempts that the status knows, newest first."""
    return list(status_of(document).get("runs") or ())


def running_of(document: Document) -> list[Document]:
    """The attempts that are at work."""
    return [run for run in runs_of(document) if run.get("phase") == "Running"]


def is_driver(run: Document) -> bool:
    """Whether an attempt is a continuous driver."""
    return str(run.get("batch") or "").startswith(CONTINUOUS)


def unended_of(document: Document) -> list[Document]:
    """The attempts at work, and the newest one if its job was lost: of these Kubernetes may have
    more to say."""
    runs = runs_of(document)
    return [
        run
        for i, run in enumerate(runs)
        if run.get("phase") == "Running" or (i == 0 and run.get("reason") == "JobLost")
    ]


def plan_of(service: Document) -> Document:
    """The plan that waits for an approval, empty if there is none."""
    found: Document = status_of(service).get("plan") or {}
    return found


def index_of(table: Document) -> Document:
    """What was measured of a table's index, empty if nothing was."""
    found: Document = status_of(table).get("index") or {}
    return found


def is_suspended(document: Document) -> bool:
    """Whether no new run is started."""
    return bool(document.get("spec", {}).get("suspend"))


def is_seen(document: Document) -> bool:
    """Whether the status speaks of the manifest as it is now."""
    return int(status_of(document).get("observedGeneration") or 0) >= int(document["metadata"].get("generation") or 1)


def moment_of(event: Document) -> str:
    """When an event last came, RFC 3339."""
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(last or event["metadata"].get("creationTimestamp"))
