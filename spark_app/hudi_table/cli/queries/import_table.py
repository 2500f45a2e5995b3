"""`hudictl import BASE SOURCE`: a new table with the rows of another."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import belongs_to, described_table
from hudi_table.cli.output import Column, Document, emit
from hudi_table.cli.program import lock_options, storage_options
from hudi_table.importing import import_table
from hudi_table.read.output.human import number

_COLUMNS = (
    Column("table", "Table"),
    Column("instant", "Instant"),
    Column("source", "Source"),
    Column("form", "Form"),
    Column("version", "Version"),
    Column("rowsRead", "Rows read", number),
    Column("rows", "Rows", number),
    Column("files", "Files", number),
    Column("partitions", "Partitions", number),
    Column("replayed", "Was there already"),
)


def run(args: argparse.Namespace) -> int:
    """Import, and say what was imported."""
    belongs_to("--index", args.index, buckets=args.buckets)
    described = described_table(args)
    if args.buckets is not None:
        described["index"] = {"type": args.index, "buckets": args.buckets}
    with bar() as progress:
        done = import_table(
            args.base,
            args.source,
            format=args.format,
            source_version=args.source_version,
            catalog=args.catalog,
            source_options=storage_options(args.source_storage),
            version=args.table_version,
            duplicates=args.duplicates,
            lock=lock_options(args.lock),
            progress=progress,
            **described,
        )
    row = {**asdict(done), "rowsRead": done.rows_read}
    del row["rows_read"]
    emit(Document("Import", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD
