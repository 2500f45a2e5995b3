"""`hudictl savepoint BASE`: the commits that are kept from cleaning; one more, or one less."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from hudi_table.cli import exits
from hudi_table.cli.opened import belongs_to, opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError
from hudi_table.read.output.human import number
from hudi_table.table.view.savepoints import Savepoint

_COLUMNS = (
    Column("instant", "INSTANT"),
    Column("files", "FILES", number, right=True),
    Column("by", "BY"),
    Column("at", "MADE"),
    Column("comment", "COMMENT"),
)
NEWEST = "newest"


def run(args: argparse.Namespace) -> int:
    """Make or delete one if asked, then print all."""
    table = opened(args)
    if args.create is not None and args.delete is not None:
        raise InvalidOptionError("--create and --delete exclude each other; give one of them")
    belongs_to("--delete", args.delete is not None, writers_stopped=args.writers_stopped)
    belongs_to("--create", args.create is not None, comment=args.comment)
    if args.create is not None:
        done = table.savepoint("" if args.create == NEWEST else args.create, comment=args.comment)
        note(done.message)
    elif args.delete is not None:
        table.delete_savepoint(args.delete, writers_stopped=args.writers_stopped)
    emit(Document("SavepointList", _COLUMNS, [_row(found) for found in table.savepoints()]), args.output)
    return exits.GOOD


def _row(savepoint: Savepoint) -> dict[str, object]:
    made = datetime.fromtimestamp(savepoint.at_millis / 1000, UTC).isoformat(timespec="seconds")
    return {
        "instant": savepoint.instant,
        "files": sum(map(len, savepoint.files.values())),
        "by": savepoint.by,
        "at": made,
        "comment": savepoint.comment,
    }
