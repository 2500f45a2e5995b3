"""How far an ingest is, as its table tells: the newest commit that holds its checkpoint, our own or
Hudi Streamer's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from hudi_table.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.job.checkpoint import KEY_PREFIX, Checkpoint, find, key_of
from hudi_table.model.job.checkpoint_text import form_of
from hudi_table.model.job.custom import CUSTOM_FORMAT, CustomMark
from hudi_table.model.job.marks import MARKS_FORMAT, Mark
from hudi_table.model.job.positions import POSITIONS_FORMAT, Positions, of_streamer
from hudi_table.model.job.query_mark import QUERY_FORMAT, QueryMark
from hudi_table.model.job.shards import SHARDS_FORMAT, ShardPositions, of_streamer_shards
from hudi_table.model.job.streamer import STREAMER_KEYS, StreamerBegin
from hudi_table.model.job.upstream import UPSTREAM_FORMAT, Upstream
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.commit.publish import materialise_predecessors
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import Holds, archived_commits, archived_with, newest_with, under
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists

AnyCheckpoint = Checkpoint | Positions | ShardPositions | Mark | Upstream | QueryMark | CustomMark
C = TypeVar("C")
NAMED_MAX = 5
"""So many commits stand in a message."""


@dataclass(frozen=True, slots=True)
class HeldPositions:
    """Positions, and the instant of the commit that holds them. `streamer`: what a commit has told
    Hudi Streamer of its topic, None if none did."""

    positions: Positions
    instant: str
    streamer: StreamerBegin | None = None


@dataclass(frozen=True, slots=True)
class Held(Generic[C]):
    """The checkpoint of an ingest, and the instant of the commit that holds it. `streamer`: as of
    `HeldPositions`."""

    checkpoint: C
    instant: str
    streamer: StreamerBegin | None = None


def held_files(ctx: TableContext, ingest: str) -> Held[Checkpoint] | None:
    """The newest checkpoint of an ingest from files, None before its first commit. The archive is
    read only if the timeline has none.

    Raises CorruptTableError for a damaged checkpoint, and for one of another source.
    """
    return _held(ctx, ingest, read_checkpoint)


def held_mark(ctx: TableContext, ingest: str) -> Held[Mark] | None:
    """The same of an ingest from a database."""
    return _held(ctx, ingest, read_mark)


def held_upstream(ctx: TableContext, ingest: str) -> Held[Upstream] | None:
    """The same of an ingest from another table."""
    return _held(ctx, ingest, read_upstream)


def held_query(ctx: TableContext, ingest: str) -> Held[QueryMark] | None:
    """The same of an ingest from a statement over tables."""
    return _held(ctx, ingest, read_query)


def held_custom(ctx: TableContext, ingest: str) -> Held[CustomMark] | None:
    """The same of an ingest from a package's source."""
    return _held(ctx, ingest, read_custom)


@relists
def held_any(ctx: TableContext, ingest: str) -> tuple[str, Held[AnyCheckpoint]] | None:
    """The newest checkpoint under the name of an ingest, with the type of its source; None before
    its first commit. Raises CorruptTableError for a damaged one."""
    found = _newest(ctx, under(key_of(ingest)))
    if found is None:
        return None
    return source_of(found[1]), Held(read_any(ctx, ingest, *found), found[0])


@relists
def _held(ctx: TableContext, ingest: str, read: Callable[[TableContext, str, str, str], C]) -> Held[C] | None:
    found = _newest(ctx, under(key_of(ingest)))
    return Held(read(ctx, ingest, *found), found[0]) if found is not None else None


def current_checkpoint(ctx: TableContext, ingest: str) -> Checkpoint | None:
    """`held_files` without its commit."""
    held = held_files(ctx, ingest)
    return held.checkpoint if held is not None else None


@relists
def current_positions(ctx: TableContext, ingest: str, topic: str | None) -> HeldPositions | None:
    """The newest positions of an ingest from Kafka, None before its first commit.

    `topic`: the ingest's only one, for which what Hudi Streamer has written counts too, if it is
    newer. Raises CorruptTableError for a damaged checkpoint, and for one of another source.
    """
    found = _newest_told(ctx, ingest, topic)
    return HeldPositions(read_positions(ctx, ingest, *found[0]), found[0][0], found[1]) if found is not None else None


@relists
def current_shards(ctx: TableContext, ingest: str, stream: str | None) -> Held[ShardPositions] | None:
    """The same of an ingest from Kinesis; `stream`: its own, None where Hudi Streamer's does not
    count."""
    found = _newest_told(ctx, ingest, stream)
    return Held(read_shards(ctx, ingest, *found[0]), found[0][0], found[1]) if found is not None else None


@relists
def positions_at(ctx: TableContext, ingest: str, topic: str | None, instant: str) -> HeldPositions:
    """The positions that the commit of an instant holds; `topic` as of `current_positions`. Raises
    what `checkpoint_at` does, and CorruptTableError for a damaged checkpoint."""
    text = checkpoint_at(ctx, ingest, positions_of(ingest, topic), instant)
    return HeldPositions(read_positions(ctx, ingest, instant, text), instant)


def checkpoint_at(ctx: TableContext, ingest: str, holds: Holds, instant: str) -> str:
    """The checkpoint of an ingest that the commit of an instant holds. Raises InvalidRequestError
    where there is none, with the newest commits that hold one."""
    commits = {each.time: each for each in reversed(load_timeline(ctx).commits)}
    named = commits.get(instant)
    text = holds(commit_metadata(ctx, named).extra_metadata) if named is not None else None
    if text is not None:
        return text
    held = (time for time, each in commits.items() if holds(commit_metadata(ctx, each).extra_metadata) is not None)
    there = ", ".join(islice(held, NAMED_MAX))
    what = "holds no checkpoint" if named is not None else "is no completed commit of the active timeline, and has none"
    raise InvalidRequestError(
        f"{instant} of the table at {ctx.base_path} {what} of ingest {ingest!r}: "
        + (f"the newest that do are {there}" if there else "no commit there does"),
        base_path=ctx.base_path,
    )


def positions_of(ingest: str, topic: str | None) -> Holds:
    """What a commit holds for an ingest from Kafka, or Kinesis: its own checkpoint, or Hudi
    Streamer's of its only topic, or its stream. Beside a checkpoint of another of our ingests Hudi
    Streamer's key is that one's."""

    def holds(extra: Mapping[str, str]) -> str | None:
        own = extra.get(key_of(ingest))
        if own is not None or topic is None or any(key.startswith(KEY_PREFIX) for key in extra):
            return own
        return _of_streamer(extra, topic)

    return holds


def _newest(ctx: TableContext, holds: Holds) -> tuple[str, str] | None:
    """A commit that was decided and not yet published counts, so it is published first: whoever
    wrote it is gone or would do the same."""
    timeline = load_timeline(ctx)
    if timeline.pending and materialise_predecessors(ctx, timeline, "", chain.read_tail(ctx).sequence):
        timeline = load_timeline(ctx)
    return newest_with(ctx, timeline, holds)


def _newest_told(
    ctx: TableContext, ingest: str, topic: str | None
) -> tuple[tuple[str, str], StreamerBegin | None] | None:
    """As `_newest`, with what the same commit tells Hudi Streamer; of one that sets a checkpoint,
    and tells nothing, what the newest one before it told."""
    holds, begin = positions_of(ingest, topic), None

    def found(extra: Mapping[str, str]) -> str | None:
        nonlocal begin
        text = holds(extra)
        if text is not None:
            begin = StreamerBegin.of(extra)
        return text

    newest = _newest(ctx, found)
    if newest is None:
        return None
    if begin is None and topic is not None:
        extras = (commit_metadata(ctx, each).extra_metadata for each in reversed(load_timeline(ctx).commits))
        begin = next((StreamerBegin.of(each) for each in extras if _of_streamer(each, topic) is not None), None)
    return newest, begin


def _of_streamer(extra: Mapping[str, str], topic: str) -> str | None:
    theirs = next((extra[key] for key in STREAMER_KEYS if key in extra), None)
    return theirs if theirs is not None and theirs.startswith(f"{topic},") else None


def archived_checkpoints(ctx: TableContext, ingests: Collection[str]) -> dict[str, tuple[str, str]]:
    """The newest archived commit of each ingest and the text of its checkpoint; nothing of those
    that have none."""
    return archived_with(ctx, {ingest: under(key_of(ingest)) for ingest in ingests})


def read_checkpoint(ctx: TableContext, ingest: str, time: str, text: str) -> Checkpoint:
    """The checkpoint of a commit's text, with those of its digest file. Raises CorruptTableError if
    it is damaged."""

    def load(path: str) -> bytes:
        try:
            return ctx.storage.get(path)
        except ObjectNotFoundError:
            raise ValueError(f"refers to {path}, which is gone: restore that file") from None

    try:
        _check_source(text, "Files")
        found = find({key_of(ingest): text}, ingest, load)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(ctx, ingest, time, error) from error
    assert found is not None
    return found


def read_positions(ctx: TableContext, ingest: str, time: str, text: str) -> Positions:
    """The positions of a commit's text, ours or Hudi Streamer's. Raises CorruptTableError if it is
    damaged."""
    try:
        if not text.startswith("{"):
            return of_streamer(text)
        _check_source(text, "Kafka")
        return Positions.from_text(text)
    except ValueError as error:
        raise _damaged(ctx, ingest, time, error) from error


def read_shards(ctx: TableContext, ingest: str, time: str, text: str) -> ShardPositions:
    """The positions of a commit's text, ours or Hudi Streamer's. Raises CorruptTableError if it is
    damaged."""
    if text.startswith("{"):
        return _read(ctx, ingest, time, text, ("Kinesis", ShardPositions.from_text))
    try:
        return of_streamer_shards(text)
    except ValueError as error:
        raise _damaged(ctx, ingest, time, error) from error


def read_mark(ctx: TableContext, ingest: str, time: str, text: str) -> Mark:
    """The checkpoint of a commit's text. Raises CorruptTableError if it is damaged."""
    return _read(ctx, ingest, time, text, ("Jdbc", Mark.from_text))


def read_upstream(ctx: TableContext, ingest: str, time: str, text: str) -> Upstream:
    """The checkpoint of a commit's text. Raises CorruptTableError if it is damaged."""
    return _read(ctx, ingest, time, text, ("Hudi", Upstream.from_text))


def read_query(ctx: TableContext, ingest: str, time: str, text: str) -> QueryMark:
    """The checkpoint of a commit's text. Raises CorruptTableError if it is damaged."""
    return _read(ctx, ingest, time, text, ("Sql", QueryMark.from_text))


def read_custom(ctx: TableContext, ingest: str, time: str, text: str) -> CustomMark:
    """The checkpoint of a commit's text. Raises CorruptTableError if it is damaged."""
    return _read(ctx, ingest, time, text, ("Custom", CustomMark.from_text))


def _read(ctx: TableContext, ingest: str, time: str, text: str, wanted: tuple[str, Callable[[str], C]]) -> C:
    try:
        _check_source(text, wanted[0])
        return wanted[1](text)
    except ValueError as error:
        raise _damaged(ctx, ingest, time, error) from error


def read_any(ctx: TableContext, ingest: str, time: str, text: str) -> AnyCheckpoint:
    """The checkpoint of a commit's text, of whatever source. Raises CorruptTableError if it is
    damaged."""
    return _READERS[source_of(text)](ctx, ingest, time, text)


def source_of(text: str) -> str:
    """Of which type of source a checkpoint is; Files for what is none at all."""
    return _FORMATS.get(form_of(text), "Files")


def _check_source(text: str, wanted: str) -> None:
    found = source_of(text)
    if found != wanted:
        raise ValueError(f"is of {_WORDS[found]}, and its source is of type {wanted} now: give the ingest another name")


_FORMATS = {
    POSITIONS_FORMAT: "Kafka",
    SHARDS_FORMAT: "Kinesis",
    MARKS_FORMAT: "Jdbc",
    UPSTREAM_FORMAT: "Hudi",
    QUERY_FORMAT: "Sql",
    CUSTOM_FORMAT: "Custom",
}
_WORDS = {
    "Files": "files",
    "Kafka": "Kafka",
    "Kinesis": "Kinesis",
    "Jdbc": "a database",
    "Hudi": "another table",
    "Sql": "a statement",
    "Custom": "a package",
}
_READERS: dict[str, Callable[[TableContext, str, str, str], AnyCheckpoint]] = {
    "Files": read_checkpoint,
    "Kafka": read_positions,
    "Kinesis": read_shards,
    "Jdbc": read_mark,
    "Hudi": read_upstream,
    "Sql": read_query,
    "Custom": read_custom,
}


def _damaged(ctx: TableContext, ingest: str, time: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(f"the checkpoint of ingest {ingest!r} {error}", base_path=ctx.base_path, instant=time)


def all_checkpoints(ctx: TableContext, only: str | None = None) -> list[tuple[str, str, str]]:
    """(key, instant, text) of the newest checkpoint under each key that commits hold, ours and Hudi
    Streamer's; of one ingest alone, if it is named. The whole archive is read, and of one ingest
    only where the timeline has none. Raises CorruptTableError."""
    timeline = load_timeline(ctx)
    if only is not None:
        held = newest_with(ctx, timeline, under(key_of(only)))
        return [(key_of(only), *held)] if held is not None else []
    found: dict[str, tuple[str, str]] = {}
    for instant in reversed(timeline.commits):
        for key, text in _texts(commit_metadata(ctx, instant)):
            found.setdefault(key, (instant.time, text))
    for time, commit in archived_commits(ctx):
        for key, text in _texts(commit):
            if key not in found or comparable_time(time) > comparable_time(found[key][0]):
                found[key] = (time, text)
    return [(key, *held) for key, held in sorted(found.items())]


def _texts(commit: CommitMetadata) -> list[tuple[str, str]]:
    extra = commit.extra_metadata
    return [(key, text) for key, text in extra.items() if key.startswith(KEY_PREFIX) or key in STREAMER_KEYS]
