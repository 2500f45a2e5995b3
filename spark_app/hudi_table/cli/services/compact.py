"""`hudictl compact BASE`: execute compactions that wait, and plan one if it is due."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError
from hudi_table.model.service.services import ServicePlan, ServiceResult, ServiceType
from hudi_table.read.output.human import number, size

_COLUMNS = (
    Column("instant", "INSTANT"),
    Column("done", "DONE"),
    Column("fileGroups", "FILE GROUPS", number, right=True),
    Column("logFiles", "LOG FILES", number, right=True),
    Column("rowsWritten", "ROWS", number, right=True),
    Column("bytesWritten", "WRITTEN", size, right=True),
)
_DONE = {ServiceType.COMPACTION: "compacted", ServiceType.LOG_COMPACTION: "logs compacted"}


def run(args: argparse.Namespace) -> int:
    """Print what was planned or executed, oldest first."""
    services, options = opened(args).services, option_arguments(args.option)
    logs = args.logs or args.verb == "log-compaction"
    if logs and args.schedule:
        raise InvalidOptionError("--schedule plans compactions of base files; leave --logs out, or --schedule")
    service = (services.log_compaction if logs else services.compaction)(options, force=args.now)
    if args.schedule:
        plan = service.schedule()
        found = [] if plan is None else [_planned(plan)]
    else:
        with bar() as progress:
            found = [_executed(result) for result in service.run(progress=progress)]
    emit(Document("CompactionList", _COLUMNS, found), args.output)
    if not found:
        left = "nothing is left to compact" if args.now else "none is due; --now plans one for all logs that there are"
        note(f"no compaction waits, and {left}")
    return exits.GOOD


def _planned(plan: ServicePlan) -> dict[str, Any]:
    return {
        "instant": plan.instant,
        "done": f"planned, {plan.why}",
        "fileGroups": plan.file_groups,
        "logFiles": plan.log_files,
        "rowsWritten": None,
        "bytesWritten": None,
    }


def _executed(result: ServiceResult) -> dict[str, Any]:
    figures = {name: int(value) for name, value in result.figures.items()}
    return {"instant": result.instant, "done": _DONE[result.service], **figures}
