"""Times of nanoseconds as text: Python has no value for them, and a process without pandas no
other."""

from __future__ import annotations

import pyarrow as pa


def shown_type(kind: pa.DataType) -> pa.DataType:
    """The type by which values of a type become values of Python: text in the place of nanoseconds,
    also within."""
    if (pa.types.is_timestamp(kind) or pa.types.is_time64(kind)) and kind.unit == "ns":
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(shown_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(shown_type(kind.key_type), shown_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(shown_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(shown_type(kind.value_type), kind.list_size)
    return kind


def shown_column(column: pa.Array) -> pa.Array:
    """A column whose values Python can hold."""
    kind = shown_type(column.type)
    return column if kind == column.type else column.cast(kind)


def shown_rows(rows: pa.Table) -> pa.Table:
    """Rows whose values Python can hold."""
    schema = pa.schema([field.with_type(shown_type(field.type)) for field in rows.schema])
    return rows if schema == rows.schema else rows.cast(schema)
