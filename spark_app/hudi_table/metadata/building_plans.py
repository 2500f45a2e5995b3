"""Plans of buildings of the metadata table: what is to be built is begun, and decided.

Only what is as it was begun is decided: a plan whose files another drop or plan has touched is
given up. What lies in the place of a partition that is to be built is of a building or a drop that
ended half-way: then the whole metadata table is dropped, and built anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hudi_table.errors import (
    CommitStateUnknownError,
    CorruptTableError,
    HudiError,
    UnavailableError,
    UnsupportedTableError,
)
from hudi_table.metadata.bootstrap import (
    Groups,
    begin,
    begun_by_others,
    forget_first_logs,
    is_whole,
    planned_groups,
)
from hudi_table.metadata.definitions import define_column_stats, define_record_index, defined_by_users, undefine
from hudi_table.metadata.delta.entries import stored_schema
from hudi_table.metadata.expression_index import build as expression_index
from hudi_table.metadata.record_index.build import shards_needed
from hudi_table.metadata.secondary_index import build as secondary_index
from hudi_table.metadata.table import MetadataTable, context_of, named, read_partitions
from hudi_table.model.metadata_table import (
    METADATA_AWAITS,
    METADATA_HOLDS,
    AnyPartition,
    DefinedPartition,
    MetadataPartition,
    Partitions,
    ShardLimits,
    early_instant,
    initial_instant,
    partition_named,
)
from hudi_table.model.names import METADATA_TABLE, join
from hudi_table.model.options.write_options import PARTITION_SHARDS
from hudi_table.model.timeline.conflict_keys import METADATA
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.transaction import planning
from hudi_table.table.commit.undo import is_decided
from hudi_table.table.metadata_dropping import drop_metadata_table, notes_in
from hudi_table.table.timeline.active import body, load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.layout import decode_records, encode_record
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.timeline import Timeline

_VERSION = 1
_RECORD_INDEX = MetadataPartition.RECORD_INDEX


class MetadataGoneError(UnavailableError):
    """The metadata table is dropped by others while it was to be built. For whoever has asked it is
    one that is not available."""

    internal = True


@dataclass(frozen=True, slots=True)
class Building:
    """A plan: the partitions that it builds, by their initial instants."""

    instant: Instant
    partitions: dict[AnyPartition, str]


def pending_buildings(ctx: TableContext, timeline: Timeline) -> list[Building]:
    """The decided plans that are not finished, oldest first; those of other engines are left to
    them."""
    waiting = [i for i in timeline.pending if i.action is Action.INDEXING and is_decided(ctx, i)]
    return [_planned(ctx, instant) for instant in waiting]


def plan_building(
    ctx: TableContext, wanted: Sequence[AnyPartition], limits: ShardLimits, *, yields: bool
) -> Building | None:
    """Decide to build these partitions. None if it has to be found out anew what is missing:
    another has built or planned some of them, or what lay in their place was dropped first.
    `yields`: while another seems to plan.

    Raises MetadataGoneError if another drops it meanwhile.
    """
    with planning(ctx, Action.INDEXING) as txn:
        if pending_buildings(ctx, txn.timeline) or set(wanted) & set(ready_partitions(ctx, txn.timeline)):
            txn.withdraw()
            return None
        if _is_in_the_way(ctx, wanted):
            # Of a building or a dropping that ended half-way, if it is not of another who plans now.
            if not (yields and set(txn.timeline.planner_claims) - {txn.time}):
                drop_metadata_table(ctx, None)
            txn.withdraw()
            return None
        groups: dict[AnyPartition, Groups] = {name: {None: name.default_groups} for name in wanted}
        properties: dict[str, str | None] = {}
        if MetadataPartition.COLUMN_STATS in groups:
            # Whoever writes to it asks how.
            define_column_stats(ctx, stored_schema(ctx, txn.timeline))
        if _RECORD_INDEX in groups:
            groups[_RECORD_INDEX] = shards_needed(ctx, txn.timeline, limits)
            define_record_index(ctx, by_partition=limits.by_partition)
            begun = str(limits.least) if limits.by_partition and limits.least > 1 else None
            properties = {PARTITION_SHARDS: begun}
        building = Building(txn.instant, _initial(ctx, txn.time, wanted))
        try:
            begin(ctx, building.partitions, groups)
            found = read_partitions(ctx)
            if not found.ready:
                # What was beside a building of the one before.
                properties |= {METADATA_AWAITS: None, METADATA_HOLDS: None}
            ready = tuple(name for name in found.ready if name not in wanted)
            replace_properties(ctx, named(Partitions(ready, (*found.inflight, *wanted))) | properties)
            if not is_as_begun(ctx, building, groups):
                raise gone(ctx)
            txn.plan(index_record("HoodieIndexPlan", building, building.partitions), {METADATA, f"instant:{txn.time}"})
        except CommitStateUnknownError:
            raise
        except HudiError:
            with suppress(HudiError):
                for partition, instant in building.partitions.items():
                    forget_first_logs(context_of(ctx), partition, instant)
            raise
    return building


def _is_in_the_way(ctx: TableContext, wanted: Sequence[AnyPartition]) -> bool:
    """Whether anything lies where the partitions are to be built, or a drop ended half-way. Raises
    MetadataGoneError if one may be under way."""
    infos = ctx.storage.list(METADATA_TABLE)
    notes = notes_in(infos)
    if notes:
        age = (store_now(ctx) - max(note.modified for note in notes)).total_seconds()
        if age <= ctx.settings.quarantine_seconds:
            raise MetadataGoneError(
                f"the metadata table is being dropped since {age:.0f} s: build it when that has ended; if its process is dead, "
                f"{ctx.settings.quarantine_seconds - age:.0f} s from now",
                base_path=ctx.base_path,
            )
        return True
    folders = tuple(f"{join(METADATA_TABLE, name)}/" for name in wanted)
    if ready_partitions(ctx, load_timeline(ctx)):
        return any(info.path.startswith(folders) for info in infos)
    return bool(infos or read_partitions(ctx).all)


def is_as_begun(ctx: TableContext, building: Building, groups: Mapping[AnyPartition, Groups]) -> bool:
    """Whether what a plan began is there, all of it and nothing that another plan began, and nobody
    drops it."""
    infos = context_of(ctx).storage.list()
    return is_whole(infos) and all(
        planned_groups(infos, partition, instant) == {of: count for of, count in groups[partition].items() if count}
        and not begun_by_others(infos, partition, instant)
        for partition, instant in building.partitions.items()
    )


def gone(ctx: TableContext) -> MetadataGoneError:
    """What was begun is not there any more, or not alone."""
    return MetadataGoneError(
        "the metadata table was dropped while it was being built; build it again", base_path=ctx.base_path
    )


def index_record(name: str, building: Building, partitions: Iterable[str]) -> bytes:
    """What a plan (`HoodieIndexPlan`), or its end (`HoodieIndexCommitMetadata`), says of these
    partitions."""
    infos = [
        {"version": _VERSION, "metadataPartitionPath": str(partition), "indexUptoInstant": building.instant.time}
        for partition in partitions
    ]
    return encode_record(name, {"version": _VERSION, "indexPartitionInfos": infos})


def _planned(ctx: TableContext, instant: Instant) -> Building:
    requested = instant.with_state(State.REQUESTED)
    try:
        (record,) = decode_records(body(ctx, requested))
        names = [partition_named(info["metadataPartitionPath"]) for info in record["indexPartitionInfos"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{requested.file_name} is no plan of an index: {error}", base_path=ctx.base_path, path=requested.file_name
        ) from error
    return Building(instant, _initial(ctx, instant.time, names))


def _initial(ctx: TableContext, time: str, partitions: Iterable[AnyPartition]) -> dict[AnyPartition, str]:
    if ctx.layout.tells_completions:
        return dict.fromkeys(partitions, early_instant(time))
    return {partition: initial_instant(time, number) for number, partition in enumerate(partitions)}


def built_again(ctx: TableContext, timeline: Timeline, *, indexed: bool) -> list[DefinedPartition]:
    """The indexes that somebody has defined which a metadata table is to have again that is built
    as a whole: those of one that was dropped, as after an upgrade. `indexed`: a global record index
    is built too. What else is defined and not there is taken back, for Hudi 1.1.1 fails on a filter
    by it (measured)."""
    if read_partitions(ctx).all:
        return []
    found: list[DefinedPartition] = [
        *expression_index.built_again(ctx, timeline),
        *secondary_index.built_again(ctx, timeline, indexed=indexed),
    ]
    undefine(ctx, defined_by_users(ctx) - set(found))
    return found


def ready_partitions(ctx: TableContext, timeline: Timeline) -> tuple[str, ...]:
    """The partitions that are named as ready and are there."""
    try:
        table = MetadataTable.load(ctx, timeline)
    except (CorruptTableError, UnsupportedTableError):
        return ()
    return table.partitions.ready if table is not None else ()
