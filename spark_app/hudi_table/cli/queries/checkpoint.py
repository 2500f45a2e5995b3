"""`hudictl checkpoint show|set|replay-plan BASE`: how far the ingests of a table are, as its
commits say; where one is to go on; and what one has passed over."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from hudi_table.api import open_table
from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.program import storage_options
from hudi_table.cli.queries import replay_plan
from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import KEY_PREFIX, Checkpoint
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.positions import Positions, streamer_text
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.shards import ShardPositions, streamer_shards
from hudi_table.model.job.upstream import Upstream
from hudi_table.services.setting_checkpoints.places import Sources, set_checkpoint
from hudi_table.sources.checkpoints import all_checkpoints, read_any, source_of
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists

_COLUMNS = (
    Column("ingest", "INGEST"),
    Column("source", "SOURCE"),
    Column("instant", "INSTANT"),
    Column("checkpoint", "CHECKPOINT"),
)


def run(args: argparse.Namespace) -> int:
    """Set one if asked, then print them."""
    table = opened(args)
    if args.action == "set":
        if not args.ingest or not args.offsets:
            raise InvalidOptionError(
                "checkpoint set needs INGEST and OFFSETS, such as: set lake/orders feed orders,0:120,1:98 "
                "(of Kinesis orders,shardId-000000000000:495)"
            )
        before = {row["ingest"] for row in with_relists(table.context, lambda: _rows(table.context, None))}
        done = set_checkpoint(
            table.context,
            args.ingest,
            args.offsets,
            by=getpass.getuser(),
            again=args.yes,
            kind=args.type or "",
            sources=_sources(args),
        )
        note(f"{args.ingest} goes on at {args.offsets}, as {done.instant} says")
        if args.ingest not in before:
            others = ", ".join(sorted(filter(None, before)))
            note(f"it had no checkpoint before{f'; those of {others} stay as they are' if others else ''}")
    elif args.action == "replay-plan":
        return replay_plan.show(table.context, args)
    elif args.offsets or args.of or args.type:
        raise InvalidOptionError("OFFSETS, --of and --type belong to checkpoint set; leave them out")
    rows = with_relists(table.context, lambda: _rows(table.context, args.ingest))
    emit(Document("CheckpointList", _COLUMNS, rows), args.output)
    return exits.GOOD


def _sources(args: argparse.Namespace) -> Sources:
    """Where a checkpoint speaks of is looked at with the options of the table's store."""
    if not args.of:
        return Sources()
    options = storage_options(args.storage)
    return Sources(lambda: open_storage(args.of, options), lambda: open_table(args.of, storage_options=options).context)


def _rows(ctx: TableContext, only: str | None) -> list[dict[str, Any]]:
    found = []
    for key, instant, text in all_checkpoints(ctx):
        name = key.removeprefix(KEY_PREFIX) if key.startswith(KEY_PREFIX) else ""
        if only is not None and name != only:
            continue
        source, said = _told(ctx, name, instant, text)
        found.append({"ingest": name or None, "source": source, "instant": instant, "checkpoint": said})
    return found


def _told(ctx: TableContext, name: str, instant: str, text: str) -> tuple[str, str]:
    """(source, checkpoint in few words)."""
    if not name:
        return "HudiStreamer", text
    held, source = read_any(ctx, name, instant, text), source_of(text)
    match held:
        case Mark():
            return source, f"{held.column} {held.value}" if held.column else counted(held.rows, "row")
        case Upstream():
            return source, f"{held.table} {held.instant}"
        case QueryMark():
            return source, f"{held.column} {held.value}" if held.column else counted(len(held.tables), "table")
        case CustomMark():
            return source, f"{held.source} {held.position}"
        case ShardPositions():
            return source, streamer_shards(held) or f"{held.stream} before its first record"
        case Checkpoint():
            return source, counted(len(held.consumed), "file")
    topics = sorted(held.topics.items())
    each = [streamer_text(Positions("", {name: topic})) for name, topic in topics]
    return source, "; ".join(said for said in each if said is not None)
