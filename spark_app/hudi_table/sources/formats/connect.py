"""Fields of Kafka Connect: by their schema which Arrow type a column has, how its values stand in a
message, and how they are read.

Facts (Debezium 3.3.1; samples in `tests/data/debezium`): what a value means is said by the name of
its type, `io.debezium.time.Date` and the like; the scale of a decimal is in the schema alone;
numbers that are none (NaN, Infinity) are text in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.sources.formats.columns import (
    DECIMAL_PRECISION_MAX,
    BadValueError,
    Reader,
    as_is,
    binary,
    clocks,
    dates,
    decimals,
    moments,
    timestamps,
    variable_decimals,
    written_decimals,
)

DECIMAL = "org.apache.kafka.connect.data.Decimal"


@dataclass(frozen=True, slots=True)
class Kind:
    """A column's type, the type that JSON is read in, and how the one becomes the other."""

    type: pa.DataType
    raw: pa.DataType
    read: Reader


def kind_of(schema: Mapping[str, Any]) -> Kind:
    """The kind of a field. Raises ValueError for one that no column can hold."""
    name = str(schema.get("name") or "")
    if name == DECIMAL:
        found = schema["parameters"]
        return decimal_kind(int(found.get("connect.decimal.precision", DECIMAL_PRECISION_MAX)), int(found["scale"]))
    named = NAMED.get(name)
    if named is not None:
        return named
    plain = str(schema.get("type"))
    if plain == "array":
        return list_kind(kind_of(schema["items"]))
    if plain == "struct":
        return struct_kind({str(field["field"]): kind_of(field) for field in schema["fields"]})
    if plain not in _PLAIN:
        raise ValueError(f"a field is of type {plain}, which no column can hold")
    return _PLAIN[plain]


def decimal_kind(precision: int, scale: int) -> Kind:
    """A decimal. Raises ValueError for one of too many digits."""
    if precision > DECIMAL_PRECISION_MAX:
        raise ValueError(f"a decimal has {precision} digits, and a column holds {DECIMAL_PRECISION_MAX}")
    kind = pa.decimal128(precision, scale)
    return Kind(kind, pa.string(), decimals(kind))


def struct_kind(fields: Mapping[str, Kind]) -> Kind:
    """A struct of these fields, each of which may be missing."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        found = dict(zip([field.name for field in raw.type], raw.flatten(), strict=True))
        values = [
            kind.read(found[name], null_infinite) if name in found else pa.nulls(len(raw), kind.type)
            for name, kind in fields.items()
        ]
        return pa.StructArray.from_arrays(values, fields=list(made), mask=raw.is_null())

    made = pa.struct([pa.field(name, kind.type) for name, kind in fields.items()])
    return Kind(made, pa.struct([pa.field(name, kind.raw) for name, kind in fields.items()]), read)


def list_kind(item: Kind, kind: pa.DataType | None = None) -> Kind:
    """A list of such items; `kind`: its type, if it is said elsewhere."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        lengths = raw.value_lengths().fill_null(0).to_numpy()
        ends = np.cumsum(lengths)
        try:
            values = item.read(raw.flatten(), null_infinite)
        except BadValueError as error:
            raise BadValueError(int(np.searchsorted(ends, error.row, side="right")), error.why) from None
        places = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return pa.ListArray.from_arrays(places, values, mask=raw.is_null()).cast(made)

    made = kind if kind is not None else pa.list_(item.type)
    return Kind(made, pa.list_(item.raw), read)


def _plain(kind: pa.DataType, raw: pa.DataType | None = None) -> Kind:
    return Kind(kind, raw if raw is not None else kind, as_is(kind))


_BINARY = Kind(pa.binary(), pa.string(), binary)
_MILLIS, _TIMESTAMP_MILLIS = (Kind(pa.string(), pa.int64(), clocks(1000)), Kind(pa.timestamp("us"), pa.int64(), timestamps(1000)))  # fmt: skip
_DATE = Kind(pa.date32(), pa.int64(), dates)
_PLAIN: Mapping[str, Kind] = {
    "int8": _plain(pa.int32(), pa.int64()),
    "int16": _plain(pa.int32(), pa.int64()),
    "int32": _plain(pa.int32(), pa.int64()),
    "int64": _plain(pa.int64()),
    "float": _plain(pa.float32()),
    "double": _plain(pa.float64()),
    "boolean": _plain(pa.bool_()),
    "string": _plain(pa.string()),
    "bytes": _BINARY,
}
NAMED: Mapping[str, Kind] = {
    "io.debezium.time.Date": _DATE,
    "io.debezium.time.Time": _MILLIS,
    "io.debezium.time.MicroTime": Kind(pa.string(), pa.int64(), clocks(1)),
    "io.debezium.time.Timestamp": _TIMESTAMP_MILLIS,
    "io.debezium.time.MicroTimestamp": Kind(pa.timestamp("us"), pa.int64(), timestamps(1)),
    "io.debezium.time.ZonedTimestamp": Kind(pa.timestamp("us", "UTC"), pa.string(), moments),
    "io.debezium.data.VariableScaleDecimal": Kind(
        pa.string(), pa.struct([("scale", pa.int64()), ("value", pa.string())]), variable_decimals
    ),
    "org.apache.kafka.connect.data.Date": _DATE,
    "org.apache.kafka.connect.data.Time": _MILLIS,
    "org.apache.kafka.connect.data.Timestamp": _TIMESTAMP_MILLIS,
}
"""By the names of types."""


def declared(kind: pa.DataType) -> Kind:
    """Of a column whose type is said elsewhere, where messages come without a schema. Raises
    ValueError for a type that JSON alone does not tell."""
    if pt.is_decimal(kind):
        return Kind(kind, pa.string(), written_decimals(kind))
    if pt.is_date(kind):
        return _DATE
    if pt.is_timestamp(kind) and kind.tz is not None:
        return Kind(kind, pa.string(), lambda raw, null_infinite: moments(raw, null_infinite).cast(kind))
    if pt.is_time(kind) or pt.is_timestamp(kind):
        raise ValueError(f"is {kind}, whose unit is in the schema of a message alone: let the connector write schemas")
    if pt.is_integer(kind):
        return _plain(kind, pa.int64())
    if pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_string(kind):
        return _plain(kind)
    if pt.is_binary(kind):
        return _BINARY
    if pt.is_list(kind):
        return list_kind(declared(kind.value_type), kind)
    raise ValueError(f"is {kind}, which is read only with the schema of a message: let the connector write schemas")
