"""The file system view: the file groups and slices that a timeline makes visible.

Its files are those of the metadata table, where the table has one that can be asked, else those of
the folders. Both make the same groups: what only a folder shows was written by no completed
instant, so it counts for nothing (`docs/explanation/metadata-table.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import commit_metadata, fetch_bodies
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.archived_times import archived_times
from hudi_table.table.view.file_groups import BaseFile, BaseName, FileGroup, FileSlice, LogFile, StoredFile, groups_of
from hudi_table.table.view.known_folders import look, understand
from hudi_table.table.view.listing import list_data_files, list_partitions, partitions_in
from hudi_table.table.view.taken_meanwhile import check_nothing_taken, shows_newer

__all__ = [
    "BaseFile",
    "BaseName",
    "FileGroup",
    "FileSlice",
    "FileSystemView",
    "LogFile",
    "groups_of",
    "replaced_at",
    "replaced_groups",
]

LISTED_ALONE_MAX = 1_000
"""Of more partitions than these no folder is listed alone: one listing of everything asks an object
store less often."""
LISTED_AT_ONCE = 16
"""Of so many partitions the folders are listed also where there is a metadata table: an object
store answers their listings side by side, before its timeline, logs and base file could be read one
after the other."""


@dataclass(slots=True)
class FileSystemView:
    """File groups as of a timeline, which is whole, and as of an instant if `as_of` is given. Files
    are looked up once, at first use: those of the partitions that are asked for, or all.

    `leaves`: which slices a planner leaves to others for now, None for none. It hides nothing."""

    ctx: TableContext
    timeline: Timeline
    as_of: str | None = None
    leaves: Callable[[FileSlice], bool] | None = field(default=None, repr=False)
    _groups: dict[str, list[FileGroup]] | None = field(default=None, repr=False)
    _partitions: list[str] = field(default_factory=list, repr=False)
    _alone: dict[str, list[FileGroup]] = field(default_factory=dict, repr=False)
    _hidden: set[tuple[str, str]] | None = field(default=None, repr=False)
    _exists: dict[str, bool] = field(default_factory=dict, repr=False)
    _every_folder: bool = field(default=False, repr=False)
    _is_newer: bool = field(default=False, repr=False)

    def partitions(self) -> list[str]:
        """Partition paths, sorted: those that exist on the store, or that the metadata table lists;
        [''] for a non-partitioned table with data."""
        self._load()
        return self._partitions

    def existing(self, partitions: Iterable[str]) -> set[str]:
        """Those of the given partition paths that exist on the store.

        Where folders are not listed, one with a visible group does: no clean that would empty it
        can end before a write that sees the group. Of others the folder itself is asked.
        """
        names = set(partitions)
        if not self._few(names):
            self._load()
        if self._every_folder:
            return {name for name in names if self._exists.get(name)}
        unsure = sorted(name for name in names - self._exists.keys() if not self.groups(name))
        self._list_alone(unsure)
        return {name for name in names if self._exists.get(name, True)}

    def groups(self, partition: str | None = None) -> list[FileGroup]:
        """Visible file groups of one partition, or of all, sorted by partition and file id."""
        if partition is not None and self._few({partition}):
            return self._alone[partition]
        loaded = self._load()
        if partition is not None:
            return loaded.get(partition, [])
        return [group for name in sorted(loaded) for group in loaded[name]]

    def latest_slices(self, partitions: Iterable[str] | None = None) -> list[FileSlice]:
        """The newest slice of every visible group, of all partitions or of the given ones, in their
        order."""
        if partitions is None:
            return [group.latest for group in self.groups()]
        names = list(partitions)
        self._few(set(names))  # all at once, for they wait for the store
        return [group.latest for name in names for group in self.groups(name)]

    def _few(self, names: set[str]) -> bool:
        """Look these partitions up alone, unless they are many or everything is known already.
        Whether that is so."""
        if self._groups is not None:
            return False
        wanted = names - self._alone.keys()
        if len(wanted) + len(self._alone) > LISTED_ALONE_MAX:
            return False
        if wanted:
            many = len(wanted) > LISTED_AT_ONCE
            found = self.ctx.metadata.files(self.ctx, self.timeline, wanted) if many else None
            if found is None and self.as_of is None:
                built = self._from_folders(sorted(wanted))
            else:
                built = self._build(self._list_alone(sorted(wanted)) if found is None else found.files)
            self._check_retained(built, wanted)
            self._alone |= {name: built.get(name, []) for name in wanted}
        return True

    def _from_folders(self, names: Sequence[str]) -> dict[str, list[FileGroup]]:
        """The groups of these partitions by their folders, of which only what is new is made."""
        seen = all_at_once(self.ctx.storage, [partial(look, self.ctx, name) for name in names])
        hidden = frozenset(self.hidden())
        # However many partitions ask, the archive is read once.
        archived = archived_times(self.ctx, self.timeline, chain.from_iterable(folder.files for folder in seen))
        known = [understand(self.ctx, self.timeline, folder, hidden, archived) for folder in seen]
        self._is_newer = any(folder.undecided and shows_newer(folder.sizes, self.timeline) for folder in known)
        self._exists |= {name: folder.is_partition for name, folder in zip(names, known, strict=True)}
        return {name: list(folder.groups) for name, folder in zip(names, known, strict=True)}

    def _list_alone(self, names: Sequence[str]) -> list[ObjectInfo]:
        """The files in the folders of these partitions; and whether these are there is known
        then."""
        listed = list_partitions(self.ctx.storage, names)
        self._exists |= {name: bool(partitions_in(files)) for name, files in listed.items()}
        return [info for files in listed.values() for info in files]

    def _load(self) -> dict[str, list[FileGroup]]:
        if self._groups is None:
            found = self.ctx.metadata.files(self.ctx, self.timeline)
            if found is None:
                files = list_data_files(self.ctx.storage)
                self._partitions, self._every_folder = partitions_in(files), True
                self._exists = dict.fromkeys(self._partitions, True)
                self._groups = self._build(files)
            else:
                self._partitions = found.partitions
                self._groups = self._build(found.files)
            self._check_retained(self._groups, None)
        return self._groups

    def _check_retained(self, built: dict[str, list[FileGroup]], asked: set[str] | None) -> None:
        """Raises ObjectNotFoundError if files of the snapshot in the partitions that are asked for,
        or in all, may have gone before they were listed."""
        if self.as_of is None:
            check_nothing_taken(self.ctx, self.timeline, built, asked, self.hidden(), is_newer=self._is_newer)

    def _build(self, files: Iterable[StoredFile]) -> dict[str, list[FileGroup]]:
        files = list(files)
        self._is_newer = self.as_of is None and shows_newer((file.path for file in files), self.timeline)
        archived = archived_times(self.ctx, self.timeline, files)
        return groups_of(files, self.timeline, self.as_of, self.hidden(), archived=archived)

    def hidden(self) -> set[tuple[str, str]]:
        """(partition, file id) of the groups that replacing commits hide."""
        if self._hidden is None:
            past = self.timeline if self.as_of is None else self.timeline.until(self.as_of)
            self._hidden = replaced_groups(self.ctx, past)
        return self._hidden


def replaced_groups(ctx: TableContext, timeline: Timeline) -> set[tuple[str, str]]:
    """(partition, file id) of every group that a completed replacecommit of this timeline hides."""
    return set(replaced_at(ctx, timeline))


def replaced_at(ctx: TableContext, timeline: Timeline) -> dict[tuple[str, str], str]:
    """The same with the instant that hid each group."""
    hidden: dict[tuple[str, str], str] = {}
    fetch_bodies(ctx, timeline.replacements)
    for instant in timeline.replacements:
        hidden |= dict.fromkeys(commit_metadata(ctx, instant).replaced_groups, instant.time)
    return hidden
