"""`hudictl resize BASE BUCKETS`: what another number of buckets costs, and with `--yes` the rewrite."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.read.output.human import number, size

_COLUMNS = (
    Column("instant", "INSTANT"),
    Column("done", "DONE"),
    Column("fileGroups", "FILE GROUPS", number, right=True),
    Column("filesBefore", "FILES", number, right=True),
    Column("filesAfter", "BECOME", number, right=True),
    Column("rowsWritten", "ROWS", number, right=True),
    Column("bytesRead", "READ", size, right=True),
    Column("bytesWritten", "WRITTEN", size, right=True),
    Column("digest", "PLAN"),
    Column("details", "PARTITIONS", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the plan, or carry out what waits or is planned now."""
    table, options = opened(args), option_arguments(args.option)
    details: tuple[str, ...] = ()
    if args.yes:
        done = table.resize_buckets(args.buckets, plan=args.plan, options=options)
        found: dict[str, Any] = {key: int(value) for key, value in done.figures.items() if key != "seconds"}
        found |= {"instant": done.instant, "done": done.message}
    else:
        plan = table.plan_resize(args.buckets)
        details = plan.details
        found = {
            "instant": "",
            "done": f"would be done: {plan.why}",
            "fileGroups": plan.file_groups,
            "filesBefore": plan.files_before,
            "filesAfter": plan.files_after,
            "bytesRead": plan.bytes_read,
            "bytesWritten": plan.bytes_written,
            "digest": plan.digest,
            "details": list(plan.details),
        }
    emit(Document("ResizeList", _COLUMNS, [found]), args.output)
    for line in details:
        note(line)
    if not args.yes:
        note("nothing was changed; --yes does it, and until it has ended the table takes no writes")
    return exits.GOOD
