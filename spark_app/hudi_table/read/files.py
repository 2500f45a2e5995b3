"""Base files to batches of the planned columns: row groups pruned, old files brought to today's schema, rows filtered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import CorruptTableError, HudiError, InvalidDataError, ObjectNotFoundError, UnavailableError
from hudi_table.read.plan import ScanPlan
from hudi_table.read.prefetch import in_order
from hudi_table.read.pruning import matching_row_groups
from hudi_table.table.context import TableContext
from hudi_table.table.timeline import load_timeline
from hudi_table.table.view import BaseFile, FileSystemView

BATCH_ROWS = 64 * 1024
FILES_AHEAD = 4
"""Files decoded at once; with `BATCHES_AHEAD` the bound of what a stream holds: 4 x 3 batches beside Parquet's own buffers."""
BATCHES_AHEAD = 2
FOOTERS_AHEAD = 16


def stream(ctx: TableContext, plan: ScanPlan, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """Batches of `plan.schema`, file after file; at most `limit` rows."""
    if limit == 0:
        return
    sources = [partial(_batches, ctx, plan, file) for file in plan.files]
    ahead = FILES_AHEAD if limit is None else 1
    left = limit
    batches = in_order(sources, ahead=ahead, depth=BATCHES_AHEAD)
    try:
        for batch in batches:
            if left is not None and batch.num_rows >= left:
                yield batch.slice(0, left)
                return
            left = None if left is None else left - batch.num_rows
            yield batch
    finally:
        batches.close()


def count_rows(ctx: TableContext, plan: ScanPlan) -> int:
    """Rows of the planned files: from their footers, or by reading the filter's columns if there is a filter."""
    if plan.bound is None:
        sources = [partial(_footer_rows, ctx, file) for file in plan.files]
        return sum(in_order(sources, ahead=FOOTERS_AHEAD, depth=1))
    return sum(batch.num_rows for batch in stream(ctx, plan))


def _footer_rows(ctx: TableContext, file: BaseFile) -> Iterator[int]:
    with _opened(ctx, file) as source:
        yield read_footer(source, path=file.path).rows


def _batches(ctx: TableContext, plan: ScanPlan, file: BaseFile) -> Iterator[pa.RecordBatch]:
    renamed = {} if plan.history is None else plan.history.stored_names(file.instant, plan.instant)
    stored = {name: renamed.get(name, name) for name in plan.reads.names}
    with _opened(ctx, file) as source:
        groups = None
        if plan.bound is not None and not renamed:
            footer = read_footer(source, path=file.path)
            groups = matching_row_groups(plan.bound, footer.schema, footer.metadata, plan.reads)
        names = [name for name in stored.values() if name is not None]
        for raw in read_batches(source, names, path=file.path, batch_rows=BATCH_ROWS, row_groups=groups):
            batch = _conformed(_today(raw, stored) if renamed else raw, plan.reads, file)
            if plan.bound is not None:
                batch = batch.filter(plan.bound.expression)
            if batch.num_rows:
                yield batch.select(plan.schema.names)


def _today(batch: pa.RecordBatch, stored: Mapping[str, str | None]) -> pa.RecordBatch:
    """The columns of an older file under the names of today."""
    names = {old: name for name, old in stored.items() if old is not None}
    return batch.rename_columns([names[name] for name in batch.schema.names])


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, file: BaseFile) -> pa.RecordBatch:
    try:
        return conform(batch, schema)
    except InvalidDataError as error:
        raise CorruptTableError(
            f"{file.path} does not fit the table's schema: {error.message}", path=file.path
        ) from error


@contextmanager
def _opened(ctx: TableContext, file: BaseFile) -> Iterator[Any]:
    """The open file. Errors say which table; a file that has gone is told from one that never was."""
    try:
        with ctx.storage.open_read(file.path) as source:
            yield source
    except ObjectNotFoundError as error:
        raise _gone(ctx, file) from error
    except HudiError as error:
        error.base_path = error.base_path or ctx.base_path
        raise


def _gone(ctx: TableContext, file: BaseFile) -> HudiError:
    slices = FileSystemView(ctx, load_timeline(ctx)).latest_slices([file.partition])
    if any(s.base is not None and s.base.path == file.path for s in slices):
        return CorruptTableError(
            f"base file {file.path} is listed and cannot be opened", base_path=ctx.base_path, path=file.path
        )
    return UnavailableError(
        f"base file {file.path} was cleaned while it was read: run the scan again, or retain more commits",
        base_path=ctx.base_path,
        path=file.path,
    )
