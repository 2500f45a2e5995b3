"""`hudictl ttl BASE --days N`: which partitions have outlived their time, and with `--yes` their
end by one commit."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import approves, opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.read.output.human import number, size
from hudi_table.services.cleaning.ttl import DAYS

_PLANNED = (Column("partition", "PARTITION"),)
_DONE = (
    Column("instant", "INSTANT"),
    Column("partitions", "DROPPED", number, right=True),
    Column("fileGroups", "FILE GROUPS", number, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the partitions that would be dropped, or how many were."""
    options = option_arguments(args.option)
    if args.days is not None and options.setdefault(DAYS, str(args.days)) != str(args.days):
        raise InvalidOptionError(f"--days says {args.days} and --option {DAYS}={options[DAYS]}; give one of them")
    approves(args)
    service = opened(args).services.partition_ttl(options, plan=args.plan)
    if args.yes:
        done = service.run()
        rows = [{"instant": each.instant, **{name: int(n) for name, n in each.figures.items()}} for each in done]
        emit(Document("PartitionTTLList", _DONE, rows), args.output)
        note("a clean frees their files" if done else service.nothing)
        return exits.GOOD
    plan = service.plan()
    emit(
        Document("PartitionTTLPlan", _PLANNED, [{"partition": each} for each in plan.details] if plan else []),
        args.output,
    )
    if plan is None:
        note(service.nothing)
    else:
        note(
            f"{plan.why}: {counted(plan.file_groups, 'file group')}, {size(plan.bytes_freed)}, would be dropped; --yes drops what is due "
            f"then, --yes --plan {plan.digest} with the same options exactly these"
        )
    return exits.GOOD
