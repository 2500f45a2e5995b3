"""What a resize plans: all slices of the table, in groups that share no key.

A key's bucket is its hash modulo their number. So with g the greatest common divisor of both
numbers, old and new buckets of one remainder modulo g hold the same keys: every partition splits
into g groups, which can be rewritten side by side.

The plan stands on the timeline as a clustering's: Hudi refuses writes to the groups of one. It must
not carry it out, which would lose the buckets. With a bucket index it refuses to; told another one
it would use the class of its own configuration, whatever the plan names, and sort by null what a
plan sorts by an unknown column (measured on 0.15.0). So the plan's paths lead nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd

from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.model.counts import counted
from hudi_table.model.digits import whole
from hudi_table.model.service.resizes import CHANGE, STRATEGY, Resize, parse_change
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceType
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.model.timeline.conflict_keys import TABLE
from hudi_table.model.timeline.instants import PLANNED_ACTIONS
from hudi_table.services.compaction.debt import counted_slices
from hudi_table.services.planning import Choose, Draft
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.timeline.bucket_count import refresh_buckets
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringGroup, ClusteringPlan, clustering_body, parse_clustering
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.write.checks.request import refuse_unsupported, resolve_spec
from hudi_table.write.checks.table_state import check_history, check_timeline

BUCKETS_MAX = 100_000
_NOWHERE = ".hoodie/_lakeops_this_is_a_resize_not_a_clustering"


def wanted_buckets(options: Mapping[str, str]) -> int:
    """The number that the options ask for. Raises InvalidOptionError."""
    text = options.get(BUCKETS, "")
    found = whole(text.strip(), 1)
    if found is None or found > BUCKETS_MAX:
        raise InvalidOptionError(f"a resize needs {BUCKETS}, a whole number from 1 to {BUCKETS_MAX:,}, not {text!r}")
    return found


def resize_choice(ctx: TableContext, buckets: int, *, dry: bool = False) -> Choose:
    """The plan for so many buckets, of any snapshot; none if the table has them, or, unless for a
    `dry` run, if just that plan waits for its execution. Raises InvalidRequestError where none can
    be made."""
    _refuse(ctx)

    def choose(view: FileSystemView) -> Draft | None:
        before = _buckets_of(ctx, view.timeline)
        if before == buckets:
            return None
        waiting = [planned_resize(i.time, plan) for i, plan in live_clusterings(ctx, view.timeline).items()]
        if not dry and any(found is not None and found.after == buckets for found in waiting):
            return None
        _check_free(ctx, view.timeline)
        found = _groups(ctx, view, before, buckets)
        groups = tuple(
            ClusteringGroup(tuple(map(PlannedSlice.of, group)), buckets // gcd(before, buckets)) for group in found
        )
        plan = ClusteringPlan(groups, STRATEGY, {}, {CHANGE: f"{before}:{buckets}"})
        return _draft(ctx, plan, found, f"from {before} to {counted(buckets, 'bucket')}")

    return choose


def approved_choice(ctx: TableContext, data: bytes) -> Choose:
    """Exactly the plan of these bytes, if the table is still as it was. Raises WriteConflictError
    that names what is not, InvalidRequestError if the bytes hold no plan of a resize."""
    _refuse(ctx)
    plan = parse_clustering(data)
    resize = None if plan is None else planned_resize("", plan)
    if plan is None or resize is None:
        raise InvalidRequestError("the approved plan is not a resize's", base_path=ctx.base_path)

    def choose(view: FileSystemView) -> Draft:
        before = _buckets_of(ctx, view.timeline)
        if before != resize.before:
            raise WriteConflictError(
                f"the table has {counted(before, 'bucket')}, not the {resize.before} of the plan; make a new plan and approve that",
                base_path=ctx.base_path,
            )
        _check_free(ctx, view.timeline)
        found = _groups(ctx, view, resize.before, resize.after)
        check_same(ctx, plan, [item for group in found for item in group])
        return _draft(ctx, plan, found, f"approved, from {resize.before} to {counted(resize.after, 'bucket')}", data)

    return choose


def planned_resize(instant: str, plan: ClusteringPlan) -> Resize | None:
    """The numbers of a plan, None if it is none of a resize."""
    return parse_change(instant, plan.extra.get(CHANGE)) if plan.is_resize else None


def all_counted(view: FileSystemView) -> list[FileSlice]:
    """Every slice with the files that a reader sees. Raises WriteConflictError while those of one
    are not known."""
    found = counted_slices(view, view.latest_slices())
    for item, decided in found:
        if not decided:
            raise WriteConflictError(
                f"file group {item.file_id} of partition {item.partition!r} has a log of a write that is under way; wait until that "
                "write has ended, then resize",
                base_path=view.ctx.base_path,
            )
    return [item for item, _ in found]


def check_same(ctx: TableContext, plan: ClusteringPlan, slices: Sequence[FileSlice]) -> None:
    """Refuse if the table's slices are not those of the plan. Raises WriteConflictError that names
    the first other group."""
    then = {(item.partition, item.file_id): frozenset(item.files) for item in plan.slices}
    now = {(item.partition, item.file_id): frozenset(PlannedSlice.of(item).files) for item in slices}
    for partition, file_id in sorted(then.keys() | now.keys()):
        if then.get((partition, file_id)) != now.get((partition, file_id)):
            raise WriteConflictError(
                f"file group {file_id} of partition {partition!r} has changed since the plan was made; make a new plan",
                base_path=ctx.base_path,
            )


def bucket_index(ctx: TableContext, buckets: int) -> BucketIndex:
    """The table's index with so many buckets."""
    return replace(BucketIndex.of(ctx.config, resolve_spec(ctx.config, {}), {}), buckets=buckets)


def _refuse(ctx: TableContext) -> None:
    refuse_unsupported(ctx.config)
    index = ctx.config.index
    if index is not None and (index.type.has_rings or index.partition_buckets):
        why = (
            "has a ConsistentBucket index, whose file groups split and merge one by one: cluster it"
            if index.type.has_rings
            else "has numbers of buckets by partition, and only a number for all of them can be changed; overwrite its partitions"
        )
        raise InvalidRequestError(f"table {ctx.config.name!r} {why}", base_path=ctx.base_path)
    if index is None or not index.type.has_fixed_buckets:
        kind = "stores no index" if index is None else f"has a {index.type.value} index"
        raise InvalidRequestError(
            f"table {ctx.config.name!r} {kind}, and only the buckets of a bucket index can be resized; small files are "
            "joined by a clustering",
            base_path=ctx.base_path,
        )


def _buckets_of(ctx: TableContext, timeline: Timeline) -> int:
    check_timeline(ctx, timeline)
    check_history(ctx, timeline)
    count = refresh_buckets(ctx, timeline)
    assert count is not None
    return count


def _check_free(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse beside other plans, which name slices that the resize would replace. Raises
    InvalidRequestError."""
    waiting = [f"{i.action.value} {i.time}" for i in timeline.pending if i.action in PLANNED_ACTIONS]
    for instant, plan in live_clusterings(ctx, timeline).items():
        waiting.append(f"{'resize' if plan.is_resize else 'clustering'} {instant.time}")
    if waiting:
        raise InvalidRequestError(
            f"the table waits for the execution of {', '.join(waiting)}; execute it or roll it back, then resize",
            base_path=ctx.base_path,
        )


def _groups(ctx: TableContext, view: FileSystemView, before: int, after: int) -> list[tuple[FileSlice, ...]]:
    """All slices, by partition and the remainder of their bucket. Raises CorruptTableError if one
    is no bucket's."""
    common = gcd(before, after)
    found: dict[tuple[str, int], list[FileSlice]] = {}
    for slot, item in bucket_index(ctx, before).groups(all_counted(view)).items():
        assert slot.bucket is not None
        found.setdefault((slot.partition, slot.bucket % common), []).append(item)
    return [tuple(sorted(found[key], key=lambda item: item.file_id)) for key in sorted(found)]


def _draft(
    ctx: TableContext, plan: ClusteringPlan, groups: Sequence[Sequence[FileSlice]], why: str, data: bytes | None = None
) -> Draft:
    resize = planned_resize("", plan)
    assert resize is not None
    slices = [item for group in groups for item in group]
    read = sum(item.size for item in slices)
    partitions: dict[str, list[FileSlice]] = {}
    for item in slices:
        partitions.setdefault(item.partition, []).append(item)
    lines = [
        f"{name or '.'}: {counted(len(items), 'file group')}, {sum(item.size for item in items):,} bytes, into up to {resize.after}"
        for name, items in sorted(partitions.items())
    ]
    said = ServicePlan(
        ServiceType.RESIZE,
        why,
        file_groups=len(slices),
        files_before=sum((item.base is not None) + len(item.logs) for item in slices),
        files_after=len(partitions) * resize.after,
        log_files=sum(len(item.logs) for item in slices),
        bytes_read=read,
        bytes_written=read,
        details=tuple(lines[:DETAILS_MAX]),
    )
    return Draft(data or clustering_body(ctx, plan, _NOWHERE), frozenset({TABLE}), said)
