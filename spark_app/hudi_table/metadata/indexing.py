"""Building partitions of the metadata table while writers go on.

The properties name the partitions as inflight, their file groups get an empty log, and a plan
enters the chain: whoever decides after it writes to them. So their base files need to hold what was
decided before, and may hold more, for an entry counts the same twice. Then the properties name the
partitions as ready. Anybody may finish a plan, several at once, and again after a crash.

Facts (measured on Hudi 0.15.0, or read from its classes where only its async indexer does it): the
plan is `T.indexing.requested`; each partition begins by an instant of its own, T and a suffix, a
deltacommit whose stats are those of its base files; a file group's first log is an empty delete
block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from hudi_table.errors import InvalidDataError, ObjectExistsError, UnsupportedTableError
from hudi_table.metadata.bootstrap import Groups, base_files, first_logs, is_whole, planned_groups
from hudi_table.metadata.building_plans import (
    Building,
    MetadataGoneError,
    built_again,
    gone,
    index_record,
    is_as_begun,
    pending_buildings,
    plan_building,
    ready_partitions,
)
from hudi_table.metadata.definitions import define_column_stats, define_record_index, noted_by_partition, undefine
from hudi_table.metadata.delta.commit import by_group, publish, record_of
from hudi_table.metadata.delta.entries import entries_of_table, stored_schema
from hudi_table.metadata.lifecycle import (
    OF_KEYS,
    drop,
    has_defined,
    is_built,
    is_just_listed_without,
    kept,
    not_told_of,
    resolve_metadata_partitions,
    standing,
)
from hudi_table.metadata.record_index.build import recorded_shards
from hudi_table.metadata.records import Derive, UnkeptError
from hudi_table.metadata.secondary_index.build import recorded_pairs
from hudi_table.metadata.table import MetadataTable, context_of, named, own_timeline, read_partitions
from hudi_table.model.metadata_table import (
    BEGUN_SHARD,
    AnyPartition,
    MetadataPartition,
    Partitions,
    SecondaryPartition,
    ShardLimits,
    data_instant,
    group_file_id,
    in_order,
    is_defined,
    partition_of_shard,
)
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.instants import Action, State
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.metadata_dropping import drop_metadata_table, refuse_late
from hudi_table.table.metadata_untold import beside_building
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.listing import list_data_files, partitions_in

_ATTEMPTS_MAX, _YIELDS = 8, 4
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.05, 2.0
"""Attempts to plan a building beside others who build or drop; in the first few of them it yields
to other planners."""
_LATE = ("building", "build it again, which goes on")
"""What is published late may have been archived, or dropped, long ago."""
_RECORD_INDEX = MetadataPartition.RECORD_INDEX
_REFUSED_BY_ROWS = frozenset({_RECORD_INDEX, MetadataPartition.PARTITION_STATS})
"""Partitions that some tables cannot have."""


def prepare_metadata(
    ctx: TableContext, wanted: bool | None, indexes: Iterable[str] = (), limits: ShardLimits | None = None
) -> None:
    """Before a write: build the metadata table if it is wanted, with the partitions `indexes`, drop
    it if not, and keep it as it is if nothing is asked.

    Raises as `build_metadata`.
    """
    if wanted is False:
        said = METADATA_DROPPED in ctx.config.extra
        if (
            said
            or ctx.config.metadata_partitions
            or not (is_just_listed_without(ctx) or not load_timeline(ctx).has_metadata)
        ):
            drop_metadata_table(ctx, "")
        return
    found = resolve_metadata_partitions(ctx)
    names = with_what_they_need(ctx, indexes)
    # Without it the write is as right as with it, and the next one tries again.
    with suppress(MetadataGoneError):
        if wanted and not set(names) <= set(found.ready):
            build_metadata(ctx, names, limits, waits=False)
        elif found.inflight:
            _finish_or_forget(ctx, found)


def with_what_they_need(ctx: TableContext, names: Iterable[str]) -> list[AnyPartition]:
    """The partitions of these names that the table's version has: `files` in any case, and
    `column_stats` beside `partition_stats`."""
    asked: set[str] = {MetadataPartition.FILES, *names}
    chosen = {name for name in asked if name in kept(ctx) or (is_defined(name) and has_defined(ctx))}
    chosen |= {MetadataPartition.COLUMN_STATS} if MetadataPartition.PARTITION_STATS in chosen else set()
    return in_order(chosen)


def build_metadata(
    ctx: TableContext,
    wanted: Sequence[AnyPartition] = (MetadataPartition.FILES,),
    limits: ShardLimits | None = None,
    *,
    waits: bool = True,
) -> bool:
    """Build the partitions that are not there yet, `files` in any case, and return when they are
    ready. Whether there was anything to do.

    `limits` say how many file groups a record index gets. A building that was begun is finished,
    also another process's. Raises WriteConflictError if the table is taken back meanwhile,
    CommitStateUnknownError, and what the storage raises: then the next write, or the same call,
    goes on. Raises UnavailableError if others drop it meanwhile, and go on dropping it: at once
    unless it `waits`. Raises InvalidDataError if a record index is wanted and a key is in two file
    groups, UnsupportedTableError if the files hold no keys.
    """
    if not ctx.config.populate_meta_fields and OF_KEYS.intersection(wanted):
        raise UnsupportedTableError(
            "an index of record keys is built from `_hoodie_record_key`, which this table does not store (hoodie.populate.meta.fields=false)",
            base_path=ctx.base_path,
        )
    names = with_what_they_need(ctx, wanted)
    did = False
    failure = MetadataGoneError(
        "others plan or drop the metadata table again and again; try again", base_path=ctx.base_path
    )
    for attempt in range(_ATTEMPTS_MAX):
        if attempt:
            ctx.clock.sleep(min(_PAUSE_SECONDS * 2**attempt, _PAUSE_SECONDS_MAX))
        try:
            did = _finished(ctx, raises=any(name in _REFUSED_BY_ROWS or is_defined(name) for name in wanted)) or did
            found = ready_partitions(ctx, load_timeline(ctx))
            missing = [name for name in names if name not in found]
            if _RECORD_INDEX in wanted and _RECORD_INDEX not in missing:
                _refuse_other_kind(ctx, limits or ShardLimits())
            if not missing:
                return did
            # What another engine has built, too: the whole may be built anew.
            by_key = _RECORD_INDEX in {*names, *found} and not (limits or ShardLimits()).by_partition
            again = built_again(ctx, load_timeline(ctx), indexed=by_key)
            names, missing = in_order({*names, *found, *again}), in_order({*missing, *again})
            building = plan_building(ctx, missing, limits or ShardLimits(), yields=attempt < _YIELDS)
            if building is not None:
                _execute(ctx, building)
                return True
        except MetadataGoneError as error:
            failure = error
            if not waits:
                break
    raise failure


def finish_buildings(ctx: TableContext) -> bool:
    """Finish what is planned. Whether there was a plan."""
    waiting = pending_buildings(ctx, load_timeline(ctx))
    for building in waiting:
        _execute(ctx, building)
    return bool(waiting)


def _finished(ctx: TableContext, *, raises: bool) -> bool:
    """Finish what others have planned. Rows that allow none end its plan; `raises`: whoever asks
    wants one."""
    try:
        return finish_buildings(ctx)
    except (InvalidDataError, UnkeptError):
        if raises:
            raise
        return True


def _finish_or_forget(ctx: TableContext, partitions: Partitions) -> None:
    """Finish a building whose process seems dead, and forget one that never got a plan."""
    if not is_built(timeline := load_timeline(ctx)):
        # It may have been ended since, which the properties tell before the plan's end does; then the next write finds out more.
        if is_built(load_timeline(ctx)) or read_partitions(ctx) != partitions:
            return
        if partitions.ready:
            undefine(ctx, set(filter(is_defined, partitions.inflight)))
            replace_properties(ctx, named(Partitions(partitions.ready)))
        else:
            drop_metadata_table(ctx, None)
        return
    finish_left(ctx, timeline)


def finish_left(ctx: TableContext, timeline: Timeline) -> None:
    """Finish the buildings whose process seems dead, ready or not: they hold the metadata table's
    compaction."""
    plans = (i.with_state(State.REQUESTED).file_name for i in timeline.pending if i.action is Action.INDEXING)
    begun = [timeline.files[name] for name in plans if name in timeline.files]
    if begun and (store_now(ctx) - max(begun)).total_seconds() >= ctx.settings.suspect_after_seconds:
        _finished(ctx, raises=False)


def _execute(ctx: TableContext, building: Building) -> None:
    """Base files, their deltacommits, the properties, the end of the plan. What was done before is
    found done.

    Raises MetadataGoneError if what was planned was dropped: then the plan has ended.
    """
    own, begun = context_of(ctx), ctx.clock.boot_seconds()
    retry.put(ctx.storage, ctx.layout.timeline_path(building.instant.with_state(State.INFLIGHT).file_name), b"")
    timeline = caught_up(ctx)[0]
    derive, infos = entries_of_table(ctx, timeline), own.storage.list()
    planned = {name: planned_groups(infos, name, instant) for name, instant in building.partitions.items()}
    if not is_whole(infos) or not all(planned[name] for name in planned if name is not _RECORD_INDEX):
        _complete(ctx, building, ())
        raise gone(ctx)
    record = record_of(own, own_timeline(own, infos).last_commit)
    written: dict[str, list[WriteStat]] = {}
    for partition, instant in building.partitions.items():
        groups = planned[partition]
        try:
            by_partition = (
                partition is _RECORD_INDEX and None not in groups and (bool(groups) or noted_by_partition(ctx))
            )
            if by_partition:
                stats = _by_partition(ctx, own, timeline, instant, groups, record)
            else:
                stats = base_files(own, partition, instant, _parts(ctx, timeline, partition, derive, groups), record)
        except (InvalidDataError, UnkeptError):
            _give_up(ctx, building)
            raise
        written.setdefault(instant, []).extend(stats)
        if partition is _RECORD_INDEX:
            define_record_index(ctx, by_partition=by_partition)
    for instant, stats in written.items():
        refuse_late(ctx, begun, *_LATE)
        publish(own, instant, record, stats, "BULK_INSERT", completion=data_instant(instant))
    if MetadataPartition.COLUMN_STATS in building.partitions:
        define_column_stats(ctx, stored_schema(ctx, timeline))
    _make_ready(ctx, building, planned)
    _complete(ctx, building, building.partitions)


def _complete(ctx: TableContext, building: Building, built: Iterable[str]) -> None:
    """The end of the plan, which has `built` these partitions."""
    report = index_record("HoodieIndexCommitMetadata", building, built)
    path = ctx.layout.timeline_path(ctx.layout.completed(building.instant).file_name)
    with suppress(ObjectExistsError):
        retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, report))


def _parts(
    ctx: TableContext,
    timeline: Timeline,
    partition: AnyPartition,
    derive: Derive,
    groups: Groups,
) -> Iterable[tuple[str, pa.Table]]:
    """(file id, entries sorted by key) of the groups that have any."""
    if partition is _RECORD_INDEX:
        return recorded_shards(ctx, timeline, groups)
    if isinstance(partition, SecondaryPartition):
        return recorded_pairs(ctx, timeline, partition, groups.get(None, 1))
    return [
        (group_file_id(partition, number), rows)
        for entries in derive(partition, False)
        for number, rows, _ in by_group(entries, groups.get(None, 1))
    ]


def _by_partition(
    ctx: TableContext, own: TableContext, timeline: Timeline, instant: str, planned: Groups, record: str
) -> list[WriteStat]:
    """The base files of a record index by partition.

    Data partitions that came since the plan was made are begun as writers begin them, who may do so
    at the same time.
    """
    late: dict[str | None, int] = dict.fromkeys(
        partitions_in(list_data_files(ctx.storage)), read_partitions(ctx).begun_shards
    )
    late = {of: count for of, count in late.items() if of not in planned}
    if own.layout.logs_tell_writers:
        # All that these hold is in the logs of their writers, which lie on no slice of the plan.
        parts = recorded_shards(ctx, timeline, {**planned, **late})
        mine = ((file_id, rows) for file_id, rows in parts if partition_of_shard(file_id) in planned)
        return base_files(own, _RECORD_INDEX, instant, mine, record)
    for of, count in late.items():
        first_logs(own, _RECORD_INDEX, BEGUN_SHARD, of, count)
    parts = recorded_shards(ctx, timeline, {**planned, **late})
    instants = {
        file_id: BEGUN_SHARD
        for of, count in late.items()
        for file_id in (group_file_id(_RECORD_INDEX, number, of) for number in range(count))
    }
    return base_files(own, _RECORD_INDEX, instant, parts, record, instants)


def _give_up(ctx: TableContext, building: Building) -> None:
    """End a plan that the rows of the table do not allow: its partitions are unnamed, nothing of
    them is written to any more."""
    found = read_partitions(ctx)
    mine = set(building.partitions) - set(found.ready)
    undefine(ctx, set(filter(is_defined, mine)))
    left = found.without(mine)
    if left.all:
        replace_properties(ctx, named(left))
    else:
        drop_metadata_table(ctx, None)
    _complete(ctx, building, [name for name in building.partitions if name in found.ready])


def _make_ready(ctx: TableContext, building: Building, planned: Mapping[AnyPartition, Groups]) -> None:
    """Name the partitions as ready, unless they were dropped since the plan. No process can look
    and put in one step: so it looks again behind the put, and until then whoever reads or writes
    sees what is half-built."""
    found = read_partitions(ctx)
    mine = [name for name in building.partitions if name in found.inflight]
    if not mine:
        return
    looked = ctx.clock.boot_seconds()
    if not is_as_begun(ctx, building, planned):
        # What another plan began beside it never counts, and some may have written to it. Of an ended plan the table may be another by now.
        if any(i.time == building.instant.time for i in load_timeline(ctx).pending):
            drop_metadata_table(ctx, None)
            _complete(ctx, building, ())
        raise gone(ctx)
    own, timeline = context_of(ctx), load_timeline(ctx)
    lacks, beside = beside_building(ctx, timeline, own_timeline(own, own.storage.list()), found, building.instant)
    if lacks:
        drop(ctx, why := not_told_of(lacks))
        _complete(ctx, building, ())
        raise MetadataGoneError(f"while the metadata table was built {why}", base_path=ctx.base_path)
    refuse_late(ctx, looked, *_LATE)
    left = tuple(name for name in found.inflight if name not in mine)
    replace_properties(ctx, named(Partitions((*found.ready, *mine), left)) | beside | {METADATA_DROPPED: None})
    table = standing(ctx, load_timeline(ctx))
    if table is None or not set(mine) <= set(table.partitions.ready):
        _complete(ctx, building, ())
        raise gone(ctx)


def _refuse_other_kind(ctx: TableContext, limits: ShardLimits) -> None:
    """Raise UnsupportedTableError if the record index that is there is not of the kind that is
    asked for: none becomes the other unasked."""
    timeline = load_timeline(ctx)
    table = MetadataTable.with_ready(ctx, timeline, _RECORD_INDEX)
    if table is None or table.by_partition == limits.by_partition:
        return
    has, wants = ("by partition", "global") if table.by_partition else ("global", "by partition")
    raise UnsupportedTableError(
        f"the table's record index is {has} and a {wants} one is asked for: drop the metadata table first (hudictl metadata BASE --drop --yes)",
        base_path=ctx.base_path,
    )
