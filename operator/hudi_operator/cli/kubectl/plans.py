"""Plans of TableServices as people and programs read them."""

from __future__ import annotations

from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.plan.status import overview
from hudi_table.cli.output import Column
from hudi_table.read.output.human import number, size

COLUMNS = (
    Column("service", "Service"),
    Column("table", "Table"),
    Column("type", "Type"),
    Column("state", "State"),
    Column("digest", "Digest"),
    Column("fileGroups", "Groups", number, right=True),
    Column("filesBefore", "Files", number, right=True),
    Column("filesAfter", "After", number, right=True),
    Column("bytesRead", "Reads", size, right=True),
    Column("bytesWritten", "Writes", size, right=True),
    Column("bytesFreed", "Frees", size, right=True),
    Column("predictedSeconds", "Takes", lambda seconds: "-" if seconds is None else f"{seconds:g}s", right=True),
    Column("why", "Why", wide=True),
    Column("made", "Made", wide=True),
)
DETAILS = Column("details", "Details")
_FIGURES = ("digest", "fileGroups", "filesBefore", "filesAfter", "bytesRead", "bytesWritten", "bytesFreed", "predictedSeconds", "why", "made", "details")  # fmt: skip


def row(service: Document) -> dict[str, Any]:
    """The plan that waits, or the one that was run last."""
    plan = documents.plan_of(service)
    shown = plan or documents.status_of(service).get("lastPlan") or {}
    return {
        "service": documents.name_of(service),
        "table": documents.table_of(service),
        "type": service["spec"]["type"],
        "state": state(service),
        **{name: shown.get(name) for name in _FIGURES},
    }


def state(service: Document) -> str:
    """What has become of the plan of a TableService."""
    if documents.is_true(service, "Stalled"):
        return "failed"
    if documents.plan_of(service).get("stale"):
        return "stale"
    if overview.waits(service):
        return "to approve"
    if documents.running_of(service):
        return "running" if service["spec"].get("approve") else "being made"
    if documents.status_of(service).get("lastPlan"):
        return "done"
    return "nothing to do" if documents.status_of(service).get("phase") == "Succeeded" else "being made"
