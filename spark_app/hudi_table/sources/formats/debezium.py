"""Change events of a PostgreSQL, as Debezium writes them in JSON: each is the newest state of a row, or its end.

Facts (Debezium 3.3.1; samples in `tests/data/debezium`): `op` is r (snapshot), c, u, d, t (truncate) or m (message). `after` is the row; `before` of a delete holds the key and
invented values unless the replica identity is full, so the key alone is taken from it. A change of the key is a delete and a create with one LSN; of one key LSNs grow. An update that
leaves a large value alone has a marker in its place. With schemas a message is `{"schema", "payload"}`.
The columns beside the row's are those of Hudi's own source: `PostgresDebeziumAvroPayload` orders by `_event_lsn`, and takes `_change_operation_type` = d for a delete.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_table.errors import InvalidDataError
from hudi_table.model.bounded import Bounded
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.formats.connect import InfiniteError, Kind, declared, kind_of
from hudi_table.sources.formats.decoder import UndecodableError

OPERATION, LSN, TRANSACTION, ORIGIN = "_change_operation_type", "_event_lsn", "_event_tx_id", "_event_origin_ts_ms"
OWN = pa.schema(
    [
        (OPERATION, pa.string()),
        (LSN, pa.int64()),
        (TRANSACTION, pa.int64()),
        (ORIGIN, pa.int64()),
        (IS_DELETED, pa.bool_()),
    ]
)
SHAPES_MAX = 1000
"""Schemas that a decoder keeps."""
_ROWS = frozenset("rcud")
_MARKERS = (UNAVAILABLE, base64.b64encode(UNAVAILABLE.encode()).decode(), [UNAVAILABLE])
"""Of text, of bytes, and of arrays of text. A table keeps what is stored of text alone."""
_NOT_KEPT = (
    "it leaves the large value of {name} alone, which the table does not keep: that takes text in a CopyOnWrite table of version 6 that this ingest has made; "
    "or give the table at the database REPLICA IDENTITY FULL"
)
Shape = Mapping[str, Kind]


@dataclass(slots=True)
class _Event:
    """One row to come: its values as JSON has them, by name."""

    shape: Shape
    raw: dict[str, Any]
    own: tuple[Any, ...]


class DebeziumDecoder:
    """`key`: columns of the record key. `columns`: types that are asked for, all of them where messages come without schemas. `infinite_is_null`: what becomes of dates without an end. `fills`: the table keeps what a marker
    stands for, so that markers may go on to it."""

    def __init__(
        self, key: Sequence[str], columns: pa.Schema | None, *, infinite_is_null: bool = False, fills: bool = False
    ) -> None:
        self._key = tuple(key)
        self._columns = columns
        self._infinite_is_null = infinite_is_null
        self._fills = fills
        self._shapes: Bounded[str, Shape] = Bounded(SHAPES_MAX)
        self._declared: Shape | None = None

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. The columns of `OWN` come behind those of the rows."""
        events = []
        for place, message in enumerate(messages):
            try:
                events.append(self._event(message))
            except (ValueError, KeyError, TypeError) as error:
                raise UndecodableError(place, self._why(error)) from error
        self._fill(events)
        groups: dict[int, list[int]] = {}
        for place, event in enumerate(events):
            groups.setdefault(id(event.shape), []).append(place)
        found = [self._table(events, places) for places in groups.values()]
        if not found:
            return OWN.empty_table()
        try:
            joined = pa.concat_tables(found, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            last = max(places[0] for places in groups.values())
            raise UndecodableError(last, f"its columns do not fit those before it: {error}") from error
        order = np.argsort(np.concatenate([np.array(places) for places in groups.values()]), kind="stable")
        joined = joined.take(pa.array(order))
        joined = self._as_wanted(joined, known)
        return joined.select([*(name for name in joined.column_names if name not in OWN.names), *OWN.names])

    def _as_wanted(self, rows: pa.Table, known: pa.Schema | None) -> pa.Table:
        """In the types that are asked for, and else in the table's where those hold every value: a database widens its columns as it goes."""
        for number, field in enumerate(rows.schema):
            asked = _type_in(self._columns, field.name)
            wanted = asked or _type_in(known, field.name)
            if wanted is None or wanted == field.type:
                continue
            try:
                rows = rows.set_column(number, field.name, rows.column(number).cast(wanted))
            except pa.ArrowException as error:
                if asked is not None:
                    raise InvalidDataError(
                        f"column {field.name} is {field.type} and not {asked}, as source.columns says: {error}"
                    ) from error
        return rows

    def _event(self, message: bytes) -> _Event:
        raw = parse_json(message.decode())
        if not isinstance(raw, dict):
            raise ValueError("it is no JSON object")
        with_schema = raw.keys() == {"schema", "payload"}
        payload = raw["payload"] if with_schema else raw
        if not isinstance(payload, dict) or not {"op", "source"} <= payload.keys():
            raise ValueError("it is no change event: it has no op and source")
        operation, source = payload["op"], payload["source"]
        if source["connector"] != "postgresql":
            raise ValueError(f"it is of connector {source['connector']}, and postgresql alone is read")
        if operation == "t":
            raise ValueError(
                "the table was truncated, and a stream of rows cannot tell: delete the rows of the table here, and pass over the message"
            )
        if operation not in _ROWS:
            raise ValueError(f"its op is {operation!r}, which is of no row")
        shape = self._shape(raw["schema"]) if with_schema else self._shape_without_schema()
        row = payload["before" if operation == "d" else "after"]
        if row is None:
            raise ValueError("it deletes a row and says not which: give the table a replica identity")
        if operation == "d":
            row = {name: row[name] for name in self._key}
        own = (operation, int(source["lsn"]), source.get("txId"), source.get("ts_ms"), operation == "d")
        return _Event(shape, row, own)

    def _shape(self, schema: Any) -> Shape:
        (after,) = [field for field in schema["fields"] if field["field"] == "after"]
        text = json.dumps(after["fields"])
        found = self._shapes.get(text)
        if found is None:
            found = {str(field["field"]): kind_of(field) for field in after["fields"]}
            taken = [name for name in found if name in OWN.names]
            if taken:
                raise ValueError(f"its table has a column {taken[0]!r}, a name that the ingest uses itself")
            self._shapes[text] = found
        return found

    def _shape_without_schema(self) -> Shape:
        if self._columns is None or not len(self._columns):
            raise ValueError(
                "it has no schema: let the connector write schemas (value.converter.schemas.enable), or say the types in source.columns"
            )
        if self._declared is None:
            self._declared = {field.name: self._declared_kind(field) for field in self._columns}
        return self._declared

    def _declared_kind(self, field: pa.Field) -> Kind:
        try:
            return declared(field.type)
        except ValueError as error:
            raise ValueError(f"source.columns: {field.name} {error}") from error

    def _fill(self, events: Sequence[_Event]) -> None:
        """What a marker stands for is of the change before, if that is here."""
        newest: dict[tuple[Any, ...], _Event] = {}
        for place, event in enumerate(events):
            key = tuple(json.dumps(event.raw.get(name)) for name in self._key)
            before = newest.get(key)
            for name, value in event.raw.items():
                if value not in _MARKERS:
                    continue
                if before is not None and not before.own[-1] and name in before.raw:
                    event.raw[name] = before.raw[name]
                if event.raw[name] in _MARKERS and not (self._fills and event.raw[name] == UNAVAILABLE):
                    raise UndecodableError(place, _NOT_KEPT.format(name=name))
            newest[key] = event

    def _table(self, events: Sequence[_Event], places: Sequence[int]) -> pa.Table:
        """The rows of one shape."""
        shape = events[places[0]].shape
        arrays, fields = [], []
        for name, kind in shape.items():
            values = []
            for place in places:
                try:
                    values.append(self._value(kind, events[place].raw.get(name)))
                except (ValueError, KeyError, TypeError) as error:
                    raise UndecodableError(place, f"{name}: {self._why(error)}") from error
            arrays.append(self._array(values, kind, name, places))
            fields.append(pa.field(name, kind.type))
        for place in places:
            unknown = [name for name in events[place].raw if name not in shape]
            if unknown:
                raise UndecodableError(place, f"it has a field {unknown[0]!r} that source.columns does not name")
        own = zip(*(events[place].own for place in places), strict=True)
        arrays += [pa.array(values, field.type) for values, field in zip(own, OWN, strict=True)]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*fields, *OWN]))

    def _value(self, kind: Kind, raw: Any) -> Any:
        if raw == UNAVAILABLE and pa.types.is_string(kind.type):
            return raw
        try:
            return kind.value(raw)
        except InfiniteError:
            if self._infinite_is_null:
                return None
            raise

    @staticmethod
    def _array(values: list[Any], kind: Kind, name: str, places: Sequence[int]) -> pa.Array:
        try:
            return pa.array(values, kind.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            for place, value in zip(places, values, strict=True):
                try:
                    pa.array([value], kind.type)
                except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                    raise UndecodableError(place, f"{name}: {error}") from error
            raise

    @staticmethod
    def _why(error: Exception) -> str:
        if isinstance(error, KeyError):
            return f"it has no {error.args[0]}"
        said = (
            f"{error}: source.debezium.infinite AsNull makes it null"
            if isinstance(error, InfiniteError)
            else str(error)
        )
        return " ".join(said.split())


def _type_in(schema: pa.Schema | None, name: str) -> pa.DataType | None:
    place = schema.get_field_index(name) if schema is not None else -1
    return schema.field(place).type if schema is not None and place >= 0 else None
