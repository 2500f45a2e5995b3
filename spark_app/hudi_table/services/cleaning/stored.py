"""Every file group that lies on the store, replaced ones included, with all of its committed
slices.

Facts: a slice here is a base file with the logs that apply to it and the change data logs beside
it. In table version 6 all of these carry one base instant; slices of instants that have not
completed are none, but for those of a pending compaction. From version 8 on a log carries the
instant that wrote it, and lies where readers find it (`table/view/file_groups.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import groups_of


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """The files of one base instant of a group."""

    instant: str
    files: tuple[ObjectInfo, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """File names without their folder."""
        return tuple(info.path.rpartition("/")[2] for info in self.files)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(info.size for info in self.files)


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A file group: its slices, newest first; `replaced` is the instant that hid it, "" if none
    did."""

    partition: str
    file_id: str
    slices: tuple[StoredSlice, ...]
    replaced: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """(partition, file id)."""
        return (self.partition, self.file_id)


def stored_groups(
    files: Iterable[ObjectInfo],
    timeline: Timeline,
    replaced: Mapping[tuple[str, str], str],
    archived: Callable[[], Mapping[str, str]] = dict,
) -> list[StoredGroup]:
    """The groups of listed files, sorted by partition and file id. `replaced`: (partition, file id)
    → the instant that hid it; `archived` knows when each archived instant completed."""
    slices_of: dict[tuple[str, str], dict[str, list[ObjectInfo]]] = {}
    files = list(files)
    placed = _placed(files, timeline, archived)
    for info in files:
        partition, _, name = info.path.rpartition("/")
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            slices_of.setdefault((partition, base.file_id), {}).setdefault(base.instant, []).append(info)
        elif log is not None:
            instant = placed.get(info.path, log.base_instant)
            slices_of.setdefault((partition, log.file_id), {}).setdefault(instant, []).append(info)
    start = comparable_time(timeline.start) if timeline.start else ""
    known = {i.time for i in timeline.commits} | {i.time for i in timeline.pending if i.action is Action.COMPACTION}
    groups = []
    for (partition, file_id), slices in sorted(slices_of.items()):
        committed = [
            StoredSlice(instant, tuple(slices[instant]))
            for instant in sorted(slices, key=comparable_time, reverse=True)
            if instant in known or comparable_time(instant) < start
        ]
        groups.append(StoredGroup(partition, file_id, tuple(committed), replaced.get((partition, file_id), "")))
    return groups


def _placed(
    files: Iterable[ObjectInfo], timeline: Timeline, archived: Callable[[], Mapping[str, str]]
) -> dict[str, str]:
    """The slices of logs whose names do not tell them, by path: of those that readers see."""
    if not timeline.layout.logs_tell_writers:
        return {}
    found = groups_of(files, timeline, archived=archived)
    slices = (item for groups in found.values() for group in groups for item in group.slices)
    return {log.path: item.instant for item in slices for log in item.logs}
