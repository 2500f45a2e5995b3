"""`hudictl metadata BASE`: what the metadata table holds and whether it agrees; with `--yes`,
building it, dropping it or an index of it."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import belongs_to, opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import is_defined, short_name
from hudi_table.model.table.properties import METADATA_DROPPED, PARTITION_DROPPED
from hudi_table.read.output.human import number, size
from hudi_table.services.metadata.defined import drop_indexes, there_of
from hudi_table.services.metadata.report import PartitionReport, report
from hudi_table.table.timeline.context import TableContext

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
    changes = args.build or args.drop or bool(args.drop_index)
    belongs_to("--build, --drop or --drop-index", changes, yes=args.yes)
    table, options = opened(args), option_arguments(args.option)
    gone = _gone(table.context, args.drop_index) if args.drop_index else []
    building = table.services.indexing(args.index, options) if args.build else None
    plan = building.plan() if building is not None and not args.yes else None
    if building is not None and args.yes:
        building.run()
    if args.yes and args.drop:
        table.drop_metadata()
    if args.yes and gone:
        drop_indexes(table.context, args.drop_index)
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
    for name in gone if not args.yes else ():
        note(f"would drop {name}")
    if (args.build or gone or (args.drop and found)) and not args.yes:
        note("nothing was changed; --yes does it")
    return exits.FINDINGS if wrong else exits.GOOD


def _gone(ctx: TableContext, names: list[str]) -> list[str]:
    """The partitions of the indexes of these names. Raises InvalidRequestError for a name of
    none."""
    for name in names:
        if not there_of(ctx, [name]):
            known = [short_name(each) for each in read_partitions(ctx).all if is_defined(each)]
            said = f"there are {', '.join(sorted(known))}" if known else "there is none with a name"
            raise InvalidRequestError(f"the table has no index {name!r}; {said}", base_path=ctx.base_path)
    return there_of(ctx, names)


def _row(item: PartitionReport) -> dict[str, object]:
    return {
        "partition": item.partition,
        "state": item.state,
        "fileGroups": item.file_groups,
        "logs": item.logs,
        "bytes": item.bytes,
    }
