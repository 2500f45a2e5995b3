"""From rows of a source to a commit that also holds how far the ingest is: both or neither, once.

Of all who go on from one checkpoint one commits: the batch is named by the commit that holds it, a
name that excludes another decision of the same, and the write's own snapshot must still show that
commit as the newest with a checkpoint. So a driver that slept, or a second one, commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions, TopicPositions, commit_keys, parse_streamer
from hudi_table.model.job.shards import ShardPosition, ShardPositions, of_streamer_shards
from hudi_table.model.job.shards import commit_keys as shard_keys
from hudi_table.services.inline import ENABLED as SERVICES
from hudi_table.services.inline import check_inline, run_inline
from hudi_table.services.validating.asked import with_validators
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import Held, HeldPositions, current_positions, current_shards, positions_of
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import Holds, under
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.write.checks.follows import Follows
from hudi_table.write.operations import WriteRequest, write
from hudi_table.write.result import CommitResult

MISSING_IS_NULL = {"hoodie.write.set.null.for.missing.columns": "true"}
"""Messages of a topic lack what came later, or what their producer left out."""
UPSERT = "UPSERT"
SET_KEY = "lakeops.checkpoint.set"
"""Of a commit that sets a checkpoint: who did so, and what it was before."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What a write of an ingest is given, so that it stands only behind the checkpoint that it goes
    on from."""

    batch: str
    follows: Follows


def behind(ingest: str, holds: Holds, instant: str | None, seen: frozenset[str] | None = None) -> Behind:
    """Of a write that goes on from the checkpoint of `instant`, None where there is none; `holds`
    finds checkpoints of the ingest; `seen`: see `Follows`."""
    return Behind(f"{ingest}@{instant or 'begin'}", Follows(holds, instant, seen))


def behind_held(ingest: str, held: Held[Any] | None) -> Behind:
    """Of a write that goes on from the checkpoint that was found, or begins; an ingest from Kafka
    has Hudi Streamer's, too."""
    return behind(ingest, under(key_of(ingest)), held.instant if held is not None else None)


def commit_behind(ctx: TableContext, batches: Any, request: WriteRequest, engine: Engine | None = None) -> CommitResult:
    """Write rows in this process, then do the services that the options ask for. Raises what
    `write_hudi` does: WriteConflictError where another commit moved the checkpoint."""
    check_inline(ctx, request.options)
    engine = engine or LocalEngine()
    result = write(ctx, batches, with_validators(request), engine)
    run_inline(ctx, result.instant, request.options, engine, max_memory=request.max_memory)
    return result


@dataclass(frozen=True, slots=True)
class Ingest:
    """One ingest of a table: its name, its only topic if it has one, or its stream, what it does
    with rows, and the options of its writes. `shares`: its positions are told Hudi Streamer too.
    `seen`: the commits of the moment when the rows of a batch were made of those of the table."""

    name: str
    topic: str | None
    operation: str
    options: Mapping[str, str]
    shares: bool = True
    seen: Callable[[], frozenset[str] | None] = lambda: None

    def commit(
        self,
        ctx: TableContext,
        rows: Rows[Positions] | Rows[ShardPositions],
        held: HeldPositions | Held[ShardPositions] | None,
        *,
        engine: Engine | None = None,
        more: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Write rows that go on from `held`; a commit without rows holds the positions all the
        same. `more` goes into its extra metadata.

        Raises what `write_hudi` does: WriteConflictError where another commit moved the checkpoint.
        """
        return commit_behind(ctx, rows.batches, self.request(ctx, rows.checkpoint, held, more), engine)

    def request(
        self,
        ctx: TableContext,
        found: Positions | ShardPositions,
        held: HeldPositions | Held[ShardPositions] | None,
        more: Mapping[str, str] | None = None,
    ) -> WriteRequest:
        """What such a write is to do and to record, whoever does it."""
        options = {**MISSING_IS_NULL, **self.options, "hoodie.allow.empty.commit": "true"}
        instant = held.instant if held is not None else None
        place = behind(self.name, positions_of(self.name, self.topic), instant, self.seen())
        key = key_of(self.name)
        held_keys = {key: found.to_text()}
        if self.shares and isinstance(found, ShardPositions):
            held_keys = shard_keys(key, found, ctx.layout.streamer_key)
        elif self.shares and isinstance(found, Positions):
            held_keys = commit_keys(key, found, ctx.layout.streamer_key)
        return WriteRequest(
            operation=self.operation,
            options=options,
            extra_metadata={**(more or {}), **held_keys},
            batch=place.batch,
            follows=place.follows,
        )


def set_positions(ctx: TableContext, ingest: str, text: str, *, by: str, again: bool = False) -> CommitResult:
    """Make an ingest from Kafka or Kinesis go on at another place: a commit without rows holds it,
    and who set it in place of what.

    `text`: of one topic or stream, as Hudi Streamer writes it. A topic that the checkpoint knows
    keeps its id, as does a stream, and partitions or shards that the text does not name their
    places. `again`: rows may be taken a second time, though the ingest inserts them without looking
    for their keys. Raises InvalidRequestError for a text that is none, and for such a step back
    without `again`; CorruptTableError where the ingest's checkpoint is of another source.
    """
    held, positions, back, topic = (_shards_of if ",shardId-" in text else _offsets_of)(ctx, ingest, text)
    name = text.strip().partition(",")[0]
    operation = _operation_of(ctx, positions_of(ingest, name)) if back and not again else UPSERT
    if operation != UPSERT:
        raise InvalidRequestError(
            f"{back}: the ingest's last commit is of operation {operation}, which does not look for keys, "
            "so rows that come again would be in the table twice; give --yes (again=True) if that is wanted"
        )
    schema = table_schema(ctx, load_timeline(ctx))
    if schema is None:
        raise InvalidRequestError(
            "the table has no schema yet: it takes a checkpoint once a first write has given it one"
        )
    before = None
    if held is not None:
        before = (held.positions if isinstance(held, HeldPositions) else held.checkpoint).to_text()
    audit = {SET_KEY: json.dumps({"ingest": ingest, "by": by, "before": before})}
    kept = Ingest(ingest, topic, "upsert", {SERVICES: "false"})
    nothing = schema.empty_table().to_reader()
    if isinstance(positions, ShardPositions):
        return kept.commit(ctx, Rows(schema, nothing, positions, 0), held, more=audit)
    return kept.commit(ctx, Rows(schema, nothing, positions, 0), held, more=audit)


_Place = tuple[HeldPositions | Held[ShardPositions] | None, Positions | ShardPositions, str, str | None]
"""The checkpoint as it is, as it becomes, how that goes back (\"\" if it does not), and the one
topic or stream that Hudi Streamer could be told of."""


def _offsets_of(ctx: TableContext, ingest: str, text: str) -> _Place:
    try:
        topic, offsets = parse_streamer(text)
    except ValueError as error:
        raise InvalidRequestError(f"the checkpoint {error}") from error
    held = current_positions(ctx, ingest, topic)
    before = held.positions if held is not None else Positions("", {})
    known = before.topics.get(topic, TopicPositions("", {}))
    topics = {**before.topics, topic: TopicPositions(known.id, {**known.offsets, **offsets})}
    found = [partition for partition, offset in offsets.items() if offset < known.offsets.get(partition, 0)]
    back = ""
    if found:
        back = f"partition {found[0]} of topic {topic} is at offset {known.offsets[found[0]]}, and {offsets[found[0]]} lies before it"
    positions = replace(before, topics=topics, attempt="", newest=-1, ended="", skipped=())
    return held, positions, back, topic if len(topics) == 1 else None


def _shards_of(ctx: TableContext, ingest: str, text: str) -> _Place:
    try:
        asked = of_streamer_shards(text)
    except ValueError as error:
        raise InvalidRequestError(f"the checkpoint {error}") from error
    held = current_shards(ctx, ingest, asked.stream)
    before = held.checkpoint if held is not None else asked
    if before.stream != asked.stream:
        # What stands in the shards of another stream says nothing of this one.
        before = replace(before, stream=asked.stream, id="", shards={})
    found = [name for name, each in asked.shards.items() if _lies_before(each, before.shards.get(name))]
    back = ""
    if found:
        at, after = before.shards[found[0]].after, asked.shards[found[0]].after
        back = f"shard {found[0]} of stream {asked.stream} is at {at}, and {after} lies before it"
    positions = replace(before, shards={**before.shards, **asked.shards}, attempt="", newest=-1)
    return held, positions, back, asked.stream


def _lies_before(asked: ShardPosition, known: ShardPosition | None) -> bool:
    return known is not None and bool(known.after) and int(asked.after) < int(known.after)


def _operation_of(ctx: TableContext, holds: Holds) -> str:
    """Hudi's name of what the ingest's newest commit did that took rows; of an archived one it is
    not known."""
    for instant in reversed(load_timeline(ctx).commits):
        found = commit_metadata(ctx, instant)
        if holds(found.extra_metadata) is not None and SET_KEY not in found.extra_metadata:
            return found.operation_type
    return "unknown"
