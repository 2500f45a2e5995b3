"""What `rollback` and `restore` share: a dry run, and the work itself."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.api import HudiTable
from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidRequestError
from hudi_table.model.service.services import ServicePlan
from hudi_table.read.output.human import number, size
from hudi_table.services.base import Service

_COLUMNS = (
    Column("undo", "Undo"),
    Column("done", "Done"),
    Column("files", "Files", number, right=True),
    Column("bytesFreed", "Freed", size, right=True),
    Column("details", "Instants", "; ".join),
)
TAKEN_BACK = "takes these instants back"


def undo(args: argparse.Namespace, table: HudiTable, service: Service, what: str) -> int:
    """Print what would go; with `--yes`, what went. `what` it is that `--yes` does."""
    row: dict[str, Any] = {"undo": service.type.noun, "files": None, "bytesFreed": None}
    if args.yes:
        plan = _planned(service)
        (done,) = service.run()
        files = done.figures.get("filesDeleted", done.figures.get("filesGivenUp"))
        row |= {"done": done.message, "files": None if files is None else int(files), "details": []}
        if plan is not None:
            row |= {"bytesFreed": plan.bytes_freed or None, "details": list(plan.details)}
    else:
        plan = service.plan()
        assert plan is not None, "a dry run raises where there is nothing to take back"
        row |= {"done": f"dry run, {plan.why}", "files": plan.files_before, "bytesFreed": plan.bytes_freed or None}
        row["details"] = list(plan.details)
    emit(Document("Undo", _COLUMNS, [row], single=True), args.output)
    if not args.yes:
        note(f"nothing was changed; --yes {what}")
        if not args.writers_stopped:
            young = f"less than {table.context.settings.quarantine_seconds:,.0f} s ago"
            note(
                f"of what was committed {young} it also needs --writers-stopped, once every process that writes the table has ended"
            )
    return exits.GOOD


def _planned(service: Service) -> ServicePlan | None:
    """What would go, where a dry run can say it: not of what is taken back already, nor of a write
    that did not complete."""
    try:
        return service.plan()
    except InvalidRequestError:
        return None
