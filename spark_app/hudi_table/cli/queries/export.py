"""`hudictl export BASE TARGET`: the rows of a table as files of another form."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit
from hudi_table.cli.program import storage_options
from hudi_table.cli.queries.read import asked
from hudi_table.read.output.human import number

_COLUMNS = (
    Column("target", "Target"),
    Column("rows", "Rows", number),
    Column("files", "Files", number),
    Column("nextSince", "Next since"),
)


def run(args: argparse.Namespace) -> int:
    """Write the files, and say where an incremental export goes on."""
    columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
    folders = [name.strip() for name in args.partition_by.split(",")] if args.partition_by else []
    options = storage_options(args.target_storage)
    done = asked(args, columns, args.limit).export(
        args.target, args.format, partition_by=folders, storage_options=options
    )
    row = {**asdict(done), "nextSince": done.next_since or "earliest"}
    del row["next_since"]
    emit(Document("Export", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD
