"""`hudictl checkpoint show|set|replay-plan BASE`: how far the ingests of a table are, as its
commits say; where one is to go on; and what one has passed over."""

from __future__ import annotations

import argparse
import os
import pwd
import socket
from contextlib import suppress
from typing import Any

from hudi_table.api import open_table
from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.program import storage_options
from hudi_table.cli.queries import replay_plan
from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import KEY_PREFIX, Checkpoint, key_of
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.positions import Positions, streamer_text
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.shards import ShardPositions, streamer_shards
from hudi_table.model.job.upstream import Upstream
from hudi_table.services.setting_checkpoints.audit import CheckpointSet, checkpoint_sets
from hudi_table.services.setting_checkpoints.places import Sources, set_checkpoint
from hudi_table.sources.checkpoints import all_checkpoints, checkpoint_at, read_any, source_of
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.archived import under
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists

_TOPICS = "; "
_COLUMNS = (
    Column("ingest", "INGEST"),
    Column("source", "SOURCE"),
    Column("instant", "INSTANT"),
    Column("checkpoint", "CHECKPOINT"),
    Column("setBy", "SET BY"),
    Column("setInstant", "SET IN", wide=True),
    Column("setBefore", "IN PLACE OF", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Set one if asked, then print them."""
    table = opened(args)
    if args.action == "set":
        if not args.ingest or bool(args.offsets) == bool(args.from_commit):
            raise InvalidOptionError(
                "checkpoint set needs INGEST and OFFSETS, such as: set lake/orders feed orders,0:120,1:98 "
                "(of Kinesis orders,shardId-000000000000:495), or --from-commit INSTANT in place of OFFSETS"
            )
        before = _named(table.context, args.ingest)
        for text in [args.offsets] if args.offsets else _of_commit(table.context, args.ingest, args.from_commit):
            done = set_checkpoint(
                table.context,
                args.ingest,
                text,
                by=_whose(),
                again=args.yes,
                kind=args.type or "",
                sources=_sources(args),
            )
            note(f"{args.ingest} goes on at {text}, as {done.instant} says")
        if not before:
            others = ", ".join(each for each in _named(table.context) if each not in ("", args.ingest))
            note(f"it had no checkpoint before{f'; those of {others} stay as they are' if others else ''}")
    elif args.action == "replay-plan":
        return replay_plan.show(table.context, args)
    elif args.offsets or args.of or args.type or args.from_commit:
        raise InvalidOptionError("OFFSETS, --from-commit, --of and --type belong to checkpoint set; leave them out")
    rows = with_relists(table.context, lambda: _rows(table.context, args.ingest))
    emit(Document("CheckpointList", _COLUMNS, rows), args.output)
    return exits.GOOD


def _whose() -> str:
    """User and machine of this process, in a pod the pod's name. Variables of the environment say
    nothing of it, and a user without an entry is called by its number."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def _of_commit(ctx: TableContext, ingest: str, instant: str) -> list[str]:
    """The checkpoint that a commit of the table holds, as `checkpoint set` takes it; of several
    topics each."""
    text = with_relists(ctx, lambda: checkpoint_at(ctx, ingest, under(key_of(ingest)), instant))
    source, said = _told(ctx, ingest, instant, text)
    return said.split(_TOPICS) if source == "Kafka" else [said]


def _sources(args: argparse.Namespace) -> Sources:
    """Where a checkpoint speaks of is looked at with the options of the table's store."""
    if not args.of:
        return Sources()
    options = storage_options(args.storage)
    return Sources(lambda: open_storage(args.of, options), lambda: open_table(args.of, storage_options=options).context)


def _named(ctx: TableContext, only: str | None = None) -> list[str]:
    """Names of the ingests that have a checkpoint, "" for Hudi Streamer's; of one alone, if it is
    named."""
    return [_name(key) for key, _, _ in with_relists(ctx, lambda: all_checkpoints(ctx, only))]


def _name(key: str) -> str:
    return key.removeprefix(KEY_PREFIX) if key.startswith(KEY_PREFIX) else ""


def _rows(ctx: TableContext, only: str | None) -> list[dict[str, Any]]:
    found, sets = [], checkpoint_sets(ctx)
    for key, instant, text in all_checkpoints(ctx, only):
        name = _name(key)
        source, said = _told(ctx, name, instant, text)
        row = {"ingest": name or None, "source": source, "instant": instant, "checkpoint": said}
        found.append(row | _audit(ctx, name, *sets.get(name, ("", None))))
    return found


def _audit(ctx: TableContext, ingest: str, instant: str, last: CheckpointSet | None) -> dict[str, str | None]:
    """Who has set a checkpoint last, and in place of what."""
    before = None
    if last is not None and last.before is not None:
        with suppress(CorruptTableError):
            before = _told(ctx, ingest, instant, last.before)[1]
    return {"setBy": last.by if last is not None else None, "setInstant": instant or None, "setBefore": before}


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
    return source, _TOPICS.join(said for said in each if said is not None)
