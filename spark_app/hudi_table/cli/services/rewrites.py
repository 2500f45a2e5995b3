"""What `hudictl cluster` and `hudictl resize` print of a rewrite of file groups."""

from __future__ import annotations

from typing import Any

from hudi_table.cli.output import Column
from hudi_table.model.service.services import ServicePlan
from hudi_table.read.output.human import number, size

COLUMNS = (
    Column("instant", "INSTANT"),
    Column("done", "DONE"),
    Column("fileGroups", "FILE GROUPS", number, right=True),
    Column("filesBefore", "FILES", number, right=True),
    Column("filesAfter", "BECOME", number, right=True),
    Column("rowsWritten", "ROWS", number, right=True),
    Column("bytesRead", "READ", size, right=True),
    Column("bytesWritten", "WRITTEN", size, right=True),
)


def planned(plan: ServicePlan, done: str) -> dict[str, Any]:
    """The row of a plan; `done` says in words what is done with it."""
    return {
        "instant": plan.instant,
        "done": f"{done}{plan.why}",
        "fileGroups": plan.file_groups,
        "filesBefore": plan.files_before,
        "filesAfter": plan.files_after,
        "rowsWritten": None,
        "bytesRead": plan.bytes_read,
        "bytesWritten": plan.bytes_written,
        "details": list(plan.details),
    }
