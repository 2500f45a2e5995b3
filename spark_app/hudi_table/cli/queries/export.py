"""`hudictl export BASE TARGET`: the rows of a table as files of another form."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit
from hudi_table.cli.program import storage_options
from hudi_table.cli.queries.read import asked
from hudi_table.errors import InvalidOptionError
from hudi_table.read.output.export import ExportResult
from hudi_table.read.output.exports import ArrowResult
from hudi_table.read.output.human import number
from hudi_table.read.scan import Scan

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
    rows = asked(args, columns, args.limit)
    if args.format == "hudi":
        done = _table(rows, args.target, folders or None, options)
    else:
        done = rows.export(args.target, args.format, partition_by=folders, storage_options=options)
    row = {**asdict(done), "nextSince": done.next_since}
    del row["next_since"]
    emit(Document("Export", _COLUMNS, [row], single=True), args.output)
    return exits.GOOD


def _table(
    rows: ArrowResult, target: str, partition_by: list[str] | None, options: dict[str, str] | None
) -> ExportResult:
    """A table like that of the rows. Raises what `import_table` does."""
    from hudi_table.importing import import_table

    if not isinstance(rows, Scan):
        raise InvalidOptionError("--format hudi does not go with --query cdc: changes are no rows of a table")
    next_since = rows.next_since()
    done = import_table(target, rows, partition_by=partition_by, storage_options=options)
    return ExportResult(done.table, done.rows, done.files, next_since())
