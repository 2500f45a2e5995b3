"""Setting where an ingest from Kafka or Kinesis goes on, by what Hudi Streamer would write."""

from __future__ import annotations

from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.positions import Positions, TopicPositions, parse_streamer
from hudi_table.model.job.shards import ShardPosition, ShardPositions, of_streamer_shards
from hudi_table.services.ingesting import Ingest
from hudi_table.services.inline import ENABLED as SERVICES
from hudi_table.services.setting_checkpoints.audit import audit_of, check_back, schema_of
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import Held, HeldPositions, current_positions, current_shards, positions_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.result import CommitResult


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
    check_back(ctx, positions_of(ingest, name), back, again=again)
    schema = schema_of(ctx)
    before = None
    if held is not None:
        before = (held.positions if isinstance(held, HeldPositions) else held.checkpoint).to_text()
    audit = audit_of(ingest, by, before)
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
    known = before.of(topic) or TopicPositions("", {})
    topics = {**before.topics, topic: TopicPositions(known.id, {**known.offsets, **offsets})}
    found = [partition for partition, offset in offsets.items() if offset < known.offsets.get(partition, 0)]
    back = ""
    if found:
        back = f"partition {found[0]} of topic {topic} is at offset {known.offsets[found[0]]}, and {offsets[found[0]]} lies before it"
    away = {name: each for name, each in before.away.items() if name != topic}
    positions = replace(before, topics=topics, attempt="", newest=-1, ended="", skipped=(), away=away)
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
