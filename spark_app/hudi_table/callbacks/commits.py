"""The commits that completed after a position, in their order: by completion where names tell it,
else by instant, and what completes late when it has completed.

None is left out: what has been archived meanwhile comes from the archive, and an instant that was
open stays in the position until it has ended.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Any

from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.position import OPEN_MAX, Position, key_of
from hudi_table.model.job.checkpoint import KEY_PREFIX
from hudi_table.model.job.checkpoint_text import form_of
from hudi_table.model.job.custom import CUSTOM_FORMAT, CustomMark
from hudi_table.model.job.marks import MARKS_FORMAT, Mark
from hudi_table.model.job.positions import POSITIONS_FORMAT, Positions, streamer_text
from hudi_table.model.job.query_mark import QUERY_FORMAT, QueryMark
from hudi_table.model.job.shards import SHARDS_FORMAT, ShardPositions, streamer_shards
from hudi_table.model.job.upstream import UPSTREAM_FORMAT, Upstream
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import ALL_META_COLUMNS, STREAMER_KEY, STREAMER_KEY_V2
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import (
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
)
from hudi_table.model.timeline.rewrites import is_rewrite
from hudi_table.model.timeline.utc import utc_of
from hudi_table.table.timeline.active import commit_metadata, fetch_bodies, load_timeline
from hudi_table.table.timeline.archived import (
    archived_entries,
    commit_of,
    has_archive,
    instant_of,
    latest_archived,
)
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.lsm import Asked
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline

PAGE = 200
BODIES_AHEAD = 16
"""Commit bodies fetched at once: waiting for a store, not work; each may have megabytes."""
_STREAMER_KEYS = (STREAMER_KEY_V2, STREAMER_KEY)


@dataclass(frozen=True, slots=True)
class Commit:
    """What receivers learn of a commit. `completed`: when, aware, in UTC, as far as its name tells;
    else its instant. `schema_changed`: None where what stood before it is not known. `checkpoints`:
    of the ingests that it holds; no other extra metadata leaves the table."""

    instant: str
    action: str
    operation: str
    kind: CommitKind
    completed: datetime
    rows_written: int
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    files: int
    bytes_written: int
    partitions: int
    schema_changed: bool | None
    checkpoints: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A commit, and the position of a receiver that has it and all before it."""

    commit: Commit
    position: Position


@dataclass(frozen=True, slots=True)
class Page:
    """Some commits in their order, the position behind them and what was passed over, and whether
    more had completed."""

    told: tuple[Told, ...]
    position: Position
    more: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A completed write; of an archived one the metadata that the archive kept."""

    instant: Instant
    kept: CommitMetadata | None = None


def commits_after(
    ctx: TableContext, position: Position, *, kinds: Collection[CommitKind] = tuple(CommitKind), limit: int = PAGE
) -> Page:
    """The commits of these kinds among the next `limit` ones. Raises what the storage raises,
    CorruptTableError."""
    return with_relists(ctx, lambda: _page(ctx, position, kinds, limit))


def newest_position(ctx: TableContext) -> Position:
    """The position of who wants to hear of what completes from now on."""
    timeline = load_timeline(ctx)
    after = max((key_of(i) for i in timeline.commits), default="")
    return _position(after, (), timeline)


def _page(ctx: TableContext, position: Position, kinds: Collection[CommitKind], limit: int) -> Page:
    timeline = load_timeline(ctx)
    found = [_Found(i) for i in timeline.commits if position.lacks(i)]
    if _reaches_archive(ctx, timeline, position):
        found += _archived(ctx, timeline, position, limit + 1)
    found.sort(key=lambda each: (key_of(each.instant), each.instant.time))
    page, left = found[:limit], found[limit:]
    if not page:
        return Page((), _position(position.after, (), timeline) if position.looked else position, more=False)
    told: list[Told] = []
    covered = position.after
    schemas = _Schemas(ctx, timeline)
    for number, each in enumerate(page):
        if number % BODIES_AHEAD == 0:
            ahead = page[number : number + BODIES_AHEAD]
            fetch_bodies(ctx, [each.instant for each in ahead if each.kept is None])
        commit = _commit(ctx, each, schemas)
        covered = max(covered, key_of(each.instant))
        if commit.kind in kinds:
            behind = [other.instant for other in (*page[number + 1 :], *left)]
            told.append(Told(commit, _position(covered, behind, timeline)))
    return Page(tuple(told), _position(covered, [each.instant for each in left], timeline), more=bool(left))


def _position(after: str, behind: Sequence[Instant], timeline: Timeline) -> Position:
    """`behind`: what has completed and was not told. Of it the position names what was begun
    before: archiving goes by that, and may take it while something that was told is still there."""
    pending = [i.time for i in timeline.pending if i.grouped_action in WRITE_ACTIONS]
    waits = {time for time in pending if comparable_time(time) <= after}
    waits |= {i.time for i in behind if comparable_time(i.time) <= after}
    return Position(after, tuple(sorted(waits, key=comparable_time)[-OPEN_MAX:]), looked=True)


def _reaches_archive(ctx: TableContext, timeline: Timeline, position: Position) -> bool:
    """Whether a commit that the position lacks may have been archived."""
    active = {i.time for i in timeline.instants}
    if all(time in active for time in position.open) and position.looked:
        # What a savepoint keeps stays while newer instants are archived.
        saved = {i.time for i in timeline.completed if i.action is Action.SAVEPOINT}
        start = min((key_of(i) for i in timeline.commits if i.time not in saved), default="")
        if start and position.after >= start:
            return False
    if not has_archive(ctx):
        return False
    if position.looked or not timeline.layout.tells_completions:
        return True
    # An instant that was requested long ago may have completed late.
    return comparable_time(latest_archived(ctx)) > position.after


def _archived(ctx: TableContext, timeline: Timeline, position: Position, limit: int) -> list[_Found]:
    """The first `limit` ones of the archive, which may hold some that are active still, and some
    twice."""
    active = timeline.commit_times
    found: dict[str, _Found] = {}
    for entries in archived_entries(ctx, Asked(position.after, times=frozenset(position.open))):
        for instant, entry in _completed(entries):
            if instant.time not in active and position.lacks(instant):
                found.setdefault(instant.time, _Found(instant, commit_of(entry)))
        if len(found) > limit:
            kept = nsmallest(limit, found.values(), key=lambda each: key_of(each.instant))
            found = {each.instant.time: each for each in kept}
    return list(found.values())


def _completed(entries: Sequence[dict[str, Any]]) -> Iterator[tuple[Instant, dict[str, Any]]]:
    for entry in entries:
        instant = instant_of(entry)
        if instant is not None and instant.state is State.COMPLETED and instant.action in WRITE_ACTIONS:
            yield instant, entry


class _Schemas:
    """Which schema stood before a commit of the active timeline."""

    def __init__(self, ctx: TableContext, timeline: Timeline) -> None:
        self._ctx = ctx
        self._order = sorted(timeline.commits, key=lambda i: (key_of(i), i.time))
        self._place = {instant.time: number for number, instant in enumerate(self._order)}

    def changed(self, instant: Instant, text: str | None) -> bool | None:
        """Whether the commit carries another schema than the one before it that carries any; None
        where that is not known."""
        if not text:
            return False
        for earlier in reversed(self._order[: self._place.get(instant.time, 0)]):
            before = commit_metadata(self._ctx, earlier).avro_schema
            if before:
                return before != text and _columns(before) != _columns(text)
        return None


def _columns(text: str) -> Any:
    """The fields of a schema without Hudi's own, which some actions carry and most do not."""
    try:
        return [field for field in json.loads(text)["fields"] if field["name"] not in ALL_META_COLUMNS]
    except (ValueError, KeyError, TypeError):
        return text


def _commit(ctx: TableContext, found: _Found, schemas: _Schemas) -> Commit:
    instant = found.instant
    metadata = found.kept if found.kept is not None else commit_metadata(ctx, instant)
    stats = metadata.stats
    return Commit(
        instant=instant.time,
        action=instant.action.value,
        operation=metadata.operation_type,
        kind=CommitKind.REWRITE if is_rewrite(metadata) else CommitKind.WRITE,
        completed=utc_of(instant.moment, ctx.config.timezone),
        rows_written=sum(s.num_writes for s in stats),
        rows_inserted=sum(s.num_inserts for s in stats),
        rows_updated=sum(s.num_update_writes for s in stats),
        rows_deleted=sum(s.num_deletes for s in stats),
        files=len(stats),
        bytes_written=sum(s.file_size_in_bytes for s in stats),
        partitions=len({s.partition_path for s in stats}),
        schema_changed=None if found.kept is not None else schemas.changed(instant, metadata.avro_schema),
        checkpoints=tuple(_checkpoints(metadata.extra_metadata)),
    )


def _checkpoints(extra: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """What the commit says of how far ingests are, in few words."""
    own = {key.removeprefix(KEY_PREFIX): text for key, text in extra.items() if key.startswith(KEY_PREFIX)}
    for name, text in sorted(own.items()):
        yield {"ingest": name, **_checkpoint(text)}
    theirs = next((extra[key] for key in _STREAMER_KEYS if extra.get(key)), None)
    if theirs is not None and not own:
        yield {"source": "HudiStreamer", "position": theirs}


def _checkpoint(text: str) -> dict[str, Any]:
    try:
        form = form_of(text)
        if form == POSITIONS_FORMAT:
            held = Positions.from_text(text)
            parts = (streamer_text(Positions("", {name: topic})) for name, topic in sorted(held.topics.items()))
            return {"source": "Kafka", "position": ";".join(part for part in parts if part), "batch": held.batch}
        if form == SHARDS_FORMAT:
            shards = ShardPositions.from_text(text)
            return {"source": "Kinesis", "position": streamer_shards(shards) or "", "batch": shards.batch}
        if form == MARKS_FORMAT:
            mark = Mark.from_text(text)
            return {"source": "Jdbc", "position": mark.value, "batch": mark.batch}
        if form == UPSTREAM_FORMAT:
            upstream = Upstream.from_text(text)
            return {"source": "Hudi", "position": upstream.instant, "batch": upstream.batch}
        if form == QUERY_FORMAT:
            query = QueryMark.from_text(text)
            return {"source": "Sql", "position": query.value, "batch": query.batch}
        if form == CUSTOM_FORMAT:
            custom = CustomMark.from_text(text)
            return {"source": "Custom", "position": custom.position, "batch": custom.batch}
        raw = parse_json(text)
        return {"source": "Files", "files": int(raw["fileCount"]), "batch": str(raw["batch"])}
    except (ValueError, KeyError, TypeError):
        return {"source": "unknown"}
