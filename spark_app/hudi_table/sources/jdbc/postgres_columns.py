"""Columns of PostgreSQL as those of a table: how each is selected, which type it has, and what is
no value of it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError
from hudi_table.sources.jdbc.database import refuse_names
from hudi_table.sources.jdbc.postgres_sql import INTEGERS, TIMES, quoted

_NATIVE = frozenset(
    {
        *INTEGERS, *TIMES, "float4", "float8", "bool", "text", "varchar", "bpchar", "name", "bytea",
    }
)  # fmt: skip
_LISTS = frozenset(f"_{name}" for name in ["int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar"])
_DAY_MIN, _DAY_MAX = -719_162, 2_932_896
_MICROS = 86_400_000_000
DECIMAL_PRECISION_MAX = 38


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: the database's name of its type; `select`: the expression; `type`: of the table."""

    name: str
    kind: str
    select: str
    type: pa.DataType

    def read(self, values: pa.Array, *, infinite_is_null: bool) -> pa.Array:
        """Values in the column's type. Raises InvalidDataError."""
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if self.kind in TIMES:
            return self._bounded(values, infinite_is_null)
        return values if values.type == self.type else self._cast(values)

    def _bounded(self, values: pa.Array, infinite_is_null: bool) -> pa.Array:
        days = pt.is_date(values.type)
        raw = values.cast(pa.int32()).cast(pa.int64()) if days else values.cast(pa.int64())
        unit = 1 if days else _MICROS
        out = pc.or_(pc.less(raw, _DAY_MIN * unit), pc.greater_equal(raw, (_DAY_MAX + 1) * unit))
        if not pc.any(out).as_py():
            return values
        if not infinite_is_null:
            raise InvalidDataError(
                f"column {self.name} holds a {self.kind} that is infinite, or beyond the years 1 to 9999: give jdbc.infinite AsNull, or filter it"
            )
        return pc.if_else(out, pa.scalar(None, values.type), values)

    def _cast(self, values: pa.Array) -> pa.Array:
        try:
            return values.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidDataError(
                f"column {self.name} holds a value that {self.type} does not: {error}; say another type in source.columns, or filter it"
            ) from error


def columns_of(found: pa.Schema, asked: pa.Schema) -> tuple[Column, ...]:
    """One for each field of an answer; types that are `asked` for go before those of the database.
    Raises InvalidSchemaError for what no column can hold, or that nothing says the type of."""
    refuse_names(found.names, asked)
    return tuple(_column(each, asked) for each in found)


def _column(field: pa.Field, asked: pa.Schema) -> Column:
    metadata = {name.decode(): value.decode() for name, value in (field.metadata or {}).items()}
    kind = metadata.get("POSTGRESQL:type")
    if kind is None:
        raise InvalidRequestError(
            "the driver tells no types of the database: type Jdbc needs adbc-driver-postgresql 1.13 or newer"
        )
    wanted = asked.field(field.name).type if field.name in asked.names else None
    name = quoted(field.name)
    if kind == "numeric":
        return Column(
            field.name, kind, name, wanted or _decimal(field.name, int(metadata.get("POSTGRESQL:typmod", -1)))
        )
    if kind in _NATIVE or kind in _LISTS:
        return Column(field.name, kind, name, wanted or field.type)
    # uuid, json, times of a day and whatever else: as the database writes it.
    return Column(field.name, kind, f"{name}::text AS {name}", wanted or pa.string())


def _decimal(name: str, modifier: int) -> pa.DataType:
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    if modifier < 4:
        raise InvalidSchemaError(
            f"column {name} is numeric without precision: say its type in source.columns, such as decimal(38,9), or cast it in jdbc.query"
        )
    if scale > 1000 or precision > DECIMAL_PRECISION_MAX or scale > precision:
        raise InvalidSchemaError(
            f"column {name} is numeric({precision},{scale}), which no decimal holds: cast it in jdbc.query"
        )
    return pa.decimal128(precision, scale)
