"""The table's schema against the incoming one: what may change, what may be absent, what is refused.

A write may add nullable columns (nested fields too) and widen types; a narrower incoming type is cast up. Nothing
is dropped or renamed. Widening is what Hudi's readers promote when they meet an older base file: int to long and
double, float to double.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import is_any_list, list_of
from hudi_table.errors import InvalidSchemaError

_WIDER = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
}


@dataclass(frozen=True, slots=True)
class Evolved:
    """The schema to write with, and whether it differs from the table's."""

    schema: pa.Schema
    changed: bool


def evolve(table: pa.Schema, incoming: pa.Schema, *, null_for_missing: bool = False) -> Evolved:
    """The table's schema after a write of `incoming` (both in stored types, without meta columns).

    Raises InvalidSchemaError that lists every difference that is not allowed. `null_for_missing`: a nullable column
    that the data lacks is filled with nulls instead of being refused.
    """
    faults: list[str] = []
    fields = []
    for field in table:
        position = incoming.get_field_index(field.name)
        if position < 0:
            if not (null_for_missing and field.nullable):
                faults.append(f"column '{field.name}' ({field.type}) is missing in the data{_missing_hint(field)}")
            fields.append(field)
            continue
        fields.append(field.with_type(_common(field.type, incoming.field(position).type, field.name, faults)))
    fields += [field.with_nullable(True) for field in incoming if table.get_field_index(field.name) < 0]
    if faults:
        raise InvalidSchemaError("the data does not fit the table's schema: " + "; ".join(faults))
    schema = pa.schema(fields)
    return Evolved(schema, not schema.equals(table))


def _missing_hint(field: pa.Field) -> str:
    if not field.nullable:
        return " and is required"
    return "; add it, or set hoodie.write.set.null.for.missing.columns=true"


def _common(have: pa.DataType, given: pa.DataType, path: str, faults: list[str]) -> pa.DataType:
    """The type that holds stored and incoming values of one column."""
    if have == given or pt.is_null(given) or (given, have) in _WIDER:
        return have
    if (have, given) in _WIDER:
        return given
    if pt.is_decimal(have) and pt.is_decimal(given) and have.scale == given.scale and have.precision >= given.precision:
        return have
    if pt.is_struct(have) and pt.is_struct(given):
        return _common_struct(have, given, path, faults)
    if is_any_list(have) and is_any_list(given):
        element = _common(have.value_type, given.value_type, f"{path}.element", faults)
        return list_of(element, nullable=have.value_field.nullable)
    if pt.is_map(have) and pt.is_map(given):
        item = have.item_field.with_type(_common(have.item_type, given.item_type, f"{path}.value", faults))
        return pa.map_(have.key_type, item)
    faults.append(f"column '{path}' is {given} in the data and {have} in the table")
    return have


def _common_struct(have: pa.DataType, given: pa.DataType, path: str, faults: list[str]) -> pa.DataType:
    incoming = {field.name: field for field in given}
    fields = []
    for field in have:
        other = incoming.pop(field.name, None)
        if other is None:
            faults.append(f"column '{path}.{field.name}' ({field.type}) is missing in the data")
            fields.append(field)
        else:
            fields.append(field.with_type(_common(field.type, other.type, f"{path}.{field.name}", faults)))
    return pa.struct([*fields, *(field.with_nullable(True) for field in incoming.values())])
