"""Batches brought to a schema by column name: order, missing columns, widths, layouts, nested
fields.

Used on the way in (what a caller hands over, to the table's schema) and on the way out (what an
older base file holds, to the schema of today). Never changes a value: a cast that would lose
anything is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.arrow_types import is_any_list, list_of
from hudi_table.codec.logical_types.vectors import checked, has_vectors, list_array, vector_array
from hudi_table.errors import InvalidDataError, UnsupportedTableError
from hudi_table.model.counts import counted

_OFFSET_MAX = (1 << 31) - 1
Data = TypeVar("Data", pa.RecordBatch, pa.Table)
Cast: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]
"""Plain values in another type."""


def conform(data: Data, schema: pa.Schema, cast: Cast | None = None) -> Data:
    """The columns of `schema` from `data` (a RecordBatch or a Table; the result is of the same
    kind).

    A nullable column that `data` lacks is filled with nulls, columns that `schema` lacks are
    dropped, other types are cast without loss: a timestamp without zone becomes the same instant in
    UTC, a naive target takes the wall clock of UTC. `cast` is another cast of plain values. Raises
    InvalidDataError that names the column if a value does not fit, if a required column is missing,
    or if it holds nulls; where `cast` raises UnsupportedTableError, that with the column's name.
    """
    if data.schema.equals(schema, check_metadata=False) and not has_vectors(schema):
        return data
    have = {name: position for position, name in enumerate(data.schema.names)}
    columns = []
    for field in schema:
        if field.name in have:
            columns.append(_column(data.column(have[field.name]), field, cast))
        elif field.nullable:
            columns.append(_nulls(data, field.type))
        else:
            raise InvalidDataError(f"Column '{field.name}' is required and the data has no such column.")
    if not columns:
        return data.select([])
    build = pa.Table.from_arrays if isinstance(data, pa.Table) else pa.RecordBatch.from_arrays
    return build(columns, schema=schema)


def cast_array(values: pa.Array, target: pa.DataType, cast: Cast | None = None) -> pa.Array:
    """`values` as `target`: `cast` has the plain ones, by default without loss. Raises
    pa.ArrowInvalid or pa.ArrowNotImplementedError, and what `cast` raises."""
    kind = values.type
    if pt.is_fixed_size_list(target):
        return _vectors(values, target)
    if kind == target:
        # Equality ignores names of list items and map entries, which must match inside one table.
        return values if str(kind) == str(target) else values.cast(target)
    if isinstance(kind, pa.BaseExtensionType):
        return cast_array(values.storage, target, cast)
    if pt.is_run_end_encoded(kind):
        return cast_array(pc.run_end_decode(values), target, cast)
    if pt.is_dictionary(kind):
        return cast_array(values.dictionary, target, cast).take(values.indices)
    if pt.is_struct(kind) and pt.is_struct(target):
        return _struct(values, target, cast)
    if is_any_list(kind) and pt.is_list(target):
        return _list(values, target, cast)
    if pt.is_map(kind) and pt.is_map(target):
        return _map(values, target, cast)
    if pt.is_timestamp(kind) and pt.is_timestamp(target):
        return _timestamp(values, target)
    return (cast or kept)(values, target)


def kept(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Plain values in another type, without loss. Raises as `cast_array`."""
    if not _keeps_values(values.type, target):
        raise pa.ArrowNotImplementedError("no conversion keeps the values")
    return values.cast(target)


def _keeps_values(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's checked cast either keeps every value or fails; it parses text and rounds
    doubles unasked."""
    if pt.is_integer(kind):
        return bool(pt.is_integer(target) or pt.is_floating(target) or pt.is_decimal(target) or pt.is_string(target))
    if pt.is_floating(kind):
        return bool(pt.is_floating(target) and target.bit_width >= kind.bit_width)
    families = (_is_text_or_bytes, pt.is_decimal, pt.is_date, pt.is_time)
    return pt.is_null(kind) or any(family(kind) and family(target) for family in families)


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    text = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    wide = pt.is_large_binary(kind) or pt.is_binary_view(kind)
    return bool(text or wide or pt.is_binary(kind) or pt.is_fixed_size_binary(kind))


def _column(values: Any, field: pa.Field, cast: Cast | None) -> Any:
    try:
        if isinstance(values, pa.ChunkedArray):
            result = pa.chunked_array([cast_array(chunk, field.type, cast) for chunk in values.chunks], type=field.type)
        else:
            result = cast_array(values, field.type, cast)
    except UnsupportedTableError as error:
        raise UnsupportedTableError(f"Column '{field.name}' {error.message}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidDataError(
            f"Column '{field.name}' of type {values.type} cannot be stored as {field.type}: {error}"
        ) from error
    if not field.nullable and result.null_count:
        raise InvalidDataError(f"Column '{field.name}' is required and null in {counted(result.null_count, 'row')}.")
    return result


def _nulls(data: pa.RecordBatch | pa.Table, kind: pa.DataType) -> Any:
    nulls = pa.nulls(data.num_rows, kind)
    return pa.chunked_array([nulls], type=kind) if isinstance(data, pa.Table) else nulls


def _timestamp(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Same instant, a missing zone taken as UTC: Arrow's own cast to naive would do that too, but
    only via UTC."""
    via_utc = values.type.tz not in (None, "UTC") and target.tz is None
    return (values.cast(pa.timestamp(values.type.unit, tz="UTC")) if via_utc else values).cast(target)


def _struct(values: pa.Array, target: pa.DataType, cast: Cast | None) -> pa.Array:
    kind = values.type
    children = []
    for field in target:
        position = kind.get_field_index(field.name)
        if position >= 0:
            child = cast_array(values.field(position), field.type, cast)
        elif field.nullable:
            child = pa.nulls(len(values), field.type)
        else:
            raise pa.ArrowInvalid(f"field '{field.name}' is required and missing")
        children.append(child)
    mask = values.is_null() if values.null_count else None
    _check_nulls(children, list(target), mask)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _check_nulls(children: list[pa.Array], fields: list[pa.Field], mask: pa.Array | None) -> None:
    for child, field in zip(children, fields, strict=True):
        if field.nullable or not child.null_count:
            continue
        stray = child.is_null() if mask is None else pc.and_not(child.is_null(), mask)
        if pc.any(stray).as_py():
            raise pa.ArrowInvalid(f"field '{field.name}' is required and holds nulls")


def _vectors(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Lists, and the bytes that files hold, as vectors."""
    if values.type == target:
        return checked(values if str(values.type) == str(target) else values.cast(target))
    if pt.is_fixed_size_binary(values.type):
        return vector_array(values, target)
    if pt.is_null(values.type):
        return values.cast(target)
    if not is_any_list(values.type):
        raise pa.ArrowNotImplementedError("it holds no lists")
    return list_array(_list(values, list_of(target.value_type, nullable=True), None), target)


def _list(values: pa.Array, target: pa.DataType, cast: Cast | None) -> pa.Array:
    if pt.is_list_view(values.type) or pt.is_large_list_view(values.type):
        return _list(_without_views(values), target, cast)
    if not pt.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    items = cast_array(values.values, target.value_type, cast)
    if not target.value_field.nullable and values.flatten().null_count:
        raise pa.ArrowInvalid("its items are required and some are null")
    return _from_offsets(values, [items], target)


def _without_views(values: pa.Array) -> pa.Array:
    """A list of the items of each view in turn. Arrow's own cast (26.0) takes offsets and sizes of
    views for offsets of lists: it loses values, or reads beyond them."""
    sizes = pc.list_value_length(values).fill_null(0).to_numpy().astype(np.int64)
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > _OFFSET_MAX:
        raise pa.ArrowInvalid(f"{offsets[-1]} items in one batch of rows are too many: give smaller batches")
    starts, items = values.offsets.to_numpy()[: len(values)].astype(np.int64), values.values
    held = sizes > 0
    if ((starts[held] < 0) | (starts[held] + sizes[held] > len(items))).any():
        raise pa.ArrowInvalid("a list reaches beyond the values")
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.flatten(), mask=mask)


def _map(values: pa.Array, target: pa.DataType, cast: Cast | None) -> pa.Array:
    keys = cast_array(values.keys, target.key_type, cast)
    items = cast_array(values.items, target.item_type, cast)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    if not target.item_field.nullable and items.null_count:
        raise pa.ArrowInvalid("its values are required and some are null")
    return _from_offsets(values, [entries], target)


def _from_offsets(values: pa.Array, children: list[pa.Array], target: pa.DataType) -> pa.Array:
    """The lists of `values` over new children: same validity and offsets, so slices stay slices."""
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(values), list(buffers), values.null_count, offset=values.offset, children=children
    )
