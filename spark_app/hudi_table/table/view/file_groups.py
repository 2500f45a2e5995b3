"""File groups and slices, and how listed files make them under a timeline.

Facts: a base file counts if its instant completed or is older than the timeline's start; groups in
a completed replacecommit's `partitionToReplaceFileIds` are hidden; a slice's key is its base
instant, a base file's own. In table version 6 that of a log is the one in its name. Logs that are
named with the instant of a pending compaction belong to the slice before it until its base file is
there. Logs are ordered by version as a number, then by write token as text, a missing one first. In
versions 8 and 9 a log's name has the instant that wrote it: it counts as a base file does, belongs
to the newest slice that began before its instant completed, and logs are ordered by instant first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hudi_table.errors import UnsupportedTableError
from hudi_table.model.names import LogFileName, instant_of_token, parse_base_file, parse_log_file, parse_other_format
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.timeline.timeline import Timeline


class StoredFile(Protocol):
    """What a listing tells of a file."""

    @property
    def path(self) -> str:
        """Relative to the base path."""
        ...

    @property
    def size(self) -> int:
        """In bytes."""
        ...


class BaseName(Protocol):
    """What the name of a base file tells."""

    @property
    def file_id(self) -> str:
        """Its file group."""
        ...

    @property
    def instant(self) -> str:
        """The instant that wrote it."""
        ...


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One visible base file: `path` relative to the base path, `size` in bytes."""

    path: str
    partition: str
    file_id: str
    instant: str
    size: int

    @property
    def name(self) -> str:
        """File name without its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file: `path` relative to the base path, `size` in bytes."""

    path: str
    size: int
    name: LogFileName

    @property
    def instant(self) -> str | None:
        """The instant that wrote it, as its token tells; None for a log of another engine."""
        return instant_of_token(self.name.token)

    @property
    def sort_key(self) -> tuple[str, int, str]:
        """The order in which logs of one file group apply."""
        return (comparable_time(self.name.base_instant), self.name.version, self.name.token or "")


def written_logs(stats: Iterable[WriteStat]) -> dict[tuple[str, str], tuple[LogFile, ...]]:
    """The logs of rows and deletes that a commit wrote, by partition and file id, in the order in
    which they apply."""
    found: dict[tuple[str, str], list[LogFile]] = {}
    for stat in stats:
        name = parse_log_file(stat.path.rpartition("/")[2])
        if name is not None and not name.cdc:
            log = LogFile(stat.path, stat.file_size_in_bytes, name)
            found.setdefault((stat.partition_path, stat.file_id), []).append(log)
    return {group: tuple(sorted(logs, key=lambda log: log.sort_key)) for group, logs in found.items()}


def next_log_version(logs: Sequence[LogFile], instant: str, is_committed: Callable[[str], bool]) -> int:
    """The version of the log that `instant` puts into the slice of these logs: behind the committed
    ones and those of other engines.

    Logs of one version apply in the order of their instants, so those that are not committed stand
    in that order whatever becomes of them: Hudi ends its scan at a log that is later than its
    snapshot. One that lies there already is left behind if it can be.
    """
    counted, foreign, later = 0, 0, set()
    for log in logs:
        writer = log.instant
        if writer is None:
            foreign = max(foreign, log.name.version)
        elif writer < instant and is_committed(writer):
            counted = max(counted, log.name.version)
        elif writer > instant and not is_committed(writer):
            later.add(log.name.version)
    last = max(counted, foreign)
    return last if last in later and not 0 < foreign == last else last + 1


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base instant of a file group: its base file, if any, and its log files in the order in
    which they apply."""

    partition: str
    file_id: str
    instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the base file and the logs."""
        return (self.base.size if self.base else 0) + sum(log.size for log in self.logs)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All visible slices of one file id, oldest first."""

    partition: str
    file_id: str
    slices: tuple[FileSlice, ...]

    @property
    def latest(self) -> FileSlice:
        """The newest slice."""
        return self.slices[-1]


def groups_of(
    files: Iterable[StoredFile],
    timeline: Timeline,
    as_of: str | None = None,
    hidden: Container[tuple[str, str]] = frozenset(),
    parse: Callable[[str], BaseName | None] = parse_base_file,
    archived: Callable[[], Mapping[str, str]] = dict,
) -> dict[str, list[FileGroup]]:
    """The file groups that listed files make under a timeline, by partition; those in `hidden` are
    left out. `parse` knows base files by their names, `archived` when each archived instant
    completed, which is asked where slices go by that. Raises UnsupportedTableError for a base file
    that counts and is not Parquet."""
    visible = Visible(timeline, as_of, archived)
    bases: dict[tuple[str, str], dict[str, BaseFile]] = {}
    logs: dict[tuple[str, str], list[LogFile]] = {}
    for info in files:
        partition, _, name = info.path.rpartition("/")
        base = parse(name)
        if base is not None and (partition, base.file_id) not in hidden and visible(base.instant):
            # Attempts of one task write equal rows; the last name by token is taken, as a listing reader does.
            found = BaseFile(info.path, partition, base.file_id, base.instant, info.size)
            bases.setdefault((partition, base.file_id), {})[base.instant] = found
            continue
        log = parse_log_file(name)
        if log is not None and not log.cdc and (partition, log.file_id) not in hidden:
            logs.setdefault((partition, log.file_id), []).append(LogFile(info.path, info.size, log))
        other = parse_other_format(name) if log is None and parse is parse_base_file else None
        if other is not None and (partition, other.file_id) not in hidden and visible(other.instant):
            raise UnsupportedTableError(
                f"{info.path} is a base file in another format than Parquet, which this release does not read: use the engine that wrote it",
                path=info.path,
            )
    return _assemble(bases, logs, visible)


class Visible:
    """Whether files of an instant count: completed, or older than the timeline's start; and not
    after `as_of`."""

    def __init__(self, timeline: Timeline, as_of: str | None, archived: Callable[[], Mapping[str, str]]) -> None:
        self.by_completion = timeline.layout.tells_completions
        self.slices = _slices_by_completion if self.by_completion else _slices
        self._timeline = timeline
        self._archived = functools.cache(archived)
        self.completed = timeline.commit_times
        self.pending_compactions = {i.time for i in timeline.pending if i.action is Action.COMPACTION}
        self.start = comparable_time(timeline.start) if timeline.start else ""
        self.limit = comparable_time(as_of) if as_of else None

    def __call__(self, instant: str) -> bool:
        """Whether readers see what this instant wrote."""
        return not self.too_new(instant) and (instant in self.completed or comparable_time(instant) < self.start)

    def too_new(self, instant: str) -> bool:
        """Whether the instant lies after the moment of a time travel."""
        return self.limit is not None and comparable_time(instant) > self.limit

    def completion(self, instant: str, since: str) -> str:
        """When an instant completed, where it matters whether that was at `since` or later: of an
        archived one its own time tells, or the archive. Its own time, too, where the archive does
        not have it."""
        known = self._timeline.completions.get(instant)
        if known is None and comparable_time(instant) < comparable_time(since):
            known = self._archived().get(instant)
        return comparable_time(known or instant)


def _assemble(
    bases: dict[tuple[str, str], dict[str, BaseFile]], logs: dict[tuple[str, str], list[LogFile]], visible: Visible
) -> dict[str, list[FileGroup]]:
    groups: dict[str, list[FileGroup]] = {}
    for partition, file_id in sorted(bases.keys() | logs.keys()):
        known = bases.get((partition, file_id), {})
        found = visible.slices(partition, file_id, known, logs.get((partition, file_id), []), visible)
        if found:
            groups.setdefault(partition, []).append(FileGroup(partition, file_id, found))
    return groups


def _slices(
    partition: str, file_id: str, bases: dict[str, BaseFile], logs: list[LogFile], visible: Visible
) -> tuple[FileSlice, ...]:
    """The slices of one group, oldest first; blocks of logs that nobody may see yet are left to the
    reader of the logs."""
    if not logs and len(bases) == 1:
        return tuple(FileSlice(partition, file_id, instant, base) for instant, base in bases.items())
    held: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    for log in sorted(logs, key=lambda log: log.sort_key):
        instant = log.name.base_instant
        if instant not in held and (instant in visible.pending_compactions or visible.too_new(instant)):
            # Its own slice is not there yet (any more, for a time travel): the rows update those of the slice before.
            before = [known for known in held if comparable_time(known) < comparable_time(instant)]
            instant = max(before, key=comparable_time, default=instant)
        if instant in held or visible(instant) or instant in visible.pending_compactions:
            held.setdefault(instant, []).append(log)
    return _made(partition, file_id, bases, held)


def _slices_by_completion(
    partition: str, file_id: str, bases: dict[str, BaseFile], logs: list[LogFile], visible: Visible
) -> tuple[FileSlice, ...]:
    """The same where logs are named by the instants that wrote them: each lies on the newest slice
    that began before it completed.

    A pending compaction makes no slice: logs behind it would be read with those before it. Logs
    that carry its time are of version 6, from before an upgrade; Hudi takes them for its own
    uncommitted ones and leaves their rows out.
    """
    held: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    newest = max(bases, key=comparable_time, default="")
    for log in sorted(logs, key=lambda log: log.sort_key):
        instant = log.name.base_instant
        if visible.too_new(instant) or not (visible(instant) or instant in visible.pending_compactions):
            continue
        completion = visible.completion(instant, newest)
        before = [known for known in held if comparable_time(known) <= completion]
        held.setdefault(max(before, key=comparable_time, default=instant), []).append(log)
    return _made(partition, file_id, bases, held)


def _made(
    partition: str, file_id: str, bases: dict[str, BaseFile], held: dict[str, list[LogFile]]
) -> tuple[FileSlice, ...]:
    return tuple(
        FileSlice(partition, file_id, instant, bases.get(instant), tuple(held[instant]))
        for instant in sorted(held, key=comparable_time)
    )
