"""Values of Kafka Connect's JSON, by the schema that stands beside them: which Arrow type a field has, and how its values are read.

Facts (Debezium 3.3.1 on PostgreSQL, default modes; samples in `tests/data/debezium`): a decimal is its unscaled number in base64, the greatest byte first, and
its scale is in the schema alone; dates are days, times and timestamps microseconds or milliseconds by the name of their type, with a zone ISO 8601 text; infinite
dates are numbers beyond any year, or the text `infinity`; numbers that are none are text; bytes and bits are base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

DECIMAL_PRECISION_MAX = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ((date.min - _EPOCH.date()).days, (date.max - _EPOCH.date()).days)
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_INFINITE = ("infinity", "-infinity")


class InfiniteError(ValueError):
    """A date without an end, which no column can hold."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An Arrow type, and how a value of JSON that is not null becomes one. `read` raises ValueError, KeyError or TypeError."""

    type: pa.DataType
    read: Callable[[Any], Any]

    def value(self, raw: Any) -> Any:
        """Of any value."""
        return None if raw is None else self.read(raw)


def kind_of(schema: Mapping[str, Any]) -> Kind:
    """The kind of a field. Raises ValueError for one that no column can hold."""
    name = str(schema.get("name") or "")
    if name == "org.apache.kafka.connect.data.Decimal":
        return _decimal(schema)
    named = _NAMED.get(name)
    if named is not None:
        return named
    plain = str(schema.get("type"))
    if plain == "array":
        item = kind_of(schema["items"])
        return Kind(pa.list_(item.type), lambda raw: [item.value(each) for each in raw])
    if plain == "struct":
        return _struct(schema)
    if plain not in _PLAIN:
        raise ValueError(f"a field is of type {plain}, which no column can hold")
    return _PLAIN[plain]


def _struct(schema: Mapping[str, Any]) -> Kind:
    fields = {str(field["field"]): kind_of(field) for field in schema["fields"]}

    def read(raw: Any) -> dict[str, Any]:
        return {name: kind.value(raw[name]) for name, kind in fields.items()}

    return Kind(pa.struct([pa.field(name, kind.type) for name, kind in fields.items()]), read)


def _decimal(schema: Mapping[str, Any]) -> Kind:
    found = schema["parameters"]
    scale, precision = int(found["scale"]), int(found.get("connect.decimal.precision", DECIMAL_PRECISION_MAX))
    if precision > DECIMAL_PRECISION_MAX:
        raise ValueError(f"a decimal has {precision} digits, and a column holds {DECIMAL_PRECISION_MAX}")
    return Kind(pa.decimal128(precision, scale), lambda raw: unscaled(raw, scale))


def unscaled(raw: Any, scale: int) -> Decimal:
    """A decimal of its unscaled number in base64."""
    number = int.from_bytes(_bytes(raw), "big", signed=True)
    # Arithmetic would round to 28 digits.
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _bytes(raw: Any) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"{raw!r} is no base64") from error


def _integer(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError(f"{raw!r} is no whole number")
    return raw


def _float(raw: Any) -> float:
    # Numbers that are none are text: NaN, Infinity, -Infinity.
    return float(raw)


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"{raw!r} is no text")
    return raw


def _boolean(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise ValueError(f"{raw!r} is neither true nor false")
    return raw


def days(raw: Any) -> int:
    """A date in days since 1970."""
    if not _DAYS[0] <= _integer(raw) <= _DAYS[1]:
        raise InfiniteError(f"the date of {raw} days is infinite")
    return int(raw)


def _micros(unit: int) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        micros = _integer(raw) * unit
        if not _MICROS[0] <= micros <= _MICROS[1]:
            raise InfiniteError(f"the timestamp {raw} is infinite")
        return micros

    return read


def instant(raw: Any) -> int:
    """ISO 8601 with a zone as microseconds since 1970."""
    if raw in _INFINITE:
        raise InfiniteError(f"the timestamp {raw} is infinite")
    moment = datetime.fromisoformat(_text(raw))
    if moment.tzinfo is None:
        raise ValueError(f"{raw!r} has no zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _clock(micros: int) -> str:
    """A time of day as text, for Spark has no type of it: 24:00:00 is one, too."""
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _variable(raw: Any) -> str:
    """A decimal of any scale: its text, for no column has a scale of its own for each row."""
    return f"{unscaled(raw['value'], int(raw['scale'])):f}"


_PLAIN: Mapping[str, Kind] = {
    "int8": Kind(pa.int32(), _integer),
    "int16": Kind(pa.int32(), _integer),
    "int32": Kind(pa.int32(), _integer),
    "int64": Kind(pa.int64(), _integer),
    "float": Kind(pa.float32(), _float),
    "double": Kind(pa.float64(), _float),
    "boolean": Kind(pa.bool_(), _boolean),
    "string": Kind(pa.string(), _text),
    "bytes": Kind(pa.binary(), _bytes),
}
_NAMED: Mapping[str, Kind] = {
    "io.debezium.time.Date": Kind(pa.date32(), days),
    "io.debezium.time.Time": Kind(pa.string(), lambda raw: _clock(_integer(raw) * 1000)),
    "io.debezium.time.MicroTime": Kind(pa.string(), lambda raw: _clock(_integer(raw))),
    "io.debezium.time.Timestamp": Kind(pa.timestamp("us"), _micros(1000)),
    "io.debezium.time.MicroTimestamp": Kind(pa.timestamp("us"), _micros(1)),
    "io.debezium.time.ZonedTimestamp": Kind(pa.timestamp("us", "UTC"), instant),
    "io.debezium.data.VariableScaleDecimal": Kind(pa.string(), _variable),
    "org.apache.kafka.connect.data.Date": Kind(pa.date32(), days),
    "org.apache.kafka.connect.data.Time": Kind(pa.string(), lambda raw: _clock(_integer(raw) * 1000)),
    "org.apache.kafka.connect.data.Timestamp": Kind(pa.timestamp("us"), _micros(1000)),
}


def declared(kind: pa.DataType) -> Kind:
    """Of a column whose type is said elsewhere, where messages come without a schema. Raises ValueError for a type that JSON alone does not tell."""
    types = pa.types
    if types.is_decimal(kind):
        return Kind(kind, _written_decimal)
    if types.is_date(kind):
        return Kind(pa.date32(), days)
    if types.is_timestamp(kind) and kind.tz is not None:
        return Kind(kind, instant)
    if types.is_time(kind) or types.is_timestamp(kind):
        raise ValueError(f"is {kind}, whose unit is in the schema of a message alone: let the connector write schemas")
    for plain, reader in ((types.is_integer, _integer), (types.is_floating, _float), (types.is_boolean, _boolean), (types.is_string, _text), (types.is_binary, _bytes)):  # fmt: skip
        if plain(kind):
            return Kind(kind, reader)
    if types.is_list(kind):
        item = declared(kind.value_type)
        return Kind(kind, lambda raw: [item.value(each) for each in raw])
    raise ValueError(f"is {kind}, which is read only with the schema of a message: let the connector write schemas")


def _written_decimal(raw: Any) -> Decimal:
    # Text without a point may be base64 as well, and mean another number.
    if not isinstance(raw, str) or "." not in raw:
        raise ValueError(
            f"{raw!r} is no decimal with a point: its scale is in the schema of a message alone; set decimal.handling.mode to string, or let the connector write schemas"
        )
    return Decimal(raw)
