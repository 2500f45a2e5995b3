"""From a request to a plan: columns resolved, filter bound, file slices chosen, partitions
pruned."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.model.names import ALL_META_COLUMNS, META_COLUMNS
from hudi_table.model.table.config import TableType
from hudi_table.read.as_of import check_retained
from hudi_table.read.filter.predicates import Bound, Filter
from hudi_table.read.incremental import changed_slices, check_commit_times, rows_of
from hudi_table.read.moments import Span
from hudi_table.read.pruning.buckets import Pruned
from hudi_table.read.pruning.chain import Snapshot, prune
from hudi_table.read.schema import NAMED_FIELDS, schema_as_of, with_meta
from hudi_table.read.support import check_readable
from hudi_table.table.engine.memory import DEFAULT_MEMORY, MERGE_BYTES, SLICES_AT_ONCE
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.at_once import at_once
from hudi_table.table.timeline.active import timeline_with
from hudi_table.table.timeline.bucket_count import buckets_at, refresh_buckets
from hudi_table.table.timeline.column_history import ColumnHistory, load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

_LOG = logging.getLogger("hudi_table.read")


@dataclass(frozen=True, slots=True)
class Request:
    """What a scan was asked for. `as_of` is an instant time of 17 digits, `limit` a number of rows,
    `span` is for incremental queries.

    `max_memory`: bytes that the logs of all slices read at once may take while they are merged;
    more waits on disk.
    """

    columns: tuple[str, ...] | None = None
    filter: Filter | None = None
    as_of: str | None = None
    query: str = "snapshot"
    limit: int | None = None
    meta: bool = False
    span: Span | None = None
    max_memory: int = DEFAULT_MEMORY


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a scan reads: a fixed set of file slices, so that every stream of one scan gives the
    same rows.

    `schema` is the result's; `reads` adds the columns that only the filter needs. `instant` is the
    newest completed write that is visible ('' if none). The totals count what the table has before
    pruning. `buckets` are those of the `buckets_total` of a bucket index that the filter leaves,
    None if it leaves all. `visible` and `merge` say which log blocks count, and how; `merging` are
    the columns that merging needs, `merge_bytes` the memory that merging one slice may take.
    `newest`: the timeline, if the plan is of the newest snapshot of all rows. `reached`: where a
    range of changes begins that is to tell what follows: the newest instant, or moment of
    completion, up to which all is visible. `by_polars`: base files may be decoded by Polars, see
    `codec.pages`.
    """

    schema: pa.Schema
    reads: pa.Schema
    bound: Bound | None
    slices: tuple[FileSlice, ...]
    instant: str
    columns_total: int
    slices_total: int
    partitions: int
    partitions_total: int
    visible: VisibleInstants | None = None
    merge: SliceMerge = field(default_factory=SliceMerge)
    merging: pa.Schema = field(default_factory=lambda: pa.schema([]))
    merge_bytes: int = MERGE_BYTES
    buckets: frozenset[int] | None = None
    buckets_total: int | None = None
    newest: Timeline | None = field(default=None, repr=False)
    reached: str = ""
    by_polars: bool = False

    @property
    def history(self) -> ColumnHistory | None:
        """Which columns older files hold under another name."""
        return self.merge.history


@relists
def make_plan(ctx: TableContext, request: Request) -> ScanPlan:
    """Load the timeline and choose the files.

    Raises UnsupportedTableError, InvalidOptionError, ExpiredError and CorruptTableError.
    """
    check_readable(ctx, request.query)
    whole, (schema, all_slices, count, history) = timeline_with(
        ctx, lambda found: _asked(ctx, *_then(found, request)), exact=True
    )
    timeline, as_of = _then(whole, request)
    output = _output(ctx, schema, request)
    everything = pa.schema([*NAMED_FIELDS, *schema]) if ctx.config.populate_meta_fields else schema
    bound = None if request.filter is None else request.filter.bind(everything)
    if request.span is not None:
        check_commit_times(ctx)
        changed = rows_of(ctx, timeline, request.span)
        bound = changed if bound is None else bound.both(changed)
    extra = [everything.field(n) for n in (bound.columns if bound else ()) if n not in output.names]
    how = SliceMerge.of(ctx.config, everything, history)
    slices = all_slices
    if request.query == "read_optimized":
        slices = [replace(s, logs=()) for s in slices if s.base is not None]
    total = len(slices)
    if request.span is not None:
        slices = changed_slices(ctx, timeline, slices, request.span)
    if ctx.config.type is TableType.COPY_ON_WRITE:
        _check_no_logs(ctx, slices)
    visible = timeline if as_of is None else timeline.until(as_of)
    count = count if as_of is None else buckets_at(ctx, visible)
    newest = timeline if as_of is None and request.span is None and request.query == "snapshot" else None
    snapshot = Snapshot(all_slices, count, visible, newest, timeline, renamed=history is not None)
    left, kept = prune(ctx, snapshot, slices, bound, everything)
    _LOG.debug("%s: %d of %d file slices to read", ctx.base_path, len(left.slices), total)
    return ScanPlan(
        schema=output,
        reads=pa.schema([*output, *extra]),
        bound=bound,
        slices=left.slices,
        instant=visible.last_commit.time if visible.last_commit else "",
        columns_total=len(schema),
        slices_total=total,
        partitions=kept,
        partitions_total=len({s.partition for s in slices}),
        visible=VisibleInstants.of(timeline, as_of),
        merge=how,
        merging=pa.schema(how.needs(everything) if any(s.logs for s in slices) else []),
        merge_bytes=max(1, request.max_memory // SLICES_AT_ONCE),
        buckets=left.buckets,
        buckets_total=count,
        newest=newest,
        reached=whole.reached(visible),
    )


def _then(timeline: Timeline, request: Request) -> tuple[Timeline, str | None]:
    """The timeline that is read, and the time as of which. A range of changes ends at a moment,
    where instants tell when they completed."""
    span = request.span
    return (timeline, request.as_of) if span is None or not span.until else timeline.at(span.until)


def _asked(
    ctx: TableContext, timeline: Timeline, as_of: str | None
) -> tuple[pa.Schema, list[FileSlice], int | None, ColumnHistory | None]:
    """What a plan asks the store beside the timeline, all of it at once: schema, file slices,
    number of buckets, history of columns."""

    def listed() -> list[FileSlice]:
        view = FileSystemView(ctx, timeline, as_of)
        if as_of is not None:
            check_retained(view)
        return view.latest_slices()

    return at_once(
        ctx.storage,
        lambda: schema_as_of(ctx, timeline, as_of),
        listed,
        lambda: refresh_buckets(ctx, timeline),
        lambda: load_column_history(ctx, timeline, None if as_of is None else timeline.until(as_of)),
    )


@relists
def narrow(ctx: TableContext, plan: ScanPlan, columns: Sequence[str], more: Filter | None) -> ScanPlan:
    """The same snapshot with fewer columns (of `plan.schema`) and perhaps another filter on top."""
    bound = plan.bound
    if more is not None:
        added = more.bind(plan.schema)
        bound = added if bound is None else bound.both(added)
    output = pa.schema([plan.schema.field(name) for name in columns])
    extra = [plan.reads.field(name) for name in (bound.columns if bound else ()) if name not in columns]
    left = Pruned(plan.slices)
    if bound is not None:
        snapshot = Snapshot(plan.slices, plan.buckets_total, newest=plan.newest, renamed=plan.history is not None)
        left, _ = prune(ctx, snapshot, plan.slices, bound, plan.reads)
    return replace(
        plan,
        schema=output,
        reads=pa.schema([*output, *extra]),
        bound=bound,
        slices=left.slices,
        buckets=left.buckets,
    )


def _output(ctx: TableContext, schema: pa.Schema, request: Request) -> pa.Schema:
    """The result's fields: those asked for, in that order, else all data columns (after the meta
    columns, if wanted)."""
    if request.columns is None:
        if request.meta:
            _check_meta(ctx)
        return with_meta(schema) if request.meta else schema
    known = {field.name: field for field in [*NAMED_FIELDS, *schema]}
    for name in request.columns:
        if name not in known:
            raise InvalidOptionError(unknown_column(name, schema.names), base_path=ctx.base_path)
        if name in ALL_META_COLUMNS:
            _check_meta(ctx)
    names = [*META_COLUMNS, *request.columns] if request.meta else list(request.columns)
    return pa.schema([known[name] for name in dict.fromkeys(names)])


def _check_meta(ctx: TableContext) -> None:
    if not ctx.config.populate_meta_fields:
        raise InvalidOptionError(
            "the table keeps no meta columns (hoodie.populate.meta.fields=false)", base_path=ctx.base_path
        )


def unknown_column(name: str, names: Sequence[str]) -> str:
    """What to say of a column that is not there, with the nearest one."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"no column {name!r}: " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}")


def _check_no_logs(ctx: TableContext, slices: Sequence[FileSlice]) -> None:
    for found in slices:
        if found.base is None or found.logs:
            raise CorruptTableError(
                f"a copy-on-write table holds log files in group {found.file_id}: "
                f"{', '.join(log.path for log in found.logs)}; it was written as a merge-on-read table",
                base_path=ctx.base_path,
            )
