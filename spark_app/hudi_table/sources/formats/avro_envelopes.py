"""Change events in Avro, whose schemas a registry has: those of one schema together, decoded into
columns.

Facts (Kafka Connect's converter to Avro): what a type means to Connect stands beside it,
`connect.name` and `connect.parameters`; a decimal without a precision of its own is said to have 64
digits. So the names are what is read, Avro's own logical types where there are none, and records
are decoded as their bare numbers, texts and bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError
from hudi_table.model.bounded import Bounded
from hudi_table.model.json_text import parse_json
from hudi_table.sources.formats.avro import FRAME, SCHEMAS_MAX, Reader, ids_of, read_records, reader_of
from hudi_table.sources.formats.columns import fields_of
from hudi_table.sources.formats.connect import DECIMAL, kind_of
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.dialects import Dialect
from hudi_table.sources.formats.envelopes import NO_EVENT, Group, Shape, check_names

_PLAIN = {
    "int": "int32", "long": "int64", "float": "float", "double": "double", "boolean": "boolean", "string": "string", "bytes": "bytes", "fixed": "bytes",
    "enum": "string", "array": "array", "record": "struct",
}  # fmt: skip
_LOGICAL = {
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
}


class AvroEnvelopes:
    """`schema_of` brings the text of an id, and raises InvalidDataError where there is none. No
    column may have a name of `dialect`'s own."""

    def __init__(self, schema_of: Callable[[int], str], dialect: Dialect) -> None:
        self._schema_of = schema_of
        self._dialect = dialect
        self._known: Bounded[int, tuple[Reader, Shape]] = Bounded(SCHEMAS_MAX)

    def groups(self, messages: Sequence[bytes]) -> list[Group]:
        """See `Envelopes`."""
        ids = ids_of(messages)
        found = []
        for each in np.unique(ids).tolist():
            places = np.flatnonzero(ids == each)
            some = messages if len(places) == len(messages) else [messages[place] for place in places.tolist()]
            try:
                reader, shape = self._of(each)
                rows = read_records(reader, some, FRAME)
                found.append(Group(places, shape, self._events(rows)))
            except UndecodableError as error:
                raise UndecodableError(int(places[error.place]), error.why) from None
            except InvalidDataError as error:
                raise UndecodableError(int(places[0]), error.message) from error
        return found

    def _of(self, number: int) -> tuple[Reader, Shape]:
        known = self._known.get(number)
        if known is None:
            name = f"schema {number} of the registry"
            try:
                schema = parse_json(self._schema_of(number))
                shape = _shape(schema)
                check_names(shape, self._dialect)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InvalidDataError(f"{name} is none of a change event that can be stored: {error}") from error
            known = self._known[number] = reader_of(json.dumps(_bare(schema)), name), shape
        return known

    def _events(self, rows: pa.Table) -> pa.StructArray:
        """The parts of events, in the types of those in JSON."""
        if not {"op", "source", "before", "after"} <= set(rows.column_names):
            raise UndecodableError(0, NO_EVENT)
        columns = {name: rows.column(name).combine_chunks() for name in ("op", "source", "before", "after")}
        source = columns["source"]
        if not all(pt.is_struct(columns[name].type) for name in ("source", "before", "after")):
            raise UndecodableError(0, NO_EVENT)
        held = fields_of(source)
        parts = [
            held[name].cast(kind) if name in held else pa.nulls(len(source), kind)
            for name, kind in [("connector", pa.string()), *self._dialect.source.items()]
        ]
        columns["source"] = pa.StructArray.from_arrays(
            parts, ["connector", *self._dialect.source], mask=source.is_null()
        )
        return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _shape(schema: Any) -> Shape:
    """The kinds of the columns in `after`."""
    named: dict[str, Any] = {}
    described = _connect(schema, named, str(schema.get("namespace", "")))
    after = [field for field in described["fields"] if field["field"] == "after"]
    if not after:
        raise ValueError(NO_EVENT)
    return {field["field"]: kind_of(field) for field in after[0]["fields"]}


def _connect(kind: Any, named: dict[str, Any], space: str) -> dict[str, Any]:
    """An Avro schema as Connect's converter to JSON says it."""
    if isinstance(kind, list):
        values = [each for each in kind if each != "null"]
        if len(values) != 1:
            raise ValueError(f"a field is a union of {len(values)} types, which no column can hold")
        return _connect(values[0], named, space)
    if isinstance(kind, str):
        known = named.get(f"{space}.{kind}") or named.get(kind)
        return known if known is not None else {"type": _PLAIN.get(kind, kind)}
    plain = kind["type"]
    if isinstance(plain, (dict, list)):
        return _connect(plain, named, space)
    found: dict[str, Any] = {"type": _PLAIN.get(plain, plain)}
    if "name" in kind:
        space = str(kind.get("namespace", space))
        named[f"{space}.{kind['name']}"] = named[kind["name"]] = found
    name, logical = kind.get("connect.name"), kind.get("logicalType")
    found["parameters"] = dict(kind.get("connect.parameters") or {})
    if name is None and logical == "decimal":
        name = DECIMAL
        found["parameters"] = {"scale": kind.get("scale", 0), "connect.decimal.precision": kind["precision"]}
    found["name"] = name if name is not None else _LOGICAL.get(str(logical))
    if plain == "array":
        found["items"] = _connect(kind["items"], named, space)
    if plain == "record":
        found["fields"] = [{"field": each["name"], **_connect(each["type"], named, space)} for each in kind["fields"]]
    return found


def _bare(kind: Any) -> Any:
    """The schema without logical types, and without what only Connect reads."""
    if isinstance(kind, list):
        return [_bare(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    found = {name: value for name, value in kind.items() if name != "logicalType" and not name.startswith("connect.")}
    for name in ("type", "items", "values", "fields"):
        if name in found:
            found[name] = _bare(found[name])
    return found
