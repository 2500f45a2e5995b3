"""`hudictl archive BASE`: what may leave the active timeline, and with `--yes` its move to the
archived one."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.model.service.services import ServicePlan, ServiceResult
from hudi_table.read.output.human import number, size

_PLANNED = (
    Column("why", "Why"),
    Column("filesBefore", "Timeline files", number, right=True),
    Column("filesAfter", "Afterwards", number, right=True),
    Column("instants", "Instants", ", ".join, wide=True),
)
_DONE = (
    Column("message", "Done"),
    Column("filesDeleted", "Timeline files deleted", number, right=True),
    Column("bytesWritten", "Archived", size, right=True),
    Column("chainEntriesTrimmed", "Chain entries trimmed", number, right=True),
    Column("archiveFilesMerged", "Archive files merged", number, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the plan, or what was done."""
    service = opened(args).services.archiving(option_arguments(args.option), force=args.now)
    if args.yes:
        found = [_done(result) for result in service.run()]
    else:
        plan = service.plan()
        found = [] if plan is None else [_planned(plan)]
    emit(Document("ArchivingList", _DONE if args.yes else _PLANNED, found), args.output)
    if not found:
        note("nothing may leave yet" if args.now else "nothing is due to be archived; --now takes whatever may leave")
    elif not args.yes:
        note("nothing was changed; --yes does it")
    return exits.GOOD


def _planned(plan: ServicePlan) -> dict[str, Any]:
    facts = {"why": plan.why, "filesBefore": plan.files_before, "filesAfter": plan.files_after}
    return facts | {"instants": list(plan.details)}


def _done(result: ServiceResult) -> dict[str, Any]:
    return {"message": result.message} | {name: round(value) for name, value in result.figures.items()}
