"""`hudictl clean BASE`: what cleaning would delete, and with `--yes` its deletion."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import approves, opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.model.counts import counted
from hudi_table.model.service.services import ServiceResult
from hudi_table.read.output.human import number, size
from hudi_table.services.cleaning.policy import READERS, CleanOptions
from hudi_table.services.cleaning.service import CleaningService

_PLANNED = (Column("partition", "PARTITION"), Column("what", "WHAT"))
_DONE = (
    Column("instant", "INSTANT"),
    Column("filesDeleted", "DELETED", number, right=True),
    Column("bytesFreed", "FREED", size, right=True),
    Column("filesFailed", "FAILED", number, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the plan per partition, or what was deleted."""
    service = opened(args).services.cleaning(option_arguments(args.option), force=True, plan=args.plan or "")
    approves(args)
    if not args.yes:
        return _dry_run(service, args)
    done = service.run()
    emit(Document("CleanList", _DONE, [_row(found) for found in done]), args.output)
    if not done:
        _note_nothing(service)
    for found in done:
        if found.figures["filesFailed"]:
            note(f"{found.instant}: {found.message}")
    return exits.FINDINGS if any(found.figures["filesFailed"] for found in done) else exits.GOOD


def _dry_run(service: CleaningService, args: argparse.Namespace) -> int:
    plan = service.plan()
    lines = [] if plan is None else [line.rpartition(": ") for line in plan.details]
    rows = [{"partition": partition, "what": what} for partition, _, what in lines]
    emit(Document("CleanPlan", _PLANNED, rows), args.output)
    for instant in service.pending():
        note(f"the clean {instant} waits and would be finished first")
    if plan is None:
        _note_policy(service)
    else:
        files = plan.files_before - plan.files_after
        note(
            f"{counted(files, 'file')} would be deleted and {size(plan.bytes_freed)} freed ({plan.why}); --yes deletes what is due "
            f"then, --yes --plan {plan.digest} with the same options exactly these"
        )
    return exits.GOOD


def _note_nothing(service: CleaningService) -> None:
    left = service.plan() if not service.request.plan else None
    if left is None:
        _note_policy(service)
    else:
        files = counted(left.files_before - left.files_after, "file")
        note(f"{files} held back by {READERS}, who may need what was superseded since: clean again in a minute")


def _note_policy(service: CleaningService) -> None:
    note(f"nothing to delete ({CleanOptions.parse(service.request.options)})")


def _row(result: ServiceResult) -> dict[str, object]:
    figures = {name: int(value) for name, value in result.figures.items()}
    return {"instant": result.instant, **figures}
