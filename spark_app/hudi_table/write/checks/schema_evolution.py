"""The table's schema against the incoming one: what may change, what may be absent, what is
refused.

A write may add nullable columns (nested fields too) and widen types; a narrower incoming type is
cast up. Nothing is dropped or renamed. Widening is what Hudi's readers promote when they meet an
older base file: int to long and double, float to double.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import is_any_list, list_of
from hudi_table.codec.logical_types.vectors import is_vector
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


def evolve(
    table: pa.Schema,
    incoming: pa.Schema,
    *,
    null_for_missing: bool = False,
    keys: Collection[str] = (),
    orders: Collection[str] = (),
    relaxes: bool = False,
) -> Evolved:
    """The table's schema after a write of `incoming` (both in stored types, without meta columns).

    Raises InvalidSchemaError that lists every difference that is not allowed. `null_for_missing`: a
    nullable column that the data lacks is filled with nulls instead of being refused. `keys`:
    columns whose text stands in record keys or partition paths; they may become wider integers but
    no floating point, which would write the same value otherwise. `relaxes`: what the data lacks or
    may have as null is required no longer, fields of structs too; but for `keys` and `orders`, by
    which rows are ordered.
    """
    faults: list[str] = []
    fields = []
    for field in table:
        position = incoming.get_field_index(field.name)
        relaxed = relaxes and field.name not in keys and field.name not in orders
        if position < 0:
            if not (null_for_missing and (field.nullable or relaxed)):
                faults.append(f"column '{field.name}' ({field.type}) is missing in the data{_missing_hint(field)}")
            fields.append(field.with_nullable(field.nullable or relaxed))
            continue
        data = incoming.field(position)
        kind = _common(field.type, data.type, _Path(field.name, faults, relaxed))
        if field.name in keys and kind != field.type and pt.is_floating(kind):
            faults.append(
                f"column '{field.name}' is part of keys or paths and cannot turn from {field.type} into {kind}"
            )
        fields.append(field.with_type(kind).with_nullable(field.nullable or (relaxed and data.nullable)))
    fields += _added(table, incoming, "", faults)
    if faults:
        raise InvalidSchemaError("the data does not fit the table's schema: " + "; ".join(faults))
    schema = pa.schema(fields)
    return Evolved(schema, not schema.equals(table))


@dataclass(frozen=True, slots=True)
class _Path:
    """A column or what is in it, where faults are told, and whether what is required may be so no
    longer."""

    name: str
    faults: list[str]
    relaxes: bool

    def of(self, name: str) -> _Path:
        """Of a part."""
        return replace(self, name=f"{self.name}.{name}")

    def may_be_null(self, have: pa.Field, data: pa.Field) -> bool:
        """Whether a part may be null from now on."""
        return bool(have.nullable or (self.relaxes and data.nullable))


def _added(have: Iterable[pa.Field], data_fields: Iterable[pa.Field], prefix: str, faults: list[str]) -> list[pa.Field]:
    """The fields that are new, nullable: older rows have no value. Engines that ignore case must
    tell them apart."""
    known = {field.name: field.name for field in have}
    folded = {name.lower(): name for name in known}
    new = [field.with_nullable(True) for field in data_fields if field.name not in known]
    faults += [
        f"column '{prefix}{field.name}' differs from '{folded[field.name.lower()]}' only by case"
        for field in new
        if field.name.lower() in folded
    ]
    return new


def _missing_hint(field: pa.Field) -> str:
    if not field.nullable:
        return " and is required"
    return "; add it, or set hoodie.write.set.null.for.missing.columns=true"


def _common(have: pa.DataType, data_type: pa.DataType, path: _Path) -> pa.DataType:
    """The type that holds stored and incoming values of one column."""
    if have == data_type or pt.is_null(data_type) or (data_type, have) in _WIDER:
        return have
    if (have, data_type) in _WIDER:
        return data_type
    if (
        pt.is_decimal(have)
        and pt.is_decimal(data_type)
        and have.scale == data_type.scale
        and have.precision >= data_type.precision
    ):
        return have
    if pt.is_struct(have) and pt.is_struct(data_type):
        return _common_struct(have, data_type, path)
    if is_any_list(have) and is_any_list(data_type) and not is_vector(have):
        element = _common(have.value_type, data_type.value_type, path.of("element"))
        return list_of(element, nullable=path.may_be_null(have.value_field, data_type.value_field))
    if pt.is_map(have) and pt.is_map(data_type):
        item = have.item_field.with_type(_common(have.item_type, data_type.item_type, path.of("value")))
        return pa.map_(have.key_type, item.with_nullable(path.may_be_null(have.item_field, data_type.item_field)))
    path.faults.append(f"column '{path.name}' is {data_type} in the data and {have} in the table: cast it")
    return have


def _common_struct(have: pa.DataType, data_type: pa.DataType, path: _Path) -> pa.DataType:
    incoming = {field.name: field for field in data_type}
    fields = []
    for field in have:
        other = incoming.get(field.name)
        if other is not None:
            kind = _common(field.type, other.type, path.of(field.name))
            fields.append(field.with_type(kind).with_nullable(path.may_be_null(field, other)))
            continue
        if not path.relaxes:
            path.faults.append(f"column '{path.name}.{field.name}' ({field.type}) is missing in the data")
        fields.append(field.with_nullable(field.nullable or path.relaxes))
    return pa.struct([*fields, *_added(have, data_type, f"{path.name}.", path.faults)])
