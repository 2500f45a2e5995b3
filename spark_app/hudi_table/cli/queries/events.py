"""`hudictl events BASE`: the commits that completed after an instant, in the order in which
callbacks send them."""

from __future__ import annotations

import argparse
import json
import sys

from hudi_table.callbacks.cloud_events import body_of, data_of, event_of, rfc3339
from hudi_table.callbacks.commits import Page, Told, commits_after
from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.position import Position
from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.read.moments import EARLIEST
from hudi_table.read.output.human import number, size
from hudi_table.table.timeline.context import TableContext

_COLUMNS = (
    Column("instant", "Instant"),
    Column("action", "Action"),
    Column("operation", "Operation"),
    Column("kind", "Kind", wide=True),
    Column("completed", "Completed"),
    Column("rowsWritten", "Rows", number, right=True),
    Column("rowsInserted", "Inserted", number, wide=True, right=True),
    Column("rowsUpdated", "Updated", number, wide=True, right=True),
    Column("rowsDeleted", "Deleted", number, wide=True, right=True),
    Column("files", "Files", number, right=True),
    Column("bytesWritten", "Written", size, right=True),
    Column("partitions", "Partitions", number, wide=True, right=True),
    Column("schemaChanged", "Schema changed"),
    Column("checkpoints", "Checkpoints", lambda held: json.dumps(held) if held else "-", wide=True),
    Column("position", "Position", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Print a line for each commit, and where to go on."""
    table = opened(args)
    ctx = table.context
    page = Page((), Position.parse(args.since or EARLIEST, ctx.config.timezone), more=True)
    told: list[Told] = []
    while page.more and (args.limit is None or len(told) < args.limit):
        page = commits_after(ctx, page.position, kinds=kinds_of(args))
        told += page.told
    if args.limit is not None and len(told) > args.limit:
        told = told[: args.limit]
        page = Page((), told[-1].position if told else page.position, more=True)
    show(ctx, Page(tuple(told), page.position, page.more), args)
    return exits.GOOD


def kinds_of(args: argparse.Namespace) -> tuple[CommitKind, ...]:
    """Writes; with `--rewrites` what moves rows without changing them, too."""
    return tuple(CommitKind) if args.rewrites else (CommitKind.WRITE,)


def show(ctx: TableContext, page: Page, args: argparse.Namespace) -> None:
    """Print commits, on stderr the position behind them."""
    if args.cloudevents:
        for each in page.told:
            sys.stdout.write(body_of(event_of(ctx, each.commit)).decode() + "\n")
    else:
        rows = [
            {**data_of(each.commit), "completed": rfc3339(each.commit.completed), "position": str(each.position)}
            for each in page.told
        ]
        emit(Document("CommitList", _COLUMNS, rows), args.output)
    note(f"go on with --since {page.position}")
