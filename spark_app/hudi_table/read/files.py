"""File slices to batches of the planned columns: row groups pruned, old files brought to today's
schema, logs merged in, rows filtered."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.parquet import Stitched, groups_ahead, read_batches, read_footer
from hudi_table.codec.promotions import of_today
from hudi_table.errors import (
    CorruptTableError,
    ExpiredError,
    HudiError,
    InvalidDataError,
    ObjectNotFoundError,
    UnsupportedTableError,
)
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.footer_stats import ranges
from hudi_table.read.plan import ScanPlan
from hudi_table.read.prefetch import first_rows, in_order
from hudi_table.read.pruning.partitions import matching_row_groups
from hudi_table.table.engine.memory import SLICES_AT_ONCE
from hudi_table.table.engine.read_ahead import AHEAD_BYTES, ReadAhead
from hudi_table.table.rows.log_scan import slice_blocks
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.ports import is_remote
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_commits
from hudi_table.table.timeline.column_history import stored_as, under_todays_names
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.view.clean_plans import clean_of
from hudi_table.table.view.file_system_view import BaseFile, FileSlice, FileSystemView, LogFile

BATCH_ROWS = 64 * 1024
BATCHES_AHEAD = 2
"""With `SLICES_AT_ONCE` the bound of what a stream holds: 4 x 3 batches beside Parquet's own
buffers, and of each slice with logs the plan's `merge_bytes`."""
FOOTERS_AHEAD = REQUESTS_AT_ONCE
_DECODED_PART = 4
"""Of a slice's memory a quarter is what Polars decodes."""
WORTH_BYTES = 1 << 20
"""Of base files: of fewer, Arrow is as fast as Polars."""
_PLACE = "_lakeops_place"
_FEW = 256
_FEW_ROWS = 4 * 1024
"""Where less than one row in `_FEW` is kept, reading in such steps ends soon after the last of
them."""


def stream(ctx: TableContext, plan: ScanPlan, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
    """Batches of `plan.schema`, slice after slice; at most `limit` rows."""
    plan = plan if limit is not None or is_remote(ctx.storage) else replace(plan, by_polars=_is_for_polars(plan))
    with ReadAhead(
        ctx.storage, [_files(found) for found in plan.slices], within=AHEAD_BYTES if limit is None else 0
    ) as ahead:
        sources = [partial(_fetched, ctx, plan, ahead, number) for number in range(len(plan.slices))]
        yield from first_rows(sources, limit, ahead=_at_once(ctx), depth=BATCHES_AHEAD)


def _is_for_polars(plan: ScanPlan) -> bool:
    """Whether Polars decodes the base files, in a process that has all threads of its libraries."""
    size = sum(found.base.size for found in plan.slices if found.base)
    if size < WORTH_BYTES or threads.is_forked():
        return False
    from hudi_table.codec.pages.decoding import is_worth

    return is_worth(size)


def _fetched(ctx: TableContext, plan: ScanPlan, ahead: ReadAhead, number: int) -> Iterator[pa.RecordBatch]:
    with ahead.opened(number) as storage:
        yield from _batches(replace(ctx, storage=storage), plan, plan.slices[number])


def count_rows(ctx: TableContext, plan: ScanPlan) -> int:
    """Rows of the planned slices: from footers where there is neither a filter nor a log, else by
    reading as little as decides."""
    counted = [found for found in plan.slices if plan.bound is None and not found.logs]
    read = [found for found in plan.slices if plan.bound is not None or found.logs]
    footers = [partial(_footer_rows, ctx, found.base) for found in counted if found.base is not None]
    rows: int = sum(in_order(footers, ahead=FOOTERS_AHEAD, depth=1))
    reading = replace(plan, slices=tuple(read))
    with ReadAhead(ctx.storage, [_files(found) for found in read]) as ahead:
        sources = [partial(_fetched, ctx, reading, ahead, number) for number in range(len(read))]
        for batch in in_order(sources, ahead=_at_once(ctx), depth=BATCHES_AHEAD):
            rows += batch.num_rows
    return rows


def _at_once(ctx: TableContext) -> int:
    """Slices that are read at the same time. What waits for no store only takes the caches from
    what decodes, where there are more of them than cores."""
    return SLICES_AT_ONCE if is_remote(ctx.storage) else min(SLICES_AT_ONCE, max(2, pa.cpu_count()))


def _footer_rows(ctx: TableContext, file: BaseFile) -> Iterator[int]:
    try:
        with ctx.storage.open_read(file.path) as source:
            yield read_footer(source, path=file.path).rows
    except HudiError as error:
        raise _explained(ctx, file.partition, error) from error


def _batches(ctx: TableContext, plan: ScanPlan, item: FileSlice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. A log that is gone and held nothing that counts is left out; another
    file that is gone ends the stream."""
    is_begun = False
    try:
        for batch in _rows(ctx, plan, item):
            is_begun = True
            yield batch
        return
    except HudiError as error:
        missing = error.path if isinstance(error, ObjectNotFoundError) and not is_begun else None
        left = None if missing is None else _without(ctx, plan, item, missing)
        if left is None:
            raise _explained(ctx, item.partition, error) from error
    yield from _batches(ctx, plan, left)


def _without(ctx: TableContext, plan: ScanPlan, item: FileSlice, path: str) -> FileSlice | None:
    """The slice without a log whose write had not completed in the snapshot of the plan, and was
    given up since; None of another file. Tokens name the write, but for those of Hudi 1.1.1, which
    takes that of the log before: so commits are asked too."""
    log = next((log for log in item.logs if log.path == path), None)
    shown = plan.visible
    if log is None or shown is None or log.instant is None or log.instant in shown:
        return None
    since = comparable_time(log.name.base_instant)
    later = frozenset(time for time in shown.completed if comparable_time(time) >= since)
    if may_name(ctx, later, path):
        return None
    return replace(item, logs=tuple(other for other in item.logs if other is not log))


@relists
def may_name(ctx: TableContext, times: frozenset[str], path: str) -> bool:
    """Whether a commit of these instants names a file, or one of them can be asked no more. Those
    that have left the timeline are in the archive."""
    listed = [instant for instant in load_timeline(ctx).commits if instant.time in times]
    if any(path in commit_metadata(ctx, instant).paths for instant in listed):
        return True
    left = set(times).difference(instant.time for instant in listed)
    for time, metadata in archived_commits(ctx) if left else ():
        if time in times and path in metadata.paths:
            return True
        left.discard(time)
        if not left:
            break
    return bool(left)


def _explained(ctx: TableContext, partition: str, error: HudiError) -> HudiError:
    """The error, which says the table; for a file that is not there, why it is not."""
    if isinstance(error, ObjectNotFoundError):
        return gone(ctx, partition, error.path or "")
    error.base_path = error.base_path or ctx.base_path
    return error


def _rows(ctx: TableContext, plan: ScanPlan, item: FileSlice) -> Iterator[pa.RecordBatch]:
    named = plan.bound is not None and plan.bound.columns and plan.history is None
    if plan.bound is not None and named and item.base is not None and not item.logs:
        yield from _matching(ctx, plan, plan.bound, item.base)
        return
    for batch in _merged(ctx, plan, item) if item.logs else _of_base(ctx, plan, item.base, plan.reads, prune=True):
        kept = batch if plan.bound is None else plan.bound.rows(batch)
        if kept.num_rows:
            yield kept.select(plan.schema.names)


def _matching(ctx: TableContext, plan: ScanPlan, bound: Bound, file: BaseFile) -> Iterator[pa.RecordBatch]:
    """The rows of a base file that the filter keeps, of a file that has the names of today. The
    filter's columns are read first, the others in row groups where it keeps a row, and as far as
    the last of them."""
    named, others = (
        pa.schema([field for field in plan.reads if (field.name in bound.columns) is wanted])
        for wanted in (True, False)
    )
    with ctx.storage.open_read(file.path) as source:
        footer = read_footer(source, path=file.path)
        metadata = footer.metadata
        assert metadata is not None

        def read(schema: pa.Schema, group: int, rows: int) -> Iterator[pa.RecordBatch]:
            for raw in read_batches(
                source,
                schema.names,
                path=file.path,
                batch_rows=rows,
                row_groups=[group],
                metadata=metadata,
                dictionary_columns=None,
            ):
                yield _conformed(raw, schema, file)

        groups = matching_row_groups(bound, footer.schema, metadata, plan.reads)
        for group in groups_ahead(source, metadata, groups, named.names):
            kept = _kept(read(named, group, BATCH_ROWS), bound, named)
            if not kept.num_rows:
                continue
            places = kept.column(_PLACE).to_numpy()
            if not len(others):
                yield from kept.select(plan.schema.names).to_batches(max_chunksize=BATCH_ROWS)
                continue
            few = len(places) * _FEW < metadata.row_group(group).num_rows
            yield from _with_others(kept, places, read(others, group, _FEW_ROWS if few else BATCH_ROWS), plan)


def _kept(batches: Iterator[pa.RecordBatch], bound: Bound, schema: pa.Schema) -> pa.Table:
    """The rows that the filter keeps, with their places."""
    found, start = [], 0
    for batch in batches:
        places = pa.array(np.arange(start, start + len(batch)))
        found.append(bound.rows(batch.append_column(_PLACE, places)))
        start += len(batch)
    return pa.Table.from_batches(found, schema.append(pa.field(_PLACE, pa.int64()))).combine_chunks()


def _with_others(
    kept: pa.Table, places: npt.NDArray[np.int64], others: Iterator[pa.RecordBatch], plan: ScanPlan
) -> Iterator[pa.RecordBatch]:
    start = first = 0
    for batch in others:
        stop = start + len(batch)
        last = int(np.searchsorted(places, stop))
        if last > first:
            whole = last - first == len(batch)
            rows = batch if whole else batch.take(pa.array(places[first:last] - start))
            mine = kept.slice(first, last - first)
            columns = [
                one_chunk(mine.column(name) if name in mine.column_names else rows.column(name))
                for name in plan.schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=plan.schema)
        start, first = stop, last
        if first == len(places):
            break


def _merged(ctx: TableContext, plan: ScanPlan, item: FileSlice) -> Iterator[pa.RecordBatch]:
    """Rows of a slice with logs. Row groups of its base are not pruned: logs may have changed what
    their statistics say."""
    # The codecs of logs are many modules, which a table without logs does not need.
    from hudi_table.table.rows.log_merge import Asked, merged_rows

    assert plan.visible is not None
    # Without a column a table has no rows.
    reads = plan.reads if len(plan.reads) else plan.merging
    schema = pa.schema([*reads, *(field for field in plan.merging if field.name not in reads.names)])
    keys = plan.merge.keys

    def base(wanted: pa.Schema) -> Iterator[pa.Table]:
        found = (pa.Table.from_batches([batch]) for batch in _of_base(ctx, plan, item.base, wanted, prune=False))
        return found if keys is None or RECORD_KEY not in wanted.names else map(keys.put_in, found)

    asked = Asked(reads, partial(_largest, ctx, plan, item.base), base)
    blocks = slice_blocks(ctx.storage, item.logs, plan.visible)
    for table in merged_rows(
        ctx.storage, base(schema), blocks, schema, plan.merge, memory_bytes=plan.merge_bytes, asked=asked
    ):
        yield from table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)


def _largest(ctx: TableContext, plan: ScanPlan, file: BaseFile | None, name: str) -> Any:
    """A value that no value of the column is above, by the statistics of the file; None if they do
    not tell."""
    if file is None or plan.history is not None:
        return None
    with ctx.storage.open_read(file.path) as source:
        metadata = read_footer(source, path=file.path).metadata
    return None if metadata is None else ranges(metadata, {name})[1].get(name)


def _of_base(
    ctx: TableContext, plan: ScanPlan, file: BaseFile | None, schema: pa.Schema, *, prune: bool
) -> Iterator[pa.RecordBatch]:
    """Batches of `schema` of a base file, none without one."""
    if file is None:
        return
    stored = stored_as(plan.history, file.instant, schema.names)
    renamed = any(old != name for name, old in stored.items())
    with ctx.storage.open_read(file.path) as source:
        groups = None
        if prune and plan.bound is not None and not renamed:
            footer = read_footer(source, path=file.path)
            groups = matching_row_groups(plan.bound, footer.schema, footer.metadata, schema)
        names = [name for name in stored.values() if name is not None]
        for raw in _raw(plan, source, file, names, groups):
            yield _conformed(under_todays_names(raw, stored), schema, file)


def _raw(
    plan: ScanPlan, source: Any, file: BaseFile, names: Sequence[str], groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    """The columns of a file in its own types."""
    metadata, given = None, 0
    if plan.by_polars and groups is None and not isinstance(source, Stitched):
        from hudi_table.codec.pages.decoding import decoded

        footer = read_footer(source, path=file.path)
        metadata = footer.metadata
        assert metadata is not None
        have = [name for name in names if name in footer.schema.names]
        for table in decoded(source, have, footer.schema, metadata, plan.merge_bytes // _DECODED_PART):
            yield from table.to_batches(max_chunksize=BATCH_ROWS)
            given += table.num_rows
        if given and given == footer.rows:
            return
    for raw in read_batches(
        source,
        names,
        path=file.path,
        batch_rows=BATCH_ROWS,
        row_groups=groups,
        metadata=metadata,
        dictionary_columns=None,
    ):
        left, given = raw.slice(min(given, raw.num_rows)), given - min(given, raw.num_rows)
        if left.num_rows or not raw.num_rows:
            yield left


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, file: BaseFile) -> pa.RecordBatch:
    try:
        return of_today(batch, schema)
    except UnsupportedTableError as error:
        error.path = file.path
        raise
    except InvalidDataError as error:
        raise CorruptTableError(
            f"{file.path} does not fit the table's schema: {error.message}", path=file.path
        ) from error


@relists
def gone(ctx: TableContext, partition: str, path: str) -> HudiError:
    """The error for a file that was planned and is not there. A second listing tells: the newest
    state needs it still, so that it is lost; or a clean took it; or another state has followed in
    which it is not."""
    timeline = load_timeline(ctx)
    clean = clean_of(ctx, timeline, path)
    if clean is None:
        slices = FileSystemView(ctx, timeline).latest_slices([partition])
        if any(path in _paths(found) for found in slices):
            return CorruptTableError(
                f"{path} is part of the table's newest state and cannot be opened; bring it back from a copy or a version of the store",
                base_path=ctx.base_path,
                path=path,
            )
    by = (
        "was taken back with its write, or deleted by something else,"
        if clean is None
        else f"was cleaned by the clean {clean}"
    )
    return ExpiredError(
        f"{path} {by} while it was read: begin the read anew (of Spark with a new load), as of a later instant if it named one; what takes "
        f"long reads as of a savepoint (hudictl savepoint {ctx.base_path} --create), or of a table that retains more commits "
        "(hoodie.clean.commits.retained)",
        base_path=ctx.base_path,
        instant=clean,
        path=path,
    )


def _paths(item: FileSlice) -> Sequence[str]:
    return [file.path for file in _files(item)]


def _files(item: FileSlice) -> Sequence[BaseFile | LogFile]:
    return [*([item.base] if item.base else []), *item.logs]
