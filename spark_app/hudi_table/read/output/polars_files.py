"""Base files that Polars reads itself: lazy frames over them, in the columns of a plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import polars as pl
import pyarrow as pa

from hudi_table.errors import CorruptTableError
from hudi_table.read.files import gone
from hudi_table.read.output.engine_files import EngineFiles, split
from hudi_table.read.plan import ScanPlan
from hudi_table.table.timeline.context import TableContext

Finish = Callable[[pl.LazyFrame], pl.LazyFrame]


def frames(
    context: TableContext,
    plan: ScanPlan,
    like: pl.Schema,
    finish: Finish,
    stream: Callable[[ScanPlan], Iterator[pl.DataFrame]],
) -> Generator[pl.DataFrame, None, None]:
    """The rows of the plan, a frame at a time: those of files that Polars reads, made less by
    `finish`, then what `stream` gives of the others.

    `like` has the plan's columns. Whatever Polars cannot read from the first is left to `stream`,
    which says why.
    """
    # `finish` decides on every row: what the plan has understood of it chose the files, and may spare reading others.
    files, others = split(context, replace(plan, bound=None))
    left = replace(plan, slices=others.slices)
    if any(_over(some, plan.schema, like).collect_schema() != like for some in files):
        files, left = [], plan
    paths = [path for some in files for path in some.paths]
    if files:
        lazy = finish(pl.concat([_over(some, plan.schema, like) for some in files]))
        is_begun = False
        try:
            for frame in lazy.collect_batches():
                is_begun = True
                yield frame
        except (pl.exceptions.PolarsError, OSError) as error:
            if is_begun:
                raise _explained(context, paths, error) from error
            left = plan
    yield from stream(left)


def _over(files: EngineFiles, schema: pa.Schema, like: pl.Schema) -> pl.LazyFrame:
    columns = []
    for field, stored in zip(schema, files.stored, strict=True):
        kind = like[field.name]
        if stored is None:
            columns.append(pl.lit(None, kind).alias(field.name))
        else:
            same = stored.equals(field.type)
            columns.append(pl.col(field.name) if same else pl.col(field.name).cast(kind))
    return pl.scan_parquet(list(files.paths), glob=False, hive_partitioning=False).select(columns)


def _explained(context: TableContext, paths: list[str], error: Exception) -> Exception:
    """What it means that Polars could not go on: a file that went meanwhile, or damage."""
    base = f"{context.base_path}/"
    for path in paths:
        if not os.path.exists(path):
            name = path.removeprefix(base)
            return gone(context, name.rpartition("/")[0], name)
    return CorruptTableError(f"Polars cannot read base files of the table: {error}", base_path=context.base_path)
