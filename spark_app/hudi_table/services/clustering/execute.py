"""Executing a published plan: each group's slices rewritten into new file groups, then one
replacecommit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same
files, and one entry of the chain commits them. Unlike a compaction it excludes writers of its
groups: a slice that is not the planned one any more, or that changes until the commit, makes the
plan void, and it is given up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.lifecycle import resolve_metadata_partitions
from hudi_table.model.counts import counted
from hudi_table.model.names import new_file_id
from hudi_table.model.options.write_options import WriteOptions, clustering_gives_way
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.table.rings import Ring
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Instant, State
from hudi_table.services.clustering.rings import (
    RingTasks,
    changes_of,
    planned_rings,
    refuse_written_beside,
    ring_conflict_keys,
    store_rings,
)
from hudi_table.services.file_filters import options_of_rewrite
from hudi_table.services.rewriting.run import Rewrite, run_rewrite
from hudi_table.services.rewriting.sources import (
    WRITER_BYTES,
    SliceSources,
    check_unmoved,
    commit_of,
    rewrite_figures,
    rewrite_metadata,
)
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.rows.row_order import RowOrder, order_of
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringGroup, ClusteringPlan, planned_clustering
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_history
from hudi_table.write.handles.cluster import ClusteringTask
from hudi_table.write.handles.rebucket import ResizeTask

_NAMESPACE = uuid.UUID("6f1a3c52-8d0e-4c0b-9a57-2b9a3c1d7e44")
_THREAD_BYTES = 2 * WRITER_BYTES
"""What one that writes takes: a row group as it is gathered, sorted and encoded."""


@relists
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

    Raises WriteConflictError if a planned slice has changed: the plan is given up then.
    InvalidRequestError if there is no such plan, CommitStateUnknownError if the store stopped
    answering: run it again. Whatever else it raises, the plan stays.
    """
    refuse_unsupported(ctx.config)
    begun = ctx.clock.boot_seconds()
    WriteOptions.parse(options or {})
    requested = Instant(instant, ctx.layout.clustering, State.REQUESTED)
    done = run_rewrite(ctx, requested, engine, lambda txn: _Clustering(ctx, txn, options or {}, engine, max_memory))
    if done is None:
        return _result(ctx, instant, replayed=True)
    figures = {"bytesRead": float(done.read), "seconds": ctx.clock.boot_seconds() - begun}
    return _result(ctx, instant, done.plan, figures)


class _Clustering(Rewrite):
    """`read`: bytes of the planned slices, once there are tasks."""

    def __init__(
        self, ctx: TableContext, txn: Transaction, options: Mapping[str, str], engine: Engine, max_memory: int
    ) -> None:
        plan = planned_clustering(ctx, txn.instant)
        if plan is None:
            raise InvalidRequestError(f"the replacecommit {txn.time} is no clustering", base_path=ctx.base_path)
        check_history(ctx, txn.timeline)
        if plan.is_resize:
            raise InvalidRequestError(
                f"the plan of {txn.time} changes the number of buckets, which a clustering would lose; execute it as a resize",
                base_path=ctx.base_path,
            )
        self._ctx, self._txn, self._options, self._engine, self._memory = ctx, txn, options, engine, max_memory
        self.plan, self.read = plan, 0
        # A plan that names no layout, as Hudi's, is linear: all executors write the same, whatever their options.
        self._order = order_of(plan.params)
        self._changes = changes_of(plan)
        self._rings: dict[str, tuple[Ring, Ring]] = {}

    def tasks(self) -> Sequence[ClusteringTask | ResizeTask]:
        """See `Rewrite`."""
        ctx, txn, plan = self._ctx, self._txn, self.plan
        refuse_written_beside(ctx, txn, self._changes)
        self.read = check_unmoved(ctx, txn.timeline, plan)
        resolve_metadata_partitions(ctx)
        self._rings = planned_rings(ctx, txn, self._changes)
        sources = SliceSources(ctx, txn, options_of_rewrite(ctx, self._options, plan.slices), self._order.columns)
        if self._changes:
            rings = RingTasks(ctx, sources, self._rings, txn.time)
            return rings.of(plan, self._options, self._engine, self._memory)
        return _Tasks(sources, txn.time, self._order).of(plan, self._engine, self._memory)

    def commit(self, stats: list[WriteStat]) -> tuple[CommitMetadata, frozenset[str]]:
        """See `Rewrite`. The rings are stored first."""
        if clustering_gives_way(self._options):
            from hudi_table.table.commit.beside.early_conflicts import EarlyConflicts

            groups = [(item.partition, item.file_id) for item in self.plan.slices]
            EarlyConflicts.of(self._ctx).refuse_beside(
                self._ctx.storage, self._txn.time, groups, tail=self._txn.tail.sequence
            )
        store_rings(self._txn, self._rings)
        conflict_keys = group_conflict_keys((item.partition, item.file_id) for item in self.plan.slices)
        conflict_keys |= ring_conflict_keys(list(self._rings)) | {f"instant:{self._txn.time}"}
        return rewrite_metadata(self._ctx, self._txn, self.plan, stats), frozenset(conflict_keys)


def pending_instants(ctx: TableContext, timeline: Timeline) -> list[str]:
    """The instants of published plans that wait for their execution, oldest first."""
    return [found.time for found, plan in live_clusterings(ctx, timeline).items() if not plan.is_resize]


class _Tasks:
    """Everything that the files hold follows from the plan and the timeline before it."""

    def __init__(self, sources: SliceSources, time: str, order: RowOrder) -> None:
        self._sources, self._time, self._order = sources, time, order

    def of(self, plan: ClusteringPlan, engine: Engine, max_memory: int) -> list[ClusteringTask]:
        """One task for each group; those that run at once share the memory, and what cores they
        leave."""
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
    message = f"{counted(groups, 'file group')} clustered into {files}, {counted(rows, 'row')}"
    return ServiceResult(ServiceType.CLUSTERING, instant, message, {**figures, **(more or {})}, replayed)
