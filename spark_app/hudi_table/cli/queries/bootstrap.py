"""`hudictl bootstrap BASE SOURCE`: a new table of Parquet files that stay where they are."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hudi_table.bootstrapping import bootstrap_table
from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import described_table
from hudi_table.cli.output import Column, Document, emit
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
            mode=args.mode,
            pattern=args.pattern,
            version=args.table_version,
            progress=progress,
            **described_table(args),
        )
    row = {**asdict(done), "bytesWritten": done.bytes_written}
    del row["bytes_written"]
    emit(Document("Bootstrap", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD
