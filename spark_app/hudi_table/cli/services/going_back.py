"""What `rollback` and `restore` share: a dry run, and the work itself."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.model.options.write_options import WRITERS_STOPPED
from hudi_table.model.service.services import ServiceRequest
from hudi_table.read.output.human import number, size
from hudi_table.services.restoring.losing import give_up, preview_giving_up
from hudi_table.services.restoring.service import UndoService
from hudi_table.table.engine.local_engine import LocalEngine

_COLUMNS = (
    Column("undo", "Undo"),
    Column("done", "Done"),
    Column("files", "Files", number, right=True),
    Column("bytesFreed", "Freed", size, right=True),
    Column("details", "Instants", "; ".join),
)


def give_up_lost(args: argparse.Namespace) -> int:
    """Print which files of a pending compaction would be given up; with `--yes`, that they are."""
    context = opened(args).context
    row: dict[str, Any] = {"undo": "rollback", "files": len(set(args.lost)), "bytesFreed": None, "details": []}
    if args.yes:
        row["done"] = give_up(context, args.instant, args.lost, writers_stopped=args.writers_stopped).message
    else:
        plan = preview_giving_up(context, args.instant, args.lost)
        row |= {"done": f"dry run, {plan.why}", "details": list(plan.details)}
    emit(Document("Undo", _COLUMNS, [row], single=True), args.output)
    if not args.yes:
        note("nothing was changed; --yes gives these files and their rows up for ever")
    return exits.GOOD


def undo(args: argparse.Namespace, service: UndoService, instant: str) -> int:
    """Print what would go; with `--yes`, what went."""
    context = opened(args).context
    stopped = {WRITERS_STOPPED: "true"} if args.writers_stopped else {}
    request = ServiceRequest(stopped, instant=instant)
    row: dict[str, Any] = {"undo": service.type.value.lower(), "files": None, "bytesFreed": None}
    if args.yes:
        done = service.execute(context, "", request, LocalEngine(1))
        files = done.figures.get("filesDeleted")
        row |= {"done": done.message, "files": None if files is None else int(files), "details": []}
    else:
        plan = service.preview(context, request)
        assert plan is not None, "a dry run raises where there is nothing to take back"
        row |= {"done": f"dry run, {plan.why}", "files": plan.files_before, "bytesFreed": plan.bytes_freed}
        row["details"] = list(plan.details)
    emit(Document("Undo", _COLUMNS, [row], single=True), args.output)
    if not args.yes:
        note("nothing was changed; --yes takes these instants back")
    return exits.GOOD
