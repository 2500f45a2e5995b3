"""Clustering a table of the consistent hashing index: its plan, its tasks, and the rings that its
commit puts in place."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from hudi_table.errors import InvalidOptionError, UnsupportedTableError, WriteConflictError
from hudi_table.index.hashing.consistent import ConsistentIndex
from hudi_table.model.names import parse_log_file
from hudi_table.model.table.config import IndexSpec
from hudi_table.model.table.index_properties import INDEX_TYPE, index_spec
from hudi_table.model.table.rings import Ring
from hudi_table.model.timeline.conflict_keys import ring_conflict_key
from hudi_table.services.clustering.ring_strategy import (
    EXECUTION_CLASS,
    RingChange,
    RingGroup,
    RingStrategy,
    ring_change,
)
from hudi_table.services.rewriting.sources import SliceSources
from hudi_table.table.commit.pending_plans import clustered_groups
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.view.clustering_plans import ClusteringGroup, ClusteringPlan
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.table.view.hash_rings import RINGS, FixedRings, TableRings, ring_path
from hudi_table.table.view.listing import list_data_files
from hudi_table.write.checks.request import resolve_index, resolve_spec
from hudi_table.write.handles.rebucket import ResizeTask, RingRouter

_NAMESPACE = uuid.UUID("4b1a3d52-8f0e-4c0b-9a57-2b9a3c1d7e45")


def consistent_spec(ctx: TableContext, options: Mapping[str, str]) -> IndexSpec | None:
    """The table's consistent hashing index, stored or told by the options; None for another index.

    Raises InvalidOptionError for a table with rings that stores no index, and whose index nobody
    tells: its rows would be moved.
    """
    if ctx.config.index is not None:
        return ctx.config.index if ctx.config.index.type.has_rings else None
    if options.get(INDEX_TYPE):
        resolve_index(ctx.config, options)
        spec = index_spec(options)
        if spec.type.has_rings:
            return spec
    if ctx.storage.list(RINGS, limit=4):
        raise InvalidOptionError(
            f"table {ctx.config.name!r} has a consistent hashing index and does not store it; give {INDEX_TYPE}=BUCKET with "
            "hoodie.index.bucket.engine=CONSISTENT_HASHING and hoodie.bucket.index.num.buckets",
            base_path=ctx.base_path,
        )
    return None


def ring_groups(
    view: FileSystemView, strategy: RingStrategy, slices: Sequence[FileSlice], spec: IndexSpec
) -> list[RingGroup]:
    """What splits and merges among the free slices of a snapshot. Raises CorruptTableError."""
    ctx, timeline = view.ctx, view.timeline
    busy = {partition for partition, _ in clustered_groups(ctx, timeline)}
    rings = TableRings(ctx, timeline, spec.buckets or 1)
    partitions = [name for name in view.partitions() if name not in busy]
    return strategy.groups(slices, partitions, local_now(ctx).hour, rings.ring)


def ring_plan(groups: Sequence[RingGroup], metrics: Sequence[Mapping[str, float]]) -> ClusteringPlan:
    """The plan of these groups, as Hudi's consistent hashing clustering makes it."""
    planned = tuple(
        ClusteringGroup(tuple(map(PlannedSlice.of, group.slices)), group.planned.outputs, figures, group.extra)
        for group, figures in zip(groups, metrics, strict=True)
    )
    return ClusteringPlan(planned, EXECUTION_CLASS)


def ring_conflict_keys(partitions: Sequence[str]) -> frozenset[str]:
    """The conflict keys of plans and commits that change rings: one at a time for each
    partition."""
    return frozenset(map(ring_conflict_key, partitions))


def changes_of(plan: ClusteringPlan) -> list[RingChange]:
    """What each group of a plan changes, none for a plan of another index. Raises
    CorruptTableError."""
    found = [ring_change(group) for group in plan.groups]
    return [change for change in found if change is not None]


def planned_rings(ctx: TableContext, txn: Transaction, changes: Sequence[RingChange]) -> dict[str, tuple[Ring, Ring]]:
    """Partition → its ring before and after the plan. Raises WriteConflictError if the plan was
    made for another ring."""
    # Every ring that a plan changes is stored: a partition begins with its file.
    rings = TableRings(ctx, txn.timeline, 1)
    changed = {}
    for partition, group in groupby(
        sorted(changes, key=lambda change: change.partition), lambda change: change.partition
    ):
        planned, ring = list(group), rings.ring(partition)
        if not rings.is_stored(partition) or any(change.sequence != ring.sequence for change in planned):
            raise WriteConflictError(
                f"the hash ring of partition {partition!r} has changed since its clustering was planned at {txn.time}; plan it again",
                base_path=ctx.base_path,
                instant=txn.time,
            )
        nodes = [node for change in planned for node in change.changes]
        changed[partition] = (ring, ring.changed(nodes, txn.time))
    return changed


def store_rings(txn: Transaction, rings: Mapping[str, tuple[Ring, Ring]]) -> None:
    """Store the rings that the commit puts in place; until it is decided nobody uses them."""
    for partition, (_, ring) in rings.items():
        txn.right.put_file(ring_path(partition, txn.time), ring.to_json())


def refuse_written_beside(ctx: TableContext, txn: Transaction, changes: Sequence[RingChange]) -> None:
    """Refuse a plan beside which Hudi's writers write into the nodes to come as well, by its
    duplicate update strategy.

    Raises UnsupportedTableError; the plan stays.
    """
    coming = {(change.partition, node.file_id) for change in changes for node in change.changes if node.prefix}
    for info in list_data_files(ctx.storage):
        partition, _, name = info.path.rpartition("/")
        log = parse_log_file(name)
        # Where logs are named by who wrote them the groups alone tell: they have the names of this plan.
        beside = log is not None and (ctx.layout.logs_tell_writers or log.base_instant == txn.time)
        if log is not None and beside and (partition, log.file_id) in coming:
            raise UnsupportedTableError(
                f"rows were written into both the old and the new file groups of the clustering planned at {txn.time}, by Hudi's "
                "SparkConsistentBucketDuplicateUpdateStrategy; let Hudi execute the plan",
                base_path=ctx.base_path,
                instant=txn.time,
            )


class RingTasks:
    """The tasks of a plan: every group's rows into the nodes that take its place."""

    def __init__(
        self, ctx: TableContext, sources: SliceSources, rings: Mapping[str, tuple[Ring, Ring]], time: str
    ) -> None:
        self._ctx, self._sources, self._rings, self._time = ctx, sources, rings, time

    def of(self, plan: ClusteringPlan, options: Mapping[str, str], engine: Engine, max_memory: int) -> list[ResizeTask]:
        """One task for each group; those that run at once share the memory, and what cores they
        leave."""
        at_once = max(1, min(engine.parallelism, len(plan.groups)))
        tasks: list[ResizeTask] = []
        written = 0
        for group in plan.groups:
            change = ring_change(group)
            assert change is not None
            nodes = [node for node in change.changes if node.prefix is not None]
            seed = uuid.uuid5(_NAMESPACE, f"{self._time}/{change.partition}")
            outputs = [
                self._sources.output(change.partition, node.file_id, written + at, seed)
                for at, node in enumerate(nodes)
            ]
            router = self._router(change.partition, [node.file_id for node in nodes], options)
            threads = max(1, min(len(nodes), engine.parallelism // at_once))
            sources = tuple(map(self._sources.source, group.slices))
            tasks.append(ResizeTask(sources, tuple(outputs), router, max_memory // at_once, threads))
            written += len(nodes)
        return tasks

    def _router(self, partition: str, file_ids: Sequence[str], options: Mapping[str, str]) -> RingRouter:
        ring = self._rings[partition][1]
        config = self._ctx.config
        index = ConsistentIndex.of(config, resolve_spec(config, options), options)
        return RingRouter(replace(index, rings=FixedRings(1, {partition: ring})), tuple(file_ids))
