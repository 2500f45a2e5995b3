"""Executing a published plan: every group's rows into their new buckets, then one replacecommit
that names the new number.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same
files, and one entry of the chain commits them. A table that changed all the same, by a writer that
does not know the chain, makes the plan void.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from math import gcd

from hudi_table.errors import InvalidRequestError
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.metadata.lifecycle import resolve_metadata_partitions
from hudi_table.model.counts import counted
from hudi_table.model.names import bucket_file_id, bucket_of_file_id
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.resizes import CHANGE, Resize, parse_change
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.conflict_keys import TABLE
from hudi_table.model.timeline.instants import Instant, State
from hudi_table.services.file_filters import options_of_rewrite
from hudi_table.services.resizing.plan import all_counted, bucket_index, check_same, planned_resize
from hudi_table.services.rewriting.run import Rewrite, run_rewrite
from hudi_table.services.rewriting.sources import (
    SliceSources,
    check_unmoved,
    commit_of,
    rewrite_figures,
    rewrite_metadata,
)
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.bucket_count import sync_bucket_properties
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringPlan, planned_clustering
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.handles.rebucket import BucketRouter, ResizeTask

_NAMESPACE = uuid.UUID("b1c64e0e-0a8d-4c56-8f3e-5d9b2a7c1f60")


@relists
@logged("resizing")
def run_resize(
    ctx: TableContext,
    instant: str,
    engine: Engine,
    options: Mapping[str, str] | None = None,
    *,
    max_memory: int,
) -> ServiceResult:
    """Execute the plan of `instant`, or find it executed.

    Raises WriteConflictError if the table has changed: the plan is given up then.
    InvalidRequestError if there is no such plan, CommitStateUnknownError if the store stopped
    answering: run it again. Whatever else it raises, the plan stays.
    """
    refuse_unsupported(ctx.config)
    begun = ctx.clock.boot_seconds()
    WriteOptions.parse(options or {})
    requested = Instant(instant, ctx.layout.clustering, State.REQUESTED)
    done = run_rewrite(ctx, requested, engine, lambda txn: _Resizing(ctx, txn, options or {}, engine, max_memory))
    if done is None:
        return _result(ctx, instant, replayed=True)
    figures = {"bytesRead": float(done.read), "seconds": ctx.clock.boot_seconds() - begun}
    return _result(ctx, instant, done.plan, figures)


class _Resizing(Rewrite):
    """`read`: bytes of the planned slices, once there are tasks."""

    def __init__(
        self, ctx: TableContext, txn: Transaction, options: Mapping[str, str], engine: Engine, max_memory: int
    ) -> None:
        plan = planned_clustering(ctx, txn.instant)
        resize = None if plan is None else planned_resize(txn.time, plan)
        if plan is None or resize is None:
            raise InvalidRequestError(f"the replacecommit {txn.time} is no resize", base_path=ctx.base_path)
        self._ctx, self._txn, self._options, self._engine, self._memory = ctx, txn, options, engine, max_memory
        self.plan, self._resize, self.read = plan, resize, 0

    def tasks(self) -> list[ResizeTask]:
        """See `Rewrite`."""
        ctx, txn, plan = self._ctx, self._txn, self.plan
        self.read = check_unmoved(ctx, txn.timeline, plan)
        check_same(ctx, plan, all_counted(FileSystemView(ctx, txn.timeline)))
        resolve_metadata_partitions(ctx)
        index = bucket_index(ctx, self._resize.after)
        sources = SliceSources(ctx, txn, options_of_rewrite(ctx, self._options, plan.slices))
        return _tasks(sources, plan, index, self._resize, self._engine, self._memory)

    def commit(self, stats: list[WriteStat]) -> tuple[CommitMetadata, frozenset[str]]:
        """See `Rewrite`."""
        # No row changes: incremental readers pass over a clustering, and Hudi 0.15.0 knows no other name for such a commit.
        metadata = rewrite_metadata(self._ctx, self._txn, self.plan, stats, **{CHANGE: self._resize.change})
        return metadata, frozenset({TABLE, f"instant:{self._txn.time}"})


def pending_instants(ctx: TableContext, timeline: Timeline) -> list[str]:
    """The instants of published plans that wait for their execution: one at most."""
    return [found.time for found, plan in live_clusterings(ctx, timeline).items() if plan.is_resize]


def _tasks(
    sources: SliceSources,
    plan: ClusteringPlan,
    index: BucketIndex,
    resize: Resize,
    engine: Engine,
    max_memory: int,
) -> list[ResizeTask]:
    """One task for each group; those that run at once share the memory, and what cores they
    leave."""
    at_once = max(1, min(engine.parallelism, len(plan.groups)))
    step = gcd(resize.before, resize.after)
    tasks, written = [], 0
    for group in plan.groups:
        partition, bucket = group.slices[0].partition, bucket_of_file_id(group.slices[0].file_id)
        assert bucket is not None
        seed = uuid.uuid5(_NAMESPACE, f"{resize.instant}/{partition}")
        buckets = range(bucket % step, resize.after, step)
        outputs = [
            sources.output(partition, bucket_file_id(seed, partition, number), written + at, seed)
            for at, number in enumerate(buckets)
        ]
        read = tuple(map(sources.source, group.slices))
        threads = max(1, min(len(buckets), engine.parallelism // at_once))
        tasks.append(
            ResizeTask(read, tuple(outputs), BucketRouter(index, buckets.start, step), max_memory // at_once, threads)
        )
        written += len(buckets)
    return tasks


def _result(
    ctx: TableContext,
    instant: str,
    plan: ClusteringPlan | None = None,
    more: Mapping[str, float] | None = None,
    *,
    replayed: bool = False,
) -> ServiceResult:
    """The figures of a committed resize, zeros if it has been archived meanwhile; the properties
    have its number then."""
    timeline = load_timeline(ctx)
    sync_bucket_properties(ctx, timeline)
    metadata = commit_of(ctx, timeline, instant)
    figures = rewrite_figures(metadata, plan)
    resize = parse_change(instant, metadata.extra_metadata.get(CHANGE)) if metadata else None
    numbers = f"from {resize.before} to {counted(resize.after, 'bucket')}: " if resize else ""
    message = (
        f"{numbers}{counted(int(figures['fileGroups']), 'file group')}, {counted(int(figures['rowsWritten']), 'row')}"
    )
    return ServiceResult(ServiceType.RESIZE, instant, message, {**figures, **(more or {})}, replayed)
