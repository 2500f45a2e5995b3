"""The active timeline: all instants under `.hoodie/`, from one listing.

Facts (table version 6): of one (time, grouped action) the highest state wins; a file is visible if its instant
completed or is older than the timeline's start, the first completed write or pending compaction.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from hudi_table.codec.avro_file import read_container
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.commits import CommitMetadata
from hudi_table.model.instants import (
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
    parse_instant,
    placed_instant,
    planner_claim,
    planner_claim_time,
)
from hudi_table.model.names import HOODIE, METADATA_TABLE
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import looks_again


@dataclass(frozen=True)
class Timeline:
    """Instants of one listing, ordered by time. `files` maps each timeline file name to its store's age; `folders` are the names of
    those beside them; `listed_at` says when that was, in seconds since boot, or nothing."""

    instants: tuple[Instant, ...]
    files: dict[str, datetime] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    listed_at: float | None = None

    @property
    def has_metadata(self) -> bool:
        """Whether the folder of a metadata table is there."""
        return METADATA_TABLE.rpartition("/")[2] in self.folders

    @functools.cached_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of every action, oldest first."""
        return tuple(i for i in self.instants if i.completed)

    @functools.cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed commit, deltacommit and replacecommit instants, oldest first."""
        return tuple(i for i in self.instants if i.completed and i.action in WRITE_ACTIONS)

    @functools.cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Instants that have not completed, in their highest state, oldest first."""
        return tuple(i for i in self.instants if not i.completed)

    @functools.cached_property
    def start(self) -> str | None:
        """Time of the first completed write or pending compaction: what is older counts as committed."""
        for instant in self.instants:
            if _starts(instant):
                return instant.time
        return None

    @property
    def last_commit(self) -> Instant | None:
        """The newest completed write, if any."""
        return self.commits[-1] if self.commits else None

    @functools.cached_property
    def newest_time(self) -> str:
        """The greatest instant time of any file, a planner's claim too, or ''."""
        return max([*(i.time for i in self.instants[-1:]), *self.planner_claims], default="", key=comparable_time)

    @functools.cached_property
    def planner_claims(self) -> tuple[str, ...]:
        """Times that planners of table services claimed and whose plan is not there yet, or whose claim is left over."""
        return tuple(sorted(time for name in self.files if (time := planner_claim_time(name)) is not None))

    def until(self, as_of: str) -> Timeline:
        """The timeline as of an instant: completed instants at or before it, and the pending ones."""
        limit = comparable_time(as_of)
        kept = tuple(i for i in self.instants if not i.completed or comparable_time(i.time) <= limit)
        return replace(self, instants=kept)

    def before(self, time: str) -> Timeline:
        """The timeline as it was before an instant: without it and what is later, pending ones and claims too."""
        limit = comparable_time(time)
        kept = tuple(i for i in self.instants if comparable_time(i.time) < limit)
        files = {name: age for name, age in self.files.items() if comparable_time(_time_of(name)) < limit}
        return Timeline(kept, files, self.folders)

    def states(self) -> dict[tuple[str, Action], list[Instant]]:
        """Every state that has a file, the earliest first, by the time and the grouped action of its instant."""
        found: dict[tuple[str, Action], list[Instant]] = {}
        for instant in sorted((i for i in map(parse_instant, self.files) if i), key=lambda i: i.sort_key):
            found.setdefault((instant.time, instant.grouped_action), []).append(instant)
        return found

    def is_leftover(self, instant: Instant) -> bool:
        """Whether a pending clean or rollback has no plan: a paused process put its inflight file back after it was archived."""
        requested = instant.with_state(State.REQUESTED).file_name
        return instant.action in (Action.CLEAN, Action.ROLLBACK) and requested not in self.files

    def is_completed(self, time: str) -> bool:
        """Whether a write of this time has its completed file, one that a pending restore takes back too."""
        return any(i.completed and i.action in WRITE_ACTIONS for _, i in self._at(time))

    def claim_names(self, time: str) -> list[str]:
        """Names of the requested and inflight files, and of a planner's claim, that carry this time, whoever owns them."""
        claims = [name for name, i in self._at(time) if not i.completed]
        return sorted([*claims, *(name for name in [planner_claim(time)] if name in self.files)])

    def own_names(self, instant: Instant) -> list[str]:
        """Names of all files of this instant, the completed one last: those of another action at its time, and a planner's claim, belong
        to others."""
        found = [(i.sort_key, name) for name, i in self._at(instant.time) if i.grouped_action is instant.grouped_action]
        return [name for _, name in sorted(found)]

    def shares(self, instant: Instant) -> bool:
        """Whether the time of this instant has files of another action, or a planner's claim."""
        others = any(i.grouped_action is not instant.grouped_action for _, i in self._at(instant.time))
        return others or planner_claim(instant.time) in self.files

    def _at(self, time: str) -> list[tuple[str, Instant]]:
        found = ((name, parse_instant(name)) for name in self.files if name.startswith(time))
        return [(name, instant) for name, instant in found if instant is not None and instant.time == time]


@looks_again
def load_timeline(ctx: TableContext) -> Timeline:
    """One listing of `.hoodie/`. Instants that a pending restore takes back are left out: it has been decided, and its files
    disappear one after the other."""
    listed_at = ctx.clock.boot_seconds()
    folders, infos = ctx.storage.list_dir(HOODIE)
    timeline = replace(timeline_of(ctx, infos, folders), listed_at=listed_at)
    ctx.newest_listed = max(ctx.newest_listed, comparable_time(timeline.newest_time))
    return timeline


def timeline_of(ctx: TableContext, infos: Iterable[ObjectInfo], folders: Iterable[str] = ()) -> Timeline:
    """The timeline that the listed files and folders of `.hoodie/` make."""
    files = {info.path.rpartition("/")[2]: info.modified for info in infos}
    highest: dict[tuple[str, Action], tuple[tuple[str, str, int], Instant]] = {}
    for name in files:
        place = placed_instant(name)
        if place is None:
            continue
        key, order, instant = place
        known = highest.get(key)
        if known is None or known[0] < order:
            highest[key] = (order, instant)
    instants = [instant for _, instant in sorted(highest.values(), key=itemgetter(0))]
    gone = _restored_past(ctx, instants, files)
    kept = tuple(instant for instant in instants if instant.time not in gone) if gone else tuple(instants)
    names = frozenset(folder.rstrip("/").rpartition("/")[2] for folder in folders)
    return Timeline(kept, files, names)


def _restored_past(ctx: TableContext, instants: Iterable[Instant], files: Container[str]) -> set[str]:
    """The instants that pending restores name."""
    gone: set[str] = set()
    for instant in instants:
        if instant.action is not Action.RESTORE or instant.completed:
            continue
        requested = instant.with_state(State.REQUESTED)
        if requested.file_name not in files:
            continue
        try:
            for record in read_container(body(ctx, requested)):
                gone.update(info["commitTime"] for info in record["instantsToRollback"])
        except (ValueError, KeyError) as error:
            raise CorruptTableError(
                f"{requested.file_name} is no plan of a restore: {error}",
                base_path=ctx.base_path,
                path=requested.file_name,
            ) from error
    return gone


def has_archive(ctx: TableContext) -> bool:
    """Whether the older part of the timeline was archived."""
    _, files = ctx.storage.list_dir(f"{HOODIE}/{ctx.config.archive_folder}")
    return bool(files)


def body(ctx: TableContext, instant: Instant) -> bytes:
    """Bytes of a timeline file; completed ones are remembered. Raises ObjectNotFoundError if it was archived or taken back since it
    was listed."""
    data = _body_if_there(ctx, instant)
    if data is None:
        path = f"{HOODIE}/{instant.file_name}"
        raise ObjectNotFoundError(f"timeline file {path} was listed and is gone", base_path=ctx.base_path, path=path)
    return data


def records_of(ctx: TableContext, instant: Instant) -> list[dict[str, Any]]:
    """The records of an instant's Avro body. Raises CorruptTableError if it has another content, ObjectNotFoundError as `body`."""
    return _records(ctx, instant, body(ctx, instant))


def records_if_there(ctx: TableContext, instant: Instant) -> list[dict[str, Any]] | None:
    """The records of an instant's Avro body, None if it is gone since it was listed. Raises CorruptTableError if it has another content."""
    data = _body_if_there(ctx, instant)
    return None if data is None else _records(ctx, instant, data)


def _body_if_there(ctx: TableContext, instant: Instant) -> bytes | None:
    name = instant.file_name
    known = ctx.bodies.get(name)
    if known is not None:
        return known
    try:
        data = ctx.storage.get(f"{HOODIE}/{name}")
    except ObjectNotFoundError:
        return None
    if instant.completed:
        ctx.bodies[name] = data
    return data


def _records(ctx: TableContext, instant: Instant, data: bytes) -> list[dict[str, Any]]:
    try:
        return read_container(data) if data else []
    except ValueError as error:
        raise CorruptTableError(
            f"{instant.file_name} cannot be read: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error


def commit_metadata(ctx: TableContext, instant: Instant) -> CommitMetadata:
    """Commit metadata of a completed write. Raises CorruptTableError if it cannot be parsed, ObjectNotFoundError as `body`."""
    try:
        return CommitMetadata.from_json(body(ctx, instant))
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{instant.file_name} is no commit metadata: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error


def _time_of(name: str) -> str:
    """The instant time of a timeline file's name, or '' of another file's."""
    instant = parse_instant(name)
    return instant.time if instant is not None else planner_claim_time(name) or ""


def _starts(instant: Instant) -> bool:
    if instant.completed:
        return instant.action in WRITE_ACTIONS
    return instant.action is Action.COMPACTION
