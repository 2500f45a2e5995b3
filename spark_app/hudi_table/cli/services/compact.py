"""`hudictl compact BASE`: execute compactions that wait, and plan one if it is due."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from hudi_table.api import HudiTable
from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import given_options, opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError
from hudi_table.read.output.human import number, size

_COLUMNS = (
    Column("instant", "INSTANT"),
    Column("done", "DONE"),
    Column("fileGroups", "FILE GROUPS", number, right=True),
    Column("logFiles", "LOG FILES", number, right=True),
    Column("rowsWritten", "ROWS", number, right=True),
    Column("bytesWritten", "WRITTEN", size, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print what was planned or executed, oldest first."""
    table, options = opened(args), given_options(args.option)
    if args.logs and args.schedule:
        raise InvalidOptionError("--schedule plans compactions of base files; leave --logs out, or --schedule")
    items = [_planned(table, options, args.now)] if args.schedule else _executed(table, options, args)
    found = [item for item in items if item is not None]
    emit(Document("CompactionList", _COLUMNS, found), args.output)
    if not found:
        note("no compaction waits or is due; --now plans one for all logs that there are")
    return exits.GOOD


def _planned(table: HudiTable, options: dict[str, str], force: bool) -> dict[str, Any] | None:
    plan = table.schedule_compaction(options, force=force)
    if plan is None:
        return None
    return {
        "instant": plan.instant,
        "done": f"planned, {plan.why}",
        "fileGroups": plan.file_groups,
        "logFiles": plan.log_files,
        "rowsWritten": None,
        "bytesWritten": None,
    }


def _executed(table: HudiTable, options: dict[str, str], args: argparse.Namespace) -> list[dict[str, Any]]:
    work = table.compact_logs if args.logs else table.compact
    names = {"file_groups": "fileGroups", "log_files": "logFiles", "rows_written": "rowsWritten"}
    names |= {"bytes_written": "bytesWritten", "instant": "instant"}
    found = []
    with bar() as progress:
        results = work(options, force=args.now, progress=progress)
    for result in results:
        fields = asdict(result)
        item = {names[name]: fields[name] for name in names}
        found.append(item | {"done": "logs compacted" if args.logs else "compacted"})
    return found
