"""`hudictl import BASE SOURCE`: a new table with the rows of another."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import belongs_to, option_arguments
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
    index: Any = args.index
    if args.buckets is not None:
        index = {"type": args.index, "buckets": args.buckets}
    with bar() as progress:
        done = import_table(
            args.base,
            args.source,
            format=args.format,
            source_version=args.source_version,
            catalog=args.catalog,
            source_options=storage_options(args.source_storage),
            record_key=_names(args.record_key) or None,
            partition_by=None if args.partition_by is None else _names(args.partition_by),
            ordering_fields=_names(args.ordering_fields) or None,
            type=args.type,
            index=index,
            version=args.table_version,
            duplicates=args.duplicates,
            options=option_arguments(args.option),
            storage_options=storage_options(args.storage),
            lock=lock_options(args.lock),
            progress=progress,
        )
    row = {**asdict(done), "rowsRead": done.rows_read}
    del row["rows_read"]
    emit(Document("Import", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
