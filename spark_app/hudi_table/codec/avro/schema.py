"""Arrow schemas to the Avro schema text that Hudi writes, and back.

Facts (measured on Hudi 0.15.0): the record is `<table>_record` in namespace `hoodie.<table>`; a
nullable field is `["null", X]` with default null at every level of nesting; a nested record is
named after its field, in the namespace that its parent's full name spells; a decimal is a `fixed`
named `fixed` in the namespace of its field's full name, of the fewest bytes that hold the precision
(5 for 10 digits); meta columns carry an empty `doc`. Characters that Avro refuses in names become
`__` in the table's part of the names.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import list_of, normalise, unsupported_columns
from hudi_table.codec.avro.guard import load_schema, parsed_schema
from hudi_table.codec.logical_types.variants import avro_variant, is_variant
from hudi_table.codec.logical_types.vectors import avro_of, is_vector, vector_in
from hudi_table.errors import CorruptTableError, InvariantError, UnsupportedTableError
from hudi_table.model.names import ALL_META_COLUMNS, META_COLUMNS, OPERATION_COLUMN

__all__ = [
    "arrow_to_avro",
    "avro_text_for",
    "avro_to_arrow",
    "meta_fields",
    "normalise",
    "unsupported_columns",
    "with_meta",
    "with_meta_text",
    "with_operation",
    "with_operation_text",
    "without_meta",
]

_PRIMITIVES: dict[pa.DataType, Any] = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
}
_PLAIN = {avro: arrow for arrow, avro in _PRIMITIVES.items() if isinstance(avro, str)}
_LOGICAL = {
    (avro["type"], avro["logicalType"]): arrow for arrow, avro in _PRIMITIVES.items() if not isinstance(avro, str)
}


def arrow_to_avro(schema: pa.Schema, *, table_name: str) -> str:
    """Avro schema text of a schema of stored types (see `normalise`), compact JSON as Java prints
    it.

    Raises InvariantError for a type that `normalise` would have changed or refused.
    """
    name = _sanitise(table_name)
    space = f"hoodie.{name}"
    record = _record(list(schema), f"{name}_record", space, enclosing=None)
    _name_once(record["fields"])
    for column in record["fields"]:
        if column["name"] in ALL_META_COLUMNS:
            default = {"default": column.pop("default")} if "default" in column else {}
            column |= {"doc": "", **default}
    return json.dumps(record, separators=(",", ":"))


def _name_once(columns: list[dict[str, Any]]) -> None:
    """Of vectors of one type, and of variants, the first column tells it, the others hold its
    name."""
    seen = set()
    for column in columns:
        branches = column["type"] if isinstance(column["type"], list) else [column["type"]]
        for place, branch in enumerate(branches):
            if isinstance(branch, dict) and branch.get("namespace") == "":
                if branch["name"] not in seen:
                    seen.add(branch["name"])
                elif isinstance(column["type"], list):
                    branches[place] = branch["name"]
                else:
                    column["type"] = branch["name"]


def avro_text_for(schema: pa.Schema, *, table_name: str, previous: str | None) -> str:
    """The text of `previous` as far as it already says `schema` (docs, defaults, names and what
    Arrow does not tell survive), else a new one: word for word, or column by column."""
    schema = without_meta(schema)
    if previous is None:
        return arrow_to_avro(schema, table_name=table_name)
    had = without_meta(avro_to_arrow(previous))
    kept = json.loads(previous)
    columns = {column["name"]: column for column in kept["fields"] if column["name"] not in ALL_META_COLUMNS}
    if had.equals(schema):
        return _with_columns(kept, list(columns.values()))
    text = arrow_to_avro(schema, table_name=table_name)
    same = {field.name for field in schema if field.name in columns and had.field(field.name).equals(field)}
    made = json.loads(text)
    mixed = _with_columns(made, [columns[each["name"]] if each["name"] in same else each for each in made["fields"]])
    return mixed if _says(mixed, schema) else text


def _with_columns(record: dict[str, Any], columns: list[dict[str, Any]]) -> str:
    return json.dumps({**record, "fields": columns}, separators=(",", ":"))


def _says(text: str, schema: pa.Schema) -> bool:
    """Whether a text can be read and says this schema: not if two columns tell one name, or one
    holds the name that another column told."""
    try:
        parsed_schema(text)
        return bool(avro_to_arrow(text).equals(schema))
    except (CorruptTableError, UnsupportedTableError, ValueError):
        return False


@functools.lru_cache(maxsize=64)
def avro_to_arrow(text: str) -> pa.Schema:
    """The Arrow schema of an Avro record schema, meta columns included if it has them.

    Raises CorruptTableError if the text is not an Avro record, UnsupportedTableError for a type
    that Arrow does not hold (unions of several types, durations, recursive records).
    """
    try:
        document = load_schema(text)
        parser = _Parser()
        record = parser.type_of(document, "", "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(f"The table's Avro schema cannot be parsed ({error!r}): {text[:200]}") from error
    if not pt.is_struct(record):
        raise CorruptTableError(f"The table's Avro schema is not a record: {text[:200]}")
    return pa.schema(list(record))


def meta_fields() -> list[pa.Field]:
    """The five meta columns as a base file holds them: nullable strings."""
    return [pa.field(name, pa.string()) for name in META_COLUMNS]


def with_meta(schema: pa.Schema) -> pa.Schema:
    """The schema with the five meta columns first, whether or not it had them, and behind them that
    of the operation if it has it."""
    operation = [pa.field(OPERATION_COLUMN, pa.string())] if OPERATION_COLUMN in schema.names else []
    return pa.schema(meta_fields() + operation + list(without_meta(schema)))


def with_operation(schema: pa.Schema) -> pa.Schema:
    """The schema with the column of the operation before the table's own: that of files which hold
    it."""
    return pa.schema([pa.field(OPERATION_COLUMN, pa.string()), *without_meta(schema)])


def with_operation_text(text: str) -> str:
    """The same for an Avro schema text."""
    document = json.loads(text)
    own = [column for column in document["fields"] if column["name"] not in ALL_META_COLUMNS]
    return json.dumps({**document, "fields": [_meta_column(OPERATION_COLUMN), *own]}, separators=(",", ":"))


@functools.lru_cache(maxsize=64)
def with_meta_text(text: str) -> str:
    """The same for an Avro schema text, as the footer of a base file carries it."""
    document = json.loads(text)
    names = [column["name"] for column in document["fields"]]
    own = [column for column in document["fields"] if column["name"] not in ALL_META_COLUMNS]
    meta = [_meta_column(name) for name in (ALL_META_COLUMNS if OPERATION_COLUMN in names else META_COLUMNS)]
    return json.dumps({**document, "fields": meta + own}, separators=(",", ":"))


@functools.lru_cache(maxsize=64)
def text_of_columns(text: str, names: tuple[str, ...]) -> str:
    """The same for a record of some of its columns, in the order of the text."""
    document = json.loads(text)
    wanted = pa.schema([field for field in avro_to_arrow(text) if field.name in names])
    cut = _with_columns(document, [column for column in document["fields"] if column["name"] in names])
    # A column that is left out may have told the name of another one's type.
    return cut if _says(cut, wanted) else arrow_to_avro(wanted, table_name=document["name"])


def _meta_column(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "string"], "doc": "", "default": None}


def without_meta(schema: pa.Schema) -> pa.Schema:
    """The schema without meta columns, that of the operation included, and without metadata."""
    return pa.schema([column for column in schema if column.name not in ALL_META_COLUMNS])


def _sanitise(name: str) -> str:
    first = re.sub(r"^[^A-Za-z_]", "__", name)
    return re.sub(r"[^A-Za-z0-9_]", "__", first)


def _record(fields: list[pa.Field], name: str, space: str, *, enclosing: str | None) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "record", "name": name}
    if space != enclosing:
        record["namespace"] = space
    record["fields"] = [_column(column, f"{space}.{name}", space) for column in fields]
    return record


def _column(column: pa.Field, space: str, enclosing: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": column.name,
        "type": _nullable(
            avro_variant() if is_variant(column) else _avro_type(column.type, column.name, space, enclosing), column
        ),
    }
    if column.nullable:
        body["default"] = None
    return body


def _nullable(avro: Any, column: pa.Field) -> Any:
    return ["null", avro] if column.nullable and avro != "null" else avro


def _avro_type(kind: pa.DataType, name: str, space: str, enclosing: str) -> Any:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if pt.is_decimal128(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{space}.{name}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pt.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{space}.{name}", "size": kind.byte_width}
    if is_vector(kind):
        return avro_of(kind)
    if pt.is_list(kind):
        items = _nullable(_avro_type(kind.value_type, name, space, enclosing), kind.value_field)
        return {"type": "array", "items": items}
    if pt.is_map(kind) and kind.key_type == pa.string():
        values = _nullable(_avro_type(kind.item_type, name, space, enclosing), kind.item_field)
        return {"type": "map", "values": values}
    if pt.is_struct(kind):
        return _record(list(kind), name, space, enclosing=enclosing)
    raise InvariantError(f"Column '{name}' of type {kind} is not of a stored type; normalise the schema first.")


def decimal_bytes(precision: int) -> int:
    """The fewest bytes whose two's complement holds every number of `precision` decimal digits."""
    return int((10**precision - 1).bit_length() // 8 + 1)


@dataclass(slots=True)
class _Parser:
    """Avro types by full name as they are met, so that later references find them."""

    named: dict[str, pa.DataType | None] = field(default_factory=dict)

    def type_of(self, avro: Any, space: str, path: str) -> pa.DataType:
        if isinstance(avro, str):
            return self._reference(avro, space, path)
        if isinstance(avro, list):
            return self._union(avro, space, path)[0]
        kind = avro["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, space, path)
        if kind in ("record", "error"):
            return self._record(avro, space, path)
        if kind in ("fixed", "enum"):
            return self._remember(avro, space, self._fixed(avro, path) if kind == "fixed" else pa.string())
        if kind == "array":
            item, nullable = self._item(avro["items"], space, path)
            return list_of(item, nullable=nullable)
        if kind == "map":
            item, nullable = self._item(avro["values"], space, path)
            return pa.map_(pa.string(), pa.field("value", item, nullable))
        if avro.get("logicalType") == "decimal" and kind == "bytes":
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        return _LOGICAL.get((kind, avro.get("logicalType"))) or self._reference(kind, space, path)

    def _item(self, avro: Any, space: str, path: str) -> tuple[pa.DataType, bool]:
        return self._union(avro, space, path) if isinstance(avro, list) else (self.type_of(avro, space, path), False)

    def _union(self, branches: list[Any], space: str, path: str) -> tuple[pa.DataType, bool]:
        values = [branch for branch in branches if branch != "null"]
        if len(values) > 1:
            raise UnsupportedTableError(f"Column '{path}' is an Avro union of several types, which is not supported.")
        nullable = len(values) < len(branches)
        return (self.type_of(values[0], space, path) if values else pa.null()), nullable

    def _record(self, avro: dict[str, Any], space: str, path: str) -> pa.DataType:
        full, inner = full_name(avro, space)
        self.named[full] = None
        columns = []
        for column in avro["fields"]:
            where = f"{path}.{column['name']}" if path else column["name"]
            kind, nullable = self._item(column["type"], inner, where)
            columns.append(pa.field(column["name"], kind, nullable or pt.is_null(kind)))
        self.named[full] = pa.struct(columns)
        return self.named[full]

    def _fixed(self, avro: dict[str, Any], path: str) -> pa.DataType:
        logical = avro.get("logicalType")
        if logical == "decimal":
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        vector = vector_in(avro)
        if vector is not None and "." not in path:
            return vector
        if logical == "duration":
            raise UnsupportedTableError(f"Column '{path}' is an Avro duration, which is not supported.")
        return pa.binary(avro["size"])

    def _remember(self, avro: dict[str, Any], space: str, kind: pa.DataType) -> pa.DataType:
        self.named[full_name(avro, space)[0]] = kind
        return kind

    def _reference(self, name: str, space: str, path: str) -> pa.DataType:
        if name in _PLAIN:
            return _PLAIN[name]
        full = name if "." in name or not space else f"{space}.{name}"
        found = self.named[full] if full in self.named else self.named[name]
        if found is None:
            raise UnsupportedTableError(f"Column '{path}' is a recursive Avro record, which is not supported.")
        return found


def full_name(avro: dict[str, Any], space: str) -> tuple[str, str]:
    """(full name, namespace for the names inside) of a named type met inside namespace `space`."""
    name = avro["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = avro.get("namespace", space) or ""
    return (f"{inner}.{name}" if inner else name), inner
