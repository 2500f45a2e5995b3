"""What a handle knows of a partition's folder, so that a listing which adds some logs costs these
logs and not all.

The groups of a folder follow from the names and sizes of its files and from which instants count.
As long as none of these that was looked at has changed, a new log at the end of a newest slice is
all that is new; whatever else happens, all groups are made anew. Where logs are named by the
instants that wrote them, one counts once its instant has completed. On a local disk nobody looks
again at a file that an instant which has completed has written; a listing that misses one of them
is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_table.model.names import (
    HOODIE,
    PARTITION_METADATA,
    instant_of_token,
    join,
    parse_base_file,
    parse_log_file,
    parse_other_format,
)
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.ports import plain
from hudi_table.table.timeline.context import ListedFile, TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import FileGroup, FileSlice, LogFile, Visible, groups_of

Hidden = frozenset[tuple[str, str]]
Archived = Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """A partition's folder as it was listed: the `sizes` of its files by name, the names that are
    `settled`, its `groups`, sorted by file id, with the `places` of these in them, and what they
    follow from: the groups that are `hidden`, and the instants that did not count (`undecided`)."""

    sizes: dict[str, int]
    settled: frozenset[str]
    groups: tuple[FileGroup, ...]
    places: dict[str, int]
    hidden: Hidden
    undecided: frozenset[str]

    @property
    def is_partition(self) -> bool:
        """Whether the folder has the file that makes it a partition."""
        return any(name.startswith(PARTITION_METADATA) for name in self.sizes.keys() - self.settled)


@dataclass(frozen=True, slots=True)
class SeenFolder:
    """A listing of now: the `sizes` that were looked at, which are all but those of the settled
    files of `known`, if that is given."""

    partition: str
    sizes: dict[str, int]
    known: KnownFolder | None

    @property
    def files(self) -> list[ListedFile]:
        """All files of the folder, sorted by path."""
        stayed = {} if self.known is None else {name: self.known.sizes[name] for name in self.known.settled}
        sizes = {**stayed, **self.sizes}
        return [ListedFile(join(self.partition, name), size) for name, size in sorted(sizes.items())]


def look(ctx: TableContext, partition: str) -> SeenFolder:
    """List the folder of a partition. Of one that is not there, nothing."""
    if partition.partition("/")[0] == HOODIE:
        return SeenFolder(partition, {}, None)
    known, storage = ctx.folders.get(partition), plain(ctx.storage)
    if known is not None and isinstance(storage, LocalStorage):
        _, infos, found = storage.list_news(partition, known.settled)
        if found == len(known.settled):
            return SeenFolder(partition, {info.path.rpartition("/")[2]: info.size for info in infos}, known)
    sizes = {info.path.rpartition("/")[2]: info.size for info in ctx.storage.list_dir(partition)[1]}
    if known is None or known.settled - sizes.keys():
        return SeenFolder(partition, sizes, None)
    if any(sizes[name] != known.sizes[name] for name in known.settled):
        return SeenFolder(partition, sizes, None)
    return SeenFolder(partition, {name: sizes[name] for name in sizes.keys() - known.settled}, known)


def understand(
    ctx: TableContext, timeline: Timeline, seen: SeenFolder, hidden: Hidden, archived: Archived = dict
) -> KnownFolder:
    """The groups of a folder under a whole timeline as of now, remembered for the next listing.
    `archived`: see `groups_of`."""
    visible = Visible(timeline, None, archived)
    moves = any(instant.action is Action.COMPACTION for instant in timeline.pending)
    found = None if moves else _with_more_logs(seen, hidden, visible)
    if found is None:
        found = _made_anew(seen, timeline, hidden, visible, archived)
    if not moves:
        # The plan of a compaction puts logs where its end may not leave them.
        ctx.folders[seen.partition] = found
    return found


def _with_more_logs(seen: SeenFolder, hidden: Hidden, visible: Visible) -> KnownFolder | None:
    """The known groups with new logs at the end of their newest slices; nothing if anything else
    has changed."""
    known = seen.known
    if known is None or known.hidden != hidden:
        return None
    was_open = {name: known.sizes[name] for name in known.sizes.keys() - known.settled}
    if any(seen.sizes.get(name) != size for name, size in was_open.items()):
        return None
    slices = [item for group in known.groups for item in group.slices]
    if any(map(visible, known.undecided)) or not all(visible(item.instant) for item in slices):
        return None
    if visible.by_completion and not all(visible(log.name.base_instant) for item in slices for log in item.logs):
        return None
    new = {name: size for name, size in seen.sizes.items() if name not in was_open}
    logs = [(name, parse_log_file(name)) for name in new]
    groups = list(known.groups)
    for name, log in sorted(
        logs, key=lambda item: () if item[1] is None else (item[1].base_instant, item[1].version, item[1].token or "")
    ):
        if log is None or log.cdc or log.file_id not in known.places:
            return None
        place = known.places[log.file_id]
        extended = _extended(groups[place], LogFile(join(seen.partition, name), new[name], log), visible)
        if extended is None:
            return None
        groups[place] = extended
    settled = known.settled | _settled(seen.sizes, groups, known.places, visible)
    return replace(known, sizes={**known.sizes, **new}, settled=settled, groups=tuple(groups))


def _extended(group: FileGroup, log: LogFile, visible: Visible) -> FileGroup | None:
    """The group with a log that comes last of all; nothing if it does not."""
    last, instant = group.latest, log.name.base_instant
    if last.logs and log.sort_key <= last.logs[-1].sort_key:
        return None
    if visible.by_completion:
        newest = max((item.instant for item in group.slices if item.base is not None), key=comparable_time, default="")
        if not visible(instant) or visible.completion(instant, newest) < comparable_time(last.instant):
            return None
    elif instant != last.instant:
        return None
    longer = FileSlice(last.partition, last.file_id, last.instant, last.base, (*last.logs, log))
    return FileGroup(group.partition, group.file_id, (*group.slices[:-1], longer))


def _made_anew(
    seen: SeenFolder, timeline: Timeline, hidden: Hidden, visible: Visible, archived: Archived
) -> KnownFolder:
    files = seen.files
    sizes = {file.path.rpartition("/")[2]: file.size for file in files}
    groups = tuple(groups_of(files, timeline, None, hidden, archived=archived).get(seen.partition, ()))
    places = {group.file_id: place for place, group in enumerate(groups)}
    undecided = frozenset(_undecided(sizes, visible))
    settled = _settled(sizes, groups, places, visible)
    return KnownFolder(sizes, settled, groups, places, hidden, undecided)


def _undecided(names: Iterable[str], visible: Visible) -> Iterable[str]:
    """The instants in names of files that do not count."""
    for name in names:
        base, log = parse_base_file(name) or parse_other_format(name), parse_log_file(name)
        instant = base.instant if base is not None else log.base_instant if log is not None else None
        if instant is not None and not visible(instant):
            yield instant


def _by_group(names: Iterable[str]) -> dict[str, set[str]]:
    """Names of data files by their file ids."""
    found: dict[str, set[str]] = {}
    for name in names:
        parsed = parse_base_file(name) or parse_log_file(name)
        if parsed is not None:
            found.setdefault(parsed.file_id, set()).add(name)
    return found


def _settled(
    names: Iterable[str], groups: Sequence[FileGroup], places: Mapping[str, int], visible: Visible
) -> frozenset[str]:
    """Those of the names whose file is written no more, because its writer has completed."""
    found: set[str] = set()
    for file_id, left in _by_group(names).items():
        for item in reversed(groups[places[file_id]].slices) if file_id in places else ():
            if item.base is not None and item.base.name in left:
                left.remove(item.base.name)
                found.add(item.base.name)
            # What is looked for is mostly at the end.
            for number in range(len(item.logs) - 1, -1, -1) if left else ():
                name = item.logs[number].path.rpartition("/")[2]
                if name in left:
                    left.remove(name)
                    if _tells_its_end(item.logs, number, visible):
                        found.add(name)
                    if not left:
                        break
    return frozenset(found)


def _tells_its_end(logs: Sequence[LogFile], number: int, visible: Visible) -> bool:
    """Whether the token of a log names a writer that has completed. Hudi 1.1.1 gives a log the
    token of the log before it, which does not tell its writer; a writer of ours has one log in a
    group."""
    token = logs[number].name.token
    writer = instant_of_token(token)
    copied = number > 0 and logs[number - 1].name.token == token
    return writer is not None and not copied and visible(writer)
