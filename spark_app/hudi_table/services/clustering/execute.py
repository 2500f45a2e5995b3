"""Executing a published plan: each group's slices rewritten into new file groups, then one replacecommit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same files, and one entry of
the chain commits them. Unlike a compaction it excludes writers of its groups: a slice that is not the planned one any more,
or that changes until the commit, makes the plan void, and it is given up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.lifecycle import settle_metadata
from hudi_table.model.names import new_file_id
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.resizes import STRATEGY
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.clustering.rings import (
    RingTasks,
    changes_of,
    planned_rings,
    refuse_written_beside,
    ring_touches,
    store_rings,
)
from hudi_table.services.clustering.sources import (
    WRITER_BYTES,
    SliceSources,
    check_unmoved,
    commit_of,
    execute_plan,
    open_plan,
    rewrite_figures,
    rewrite_metadata,
)
from hudi_table.services.clustering.strategy import order_of
from hudi_table.services.file_filters import options_of_rewrite
from hudi_table.table.commit.conflicts import group_touches
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.rows.row_order import RowOrder
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import looks_again
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringGroup, ClusteringPlan, planned_clustering
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_renames
from hudi_table.write.handles.cluster import ClusteringTask, cluster_group
from hudi_table.write.handles.rebucket import ResizeTask, resize_group

_NAMESPACE = uuid.UUID("6f1a3c52-8d0e-4c0b-9a57-2b9a3c1d7e44")
_THREAD_BYTES = 2 * WRITER_BYTES
"""What one that writes takes: a row group as it is gathered, sorted and encoded."""


@looks_again
@logged("clustering")
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
    WriteOptions.parse(options or {})
    requested = Instant(instant, Action.REPLACE_COMMIT, State.REQUESTED)
    txn = open_plan(ctx, requested)
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
    changes = changes_of(plan)

    def rewrite() -> int:
        refuse_written_beside(ctx, txn, changes)
        read = check_unmoved(ctx, txn.timeline, plan)
        settle_metadata(ctx)
        rings = planned_rings(ctx, txn, changes)
        sources = SliceSources(ctx, txn, options_of_rewrite(ctx, options or {}, plan.slices), order.columns)
        tasks: Sequence[ClusteringTask | ResizeTask] = (
            RingTasks(ctx, sources, rings, txn.time).of(plan, options or {}, engine, max_memory)
            if changes
            else _Tasks(sources, txn.time, order).of(plan, engine, max_memory)
        )
        with txn.signs_of_life():
            txn.inflight()
            done = engine.map(partial(_run, txn.right), tasks)
            stats = [stat for found in done for stat in found]
            store_rings(txn, rings)
            touches = group_touches((item.partition, item.file_id) for item in plan.slices) | ring_touches(list(rings))
            txn.commit(rewrite_metadata(ctx, txn, plan, stats), touches | {f"instant:{instant}"})
        return read

    read = execute_plan(ctx, txn, rewrite)
    if read is None:
        return _result(ctx, instant, replayed=True)
    figures = {"bytesRead": float(read), "seconds": ctx.clock.boot_seconds() - begun}
    return _result(ctx, instant, plan, figures)


def pending_instants(ctx: TableContext, timeline: Timeline) -> list[str]:
    """The instants of published plans that wait for their execution, oldest first."""
    return [found.time for found, plan in live_clusterings(ctx, timeline).items() if plan.strategy != STRATEGY]


def _run(right: RightToWrite, task: ClusteringTask | ResizeTask) -> tuple[WriteStat, ...]:
    if isinstance(task, ResizeTask):
        return resize_group(task, right.for_thread())
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


def _result(
    ctx: TableContext,
    instant: str,
    plan: ClusteringPlan | None = None,
    more: Mapping[str, float] | None = None,
    *,
    replayed: bool = False,
) -> ServiceResult:
    """The figures of a committed clustering; zeros if it has been archived meanwhile."""
    figures = rewrite_figures(commit_of(ctx, load_timeline(ctx), instant), plan)
    groups, files, rows = (int(figures[name]) for name in ("fileGroups", "filesAfter", "rowsWritten"))
    message = f"{groups} file groups clustered into {files}, {rows:,} rows"
    return ServiceResult(ServiceType.CLUSTERING, instant, message, {**figures, **(more or {})}, replayed)
