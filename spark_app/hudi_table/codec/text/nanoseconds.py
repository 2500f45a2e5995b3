"""Times as text where Python has no value for them: of nanoseconds, for which a process without
pandas has no other, and beyond the years 1 to 9999."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def shown_type(kind: pa.DataType, *, of_any_year: bool = False) -> pa.DataType:
    """The type by which values of a type become values of Python: text in the place of nanoseconds,
    also within, and of all dates and timestamps if they are `of_any_year`."""
    if (pa.types.is_timestamp(kind) or pa.types.is_time64(kind)) and kind.unit == "ns":
        return pa.string()
    if of_any_year and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(shown_type(field.type, of_any_year=of_any_year)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(*(shown_type(one, of_any_year=of_any_year) for one in (kind.key_type, kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(shown_type(kind.value_type, of_any_year=of_any_year))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(shown_type(kind.value_type, of_any_year=of_any_year), kind.list_size)
    return kind


def shown_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column in Python; of its dates and timestamps the text if one of them has a
    year that Python lacks."""
    try:
        return _values(column, shown_type(column.type))
    except (OverflowError, ValueError):
        return _values(column, shown_type(column.type, of_any_year=True))


def _values(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    values: list[Any] = (column if kind == column.type else column.cast(kind)).to_pylist(maps_as_pydicts="lossy")
    return values


def shown_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows in Python, as `shown_values` has their values."""
    columns = [shown_values(column) for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
