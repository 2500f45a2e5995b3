"""The archived timeline: what it tells of instants that left the active one, and its files in table
version 6 (of others: `lsm.py`).

Facts (table version 6, measured on Hudi 0.15.0): `.commits_.archive.<n>_1-0-1` in the table's
archive folder, a higher n is newer; merging puts several into one of a higher n, so instants are
not in time order, and a crash leaves some of them twice. `mergeArchivePlan` names the files of a
merge that is not done, and the file that it writes, which may be torn. What reads an archive is
imported with the first file of one: most tables have none to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnavailableError
from hudi_table.model.names import join
from hudi_table.model.table.layouts import Archive
from hudi_table.model.table.version_properties import INITIAL_VERSION
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State, comparable_time
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_commit, decode_records
from hudi_table.table.timeline.lsm import Asked, lsm_completions, lsm_entries, lsm_latest
from hudi_table.table.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_table.codec.archive_entries import Entry

Holds = Callable[[Mapping[str, str]], str | None]
"""What is looked for in the extra metadata of a commit; None where it is not there."""

_FILE = re.compile(r"^\.commits_\.archive\.(\d+)(?:_.*)?$", re.ASCII)
_TOKEN = "1-0-1"  # noqa: S105 - a word of the format
_MERGE_PLAN = "mergeArchivePlan"
_LISTINGS_MAX = 10


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One file of the archived timeline and its number."""

    number: int
    info: ObjectInfo


def archive_folder(ctx: TableContext) -> str:
    """The folder, relative to the base path."""
    return join(ctx.layout.timeline_folder, ctx.config.archive_folder)


def has_archive(ctx: TableContext) -> bool:
    """Whether the older part of the timeline was archived."""
    listed = (ctx.storage.list_dir(folder)[1] for folder in _folders(ctx))
    return any(info.path.endswith(ctx.layout.archive.value) for files in listed for info in files)


def _folders(ctx: TableContext) -> list[str]:
    """Where archives lie. Hudi's downgrade from version 8 leaves one in `archived`, and properties
    that name another folder (measured)."""
    folders = [archive_folder(ctx)]
    if ctx.layout.archive is Archive.LOGS and INITIAL_VERSION in ctx.config.extra:
        folders.append(join(ctx.layout.timeline_folder, ctx.layout.archive_default))
    return list(dict.fromkeys(folders))


def archive_path(ctx: TableContext, number: int) -> str:
    """Path of archive file `number`, relative to the base path."""
    return f"{archive_folder(ctx)}/.commits_.archive.{number}_{_TOKEN}"


def archive_files(ctx: TableContext, folder: str = "") -> list[ArchiveFile]:
    """All files of the table's archive, or of another folder, the newest last."""
    _, infos = ctx.storage.list_dir(folder or archive_folder(ctx))
    found = ((_FILE.match(info.path.rpartition("/")[2]), info) for info in infos)
    return sorted((ArchiveFile(int(match[1]), info) for match, info in found if match), key=lambda file: file.number)


def merge_target(ctx: TableContext) -> str | None:
    """The name of the file that an unfinished merge of Hudi's writes ('' if it is not known), None
    without one.

    Hudi deletes that file when it takes the merge up again.
    """
    try:
        data = ctx.storage.get(f"{archive_folder(ctx)}/{_MERGE_PLAN}")
    except ObjectNotFoundError:
        return None
    try:
        return str(decode_records(data)[0]["mergedArchiveFileName"] or "")
    except (ValueError, IndexError, KeyError):
        return ""


def file_number(name: str) -> int:
    """The number in the name of an archive file, 0 for another name."""
    match = _FILE.match(name)
    return int(match[1]) if match else 0


def archived_entries(ctx: TableContext, asked: Asked | None = None) -> Iterator[list[Entry]]:
    """The records of each file, the newest file first. One instant may come twice, also in two
    files. `asked`: files that by their footers hold nothing of it are left out; those of version 6
    have none, and all are read.

    A file that is merged away meanwhile is found again in the merged one. Raises CorruptTableError.
    """
    return _READERS[ctx.layout.archive](ctx, asked)


def archived_completions(ctx: TableContext, asked: Asked | None = None) -> dict[str, str]:
    """When each archived instant completed, by its time, where the archive tells. `asked`: as
    `archived_entries` has it. Raises CorruptTableError."""
    return lsm_completions(ctx.storage, archive_folder(ctx), asked=asked) if ctx.layout.tells_completions else {}


def archived_moments(ctx: TableContext, times: frozenset[str]) -> dict[str, str]:
    """When those of the instants `times` completed that are archived, as far as the archive of any
    version tells. Raises CorruptTableError."""
    told: dict[str, str] = {}
    for entry in chain.from_iterable(archived_entries(ctx, Asked.of(times))):
        if entry["commitTime"] in times and entry["actionState"] == State.COMPLETED.name:
            told[entry["commitTime"]] = entry.get("completionTime") or entry.get("stateTransitionTime") or ""
    return told


def hidden_by(ctx: TableContext, timeline: Timeline, then: Timeline) -> str:
    """The oldest archived write whose files count by this timeline, because they are older than its
    start, and would not by what it is to become; '' for none. The archive is read only if `then`
    starts earlier. Raises CorruptTableError."""
    start, new = (comparable_time(each.start or "") for each in (timeline, then))
    if new >= start:
        return ""
    found = map(instant_of, chain.from_iterable(archived_entries(ctx, Asked(new))))
    writes = (i.time for i in found if i is not None and i.completed and i.action in WRITE_ACTIONS)
    return min((time for time in writes if new <= comparable_time(time) < start), default="")


def behind_savepoints(ctx: TableContext, timeline: Timeline) -> str:
    """The oldest archived write that is younger than one which a savepoint keeps on the timeline
    (`hoodie.archive.beyond.savepoint` of Hudi); '' for none. Raises CorruptTableError."""
    first = timeline.commits[0].time if timeline.commits else None
    return hidden_by(ctx, timeline, replace(timeline, started=first))


def _is_before_start(timeline: Timeline, time: str) -> bool:
    return comparable_time(time) < comparable_time(timeline.start or "")


def latest_archived(ctx: TableContext) -> str:
    """The latest moment at which an archived instant completed; '' if there is none, or the archive
    does not tell. Raises CorruptTableError."""
    return lsm_latest(ctx.storage, archive_folder(ctx)) if ctx.layout.tells_completions else ""


def _of_lsm(ctx: TableContext, asked: Asked | None) -> Iterator[list[Entry]]:
    return lsm_entries(ctx.storage, archive_folder(ctx), asked)


def _of_logs(ctx: TableContext, asked: Asked | None) -> Iterator[list[Entry]]:
    del asked
    read: set[str] = set()
    for _ in range(_LISTINGS_MAX):
        vanished = False
        for file in (file for folder in _folders(ctx) for file in reversed(archive_files(ctx, folder))):
            if file.info.path in read:
                continue
            read.add(file.info.path)
            try:
                yield _entries(ctx, file.info.path)
            except ObjectNotFoundError:
                vanished = True
        if not vanished:
            return
    raise UnavailableError(f"the archive changed during {_LISTINGS_MAX} listings; read again", base_path=ctx.base_path)


def _entries(ctx: TableContext, path: str) -> list[Entry]:
    from hudi_table.codec.archive_entries import read_entries

    try:
        return list(read_entries(ctx.storage.get(path), path=path))
    except CorruptTableError:
        # What a merge of Hudi's has not written to its end still stands in the files that it merges.
        if path.rpartition("/")[2] == merge_target(ctx):
            return []
        raise


_READERS = {Archive.LOGS: _of_logs, Archive.LSM: _of_lsm}


def instant_of(entry: Entry) -> Instant | None:
    """The instant and state of an entry; None for an action that this release does not know."""
    try:
        state, completion = State[entry["actionState"]], entry.get("completionTime") or ""
        return Instant(entry["commitTime"], Action(entry["actionType"]), state, completion)
    except (KeyError, ValueError):
        return None


def commit_of(entry: Entry) -> CommitMetadata:
    """The commit metadata of a completed write's entry, as far as the archive keeps it; empty for
    other entries."""
    payload = entry.get("hoodieCommitMetadata") or entry.get("hoodieReplaceCommitMetadata") or {}
    return decode_commit(json.dumps(payload).encode())


def archived_commits(ctx: TableContext) -> Iterator[tuple[str, CommitMetadata]]:
    """(instant time, metadata) of the completed writes of the archive, the newest file first.
    Raises CorruptTableError."""
    return ((instant.time, metadata) for instant, metadata in _archived_writes(ctx))


def _archived_writes(ctx: TableContext) -> Iterator[tuple[Instant, CommitMetadata]]:
    for entries in archived_entries(ctx):
        for entry in entries:
            instant = instant_of(entry)
            if instant is not None and instant.completed and instant.action in WRITE_ACTIONS:
                yield instant, commit_of(entry)


def all_writes(ctx: TableContext, timeline: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """The completed writes of the timeline, the newest first, then those of the archive, of which
    one may come twice. The archive is read once the timeline is through. Raises
    CorruptTableError."""
    for instant in reversed(timeline.commits):
        yield instant, commit_metadata(ctx, instant)
    yield from _archived_writes(ctx)


def archived_paths(ctx: TableContext, times: Set[str]) -> dict[str, str]:
    """The files that archived writes of the instants `times` name, each with its instant. Of none,
    nothing is read."""
    found: dict[str, str] = {}
    left = set(times)
    for time, metadata in archived_commits(ctx) if times else ():
        if time in times:
            found |= dict.fromkeys(metadata.paths, time)
            left.discard(time)
        if not left:
            break
    return found


def newest_with(ctx: TableContext, timeline: Timeline, holds: Holds) -> tuple[str, str] | None:
    """(instant, what it holds) of the newest commit that holds it. The archive is read only if the
    timeline has none, or one alone that a savepoint keeps behind archived ones.

    Raises CorruptTableError.
    """
    kept: list[tuple[str, str]] = []
    for instant in reversed(timeline.commits):
        held = holds(commit_metadata(ctx, instant).extra_metadata)
        if held is not None:
            kept = [(instant.time, held)]
            if not (_is_before_start(timeline, instant.time) and behind_savepoints(ctx, timeline)):
                return kept[0]
            break
    found = archived_with(ctx, {"": holds}).values()
    return max([*kept, *found], key=lambda each: comparable_time(each[0]), default=None)


def archived_with(ctx: TableContext, wanted: Mapping[str, Holds]) -> dict[str, tuple[str, str]]:
    """Name → (instant, what it holds) of the newest archived commit with each of these. Read from
    the newest file on, until all are found."""
    found: dict[str, tuple[str, str]] = {}
    for entries in archived_entries(ctx):
        for entry in sorted(entries, key=lambda entry: comparable_time(entry["commitTime"]), reverse=True):
            extra = commit_of(entry).extra_metadata
            for name, holds in wanted.items():
                held = holds(extra) if name not in found else None
                if held is not None:
                    found[name] = (str(entry["commitTime"]), held)
        if len(found) == len(wanted):
            break
    return found


def under(key: str) -> Holds:
    """What stands under a key."""
    return lambda extra: extra.get(key)
