"""The active timeline: all instants in its folder.

Facts: of one (time, grouped action) the highest state wins.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnavailableError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.table.properties import from_properties
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time, placed_instant
from hudi_table.model.timeline.settled import Placed, Settled
from hudi_table.table.store.at_once import all_at_once, at_once
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.ports import ObjectInfo, is_remote, plain
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_commit, decode_records
from hudi_table.table.timeline.properties import read_properties
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline

T = TypeVar("T")
ARCHIVING_LEAVES = 2
"""Commits that every archiving leaves at the least: one more than the cleaner retains."""
LISTINGS_MAX = 5
SAME_LISTINGS_MAX = 20
PAGE_NAMES, FOLDER_NAMES = 900, 250
"""A listing of less shows one moment: a store makes it as one page, of a thousand names; a local
disk reads them by one call, 32 KiB."""


def load_timeline(ctx: TableContext) -> Timeline:
    """The timeline as it was at one moment (`exact`). Instants that a pending restore takes back
    are left out: it has been decided, and its files disappear one after the other.

    A listing is no moment: what archiving deletes while it goes on may be missing from it, and what
    was deleted before that be there. Archiving deletes the oldest instant first, and of each its
    completed file last. So if the oldest commit is there after the listing, nothing newer had gone;
    and a pending write older than that is one if a second listing shows it too. What completes
    while a listing goes on may be in it without what had completed before. So one that is longer
    than a page counts once the next one shows the same commits.
    """
    return timeline_with(ctx, lambda _: None, exact=True)[0]


@relists
def timeline_with(ctx: TableContext, read: Callable[[Timeline], T], *, exact: bool = False) -> tuple[Timeline, T]:
    """`load_timeline`, and what `read` reads of it: both ask at once, whether the oldest commit is
    still there and what `read` asks.

    `exact`: who reads rows by it asks nobody else what had completed; who writes finds in the chain
    what a long listing has missed."""
    timeline = unconfirmed_timeline(ctx, exact=exact)
    _, found = at_once(ctx.storage, lambda: confirm(ctx, timeline), lambda: read(timeline))
    return timeline, found


def unconfirmed_timeline(ctx: TableContext, *, exact: bool = False) -> Timeline:
    """`load_timeline` but for its last step, which `confirm` takes. A look by which nothing is done
    needs none: what the listing lacks, the next look finds. So callers relist by themselves."""
    listed = _listed_twice if exact else list_timeline
    timeline = listed(ctx)
    for _ in range(LISTINGS_MAX):
        suspects = _pending_before_start(timeline)
        if not suspects:
            break
        timeline = listed(ctx)
        if _pending_before_start(timeline) <= suspects:
            break
    else:
        raise UnavailableError(
            f"the table was archived during each of {LISTINGS_MAX} listings of its timeline; try again",
            base_path=ctx.base_path,
        )
    return timeline


def confirm(ctx: TableContext, timeline: Timeline) -> None:
    """Look whether the oldest commit of a listing that no savepoint keeps is still there, if
    archiving could have taken any. Raises ObjectNotFoundError if not: list again."""
    if len(timeline.commits) > ARCHIVING_LEAVES:
        oldest = next((i for i in timeline.commits if i.time not in timeline.saved), timeline.commits[0])
        ctx.storage.head(ctx.layout.timeline_path(oldest.file_name))


def _listed_twice(ctx: TableContext) -> Timeline:
    """A listing that shows the commits of one moment, the end of the one before it. Raises
    UnavailableError."""
    timeline = list_timeline(ctx)
    if len(timeline.files) < (PAGE_NAMES if is_remote(ctx.storage) else FOLDER_NAMES):
        return timeline
    for _ in range(SAME_LISTINGS_MAX):
        before, timeline = timeline, list_timeline(ctx)
        if timeline.commits == before.commits:
            return timeline
    raise UnavailableError(
        f"commits completed during each of {SAME_LISTINGS_MAX} listings of a timeline of {counted(len(timeline.files), 'file')}; archive it, or try again",
        base_path=ctx.base_path,
    )


@relists
def list_timeline(ctx: TableContext) -> Timeline:
    """One listing, in which what is archived meanwhile may be missing: for steps that ask for what
    is pending or new alone."""
    listed_at = ctx.clock.boot_seconds()
    timeline = _newly_listed(ctx, listed_at)
    if ctx.layout.other_folder in timeline.folders or not timeline.completed:
        # Of a table without a commit the other version's timeline may have no file, and its folder be gone.
        _look_at_version(ctx)
    ctx.newest_listed = max(ctx.newest_listed, comparable_time(timeline.newest_time))
    ctx.no_metadata_at = None if timeline.has_metadata else listed_at
    return timeline


def _newly_listed(ctx: TableContext, listed_at: float) -> Timeline:
    """The timeline of a listing of now. On a local disk nobody looks at files of instants that had
    completed the last time: nothing writes to them any more. A store's listing shows all of each
    object anyway; what it shows as the last one did is not placed again."""
    settled, storage = ctx.settled, plain(ctx.storage)
    if not isinstance(storage, LocalStorage):
        folders, infos = _listed(ctx)
        files = _ages(infos)
        if not settled.files.items() <= files.items():
            settled = Settled()
        timeline, ctx.settled = _timeline(ctx, _without(files, settled), folders, settled, listed_at, files)
        return timeline
    folder, *around = ctx.layout.listed
    folders, infos, found = storage.list_news(folder, settled.files)
    for beside in around:
        folders, others = ctx.storage.list_dir(beside)
        _look_beside(ctx, others)
    if found != len(settled.files):
        # Something of them was archived or taken back.
        settled = Settled()
        folders, infos = _listed(ctx)
    timeline, ctx.settled = _timeline(ctx, _ages(infos), folders, settled, listed_at)
    return timeline


def _listed(ctx: TableContext) -> tuple[list[str], list[ObjectInfo]]:
    """The folders of `.hoodie/` that tell something of the table, and the files of its timeline."""
    listings = all_at_once(ctx.storage, [partial(ctx.storage.list_dir, folder) for folder in ctx.layout.listed])
    if len(listings) > 1:
        _look_beside(ctx, listings[-1][1])
    return listings[-1][0], listings[0][1]


def _look_beside(ctx: TableContext, others: Iterable[ObjectInfo]) -> None:
    """Look at the version if the folder around the timeline has instants, as that of another
    version."""
    if any(placed_instant(info.path.rpartition("/")[2]) for info in others):
        _look_at_version(ctx)


def _look_at_version(ctx: TableContext) -> None:
    """The timeline of another version lies beside this one: of a change that is going on or was cut
    short, or the table has that version now."""
    if not ctx.changes_version:
        refuse_other_version(ctx)


def refuse_other_version(ctx: TableContext) -> None:
    """Look at the properties: the table may have another version than when it was opened. Raises
    UnavailableError then."""
    now = from_properties(read_properties(ctx.storage, ctx.clock), ctx.base_path)
    if now.version != ctx.config.version:
        raise UnavailableError(
            f"the table has version {now.version} now, and had {ctx.config.version} when it was opened; open it again",
            base_path=ctx.base_path,
        )


def _pending_before_start(timeline: Timeline) -> set[str]:
    return {i.file_name for i in timeline.pending if timeline.has_passed(i.time) and i.is_write}


def timeline_of(ctx: TableContext, infos: Iterable[ObjectInfo], folders: Iterable[str] = ()) -> Timeline:
    """The timeline that its listed files, and the folders of `.hoodie/`, make. Raises
    CorruptTableError where a restore has no plan."""
    files = _ages(infos)
    return _timeline(ctx, files, folders, Settled(), whole=files)[0]


def _ages(infos: Iterable[ObjectInfo]) -> dict[str, datetime]:
    return {info.path.rpartition("/")[2]: info.modified for info in infos}


def _without(files: dict[str, datetime], settled: Settled) -> dict[str, datetime]:
    return {name: age for name, age in files.items() if name not in settled.files}


def _timeline(
    ctx: TableContext,
    new: dict[str, datetime],
    folders: Iterable[str],
    settled: Settled,
    listed_at: float | None = None,
    whole: dict[str, datetime] | None = None,
) -> tuple[Timeline, Settled]:
    """The timeline of the files that are settled and the `new` ones, and what is settled then.
    `whole`: both, as a listing has shown them."""
    highest: dict[tuple[str, Action], Placed] = {}
    keys: dict[str, tuple[str, Action]] = {}
    tells_completions = ctx.layout.tells_completions
    for name in new:
        place = placed_instant(name)
        if place is None:
            continue
        key, order, instant = place
        if instant.state is State.COMPLETED and bool(instant.completion) is not tells_completions:
            if not instant.completion:
                raise _without_completion(ctx, name)
            continue
        if key in settled.keys:
            # A file came to what had its highest state already: all are placed again.
            return _timeline(ctx, whole or {**settled.files, **new}, folders, Settled(), listed_at, whole)
        keys[name] = key
        known = highest.get(key)
        if known is None or known[0] < order:
            highest[key] = (order, instant)
    ended = {key: place for key, place in highest.items() if place[1].state is State.COMPLETED}
    settled = settled.and_also({name: new[name] for name, key in keys.items() if key in ended}, ended)
    files = whole if whole is not None else {**settled.files, **new}
    pending = sorted((place for key, place in highest.items() if key not in ended), key=itemgetter(0))
    gone = _restored_past(ctx, (instant for _, instant in pending), files)
    names = frozenset(folder.rstrip("/").rpartition("/")[2] for folder in folders)
    timeline = Timeline(
        settled.with_pending(pending),
        files,
        names,
        listed_at,
        layout=ctx.layout,
        unsettled=frozenset(new.keys() - settled.files.keys()) if whole is None else None,
    )
    if gone:
        return replace(timeline, instants=tuple(i for i in timeline.instants if i.time not in gone)), settled
    timeline.knows(settled, tuple(instant for _, instant in pending))
    return timeline, settled


def _without_completion(ctx: TableContext, name: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"timeline file {name} does not state when its instant completed, as names of table version {ctx.config.version} do: an upgrade of the table "
        "has stopped half-way; finish it with Hudi's procedure upgrade_table",
        base_path=ctx.base_path,
        path=ctx.layout.timeline_path(name),
    )


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
            for record in decode_records(body(ctx, requested)):
                gone.update(info["commitTime"] for info in record["instantsToRollback"])
        except (ValueError, KeyError) as error:
            raise CorruptTableError(
                f"{requested.file_name} is no plan of a restore: {error}",
                base_path=ctx.base_path,
                path=requested.file_name,
            ) from error
    return gone


def body(ctx: TableContext, instant: Instant) -> bytes:
    """Bytes of a timeline file; completed ones are remembered. Raises ObjectNotFoundError if it was
    archived or taken back since it was listed."""
    data = _body_if_there(ctx, instant)
    if data is None:
        path = ctx.layout.timeline_path(instant.file_name)
        raise ObjectNotFoundError(f"timeline file {path} was listed and is gone", base_path=ctx.base_path, path=path)
    return data


def is_there(ctx: TableContext, instant: Instant) -> bool:
    """Whether the file of an instant that has not completed is there."""
    return _body_if_there(ctx, instant) is not None


def fetch_bodies(ctx: TableContext, instants: Iterable[Instant]) -> None:
    """Remember what stands in the files of completed instants, all at once, before they are asked
    for one after the other."""
    unknown = [instant for instant in instants if instant.completed and instant.file_name not in ctx.bodies]
    if unknown:
        all_at_once(ctx.storage, [partial(_body_if_there, ctx, instant) for instant in unknown])


def records_of(ctx: TableContext, instant: Instant) -> list[dict[str, Any]]:
    """The records of an instant's Avro body. Raises CorruptTableError if it has another content,
    ObjectNotFoundError as `body`."""
    return _records(ctx, instant, body(ctx, instant))


def records_if_there(ctx: TableContext, instant: Instant) -> list[dict[str, Any]] | None:
    """The records of an instant's Avro body, None if it is gone since it was listed. Raises
    CorruptTableError if it has another content."""
    data = _body_if_there(ctx, instant)
    return None if data is None else _records(ctx, instant, data)


def _body_if_there(ctx: TableContext, instant: Instant) -> bytes | None:
    name = instant.file_name
    known = ctx.bodies.get(name)
    if known is not None:
        return known
    try:
        data = ctx.storage.get(ctx.layout.timeline_path(name))
    except ObjectNotFoundError:
        return None
    if instant.completed:
        ctx.bodies[name] = data
    return data


def _records(ctx: TableContext, instant: Instant, data: bytes) -> list[dict[str, Any]]:
    try:
        return decode_records(data) if data else []
    except ValueError as error:
        raise CorruptTableError(
            f"{instant.file_name} cannot be read: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error


def commit_metadata(ctx: TableContext, instant: Instant) -> CommitMetadata:
    """Commit metadata of a completed write. Raises CorruptTableError if it cannot be parsed,
    ObjectNotFoundError as `body`."""
    try:
        return decode_commit(body(ctx, instant))
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{instant.file_name} is no commit metadata: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error
