"""What a clustering plans: the groups of slices that no other plan holds, when it is due.

A plan names a slice by its files, logs that a reader sees included: a writer that adds to one makes
the plan void, and finds that out before it writes unless its options allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_table.codec.avro.schema import with_meta
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.options.known import check_options
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceType
from hudi_table.model.table.config import IndexSpec
from hudi_table.model.timeline.instants import Action
from hudi_table.services.clustering.ring_strategy import RingStrategy
from hudi_table.services.clustering.rings import changes_of, consistent_spec, ring_conflict_keys, ring_groups, ring_plan
from hudi_table.services.clustering.strategy import ClusteringStrategy, SliceGroup
from hudi_table.services.clustering.trigger import Cadence, Trigger
from hudi_table.services.compaction.debt import free_slices
from hudi_table.services.compaction.strategy import Candidate
from hudi_table.services.planning import Choose, Draft
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.rows.row_order import check_columns
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import (
    ClusteringGroup,
    ClusteringPlan,
    clustering_body,
    parse_clustering,
    planned_clustering,
)
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_history, check_timeline


def clustering_choice(
    ctx: TableContext, options: Mapping[str, str], *, force: bool, cadence: Cadence = Cadence.ASYNC
) -> Choose:
    """What a clustering takes, of any snapshot: nothing unless it is due, or in any case with
    `force`.

    Raises InvalidRequestError for a table with a bucket index, InvalidOptionError and
    UnsupportedTableError.
    """
    check_options(options)
    trigger = Trigger.parse(options, cadence)
    _refuse(ctx)
    spec = consistent_spec(ctx, options)
    if spec is not None:
        return _ring_choice(ctx, options, spec, trigger, force=force)
    strategy = ClusteringStrategy.parse(options)

    def choose(view: FileSystemView) -> Draft | None:
        why = _due(ctx, view.timeline, trigger, force=force)
        if why is None:
            return None
        _check_order(ctx, view.timeline, strategy)
        clustered = _Clustered(ctx, view.timeline, strategy.params).by
        found = strategy.groups(free_slices(view), view.partitions(), local_now(ctx).hour, clustered)
        if not found:
            return None
        _refuse_buckets(ctx, found)
        return _draft(ctx, ClusteringPlan(_planned(found, strategy), strategy.execution, strategy.params), found, why)

    return choose


class _Clustered:
    """Whether a clustering with the same order wrote a slice's base file. Of one that has left the
    timeline that is not known."""

    def __init__(self, ctx: TableContext, timeline: Timeline, params: Mapping[str, str]) -> None:
        self._ctx = ctx
        self._params = dict(params)
        self._replaced = {i.time: i for i in timeline.commits if i.action is Action.REPLACE_COMMIT}
        self._known: dict[str, bool] = {}

    def by(self, item: FileSlice) -> bool:
        instant = self._replaced.get(item.base.instant) if item.base is not None else None
        if instant is None:
            return False
        if instant.time not in self._known:
            plan = planned_clustering(self._ctx, instant)
            self._known[instant.time] = plan is not None and dict(plan.params) == self._params
        return self._known[instant.time]


def _ring_choice(
    ctx: TableContext, options: Mapping[str, str], spec: IndexSpec, trigger: Trigger, *, force: bool
) -> Choose:
    """What splits and merges in a table of the consistent hashing index."""
    strategy = RingStrategy.parse(options, spec)

    def choose(view: FileSystemView) -> Draft | None:
        why = _due(ctx, view.timeline, trigger, force=force)
        if why is None:
            return None
        found = ring_groups(view, strategy, free_slices(view), spec)
        if not found:
            return None
        planned = [group.planned for group in found]
        size = WriteOptions.parse(options).target_file_size
        plan = ring_plan(found, [_metrics(group, size) for group in planned])
        return _draft(ctx, plan, planned, why)

    return choose


def approved_choice(ctx: TableContext, data: bytes) -> Choose:
    """Exactly the plan of these bytes, if every slice of it is still as it was. Raises
    WriteConflictError that names one that is not, InvalidRequestError if the bytes hold no plan."""
    _refuse(ctx)
    plan = parse_clustering(data)
    if plan is None:
        raise InvalidRequestError("the approved plan is not a clustering's", base_path=ctx.base_path)

    def choose(view: FileSystemView) -> Draft:
        check_timeline(ctx, view.timeline)
        free = {(item.partition, item.file_id): item for item in free_slices(view)}
        found = []
        for group in plan.groups:
            slices = [_unchanged(ctx, item, free.get((item.partition, item.file_id))) for item in group.slices]
            found.append(SliceGroup(tuple(slices), group.outputs))
        return _draft(ctx, plan, found, "approved", data)

    return choose


def _unchanged(ctx: TableContext, item: PlannedSlice, now: FileSlice | None) -> FileSlice:
    if now is None or set(PlannedSlice.of(now).files) != set(item.files):
        raise WriteConflictError(
            f"file group {item.file_id} of partition {item.partition!r} has changed since the plan was made; make a new plan "
            "and approve that",
            base_path=ctx.base_path,
        )
    return now


def _planned(groups: Sequence[SliceGroup], strategy: ClusteringStrategy) -> tuple[ClusteringGroup, ...]:
    return tuple(
        ClusteringGroup(
            tuple(map(PlannedSlice.of, group.slices)), group.outputs, _metrics(group, strategy.base_less_size)
        )
        for group in groups
    )


def _metrics(group: SliceGroup, base_less_size: int) -> dict[str, float]:
    total: dict[str, float] = {}
    for item in group.slices:
        for name, value in Candidate(item, base_less_size).metrics().items():
            total[name] = total.get(name, 0.0) + value
    return total


def _draft(
    ctx: TableContext, plan: ClusteringPlan, groups: Sequence[SliceGroup], why: str, data: bytes | None = None
) -> Draft:
    slices = [item for group in groups for item in group.slices]
    read = sum(item.size for item in slices)
    said = ServicePlan(
        ServiceType.CLUSTERING,
        why,
        file_groups=len(slices),
        files_before=sum((item.base is not None) + len(item.logs) for item in slices),
        files_after=sum(group.outputs for group in groups),
        log_files=sum(len(item.logs) for item in slices),
        bytes_read=read,
        bytes_written=read,
        details=tuple(map(_line, groups[:DETAILS_MAX])),
    )
    conflict_keys = group_conflict_keys((item.partition, item.file_id) for item in slices)
    rings = ring_conflict_keys([change.partition for change in changes_of(plan)])
    return Draft(data or clustering_body(ctx, plan), conflict_keys | rings, said)


def _line(group: SliceGroup) -> str:
    size = sum(item.size for item in group.slices)
    return f"{group.slices[0].partition or '.'}: {counted(len(group.slices), 'file group')}, {size:,} bytes, into {group.outputs}"


def _due(ctx: TableContext, timeline: Timeline, trigger: Trigger, *, force: bool) -> str | None:
    """Why to cluster now, None for not yet. Raises for a table that cannot be clustered."""
    check_timeline(ctx, timeline)
    why = "asked for" if force else trigger.due(ctx, timeline)
    if why is not None:
        check_history(ctx, timeline)
    return why


def _refuse(ctx: TableContext) -> None:
    refuse_unsupported(ctx.config)
    if ctx.config.index is not None and ctx.config.index.type.has_fixed_buckets:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} has a bucket index: its rows belong to their buckets, and clustering would move them; "
            "compact it, or change its number of buckets",
            base_path=ctx.base_path,
        )


def _refuse_buckets(ctx: TableContext, groups: Sequence[SliceGroup]) -> None:
    """The same for a table of another engine, whose index no property tells."""
    buckets = [bucket_of_file_id(item.file_id) for group in groups for item in group.slices]
    if all(bucket is not None and bucket < 10_000 for bucket in buckets):
        raise InvalidRequestError(
            f"file ids such as {groups[0].slices[0].file_id} are those of a bucket index, whose rows clustering would move",
            base_path=ctx.base_path,
        )


def _check_order(ctx: TableContext, timeline: Timeline, strategy: ClusteringStrategy) -> None:
    schema = table_schema(ctx, timeline)
    wrong = None if schema is None else check_columns(strategy.order.columns, with_meta(schema))
    if wrong is not None:
        raise InvalidOptionError(f"the rows cannot be sorted: {wrong}", base_path=ctx.base_path)
