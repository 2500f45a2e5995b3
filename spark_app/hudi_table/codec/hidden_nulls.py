"""Nulls of required fields whose struct is null: no value of the rows, and yet Arrow's Parquet
writer (26.0) refuses a column for them.

Whoever makes a null struct makes them so: Avro's decoder, a column that files lack, callers.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Data = TypeVar("Data", pa.Table, pa.RecordBatch)


def without_hidden_nulls(rows: Data) -> Data:
    """Rows of the same values, which the Parquet writer takes. A null of a required field that is
    not hidden stays, and is refused by the writer."""
    for place, field in enumerate(rows.schema):
        if _has_required(field.type):
            rows = rows.set_column(place, field, _shown(rows.column(place)))
    return rows


@functools.cache
def _has_required(kind: pa.DataType) -> bool:
    """Whether a value of the type can hold a struct with a required field."""
    if pt.is_struct(kind):
        return any(not child.nullable or _has_required(child.type) for child in kind)
    if pt.is_map(kind):
        return _has_required(kind.item_type)
    return bool(pt.is_list(kind)) and _has_required(kind.value_type)


def _shown(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_filled(chunk, None) for chunk in column.chunks], type=column.type)
    return _filled(column, None)


def _filled(values: pa.Array, hidden: pa.Array | None) -> pa.Array:
    """The values with every hidden null of a required field filled. `hidden`: where a struct around
    them is null, None for nowhere."""
    kind = values.type
    if pt.is_struct(kind):
        return _struct(values, hidden)
    if not len(values) or not (pt.is_list(kind) or pt.is_map(kind)):
        return values
    starts = values.offsets
    first = starts[0].as_py()
    size, mask = starts[len(values)].as_py() - first, values.is_null() if values.null_count else None
    if pt.is_list(kind):
        items = values.values.slice(first, size)
        filled = _filled(items, None)
        return (
            values if filled is items else pa.ListArray.from_arrays(pc.subtract(starts, first), filled, kind, mask=mask)
        )
    items = values.items.slice(first, size)
    filled = _filled(items, None)
    if filled is items:
        return values
    keys = values.keys.slice(first, size)
    return pa.MapArray.from_arrays(pc.subtract(starts, first), keys, filled, kind, mask=mask)


def _struct(values: pa.StructArray, hidden: pa.Array | None) -> pa.Array:
    """The same of a struct; itself where nothing is filled."""
    fields = list(values.type)
    if values.null_count:
        own = values.is_null()
        hidden = own if hidden is None else pc.or_(own, hidden)
    children, changed = [], False
    for number, field in enumerate(fields):
        child = values.field(number)
        filled = _leaf(child, hidden) if not field.nullable and hidden is not None else child
        filled = _filled(filled, hidden) if _has_required(field.type) else filled
        changed = changed or filled is not child
        children.append(filled)
    if not changed:
        return values
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)


def _leaf(values: pa.Array, hidden: pa.Array) -> pa.Array:
    """Values of a required field, zero or empty where they are hidden."""
    if not values.null_count or pt.is_nested(values.type):
        return values
    return pc.if_else(pc.and_(values.is_null(), hidden), _zero(values.type), values)


@functools.cache
def _zero(kind: pa.DataType) -> pa.Scalar:
    """The value of the type whose bytes are all zero, or of no bytes."""
    zeros = bytes(max(64, kind.byte_width if pt.is_fixed_size_binary(kind) else 0))
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(zeros), pa.py_buffer(b"")][: kind.num_buffers])[0]
