"""Compaction of the metadata table: the logs of its groups merged into new base files.

Its plan is an entry of the data table's chain, whose file lies on the metadata table's timeline. It
takes the logs of all that has completed, so it is made again if a commit was decided meanwhile; and
not at all while an instant is pending whose delta counts without a decision, or another engine's.
Who had written a log before and decides later finds the plan, and writes it again behind it. So
what an execution writes follows from the plan, and anybody may execute it.

Facts (measured on Hudi 0.15.0): the instant is that of the newest delta and `001`; it is due after
ten deltacommits; it completes as `commit`. Each write of 0.15.0 looks whether a compaction is due,
by the instant that it would have, and fails if there is a completed instant as late as that: so
ours has the newest delta's too, wherever it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hfile import write_hfile
from hudi_table.codec.metadata.records import encode_metadata, metadata_schema
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.delta.commit import completed_body, record_of
from hudi_table.metadata.merging import listed
from hudi_table.metadata.reading import merged_of, slice_parts
from hudi_table.metadata.records import file_records
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import (
    ALL_PARTITIONS,
    EMPTY_LOG_TOKEN,
    HFileName,
    MetadataPartition,
    compaction_instant,
    data_instant,
    parse_hfile,
)
from hudi_table.model.names import HOODIE, METADATA_TABLE, join, parse_log_file
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.conflict_keys import metadata_conflict_key
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time, next_instant_time
from hudi_table.table.commit.beside.locking import section
from hudi_table.table.commit.publish import withdraw_if_late
from hudi_table.table.commit.transaction import planning
from hudi_table.table.metadata_dropping import refuse_late
from hudi_table.table.rows.log_scan import rows_of
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice, plan_body, planned_slices
from hudi_table.table.view.file_system_view import BaseFile, FileSlice, LogFile

DELTAS_MAX = 10
"""Deltacommits after which a compaction is due: Hudi's default of
`hoodie.metadata.compact.max.delta.commits`."""
PLAN_ATTEMPTS_MAX = 5
OPERATION = "COMPACT"
_HOLDING = frozenset({Action.CLEAN, Action.RESTORE, Action.INDEXING})
"""No rollback: it waits for as long as the quarantine, and beside killed writers there is always
one. What it takes back never counts."""


def compact_metadata(ctx: TableContext, most: int = DELTAS_MAX) -> bool:
    """Execute what is planned, or else plan and execute if `most` deltas came since the last one.
    Whether anything was done.

    Does nothing while something pending holds it. Raises what the storage raises; a plan that stays
    is executed by the next call.
    """
    table = _loaded(ctx)
    if table is None or not (_waiting(table) or table.deltas >= most):
        return False
    # Hudi's writers compact it under the lock, and execute what they find planned.
    with section(ctx):
        table = table if ctx.lock is None else _loaded(ctx)
        if table is None or execute_pending(table):
            return table is not None
        return table.deltas >= most and _plan(ctx) and execute_pending(_loaded(ctx))


def _waiting(table: MetadataTable) -> list[Instant]:
    return [i for i in table.timeline.pending if i.action is Action.COMPACTION]


def execute_pending(table: MetadataTable | None) -> bool:
    """Execute every plan on the metadata table's timeline, oldest first. Whether there was one."""
    if table is None:
        return False
    waiting = _waiting(table)
    held = set(table.compacting().values()) if waiting else set()
    for instant in waiting:
        if instant.time in held:
            _execute(table, instant)
        else:
            # Its groups were dropped, and built again later than it.
            for name in table.timeline.own_names(instant):
                retry.delete(table.ctx.storage, table.ctx.layout.timeline_path(name))
    return bool(waiting)


def _loaded(ctx: TableContext) -> MetadataTable | None:
    timeline = load_timeline(ctx)
    table = MetadataTable.load(ctx, timeline) if timeline.has_metadata else None
    return table if table is not None and table.partitions.ready else None


def _plan(ctx: TableContext) -> bool:
    """Publish a plan. False if something holds it, or if commits kept coming: then the next one
    tries again."""
    for _ in range(PLAN_ATTEMPTS_MAX):
        timeline = load_timeline(ctx)
        if any(i.action in _HOLDING for i in timeline.pending):
            return False
        with suppress(WriteConflictError), planning(ctx, Action.COMPACTION) as txn:
            table = MetadataTable.load(ctx, txn.timeline)
            slices = _chosen(table, txn.timeline) if table is not None else []
            if table is None or not slices:
                txn.withdraw()
                return False
            requested = Instant(_instant(table, slices, txn.time), Action.COMPACTION, State.REQUESTED)
            conflict_keys = {metadata_conflict_key(item.partition, item.file_id) for item in slices}
            # Relative to `.hoodie/`, as every name of an entry.
            path = join(METADATA_TABLE, table.ctx.layout.timeline_path(requested.file_name))
            name = path.removeprefix(f"{HOODIE}/")
            txn.plan(plan_body(slices), conflict_keys | {f"instant:{txn.time}"}, name, compacts_metadata=True)
            return True
    return False


def _instant(table: MetadataTable, slices: Sequence[PlannedSlice], planner: str) -> str:
    """The instant of a plan: that of the newest delta that counts and `001`; the planner's and
    `001` where that is taken, or not later than a slice that is planned, as after a building.

    Where logs go to slices by completion it is the planner's, and later than all that has completed
    on the metadata table's timeline.
    """
    if table.ctx.layout.tells_completions:
        done = max((i.moment for i in table.timeline.instants), default="")
        return planner if planner > done else next_instant_time(done)
    newest = max((i.time for i in table.timeline.commits if i.time in table.counted), default="")
    found = compaction_instant(data_instant(newest)) if newest else ""
    taken = {i.time for i in table.timeline.instants}
    before = [comparable_time(time) for time in (newest, *(item.base_instant for item in slices))]
    free = bool(found) and found not in taken and comparable_time(found) > max(before)
    return found if free else compaction_instant(planner)


def _chosen(table: MetadataTable, timeline: Timeline) -> list[PlannedSlice]:
    """Every slice with logs that count; none if it must not be planned now."""
    if any(i.action in _HOLDING for i in timeline.pending):
        return []
    if any(i.action is Action.COMPACTION for i in table.timeline.pending):
        return []
    pending = {i.time for i in timeline.pending}
    planned = []
    for partition in table.partitions.ready:
        for group in table.groups.get(partition, ()):
            item = group.latest
            logs = []
            for log in item.logs:
                wrote = rows_of(table.ctx.storage, log.path)
                if wrote is None or (log.instant is None and wrote & pending):
                    # Taken back since it was listed; or another engine's write is under way, and writes nothing again.
                    return []
                if log.instant is None or any(time in table.counted for time in wrote):
                    logs.append(log)
            if any(log.name.token != EMPTY_LOG_TOKEN for log in logs):
                planned.append(PlannedSlice.of(_with(item, logs), _metrics(logs)))
    return planned


def _with(item: FileSlice, logs: list[LogFile]) -> FileSlice:
    return FileSlice(item.partition, item.file_id, item.instant, item.base, tuple(logs))


def _metrics(logs: list[LogFile]) -> Mapping[str, float]:
    return {"TOTAL_LOG_FILES": float(len(logs)), "TOTAL_LOG_FILES_SIZE": float(sum(log.size for log in logs))}


def _execute(table: MetadataTable, instant: Instant) -> None:
    """Base files, then the timeline; what was done before is done again, to the same bytes.

    Who slept over it leaves the end to others: a completed file that comes back after its archiving
    moves the start of the timeline.
    """
    storage, begun = table.ctx.storage, table.ctx.clock.boot_seconds()
    retry.put(storage, table.ctx.layout.timeline_path(instant.with_state(State.INFLIGHT).file_name), b"")
    before = [i for i in table.timeline.commits if i.moment < instant.time]
    record = record_of(table.ctx, before[-1] if before else None)
    stats = [_merge(table, item, instant.time, record) for item in planned_slices(table.ctx, instant)]
    done = completed_body(table.ctx, record, stats, OPERATION, compacted=True)
    refuse_late(table.ctx, begun, "compacting", "the next write goes on")
    name = table.ctx.layout.completed(instant).file_name
    retry.put(storage, table.ctx.layout.timeline_path(name), done)
    withdraw_if_late(table.ctx, instant.time, name, begun)


def _merge(table: MetadataTable, planned: PlannedSlice, time: str, record: str) -> WriteStat:
    item = _slice_of(planned)
    # What was planned counts, though its instant may have been archived since.
    mine = {log.instant for log in item.logs if log.instant is not None}
    counted = replace(table.counted, valid=table.counted.valid | mine, completed=table.counted.completed | mine)
    parts = slice_parts(replace(table, counted=counted), item)
    if planned.partition == MetadataPartition.FILES:
        rows = _with_partitions(file_records(listed(parts)))
    else:
        rows = merged_of(planned.partition, parts)
    name = HFileName(planned.file_id, EMPTY_LOG_TOKEN, time)
    schema = metadata_schema(record)
    data = write_hfile(rows["key"], encode_metadata(rows, schema, file_name=str(name)), schema=schema)
    path = join(planned.partition, str(name))
    retry.put(table.ctx.storage, path, data)
    return WriteStat(
        file_id=planned.file_id,
        path=path,
        partition_path=planned.partition,
        prev_commit=planned.base_instant,
        num_writes=len(rows),
        num_update_writes=len(rows),
        total_write_bytes=len(data),
        file_size_in_bytes=len(data),
        extra={
            "totalLogFilesCompacted": len(planned.logs),
            "totalLogSizeCompacted": int(planned.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
        },
    )


def _slice_of(planned: PlannedSlice) -> FileSlice:
    base = None
    if planned.base is not None and planned.base_path is not None:
        parsed = parse_hfile(planned.base)
        instant = parsed.instant if parsed else planned.base_instant
        base = BaseFile(planned.base_path, planned.partition, planned.file_id, instant, 0)
    logs = tuple(
        LogFile(path, 0, name)
        for path in planned.log_paths
        if (name := parse_log_file(path.rpartition("/")[2])) is not None
    )
    return FileSlice(planned.partition, planned.file_id, planned.base_instant, base, logs)


def _with_partitions(rows: pa.Table) -> pa.Table:
    """The list of partitions is never without a record, be it empty."""
    if pc.any(pc.equal(rows["key"], ALL_PARTITIONS)).as_py():
        return rows
    empty = pa.table(
        {
            "key": [ALL_PARTITIONS],
            "type": pa.array([1], pa.int32()),
            "files": pa.array([[]], rows.schema.field("files").type),
        }
    )
    return pa.concat_tables([empty.cast(rows.schema), rows]).sort_by("key")
