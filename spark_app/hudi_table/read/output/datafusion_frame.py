"""The DataFusion frame over a scan: DataFusion's own Parquet reader for the files that it may read,
our stream for all others.

Facts (DataFusion 55): a reader takes one path, and a URL is no pattern; given a schema it fills the
columns that a file lacks and widens those that are narrower; statistics do not count NaN, its
greatest number, and it prunes by them as if they did, and gives a column of one value without
reading it; it checks no check sums of pages; a file that is not there has no rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.read.output.datafusion_source import HudiFragments, is_handed_down
from hudi_table.read.output.engine_files import split
from hudi_table.read.plan import ScanPlan
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

if TYPE_CHECKING:
    import datafusion

FILES_MAX = 200
"""Each file is a part of DataFusion's plan, of a millisecond; beyond so many, pruning by the scan
is worth more."""


def frame(
    context: TableContext, planned: Replanned[ScanPlan], session: datafusion.SessionContext, limit: int | None
) -> datafusion.DataFrame:
    """The rows of the plan, at most `limit`. Where files are handed over the plan is bound to them:
    what goes before they are read is an error."""
    plan = planned.plan
    few = limit is None and len(plan.slices) <= FILES_MAX
    floats = {field.name for field in plan.schema if pt.is_floating(field.type)}
    files, left = split(context, plan, partial(_has_one_value, floats)) if few else ([], plan)
    paths = [path for some in files for path in some.paths]
    # It refuses paths with control characters.
    if not all(map(str.isprintable, paths)):
        paths = []
    parts = [
        hidden(session.read_parquet(Path(path).as_uri(), schema=plan.schema), plan.schema, pt.is_floating)
        for path in paths
    ]
    if parts and planned.bind(plan):
        source = HudiFragments(context, Replanned.of(context, left), paths)
    else:
        parts, source = [], HudiFragments(context, planned)
    parts.append(hidden(session.read_table(source), plan.schema, lambda kind: not is_handed_down(kind)))
    found = reduce(lambda one, other: one.union(other), parts)
    return found if limit is None else found.limit(limit)


def _has_one_value(names: set[str], metadata: Any) -> bool:
    """Whether the statistics know one value alone of one of these columns, beside which NaN may
    stand. Row groups that tell none do not count, and of NaN itself nothing follows."""
    told: dict[str, set[Any]] = {}
    for number in range(metadata.num_row_groups if names else 0):
        group = metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            found = column.statistics if column.path_in_schema in names else None
            if found is not None and found.has_min_max:
                told.setdefault(column.path_in_schema, set()).update((found.min, found.max))
    return any(len(values) == 1 or any(map(_is_nan, values)) for values in told.values())


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def hidden(
    part: datafusion.DataFrame, schema: pa.Schema, is_hidden: Callable[[pa.DataType], bool]
) -> datafusion.DataFrame:
    """The columns, of which some are the same only to who evaluates them: no condition on these
    prunes, or is handed down."""
    if not any(is_hidden(field.type) for field in schema):
        return part
    from datafusion import functions

    columns = [part.column(field.name) for field in schema]
    return part.select(
        *[
            functions.when(column.is_not_null(), column).end().alias(field.name) if is_hidden(field.type) else column
            for column, field in zip(columns, schema, strict=True)
        ]
    )
