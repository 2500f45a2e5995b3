"""The columns of messages that were decoded apart, as if they had been decoded together.

Facts (pyarrow 26): the parser of JSON takes a column of whole numbers and others for doubles, and
one of moments and other text for text. What joins tables takes decimals and floating point numbers
for doubles, which hold fewer digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.types as pt


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all, in types that hold every value. Raises pa.ArrowInvalid and
    pa.ArrowTypeError where a column has none."""
    check_exact([table.schema for table in tables])
    return pa.concat_tables(tables, promote_options="permissive")


def check_exact(schemas: Iterable[pa.Schema]) -> None:
    """Raises pa.ArrowTypeError for a column that one schema has as a decimal and another one as a
    floating point number."""
    seen: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            before = seen.setdefault(field.name, field.type)
            if _loses(before, field.type):
                raise pa.ArrowTypeError(
                    f"column {field.name} is {before} in one part and {field.type} in another, and no type holds the digits of both"
                )
            seen[field.name] = _both(before, field.type)


def _loses(first: pa.DataType, second: pa.DataType) -> bool:
    if pt.is_struct(first) and pt.is_struct(second):
        names = [field.name for field in second if first.get_field_index(field.name) >= 0]
        return any(_loses(first.field(name).type, second.field(name).type) for name in names)
    if pt.is_list(first) and pt.is_list(second):
        return _loses(first.value_type, second.value_type)
    kinds = first, second
    return any(map(pt.is_decimal, kinds)) and any(map(pt.is_floating, kinds))


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
    if _loses(first, second):
        return first
    try:
        pair = [pa.schema([("", kind)]) for kind in (first, second)]
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return first
