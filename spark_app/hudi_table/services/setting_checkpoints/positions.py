"""Setting where an ingest from Kafka or Kinesis goes on, by what Hudi Streamer would write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions, TopicPositions, parse_streamer
from hudi_table.model.job.shards import ShardPosition, ShardPositions, of_streamer_shards
from hudi_table.model.job.streamer import StreamerBegin
from hudi_table.services.ingesting import Ingest
from hudi_table.services.inline import ENABLED as SERVICES
from hudi_table.services.setting_checkpoints.audit import CheckpointSet, check_back, schema_of
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import Held, HeldPositions, current_positions, current_shards, positions_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import newest_with
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.write.result import CommitResult


def set_positions(ctx: TableContext, ingest: str, text: str, *, by: str, again: bool = False) -> CommitResult:
    """Make an ingest from Kafka or Kinesis go on at another place: a commit without rows holds it,
    and who set it in place of what.

    `text`: of one topic or stream, as Hudi Streamer writes it. A topic that the checkpoint knows
    keeps its id, as does a stream, and partitions or shards that the text does not name their
    places. Hudi Streamer is told of it where the ingest has told it before: of a range beside a job
    of Hudi Streamer it never is. `again`: rows may be taken a second time, though the ingest
    inserts them without looking for their keys. Raises InvalidRequestError for a text that is none,
    and for such a step back without `again`; CorruptTableError where the ingest's checkpoint is of
    another source.
    """
    tells = _tells_streamer(ctx, ingest)
    # What Hudi Streamer has come to is nothing to a range beside it.
    name = text.strip().partition(",")[0] if tells is not False else None
    held, positions, back, topic = (_shards_of if ",shardId-" in text else _offsets_of)(ctx, ingest, text, name)
    check_back(ctx, positions_of(ingest, name), back, again=again)
    schema = schema_of(ctx)
    before = None
    if held is not None:
        before = (held.positions if isinstance(held, HeldPositions) else held.checkpoint).to_text()
    audit = CheckpointSet(ingest, by, before).to_extra()
    kept = Ingest(ingest, topic, "upsert", {SERVICES: "false"}, shares=tells is True)
    nothing = schema.empty_table().to_reader()
    if isinstance(positions, ShardPositions):
        return kept.commit(ctx, Rows(schema, nothing, positions, 0), held, more=audit)
    return kept.commit(ctx, Rows(schema, nothing, positions, 0), held, more=audit)


def _tells_streamer(ctx: TableContext, ingest: str) -> bool | None:
    """Whether an ingest's newest commit tells Hudi Streamer where it is; None before its first."""

    def told(extra: Mapping[str, str]) -> str | None:
        return ("yes" if StreamerBegin.of(extra) is not None else "no") if key_of(ingest) in extra else None

    found = with_relists(ctx, lambda: newest_with(ctx, load_timeline(ctx), told))
    return found[1] == "yes" if found is not None else None


_Place = tuple[HeldPositions | Held[ShardPositions] | None, Positions | ShardPositions, str, str | None]
"""The checkpoint as it is, as it becomes, how that goes back (\"\" if it does not), and the one
topic or stream of which what Hudi Streamer has written counts (`seen`)."""


def _offsets_of(ctx: TableContext, ingest: str, text: str, seen: str | None) -> _Place:
    try:
        topic, offsets = parse_streamer(text)
    except ValueError as error:
        raise InvalidRequestError(f"the checkpoint {error}") from error
    held = current_positions(ctx, ingest, seen)
    before = held.positions if held is not None else Positions("", {})
    known = before.of(topic) or TopicPositions("", {})
    topics = {**before.topics, topic: TopicPositions(known.id, {**known.offsets, **offsets})}
    found = [partition for partition, offset in offsets.items() if offset < known.offsets.get(partition, 0)]
    back = ""
    if found:
        back = f"partition {found[0]} of topic {topic} is at offset {known.offsets[found[0]]}, and {offsets[found[0]]} lies before it"
    away = {name: each for name, each in before.away.items() if name != topic}
    positions = replace(before, topics=topics, attempt="", newest=-1, ended="", skipped=(), away=away)
    return held, positions, back, seen if len(topics) == 1 else None


def _shards_of(ctx: TableContext, ingest: str, text: str, seen: str | None) -> _Place:
    try:
        asked = of_streamer_shards(text)
    except ValueError as error:
        raise InvalidRequestError(f"the checkpoint {error}") from error
    held = current_shards(ctx, ingest, seen)
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
    return held, positions, back, seen


def _lies_before(asked: ShardPosition, known: ShardPosition | None) -> bool:
    return known is not None and bool(known.after) and int(asked.after) < int(known.after)
