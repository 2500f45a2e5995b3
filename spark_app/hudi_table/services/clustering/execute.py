"""Executing a published plan: each group's slices rewritten into new file groups, then one replacecommit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same files, and one entry of
the chain commits them. Unlike a compaction it excludes writers of its groups: a slice that is not the planned one any more,
or that changes until the commit, makes the plan void, and it is given up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial

from hudi_table.errors import (
    InvalidRequestError,
    InvariantError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.model.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.instants import Action, Instant, State
from hudi_table.model.names import new_file_id
from hudi_table.model.options import WriteOptions
from hudi_table.model.resizes import STRATEGY
from hudi_table.model.services import ServiceResult, ServiceType
from hudi_table.services.clustering.sources import SliceSources, check_unmoved, give_up, replaced_by
from hudi_table.services.clustering.strategy import order_of
from hudi_table.services.planning import group_touches
from hudi_table.table.clusterings import ClusteringGroup, ClusteringPlan, planned_clustering
from hudi_table.table.context import TableContext
from hudi_table.table.held import live_clusterings
from hudi_table.table.ports import Engine
from hudi_table.table.right import RightToWrite
from hudi_table.table.row_order import RowOrder
from hudi_table.table.schemas import table_avro_schema
from hudi_table.table.timeline import Timeline, commit_metadata, load_timeline
from hudi_table.table.transaction import Transaction, resume
from hudi_table.write.cluster_task import ClusteringTask, cluster_group
from hudi_table.write.guards import check_renames, drop_metadata_if_any
from hudi_table.write.prepare import refuse_unsupported

_NAMESPACE = uuid.UUID("6f1a3c52-8d0e-4c0b-9a57-2b9a3c1d7e44")
_WRITER_BYTES = 32 << 20
"""Memory that decides how long row groups are: the same for every executor, so that the files are."""
_THREAD_BYTES = 2 * _WRITER_BYTES
"""What one that writes takes: a row group as it is gathered, sorted and encoded."""


def run_clustering(
    ctx: TableContext,
    instant: str,
    engine: Engine,
    options: Mapping[str, str] | None = None,
    *,
    max_memory: int,
) -> ServiceResult:
    """Execute the plan of `instant`, or find it executed.

    Raises WriteConflictError if a planned slice has changed: the plan is given up then. InvalidRequestError if there is no
    such plan, CommitStateUnknownError if the store stopped answering: run it again. Whatever else it raises, the plan stays.
    """
    refuse_unsupported(ctx.config)
    begun = ctx.clock.boot_seconds()
    parsed = WriteOptions.parse(options or {})
    requested = Instant(instant, Action.REPLACE_COMMIT, State.REQUESTED)
    try:
        txn = resume(ctx, requested)
    except WriteConflictError as error:
        # Given up by somebody who may not have come to roll it back.
        give_up(ctx, requested, error)
        raise
    if txn is None:
        return _result(ctx, instant, replayed=True)
    plan = planned_clustering(ctx, txn.instant)
    if plan is None:
        raise InvalidRequestError(f"the replacecommit {instant} is no clustering", base_path=ctx.base_path)
    check_renames(ctx, txn.timeline)
    if plan.strategy == STRATEGY:
        raise InvalidRequestError(
            f"the plan of {instant} changes the number of buckets, which a clustering would lose; execute it as a resize",
            base_path=ctx.base_path,
        )
    # A plan that names no layout, as Hudi's, is linear: all executors write the same, whatever their options.
    order = order_of(plan.params)
    try:
        read = check_unmoved(ctx, txn.timeline, plan)
        drop_metadata_if_any(ctx)
        sources = SliceSources(ctx, txn, parsed, order.columns)
        tasks = _Tasks(sources, txn.time, order).of(plan, engine, max_memory)
        with txn.signs_of_life():
            txn.inflight()
            done = engine.map(partial(_run, txn.right), tasks)
            stats = [stat for found in done for stat in found]
            touches = group_touches((item.partition, item.file_id) for item in plan.slices)
            txn.commit(_metadata(ctx, txn, plan, stats), touches | {f"instant:{instant}"})
    except (WriteAbortedError, InvariantError):
        # Another executor may have been faster: its commit is this one's too, and its markers are gone.
        if resume(ctx, requested) is None:
            return _result(ctx, instant, replayed=True)
        raise
    except WriteConflictError as error:
        give_up(ctx, txn.instant, error)
        raise
    figures = {"bytesRead": float(read), "seconds": ctx.clock.boot_seconds() - begun}
    return _result(ctx, instant, plan, figures)


def pending_instants(ctx: TableContext, timeline: Timeline) -> list[str]:
    """The instants of published plans that wait for their execution, oldest first."""
    return [found.time for found, plan in live_clusterings(ctx, timeline).items() if plan.strategy != STRATEGY]


def _run(right: RightToWrite, task: ClusteringTask) -> tuple[WriteStat, ...]:
    return cluster_group(task, right.for_thread())


class _Tasks:
    """Everything that the files hold follows from the plan and the timeline before it."""

    def __init__(self, sources: SliceSources, time: str, order: RowOrder) -> None:
        self._sources, self._time, self._order = sources, time, order

    def of(self, plan: ClusteringPlan, engine: Engine, max_memory: int) -> list[ClusteringTask]:
        """One task for each group; those that run at once share the memory, and what cores they leave."""
        at_once = max(1, min(engine.parallelism, len(plan.groups)))
        found, index = [], 0
        for number, group in enumerate(plan.groups):
            memory = max_memory // at_once
            threads = max(1, min(group.outputs, engine.parallelism // at_once, memory // _THREAD_BYTES))
            found.append(self._task(number, index, group, memory, threads))
            index += group.outputs
        return found

    def _task(self, number: int, index: int, group: ClusteringGroup, memory: int, threads: int) -> ClusteringTask:
        partition = group.slices[0].partition
        seed = uuid.uuid5(_NAMESPACE, f"{self._time}/{number}")
        outputs = [
            self._sources.output(partition, new_file_id(seed, partition, output), index + output, seed)
            for output in range(group.outputs)
        ]
        sources = tuple(self._sources.source(item) for item in group.slices)
        return ClusteringTask(sources, tuple(outputs), self._order, memory, threads)


def _metadata(ctx: TableContext, txn: Transaction, plan: ClusteringPlan, stats: list[WriteStat]) -> CommitMetadata:
    text = table_avro_schema(ctx, txn.timeline.until(txn.time))
    return CommitMetadata(
        operation_type="CLUSTER",
        stats=tuple(sorted(stats, key=lambda stat: (stat.partition_path, stat.path))),
        extra_metadata={SCHEMA_KEY: text} if text else {},
        replaced=replaced_by(plan),
    )


def _result(
    ctx: TableContext,
    instant: str,
    plan: ClusteringPlan | None = None,
    more: Mapping[str, float] | None = None,
    *,
    replayed: bool = False,
) -> ServiceResult:
    """The figures of a committed clustering; zeros if it has been archived meanwhile."""
    found = next((i for i in load_timeline(ctx).commits if i.time == instant), None)
    metadata = commit_metadata(ctx, found) if found else None
    stats = metadata.stats if metadata else ()
    groups = sum(len(ids) for ids in (metadata.replaced or {}).values()) if metadata else 0
    before = groups if plan is None else sum((s.base is not None) + len(s.logs) for s in plan.slices)
    rows = sum(stat.num_writes for stat in stats)
    figures = {
        "fileGroups": float(groups),
        "filesBefore": float(before),
        "filesAfter": float(len(stats)),
        "rowsWritten": float(rows),
        "bytesWritten": float(sum(stat.total_write_bytes for stat in stats)),
        **(more or {}),
    }
    message = f"{groups} file groups clustered into {len(stats)}, {rows:,} rows"
    return ServiceResult(ServiceType.CLUSTERING, instant, message, figures, replayed)
