"""Building partitions of the metadata table while writers go on.

The properties name the partitions as inflight, their file groups get an empty log, and a plan enters the chain: whoever decides after it
writes to them. So their base files need to hold what was decided before, and may hold more, for an entry counts the same twice.
Then the properties name the partitions as ready. Anybody may finish a plan, several at once, and again after a crash.

Facts (measured on Hudi 0.15.0, or read from its classes where only its async indexer does it): the plan is `T.indexing.requested`;
each partition begins by an instant of its own, T and a suffix, a deltacommit whose stats are those of its base files; a file
group's first log is an empty delete block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from hudi_table.codec.avro_file import read_container, write_container
from hudi_table.codec.hfile import write_hfile
from hudi_table.codec.metadata_records import encode_metadata, metadata_schema
from hudi_table.errors import CommitStateUnknownError, CorruptTableError, HudiError, ObjectExistsError, UnavailableError
from hudi_table.model.commits import WriteStat
from hudi_table.model.instants import Action, Instant, State, parse_instant_time
from hudi_table.model.java_properties import render_properties
from hudi_table.model.metadata_table import (
    EMPTY_LOG_TOKEN,
    HFileName,
    MetadataPartition,
    group_file_id,
    initial_instant,
)
from hudi_table.model.names import HOODIE, METADATA_TABLE, PARTITION_METADATA, PROPERTIES, LogFileName, join
from hudi_table.model.table_properties import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, checksum
from hudi_table.model.touches import METADATA
from hudi_table.table import settle
from hudi_table.table.context import TableContext
from hudi_table.table.metadata.deriving import entries_of_table
from hudi_table.table.metadata.records import Entries
from hudi_table.table.metadata.settling import settle_metadata
from hudi_table.table.metadata.table import Partitions, context_of, read_partitions
from hudi_table.table.metadata.writing import by_group, log_bytes, publish
from hudi_table.table.properties import drop_metadata_table, replace_properties
from hudi_table.table.recovery import store_now
from hudi_table.table.timeline import Timeline, body, load_timeline
from hudi_table.table.transaction import begin_plan, caught_up
from hudi_table.table.undo import is_decided

_PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class Building:
    """A plan: the partitions that it builds, by their initial instants."""

    instant: Instant
    partitions: dict[MetadataPartition, str]


def prepare_metadata(ctx: TableContext, wanted: bool | None, indexes: Iterable[str] = ()) -> None:
    """Before a write: build the metadata table if it is wanted, with the partitions `indexes`, drop it if not, and without a wish keep it as it is.

    Raises as `build_metadata`.
    """
    if wanted is False:
        if ctx.config.metadata_partitions or load_timeline(ctx).has_metadata:
            drop_metadata_table(ctx)
        return
    found = settle_metadata(ctx)
    names = [MetadataPartition.FILES, *(MetadataPartition(name) for name in indexes)]
    if wanted and not set(names) <= set(found.ready):
        build_metadata(ctx, names)
    elif found.inflight:
        _look_after(ctx, found)


def build_metadata(ctx: TableContext, wanted: Sequence[MetadataPartition] = (MetadataPartition.FILES,)) -> bool:
    """Build the partitions that are not there yet, `files` in any case, and return when they are ready. Whether there was anything to do.

    A building that was begun is finished, also another process's. Raises WriteConflictError if the table is taken back meanwhile,
    CommitStateUnknownError, and what the storage raises: then the next write, or the same call, goes on.
    """
    did = finish_buildings(ctx)
    found = read_partitions(ctx)
    missing = [name for name in dict.fromkeys([MetadataPartition.FILES, *wanted]) if name not in found.ready]
    if not missing:
        return did
    if not found.ready:
        # What lies there without being named is of a building, or a dropping, that ended half-way.
        drop_metadata_table(ctx)
    for info in [info for name in missing for info in ctx.storage.list(join(METADATA_TABLE, name))]:
        settle.delete(ctx.storage, info.path)
    instant = _plan(ctx, missing)
    _execute(ctx, Building(instant, _initial(instant.time, missing)))
    return True


def pending_buildings(ctx: TableContext, timeline: Timeline) -> list[Building]:
    """The decided plans that are not finished, oldest first; those of other engines are left to them."""
    waiting = [i for i in timeline.pending if i.action is Action.INDEXING and is_decided(ctx, i)]
    return [_planned(ctx, instant) for instant in waiting]


def finish_buildings(ctx: TableContext) -> bool:
    """Finish what is planned. Whether there was a plan."""
    waiting = pending_buildings(ctx, load_timeline(ctx))
    for building in waiting:
        _execute(ctx, building)
    return bool(waiting)


def _look_after(ctx: TableContext, found: Partitions) -> None:
    """Finish a building whose process seems dead, and forget one that never got a plan."""
    timeline = load_timeline(ctx)
    waiting = [i for i in timeline.pending if i.action is Action.INDEXING]
    if not waiting and not timeline.planner_claims:
        if found.ready:
            replace_properties(ctx, _named(Partitions(found.ready)))
        else:
            drop_metadata_table(ctx)
        return
    begun = [timeline.files[i.with_state(State.REQUESTED).file_name] for i in waiting]
    if begun and (store_now(ctx) - max(begun)).total_seconds() >= ctx.settings.suspect_after_seconds:
        finish_buildings(ctx)


def _plan(ctx: TableContext, wanted: Sequence[MetadataPartition]) -> Instant:
    txn = begin_plan(ctx, Action.INDEXING)
    try:
        _skeleton(ctx, _initial(txn.time, wanted))
        found = read_partitions(ctx)
        replace_properties(ctx, _named(Partitions(found.ready, (*found.inflight, *wanted))))
        infos = [
            {"version": _PLAN_VERSION, "metadataPartitionPath": str(name), "indexUptoInstant": txn.time}
            for name in wanted
        ]
        plan = write_container("HoodieIndexPlan", {"version": _PLAN_VERSION, "indexPartitionInfos": infos})
        txn.plan(plan, {METADATA, f"instant:{txn.time}"})
    except CommitStateUnknownError:
        raise
    except HudiError:
        with suppress(HudiError):
            txn.withdraw()
        raise
    return txn.instant


def _planned(ctx: TableContext, instant: Instant) -> Building:
    requested = instant.with_state(State.REQUESTED)
    try:
        (record,) = read_container(body(ctx, requested))
        names = [MetadataPartition(info["metadataPartitionPath"]) for info in record["indexPartitionInfos"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{requested.file_name} is no plan of an index: {error}", base_path=ctx.base_path, path=requested.file_name
        ) from error
    return Building(instant, _initial(instant.time, names))


def _initial(time: str, partitions: Iterable[MetadataPartition]) -> dict[MetadataPartition, str]:
    return {partition: initial_instant(time, number) for number, partition in enumerate(partitions)}


def _skeleton(ctx: TableContext, partitions: dict[MetadataPartition, str]) -> None:
    """The table itself, and of each partition the first log of its groups: there writers find where their logs go."""
    own = context_of(ctx)
    properties = {
        "hoodie.table.name": own.config.name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "hoodie.populate.meta.fields": "false",
        "hoodie.archivelog.folder": own.config.archive_folder,
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.checksum": str(checksum("", own.config.name)),
    }
    for partition, instant in partitions.items():
        empty = pa.table({"key": pa.array([], pa.string())})
        data = log_bytes(empty, pa.array([], pa.string()), partition, instant)
        for number in range(partition.default_groups):
            log = LogFileName(group_file_id(partition, number), instant, 1, EMPTY_LOG_TOKEN)
            settle.put(own.storage, join(partition, str(log)), data)
        settle.put(own.storage, join(partition, PARTITION_METADATA), _partition_metadata(instant))
    # Last, for a folder without them is no table.
    settle.put(own.storage, PROPERTIES, render_properties(properties, ("Hudi table properties",)).encode())


def _execute(ctx: TableContext, building: Building) -> None:
    """Base files, their deltacommits, the properties, the end of the plan. What was done before is found done."""
    own, begun = context_of(ctx), ctx.clock.boot_seconds()
    settle.put(ctx.storage, f"{HOODIE}/{building.instant.with_state(State.INFLIGHT).file_name}", b"")
    timeline, _ = caught_up(ctx)
    derive = entries_of_table(ctx, timeline)
    for partition, instant in building.partitions.items():
        stats = _base_files(own, partition, instant, derive(partition))
        if ctx.clock.boot_seconds() - begun > ctx.settings.fresh_seconds:
            # What is published late may have been archived, or dropped, long ago.
            raise UnavailableError(
                f"building the metadata table took longer than {ctx.settings.fresh_seconds:.0f} s; build it again, which goes on",
                base_path=ctx.base_path,
            )
        publish(own, instant, stats, "BULK_INSERT")
    _make_ready(ctx, building)
    infos = [
        {"version": _PLAN_VERSION, "metadataPartitionPath": str(name), "indexUptoInstant": building.instant.time}
        for name in building.partitions
    ]
    report = write_container("HoodieIndexCommitMetadata", {"version": _PLAN_VERSION, "indexPartitionInfos": infos})
    path = f"{HOODIE}/{building.instant.with_state(State.COMPLETED).file_name}"
    with suppress(ObjectExistsError):
        settle.settle(lambda: ctx.storage.put_if_absent(path, report))


def _make_ready(ctx: TableContext, building: Building) -> None:
    """Name the partitions as ready, unless they were dropped since the plan."""
    found = read_partitions(ctx)
    mine = [name for name in building.partitions if name in found.inflight]
    if mine:
        left = tuple(name for name in found.inflight if name not in mine)
        replace_properties(ctx, _named(Partitions((*found.ready, *mine), left)))


def _base_files(
    own: TableContext, partition: MetadataPartition, instant: str, entries: Entries | None
) -> list[WriteStat]:
    """The base files of the groups that have entries; a group without any has its log alone, as Hudi's have."""
    stats = []
    for number, rows, _ in by_group(entries, partition.default_groups) if entries is not None else ():
        name = HFileName(group_file_id(partition, number), EMPTY_LOG_TOKEN, instant)
        data = write_hfile(rows["key"], encode_metadata(rows, file_name=str(name)), schema=metadata_schema())
        path = join(partition, str(name))
        settle.put(own.storage, path, data)
        stats.append(
            WriteStat(
                file_id=name.file_id,
                path=path,
                partition_path=partition,
                num_writes=len(rows),
                num_inserts=len(rows),
                total_write_bytes=len(data),
                file_size_in_bytes=len(data),
            )
        )
    return stats


def _named(partitions: Partitions) -> dict[str, str]:
    return {
        METADATA_PARTITIONS: ",".join(sorted(set(partitions.ready))),
        METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(set(partitions.inflight))),
    }


def _partition_metadata(instant: str) -> bytes:
    date = parse_instant_time(instant[:17]).strftime("%a %b %d %H:%M:%S %Y")
    return f"#partition metadata\n#{date}\ncommitTime={instant}\npartitionDepth=1\n".encode()
