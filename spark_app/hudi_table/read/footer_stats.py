"""Rows, minima and maxima of base files, from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.parquet import read_footer
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import FileSlice

_AT_ONCE = 16
"""Footers are waited for, not worked on."""


def with_footers(ctx: TableContext, slices: Sequence[FileSlice], schema: pa.Schema, files: pa.Table) -> pa.Table:
    """`files`, a row for each slice, with the columns rows, minimum and maximum. Raises
    CorruptTableError and what storage raises."""
    fields = [field for field in schema if not pt.is_nested(field.type)]

    def read(item: FileSlice) -> tuple[int | None, dict[str, Any], dict[str, Any]]:
        if item.base is None:
            return None, {}, {}
        with ctx.storage.open_read(item.base.path) as source:
            footer = read_footer(source, path=item.base.path)
        assert footer.metadata is not None
        return footer.metadata.num_rows, *ranges(footer.metadata, {field.name for field in fields})

    stats = LocalEngine(_AT_ONCE).map(read, list(slices))
    kind = pa.struct([field.with_nullable(True) for field in fields])
    return (
        files.append_column("rows", pa.array([rows for rows, _, _ in stats], pa.int64()))
        .append_column("minimum", pa.array([low for _, low, _ in stats], kind))
        .append_column("maximum", pa.array([high for _, _, high in stats], kind))
    )


def ranges(metadata: Any, names: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Smallest and largest value of each column of which every row group has them; NaN bounds
    nothing."""
    low: dict[str, list[Any]] = {}
    high: dict[str, list[Any]] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position in range(group.num_columns):
            column = group.column(position)
            found = ends(column.statistics) if column.path_in_schema in names else None
            if found is not None:
                low.setdefault(column.path_in_schema, []).append(found[0])
                high.setdefault(column.path_in_schema, []).append(found[1])
    whole = {name for name, values in low.items() if len(values) == metadata.num_row_groups}
    return {name: min(low[name]) for name in whole}, {name: max(high[name]) for name in whole}


def ends(statistics: Any) -> tuple[Any, Any] | None:
    """Smallest and largest value of a column in a row group; None where they are not told, NaN, or
    moments that Python does not have: it knows the years from 1 to 9999."""
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        low, high = statistics.min, statistics.max
    except (OverflowError, ValueError):
        return None
    return (low, high) if low == low and high == high else None
