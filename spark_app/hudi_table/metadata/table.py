"""The metadata table as one listing shows it: its timeline, its file groups, and which of its
blocks count.

Facts: a block counts if its instant completed on the data table's timeline, or is one of the
metadata table's own (an initialisation, a compaction, …), or if a rollback or restore of the data
table names it: its files are tombstoned by the block of the rollback then (read in public source;
0.15.0 and we agree on the golden tables). And its own timeline must not hold it as pending. Hudi
lets a scan end at a block that is newer than the newest instant; which blocks count does not depend
on it. On table versions 8 and 9 Hudi takes every instant that completed on the metadata table's own
timeline and is not pending on the data table's (read in public source); there a block counts too if
its instant has left the data table's timeline for the archive. Its logs go to slices by completion,
as those of the data table do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from operator import attrgetter

from hudi_table.errors import CorruptTableError, InvariantError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.metadata.definitions import noted_by_partition
from hudi_table.model.digits import whole
from hudi_table.model.metadata_table import (
    EMPTY_LOG_TOKEN,
    METADATA_AWAITS,
    METADATA_HOLDS,
    AnyPartition,
    MetadataPartition,
    Partitions,
    data_instant,
    is_building_instant,
    is_own_instant,
    parse_hfile,
    partition_of_shard,
)
from hudi_table.model.names import HOODIE, METADATA_TABLE, PROPERTIES, LogFileName, parse_log_file
from hudi_table.model.options.write_options import PARTITION_SHARDS
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.table.properties import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.table.metadata_dropping import notes_in
from hudi_table.table.metadata_untold import untold
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import ObjectInfo, Objects
from hudi_table.table.timeline.active import records_of, timeline_of
from hudi_table.table.timeline.archived import archive_folder, archived_completions
from hudi_table.table.timeline.context import CommitDelta, TableContext, WritePermit
from hudi_table.table.timeline.properties import parsed_properties, read_properties
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import pending_compactions
from hudi_table.table.view.file_groups import FileGroup, groups_of

_END_OF_TIME = "9" * 24
_MANY = 1 << 30
ARCHIVING_LEAVES = 20
"""Completed instants that archiving leaves on its timeline at the least."""


UNREADABLE = (CorruptTableError, UnsupportedTableError, ObjectNotFoundError)
"""Errors after which what a metadata table would tell has to be found without it: it is damaged, or
was rebuilt meanwhile."""


@dataclass(frozen=True, slots=True)
class CountedInstants:
    """The instants whose blocks count. `paths`: where their completed files lie, if not where those
    of version 6 do."""

    valid: frozenset[str]
    completed: frozenset[str]
    pending: frozenset[str]
    start: str
    paths: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def latest(self) -> str:
        """Nothing ends a scan."""
        return _END_OF_TIME

    def __contains__(self, instant: str) -> bool:
        if instant not in self.valid or instant in self.pending:
            return False
        return instant in self.completed or comparable_time(instant) < comparable_time(self.start)


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """One listing of the metadata table. `ctx` is of its own folder, paths are relative to that.
    `by_partition`: whether its record index is."""

    ctx: TableContext
    partitions: Partitions
    timeline: Timeline
    counted: CountedInstants
    groups: dict[str, list[FileGroup]]
    files: tuple[ObjectInfo, ...]
    by_partition: bool = False
    misnamed: frozenset[str] = frozenset()
    """Partitions that the properties name as ready while the listing shows them half-built: they
    are as if they were being built."""

    @classmethod
    def load(cls, data: TableContext, timeline: Timeline) -> MetadataTable | None:
        """What is there, as the data table's `timeline` makes it count; None without one, or where
        one is being dropped.

        Raises UnsupportedTableError for another table version, CorruptTableError.
        """
        ctx = context_of(data)
        infos, own = with_relists(ctx, lambda: _listed(ctx))
        properties = next((info for info in infos if info.path == PROPERTIES), None)
        if properties is None or notes_in(infos):
            return None
        seen = f"{METADATA_TABLE}/{PROPERTIES}@{properties.modified.isoformat()}"
        if seen not in data.bodies:
            check_version(ctx)
            data.bodies[seen] = b""
        counted = counted_instants(data, timeline, own)
        listed = [info for info in infos if not info.path.startswith(f"{HOODIE}/")]
        archived = partial(archived_completions, ctx)
        partitions, groups = read_partitions(data), groups_of(listed, own, parse=parse_hfile, archived=archived)
        by_partition = MetadataPartition.RECORD_INDEX in partitions.all and _is_by_partition(data, listed)
        misnamed = _half_built(partitions.ready, groups, own, infos, is_archived=_has_archive(ctx, infos))
        return cls(ctx, partitions.without_ready(misnamed), own, counted, groups, tuple(infos), by_partition, misnamed)

    @classmethod
    def with_ready(cls, ctx: TableContext, timeline: Timeline, partition: AnyPartition) -> MetadataTable | None:
        """The one of a snapshot, if this partition of it is ready, its files can be read and it was
        told of each commit; else None: what it would tell has to be found without it.

        That a partition is ready is read after its files were listed: it may have become so in
        between. So what is met for the first time is listed again: if it is the same table then,
        all that makes it ready is in the second listing, and in every later one."""
        if not timeline.has_metadata:
            return None
        try:
            table = cls.load(ctx, timeline)
            if table is None or partition not in table.partitions.ready or table.untold(ctx, timeline):
                return None
            if table._known_ready(ctx, partition):
                return table
            again = cls.load(ctx, timeline)
        except UNREADABLE:
            return None
        if again is None or again.identity != table.identity or partition not in again.partitions.ready:
            return None
        ctx.bodies[again._ready_key(partition)] = b""
        return again

    def untold(self, data: TableContext, timeline: Timeline) -> tuple[Instant, ...]:
        """The completed commits of the data table's `timeline` that it should hold and was not told
        of. Raises as `untold`."""
        return untold(data, timeline, self.timeline, self.partitions)

    @property
    def identity(self) -> tuple[datetime, str | None] | None:
        """What tells it from another one that is built in its place: age and version of its
        properties, as they are listed."""
        return identity_in(self.files)

    def _known_ready(self, data: TableContext, partition: AnyPartition) -> bool:
        return self._ready_key(partition) in data.bodies

    def _ready_key(self, partition: AnyPartition) -> str:
        return f"{METADATA_TABLE}/{partition}@{self.identity}"

    @property
    def deltas(self) -> int:
        """Completed deltacommits since the last compaction; more than any limit if one is
        planned."""
        if any(i.action is Action.COMPACTION for i in self.timeline.pending):
            return _MANY
        last = max((i.moment for i in self.timeline.commits if i.action is Action.COMMIT), default="")
        return sum(i.action is Action.DELTA_COMMIT and i.moment > last for i in self.timeline.commits)

    def compacting(self) -> dict[tuple[str, str], str]:
        """The pending compaction of each group, by partition and file id. The chain's plan of one
        that was dropped may appear where another was built: what began a group is newer than it."""
        begun = {
            (partition, log.file_id, log.base_instant)
            for partition, log in _logs_of_begun(self.files)
            if is_building_instant(log.base_instant)
        }
        newest: dict[tuple[str, str], str] = {}
        for partition, file_id, time in sorted(begun):
            newest[partition, file_id] = time
        planned = pending_compactions(self.ctx, self.timeline)
        return {group: time for group, time in planned.items() if time > data_instant(newest.get(group, ""))}

    def group(self, partition: str, file_id: str) -> FileGroup | None:
        """One file group, if it is there."""
        return next((group for group in self.groups.get(partition, ()) if group.file_id == file_id), None)


class NoMetadata:
    """The metadata table has none of its own: its folders are listed, and nothing is committed to
    it by a transaction."""

    def files(self, ctx: TableContext, timeline: Timeline, partitions: Collection[str] | None = None) -> None:
        """The folders are listed."""

    def delta(
        self, ctx: TableContext, permit: WritePermit, commit: CommitMetadata, time: str, timeline: Timeline
    ) -> CommitDelta:
        """Raises InvariantError."""
        del permit, commit, timeline
        raise InvariantError("the metadata table has no transactions of its own", base_path=ctx.base_path, instant=time)

    def forget(self, ctx: TableContext, time: str) -> None:
        """Raises InvariantError."""
        raise InvariantError("the metadata table has no rollbacks of its own", base_path=ctx.base_path, instant=time)


def context_of(data: TableContext) -> TableContext:
    """The metadata table's folder as a table of its own."""
    config = TableConfig(
        f"{data.config.name}_metadata",
        TableType.MERGE_ON_READ,
        ("key",),
        populate_meta_fields=False,
        timezone=data.config.timezone,
        version=data.config.version,
        archive_folder=data.layout.archive_default,
    )
    return TableContext(StorageBelow(data.storage, METADATA_TABLE), config, data.clock, NoMetadata(), data.settings)


def identity_in(infos: Iterable[ObjectInfo]) -> tuple[datetime, str | None] | None:
    """`MetadataTable.identity`, of a listing."""
    return next(((info.modified, info.etag) for info in infos if info.path == PROPERTIES), None)


def read_partitions(data: TableContext) -> Partitions:
    """Its partitions as the data table's properties name them now."""
    properties = read_properties(data.storage, data.clock)
    begun = properties.get(PARTITION_SHARDS, "").strip()
    return Partitions(
        _names(properties.get(METADATA_PARTITIONS, "")),
        _names(properties.get(METADATA_PARTITIONS_INFLIGHT, "")),
        whole(begun, 1) or 1,
        _names(properties.get(METADATA_AWAITS, "")),
        _names(properties.get(METADATA_HOLDS, "")),
    )


def named(partitions: Partitions) -> dict[str, str | None]:
    """The properties that name these partitions."""
    return {
        METADATA_PARTITIONS: ",".join(sorted(set(partitions.ready))),
        METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(set(partitions.inflight))),
    }


def check_version(ctx: TableContext) -> None:
    """Refuse a metadata table whose version is not the data table's. Raises UnsupportedTableError,
    CorruptTableError, ObjectNotFoundError."""
    properties = parsed_properties(ctx.storage.get(PROPERTIES), ctx.base_path)
    version = properties.get("hoodie.table.version", "0")
    if version != str(ctx.config.version):
        raise UnsupportedTableError(
            f"the metadata table has version {version} in a table of version {ctx.config.version}",
            base_path=ctx.base_path,
        )


def _listed(ctx: TableContext) -> tuple[Objects, Timeline]:
    """All its objects, and its own timeline as it was at one moment: archiving deletes the oldest
    instant first, so if that is still there after the listing nothing newer had gone. Raises
    ObjectNotFoundError if it is not."""
    infos = ctx.storage.list()
    own = own_timeline(ctx, infos)
    if len(own.completed) > ARCHIVING_LEAVES:
        ctx.storage.head(ctx.layout.timeline_path(own.completed[0].file_name))
    return infos, own


def own_timeline(ctx: TableContext, infos: Iterable[ObjectInfo]) -> Timeline:
    """The timeline of the metadata table that a listing of it shows. Of two files that say when an
    instant completed one is of an executor that has slept, and the later moment counts."""
    folder = ctx.layout.timeline_folder
    files = (info for info in infos if info.path.rpartition("/")[0] == folder)
    return timeline_of(ctx, sorted(files, key=attrgetter("path"), reverse=True))


def _has_archive(ctx: TableContext, infos: Iterable[ObjectInfo]) -> bool:
    """Whether a listing shows instants in the metadata table's own archive."""
    folder = f"{archive_folder(ctx)}/"
    return any(info.path.startswith(folder) and info.path.endswith(ctx.layout.archive.value) for info in infos)


def _half_built(
    names: Iterable[str],
    groups: Mapping[str, Sequence[FileGroup]],
    own: Timeline,
    infos: Sequence[ObjectInfo],
    *,
    is_archived: bool,
) -> frozenset[str]:
    """Those of the partitions that a building has begun and not published: of a group there is a
    log of a building that is newer than any slice that counts, or a slice that counts only because
    later deltas are on the timeline. While nothing was archived, what began a partition is on it.
    Not the first log alone tells it: who lost takes that back, and may leave the log of a writer
    that had found it. Where logs tell their writers no such log is left, and the first one tells
    it."""
    published = {i.time for i in own.commits}
    begun: dict[str, list[LogFileName]] = {}
    for partition, log in _logs_of_begun(infos):
        begun.setdefault(partition, []).append(log)

    def is_half(name: str) -> bool:
        times = {group.file_id: group.latest.instant for group in groups.get(name, ()) if group.slices}
        if not times and name != MetadataPartition.RECORD_INDEX:
            return True
        builders = [log.base_instant for log in begun.get(name, ())] if own.layout.logs_tell_writers else times.values()
        unpublished = not is_archived and any(is_building_instant(t) and t not in published for t in builders)
        return unpublished or any(
            comparable_time(log.base_instant) > comparable_time(times.get(log.file_id, ""))
            for log in begun.get(name, ())
        )

    return frozenset(name for name in names if is_half(name))


def _logs_of_begun(infos: Iterable[ObjectInfo]) -> Iterator[tuple[str, LogFileName]]:
    """The first logs of file groups, and all logs of slices that a building began, each with its
    partition."""
    for info in infos:
        partition, _, name = info.path.rpartition("/")
        log = parse_log_file(name) if partition and not partition.startswith(HOODIE) else None
        if log is not None and (log.token == EMPTY_LOG_TOKEN or is_building_instant(log.base_instant)):
            yield partition, log


def counted_instants(data: TableContext, timeline: Timeline, own: Timeline) -> CountedInstants:
    """Which blocks count under both timelines."""
    mine = {i.time for i in own.completed if is_own_instant(i.time) or i.action in (Action.ROLLBACK, Action.RESTORE)}
    valid = {i.time for i in timeline.completed} | mine
    if own.layout.logs_tell_writers:
        pending = {i.time for i in timeline.pending}
        valid |= {i.time for i in own.commits if timeline.has_passed(i.time)} - pending
    else:
        # What a rollback names was tombstoned by its own block; elsewhere the logs themselves are gone.
        for instant in timeline.completed:
            if instant.action in (Action.ROLLBACK, Action.RESTORE):
                valid |= set(_taken_back(records_of(data, instant)))
    return CountedInstants(
        frozenset(valid),
        frozenset(i.time for i in own.commits),
        frozenset(i.time for i in own.pending if i.state is State.INFLIGHT),
        own.start or "",
        {i.time: own.layout.timeline_path(i.file_name) for i in own.commits} if own.layout.tells_completions else {},
    )


def _taken_back(records: Iterable[dict[str, object]]) -> Iterable[str]:
    """The instants that the records of a rollback or restore name."""
    for record in records:
        for name in ("commitsRollback", "instantsToRollback"):
            found = record.get(name)
            if isinstance(found, list):
                yield from (str(time) for time in found)


def _is_by_partition(data: TableContext, listed: Iterable[ObjectInfo]) -> bool:
    """Whether a record index is by partition: by the names of its file groups, or where there are
    none yet by the note of it."""
    folder = f"{MetadataPartition.RECORD_INDEX}/"
    names = [info.path.removeprefix(folder) for info in listed if info.path.startswith(folder)]
    logs, bases = map(parse_log_file, names), map(parse_hfile, names)
    kinds = {partition_of_shard(name.file_id) is not None for name in (*logs, *bases) if name is not None}
    return next(iter(kinds)) if len(kinds) == 1 else noted_by_partition(data)


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))
