"""`hudictl metadata BASE`: what the metadata table holds and whether it agrees; with `--yes`,
building or dropping it."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import belongs_to, opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.metadata.validate import differences
from hudi_table.model.table.properties import METADATA_DROPPED, PARTITION_DROPPED
from hudi_table.read.output.human import number, size
from hudi_table.services.metadata.report import PartitionReport, report

_COLUMNS = (
    Column("partition", "Partition"),
    Column("state", "State"),
    Column("fileGroups", "File groups", number, right=True),
    Column("logs", "Logs", number, right=True),
    Column("bytes", "Size", size, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the partitions after whatever was asked for; findings if the listing is wrong."""
    belongs_to("--build", args.build, index=args.index, option=args.option)
    belongs_to("--build or --drop", args.build or args.drop, yes=args.yes)
    table, options = opened(args), option_arguments(args.option)
    building = table.services.indexing(args.index, options) if args.build else None
    plan = building.plan() if building is not None and not args.yes else None
    if building is not None and args.yes:
        building.run()
    if args.yes and args.drop:
        table.drop_metadata()
    found = report(table.context)
    emit(Document("MetadataPartitionList", _COLUMNS, [_row(item) for item in found]), args.output)
    wrong = differences(table.context) if found else []
    for item in wrong[:3]:
        note(f"{item.path} {item.what}")
    why = table.context.config.extra.get(METADATA_DROPPED, "")
    if found and why.startswith(PARTITION_DROPPED):
        note(f"a write dropped {why}")
    if not found:
        note(f"there is no metadata table{f'; it was switched off: {why}' if why else ''}; --build --yes makes one")
    for line in plan.details if plan is not None else ():
        note(f"would {line}")
    if (args.build or (args.drop and found)) and not args.yes:
        note("nothing was changed; --yes does it")
    return exits.FINDINGS if wrong else exits.GOOD


def _row(item: PartitionReport) -> dict[str, object]:
    return {
        "partition": item.partition,
        "state": item.state,
        "fileGroups": item.file_groups,
        "logs": item.logs,
        "bytes": item.bytes,
    }
