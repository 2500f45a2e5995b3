"""`hudictl bootstrap BASE SOURCE`: a new table of Parquet files that stay where they are."""

from __future__ import annotations

import argparse

from hudi_table.bootstrapping import bootstrap_table
from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import option_arguments
from hudi_table.cli.output import Column, Document, emit
from hudi_table.cli.program import storage_options
from hudi_table.read.output.human import number, size

_COLUMNS = (
    Column("table", "Table"),
    Column("source", "Source"),
    Column("version", "Version"),
    Column("rows", "Rows", number),
    Column("skeletons", "Files left", number),
    Column("copied", "Files copied", number),
    Column("partitions", "Partitions", number),
    Column("bytesWritten", "Written", size),
    Column("replayed", "Was there already"),
)


def run(args: argparse.Namespace) -> int:
    """Bootstrap, and say what was done."""
    with bar() as progress:
        done = bootstrap_table(
            args.base,
            args.source,
            record_key=_names(args.record_key),
            mode=args.mode,
            pattern=args.pattern,
            partition_by=None if args.partition_by is None else _names(args.partition_by),
            ordering_fields=_names(args.ordering_fields) or None,
            type=args.type,
            index=args.index,
            options=option_arguments(args.option),
            storage_options=storage_options(args.storage),
            progress=progress,
        )
    row = {
        "table": done.table,
        "source": done.source,
        "version": done.version,
        "rows": done.rows,
        "skeletons": done.skeletons,
        "copied": done.copied,
        "partitions": done.partitions,
        "bytesWritten": done.bytes_written,
        "replayed": done.replayed,
    }
    emit(Document("Bootstrap", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
