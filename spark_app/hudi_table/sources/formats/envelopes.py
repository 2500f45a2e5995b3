"""Change events in JSON, taken apart: those of one schema together, parsed into columns.

With schemas a message is `{"schema", "payload"}`, and its schema is nine tenths of it. Messages of
one table begin with the same bytes up to their payload, so a schema is parsed once, and Arrow
compares and cuts the others. What stands in `before` and `after` is read in the types that the
schema says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.model.bounded import Bounded
from hudi_table.model.json_text import parse_json
from hudi_table.sources.formats.columns import cut
from hudi_table.sources.formats.connect import Kind, declared, kind_of
from hudi_table.sources.formats.decoder import UndecodableError, first_bad
from hudi_table.sources.formats.dialects import Dialect
from hudi_table.sources.formats.json import joined, parsed, said

SHAPES_MAX = 1000
"""Schemas that a decoder keeps."""
NO_EVENT = "it is no change event: it has no op and source"
_FRAMED = r'^\s*\{\s*"(?:schema|payload)"\s*:'
_SCHEMA = re.compile(r'\s*\{\s*"schema"\s*:\s*')
_PAYLOAD = re.compile(r'\s*,\s*"payload"\s*:\s*')
_NO_SCHEMA = "it has no schema: let the connector write schemas (value.converter.schemas.enable), or say the types in source.columns"
_NUMBERS = r"(NaN|-?Infinity)"
Shape = Mapping[str, Kind]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Events of one shape: the place of each among the messages, and structs of `op`, `source`,
    `before` and `after`."""

    places: Places
    shape: Shape
    events: pa.StructArray


class Envelopes(Protocol):
    """One format of events."""

    def groups(self, messages: Sequence[bytes]) -> list[Group]:
        """All messages, by their shapes. Raises UndecodableError."""
        ...


class JsonEnvelopes:
    """`columns`: the types of a row where messages come without schemas. No column may have a name
    of `dialect`'s own."""

    def __init__(self, columns: pa.Schema | None, dialect: Dialect) -> None:
        self._columns = columns
        self._dialect = dialect
        self._shapes: Bounded[bytes, Shape] = Bounded(SHAPES_MAX)
        self._declared: Shape | None = None

    def groups(self, messages: Sequence[bytes]) -> list[Group]:
        """See `Envelopes`."""
        found = []
        for places, shape, payloads in self._by_shape(messages):
            found.append(Group(places, shape, self._events(places, shape, payloads)))
        return found

    def _by_shape(self, messages: Sequence[bytes]) -> list[tuple[Places, Shape, pa.Array]]:
        column = _column(messages)
        framed = _bools(pc.match_substring_regex(column, _FRAMED))
        bare = np.flatnonzero(~framed)
        found = []
        if len(bare):
            shape = self._shape_without_schema(messages[int(bare[0])], int(bare[0]))
            found.append((bare, shape, column if len(bare) == len(column) else _cut(column, bare, 0, 0)))
        todo = framed & _bools(pc.ends_with(column, b"}"))
        for first in np.flatnonzero(framed).tolist():
            if not framed[first]:
                continue
            try:
                head, shape = self._head(messages[first])
                if head is not None and todo[first]:
                    rows = np.flatnonzero(todo & _bools(pc.starts_with(column, head)))
                    payloads = _cut(column, rows, len(head), 1)
                else:
                    # Another order or blanks at its end: nothing that a converter writes.
                    rows = np.array([first])
                    payloads = pa.array([_payload(messages[first])], pa.large_binary())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UndecodableError(first, _words(error)) from error
            framed[rows] = todo[rows] = False
            found.append((rows, shape, payloads))
        return found

    def _head(self, message: bytes) -> tuple[bytes | None, Shape]:
        """What the message begins with up to its payload, None where something else stands there,
        and the shape that its schema has."""
        for head in self._shapes:
            shape = self._shapes.get(head)
            if shape is not None and message.startswith(head):
                return head, shape
        text = message.decode()
        begin = _SCHEMA.match(text)
        if begin is None:
            return None, self._shape(_framed(message)["schema"])
        try:
            schema, end = json.JSONDecoder().raw_decode(text, begin.end())
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
        behind = _PAYLOAD.match(text, end)
        if behind is None:
            return None, self._shape(_framed(message)["schema"])
        head = text[: behind.end()].encode()
        shape = self._shapes[head] = self._shape(schema)
        return head, shape

    def _shape(self, schema: Any) -> Shape:
        (after,) = [field for field in schema["fields"] if field["field"] == "after"]
        found = {str(field["field"]): kind_of(field) for field in after["fields"]}
        check_names(found, self._dialect)
        return found

    def _shape_without_schema(self, message: bytes, place: int) -> Shape:
        if self._declared is None:
            try:
                if self._columns is None or not len(self._columns):
                    raise ValueError(_why_none(message) or _NO_SCHEMA)
                self._declared = {field.name: _declared_kind(field) for field in self._columns}
            except ValueError as error:
                raise UndecodableError(place, str(error)) from error
        return self._declared

    def _events(self, places: Places, shape: Shape, payloads: pa.Array) -> pa.StructArray:
        wanted = _wanted(shape, self._dialect)

        def fails(some: Any) -> str:
            try:
                parsed(joined(some), len(some), wanted)
            except (pa.ArrowInvalid, ValueError) as error:
                return said(error)
            return ""

        for form in (payloads, None):
            # The second form is made only where the first one fails.
            payloads = form if form is not None else _with_bare_numbers(payloads, shape)
            try:
                events = parsed(joined(payloads), len(payloads), wanted)
            except (pa.ArrowInvalid, ValueError):
                continue
            _check_known(events, shape, places)
            return events
        place, why = first_bad(payloads, fails)
        message = payloads[place].as_py()
        raise UndecodableError(int(places[place]), _why_none(message) or _misfit(message, shape) or why)


def _bools(mask: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found


def _column(messages: Sequence[bytes]) -> pa.Array:
    bounds = np.zeros(len(messages) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)), out=bounds[1:])
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(messages))]
    return pa.Array.from_buffers(pa.large_binary(), len(messages), buffers)


def _cut(column: pa.Array, rows: Places, before: int, behind: int) -> pa.Array:
    """These rows of a column without so many bytes before and behind."""
    ends = np.frombuffer(column.buffers()[1], np.int64)
    return cut(column.buffers()[2], ends[rows] + before, ends[rows + 1] - behind)


def check_names(shape: Shape, dialect: Dialect) -> None:
    """Raise ValueError for a column of a name that the ingest uses itself."""
    taken = [name for name in shape if name in dialect.own.names]
    if taken:
        raise ValueError(f"its table has a column {taken[0]!r}, a name that the ingest uses itself")


def _wanted(shape: Shape, dialect: Dialect) -> pa.Schema:
    row = pa.struct([pa.field(name, kind.raw) for name, kind in shape.items()])
    source = pa.struct([("connector", pa.string()), *dialect.source.items()])
    return pa.schema([("op", pa.string()), ("source", source), ("before", row), ("after", row)])


def _check_known(events: pa.StructArray, shape: Shape, places: Places) -> None:
    after = events.field("after")
    for field in after.type:
        if field.name not in shape:
            row = after.field(field.name).is_valid().index(pa.scalar(True)).as_py()
            if row >= 0:
                raise UndecodableError(
                    int(places[row]), f"it has a field {field.name!r} that source.columns does not name"
                )


def _with_bare_numbers(payloads: pa.Array, shape: Shape) -> pa.Array:
    """Numbers that are none, which are text there, as Arrow's parser reads them: bare."""
    mask = pc.match_substring_regex(payloads, f'"{_NUMBERS}"')
    if not pc.any(mask).as_py():
        return payloads
    return pc.replace_with_mask(payloads, mask, _bare(payloads.filter(mask), shape))


def _bare(payloads: pa.Array, shape: Shape) -> pa.Array:
    """A quote within text is escaped, so that only a field can be found."""
    for name, kind in shape.items():
        named = re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*"
        if pt.is_floating(kind.raw):
            payloads = pc.replace_substring_regex(payloads, f'({named})"{_NUMBERS}"', r"\1\2")
        elif pt.is_list(kind.raw) and pt.is_floating(kind.raw.value_type):
            pattern = f'({named}\\[(?:[^\\]"]*,)?\\s*)"{_NUMBERS}"'
            # Each round takes the first of every list.
            while pc.any(pc.match_substring_regex(payloads, pattern)).as_py():
                payloads = pc.replace_substring_regex(payloads, pattern, r"\1\2")
    return payloads


def _framed(message: bytes) -> dict[str, Any]:
    found = parse_json(message.decode())
    if found.keys() != {"schema", "payload"}:
        raise ValueError(NO_EVENT)
    return dict(found)


def _payload(message: bytes) -> bytes:
    return json.dumps(_framed(message)["payload"], ensure_ascii=False).encode()


def _declared_kind(field: pa.Field) -> Kind:
    try:
        return declared(field.type)
    except ValueError as error:
        raise ValueError(f"source.columns: {field.name} {error}") from error


def _why_none(message: bytes) -> str:
    """Why it is no event, "" if it may be one."""
    try:
        raw = parse_json(message.decode())
    except ValueError as error:
        return _words(error)
    if not isinstance(raw, dict):
        return "it is no JSON object"
    return "" if {"op", "source"} <= raw.keys() else NO_EVENT


def _words(error: Exception) -> str:
    return f"it has no {error.args[0]}" if isinstance(error, KeyError) else " ".join(str(error).split())


_NAMES = (
    (pt.is_integer, int, "whole number"), (pt.is_floating, (int, float), "number"), (pt.is_boolean, bool, "truth value"),
    (pt.is_string, str, "text"), (pt.is_list, list, "list"), (pt.is_struct, dict, "object"),
)  # fmt: skip


def _misfit(message: bytes, shape: Shape) -> str:
    """The first value of a row that is not of the type that is read, in words; "" if none is."""
    row = parse_json(message).get("after")
    for name, kind in shape.items() if isinstance(row, dict) else ():
        value = row.get(name)
        for is_kind, python, word in _NAMES:
            wrong = not isinstance(value, python) or (isinstance(value, bool) and python is not bool)
            if value is not None and is_kind(kind.raw) and wrong:
                return f"{name}: {value!r} is no {word}"
    return ""
