"""`hudictl resize BASE BUCKETS`: what another number of buckets costs, and with `--yes` the
rewrite."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import approves, opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.services.rewrites import COLUMNS, planned

_COLUMNS = (*COLUMNS, Column("digest", "PLAN"), Column("details", "PARTITIONS", wide=True))


def run(args: argparse.Namespace) -> int:
    """Print the plan, or carry out what waits or is planned now."""
    approves(args)
    table, options = opened(args), option_arguments(args.option)
    details: tuple[str, ...] = ()
    if args.yes:
        done = table.resize_buckets(args.buckets, plan=args.plan, options=options)
        row: dict[str, Any] = {key: int(value) for key, value in done.figures.items() if key != "seconds"}
        row |= {"instant": done.instant, "done": done.message}
    else:
        plan = table.plan_resize(args.buckets, options)
        details = plan.details
        row = {**planned(plan, "would be done: "), "digest": plan.digest}
    emit(Document("ResizeList", _COLUMNS, [row]), args.output)
    for line in details:
        note(line)
    if not args.yes:
        note("nothing was changed; --yes does it, and until it has ended the table takes no writes")
    return exits.GOOD
