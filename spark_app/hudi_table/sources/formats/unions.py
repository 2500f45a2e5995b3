"""The columns of messages that were decoded apart, as if they had been decoded together.

Facts (pyarrow 26): the parser of JSON takes a column of whole numbers and others for doubles, and
one of moments and other text for text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.types as pt


def united(schemas: Iterable[pa.Schema], is_last: Callable[[str], bool]) -> pa.Schema:
    """All columns, each in the type that holds what the parts have. Of two that nothing holds the
    first stands: what has the other contradicts it. `is_last`: which columns come behind those of
    the values."""
    fields: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            before = fields.get(field.name)
            fields[field.name] = field.type if before is None else _both(before, field.type)
    ordered = sorted(fields, key=is_last)
    return pa.schema([(name, fields[name]) for name in ordered])


def _both(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    if first.equals(second) or pt.is_null(second):
        return first
    if pt.is_null(first):
        return second
    if pt.is_struct(first) and pt.is_struct(second):
        found = united([pa.schema(list(first)), pa.schema(list(second))], lambda _: False)
        return pa.struct(list(found))
    if pt.is_list(first) and pt.is_list(second):
        return pa.list_(first.value_field.with_type(_both(first.value_type, second.value_type)))
    if (
        {pt.is_timestamp(first), pt.is_timestamp(second)}
        == {pt.is_string(first), pt.is_string(second)}
        == {True, False}
    ):
        return pa.string()
    try:
        pair = [pa.schema([("", kind)]) for kind in (first, second)]
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return first
