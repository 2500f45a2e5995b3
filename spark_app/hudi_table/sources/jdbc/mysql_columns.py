"""Columns of MySQL and MariaDB as those of a table: how each is selected, which type it has, and
what is no value of it.

Facts (connectorx 0.4.6, MariaDB 11.4; tried): integers, floating numbers, texts in utf8mb4 and
bytes come exactly. A decimal with another scale than 10, or of more digits than 28, is an error or
a panic; so is a time of a day below zero or beyond 24 hours, and a date whose day or month is zero.
A decimal's precision and a `bit` are not told. So these are selected as texts or numbers, and
become their types here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.sources.jdbc.database import refuse_names
from hudi_table.sources.jdbc.mysql_sql import TIMES, quoted

DECIMAL_PRECISION_MAX = 38
_INTEGERS = {
    pa.int8(): ("tinyint", pa.int16()),
    pa.uint8(): ("tinyint", pa.int16()),
    pa.int16(): ("smallint", pa.int16()),
    pa.uint16(): ("smallint", pa.int32()),
    pa.int32(): ("int", pa.int32()),
    pa.uint32(): ("int", pa.int64()),
    pa.int64(): ("bigint", pa.int64()),
    pa.uint64(): ("bigint", pa.decimal128(20, 0)),
}
"""What the driver gives: our name of its kind, and the type that holds all its values."""
_SHAPES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "vector",
)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)", re.ASCII)
_BIT = re.compile(r"bit\((\d+)\)", re.ASCII)
_NO_DAY = "^0000|-00"


@dataclass(frozen=True, slots=True)
class MysqlColumn:
    """`kind`: the database's name of its type, `text` and `binary` of all that are; `select`: the
    expression; `type`: of the table."""

    name: str
    kind: str
    select: str
    type: pa.DataType

    def read(self, values: pa.Array, *, infinite_is_null: bool) -> pa.Array:
        """Values in the column's type. Raises InvalidDataError."""
        if self.kind in TIMES:
            values = self._days(values, infinite_is_null)
        if (
            pt.is_boolean(self.type)
            and pt.is_integer(values.type)
            and pc.any(pc.greater(pc.abs(values.cast(pa.int64())), 1)).as_py()
        ):
            raise InvalidDataError(
                f"column {self.name} holds a number that is neither 0 nor 1: boolean does not hold it"
            )
        try:
            if pt.is_timestamp(self.type) and pt.is_string(values.type):
                values = values.cast(pa.timestamp("us"))  # without zone, which is UTC
            return values if values.type == self.type else values.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidDataError(
                f"column {self.name} holds a value that {self.type} does not: {error}; say another type in source.columns, or filter it"
            ) from error

    def _days(self, values: pa.Array, infinite_is_null: bool) -> pa.Array:
        out = pc.match_substring_regex(values, _NO_DAY)
        if not pc.any(out).as_py():
            return values
        if not infinite_is_null:
            raise InvalidDataError(
                f"column {self.name} holds a {self.kind} whose year, month or day is zero: give jdbc.infinite AsNull, or filter it"
            )
        return pc.if_else(out, pa.scalar(None, values.type), values)


def columns_of(found: pa.Schema, declared: Mapping[str, str], asked: pa.Schema) -> tuple[MysqlColumn, ...]:
    """One for each field of an answer. `declared`: types as information_schema writes them, of the
    columns of a table; types that are `asked` for go before all others. Raises InvalidSchemaError
    for what no column can hold, or that nothing says the type of."""
    refuse_names(found.names, asked)
    return tuple(_column(each, declared.get(each.name, ""), asked) for each in found)


def refuse_shapes(declared: Mapping[str, str]) -> None:
    """Raises InvalidSchemaError for types that the driver ends at."""
    for name, said in declared.items():
        if said.partition("(")[0] in _SHAPES:
            raise InvalidSchemaError(
                f"column {name} is {said}, which the driver does not read: leave it out, or take ST_AsText of it, in jdbc.query"
            )


def _column(field: pa.Field, declared: str, asked: pa.Schema) -> MysqlColumn:
    wanted = asked.field(field.name).type if field.name in asked.names else None
    name = quoted(field.name)
    text = f"CAST({name} AS CHAR) AS {name}"
    if field.type in _INTEGERS:
        kind, own = _INTEGERS[field.type]
        return MysqlColumn(field.name, "year" if declared.startswith("year") else kind, name, wanted or own)
    if pt.is_decimal(field.type):
        return MysqlColumn(field.name, "decimal", text, wanted or _decimal(field.name, declared))
    if pt.is_floating(field.type):
        return MysqlColumn(field.name, "float" if pt.is_float32(field.type) else "double", name, wanted or field.type)
    bits = _BIT.fullmatch(declared)
    if bits is not None:
        return MysqlColumn(field.name, "bit", f"CAST({name} AS UNSIGNED) AS {name}", wanted or _bits(int(bits[1])))
    if pt.is_binary(field.type) or pt.is_large_binary(field.type):
        return MysqlColumn(field.name, "binary", name, wanted or pa.binary())
    if pt.is_date(field.type):
        return MysqlColumn(field.name, "date", text, wanted or pa.date32())
    if pt.is_timestamp(field.type):
        zone = "UTC" if declared.startswith("timestamp") else None
        return MysqlColumn(field.name, "timestamp" if zone else "datetime", text, wanted or pa.timestamp("us", zone))
    # Texts, enum, set, json, uuid, times of a day and whatever else: as the database writes it.
    return MysqlColumn(field.name, "time" if pt.is_time(field.type) else "text", text, wanted or pa.string())


def _bits(count: int) -> pa.DataType:
    if count == 1:
        return pa.bool_()
    return pa.int64() if count < 64 else pa.decimal128(20, 0)


def _decimal(name: str, declared: str) -> pa.DataType:
    said = _DECIMAL.match(declared)
    if said is None:
        raise InvalidSchemaError(
            f"column {name} of the query is a decimal, and the driver tells no precision: say its type in source.columns, such as decimal(38,9), or read a view by jdbc.table"
        )
    precision, scale = int(said[1]), int(said[2])
    if precision > DECIMAL_PRECISION_MAX:
        raise InvalidSchemaError(
            f"column {name} is decimal({precision},{scale}), which no decimal holds: say a type in source.columns, or cast it in jdbc.query"
        )
    return pa.decimal128(precision, scale)
