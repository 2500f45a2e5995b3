"""Messages as columns: which Arrow type a message has, and how the fields of many become arrays.

A field that is not set is null where it has presence, else it holds its default. An enum is the
name of its value, the number's text where it has none. `Timestamp` is a moment, `Duration`
microseconds, a wrapper what it wraps, `Struct`, `Value` and `ListValue` are JSON text, and a
message without fields tells whether it is there. A map has keys of text; of another map each entry
is a struct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.sources.formats.protobuf import scalars
from hudi_table.sources.formats.protobuf.json_values import JSON, json_texts
from hudi_table.sources.formats.protobuf.known import DURATION, TIMESTAMP, WRAPPERS
from hudi_table.sources.formats.protobuf.text import SCALARS, ProtoField, ProtoFile, ProtoMessage, ProtoTextError
from hudi_table.sources.formats.protobuf.wire import SIZED, Bytes, MalformedError, Places, Tokens, tokens

COLUMNS_MAX, DEPTH_MAX = 5_000, 50
_MOMENT = pa.timestamp("us", "UTC")
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799
_DURATION_SECONDS_MAX = 315_576_000_000
Reader = Callable[[Bytes, Tokens], pa.Array]
"""One value for each occurrence. Raises MalformedError."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field. `is_map`: of its values one stands for each key. `merges`: what comes again is one
    message with what came before. `default`: what stands for one that is not set; None: null."""

    name: str
    number: int
    type: pa.DataType
    wire: int
    read: Reader
    repeated: bool = False
    is_map: bool = False
    merges: bool = False
    oneof: str = ""
    default: pa.Scalar | None = None


@dataclass(slots=True)
class Shapes:
    """Columns of the messages of a file."""

    file: ProtoFile
    _count: int = 0
    _within: list[str] = field(default_factory=list)

    def columns(self, message: ProtoMessage) -> tuple[Column, ...]:
        """One for each field. Raises ProtoTextError for what no column can hold."""
        if message.name in self._within:
            raise ProtoTextError(f"message {message.name} holds itself, which no column can")
        if len(self._within) >= DEPTH_MAX:
            raise ProtoTextError(f"messages hold each other more than {DEPTH_MAX} deep")
        self._within.append(message.name)
        found = tuple(map(self._column, message.fields))
        self._within.pop()
        return found

    def _column(self, each: ProtoField) -> Column:
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise ProtoTextError(f"it has more than {COLUMNS_MAX} fields, those of fields among them")
        if each.key:
            return self._map(each)
        kind, read = self._kind(each.kind)
        is_message = each.kind in self.file.messages
        wire = SIZED if is_message else scalars.wire_of(each.kind)
        kind = pa.list_(kind) if each.repeated else kind
        default = None if each.repeated or each.presence or is_message else self._default(each.kind)
        return Column(
            each.name,
            each.number,
            kind,
            wire,
            read,
            each.repeated,
            merges=is_message,
            oneof=each.oneof,
            default=default,
        )

    def _kind(self, kind: str) -> tuple[pa.DataType, Reader]:
        if kind in SCALARS:
            return scalars.TYPES[kind], lambda data, found: scalars.column(data, kind, found)
        if kind in self.file.enums:
            return pa.string(), _Enum(self.file.enums[kind])
        if kind in JSON:
            return pa.string(), lambda data, found: json_texts(data, found, kind)
        if kind in WRAPPERS:
            (value,) = self.columns(self.file.messages[kind])
            return value.type, lambda data, found: _inner(data, found, (value,))[0]
        parts = self.columns(self.file.messages[kind])
        if kind in (TIMESTAMP, DURATION):
            return (_MOMENT, _Moments(parts)) if kind == TIMESTAMP else (pa.int64(), _Durations(parts))
        if not parts:
            return pa.bool_(), lambda _, found: pa.array(np.ones(len(found.rows), bool))
        return _struct(parts), lambda data, found: _structs(data, found, parts)

    def _default(self, kind: str) -> pa.Scalar:
        if kind in self.file.enums:
            return pa.scalar(self.file.enums[kind].get(0, "0"))
        return scalars.default_of(kind)

    def _map(self, each: ProtoField) -> Column:
        entry = ProtoMessage(
            f"{each.name}'s entry", (ProtoField("key", 1, each.key), ProtoField("value", 2, each.kind))
        )
        parts = self.columns(entry)
        kind = pa.map_(pa.string(), parts[1].type) if each.key == "string" else pa.list_(_struct(parts))
        return Column(
            each.name, each.number, kind, SIZED, lambda data, found: _structs(data, found, parts), True, is_map=True
        )


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """All may be null: what one schema has another has not."""
    return pa.schema([pa.field(each.name, each.type) for each in columns])


def read(data: Bytes, starts: Places, stops: Places, columns: Sequence[Column]) -> list[pa.Array]:
    """An array of each column: a value a message. Raises MalformedError."""
    found = tokens(data, starts, stops)
    seen = [scalars.occurrences(data, found, each.number, each.wire, repeated=each.repeated) for each in columns]
    winners = _winners(columns, seen, len(starts))
    arrays = []
    for each, some in zip(columns, seen, strict=True):
        if each.repeated:
            arrays.append(_lists(data, each, some, len(starts)))
            continue
        some_data, last = _merged(data, some) if each.merges else (data, _last(some))
        if each.oneof:
            last = _those(last, winners[each.oneof][last.rows] == each.number)
        arrays.append(scalars.filled(_at_rows(each.read(some_data, last), last.rows, len(starts)), each.default))
    return arrays


def _struct(parts: Sequence[Column]) -> pa.DataType:
    return pa.struct(list(schema_of(parts)))


def _structs(data: Bytes, found: Tokens, parts: Sequence[Column]) -> pa.Array:
    return pa.StructArray.from_arrays(_inner(data, found, parts), fields=list(schema_of(parts)))


def _inner(data: Bytes, found: Tokens, parts: Sequence[Column]) -> list[pa.Array]:
    """What stands in occurrences of a message; whoever is malformed is the message around it."""
    try:
        return read(data, found.values, found.ends, parts)
    except MalformedError as error:
        raise MalformedError(int(found.rows[error.row]), error.why) from None


def _those(found: Tokens, some: Places) -> Tokens:
    return Tokens(found.rows[some], found.values[some], found.ends[some])


def _last(found: Tokens) -> Tokens:
    """Of each row the last occurrence."""
    if len(found.rows) < 2:
        return found
    return _those(found, np.append(found.rows[1:] != found.rows[:-1], True))


def _merged(data: Bytes, found: Tokens) -> tuple[Bytes, Tokens]:
    """Messages that come again are one: the bytes of all of them, one behind the other."""
    last = _last(found)
    if len(last.rows) == len(found.rows):
        return data, found
    parts = [data[begin:end] for begin, end in zip(found.values.tolist(), found.ends.tolist(), strict=True)]
    sizes = found.ends - found.values
    ends = np.cumsum(sizes)[np.append(found.rows[1:] != found.rows[:-1], True)]
    return np.concatenate([*parts, np.zeros(16, np.uint8)]), Tokens(last.rows, np.append(0, ends[:-1]), ends)


def _winners(columns: Sequence[Column], seen: Sequence[Tokens], count: int) -> dict[str, Places]:
    """Of each `oneof` the number of the field that came last in each row, 0 where there is none."""
    ends: dict[str, Places] = {}
    found: dict[str, Places] = {}
    for each, some in zip(columns, seen, strict=True):
        if not each.oneof:
            continue
        at = ends.setdefault(each.oneof, np.full(count, -1, np.int64))
        who = found.setdefault(each.oneof, np.zeros(count, np.int64))
        last = _last(some)
        later = last.ends > at[last.rows]
        rows = last.rows[later]
        at[rows], who[rows] = last.ends[later], each.number
    return found


def _at_rows(values: pa.Array, rows: Places, count: int) -> pa.Array:
    """Values at their rows, null elsewhere."""
    if len(rows) == count:
        return values
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


def _lists(data: Bytes, column: Column, found: Tokens, count: int) -> pa.Array:
    values, rows = column.read(data, found), found.rows
    if column.is_map:
        kept = _last_of_keys(rows, values.field(0))
        values, rows = values.take(pa.array(kept)), rows[kept]
    offsets = pa.array(np.searchsorted(rows, np.arange(count + 1)), pa.int32())
    if pt.is_map(column.type):
        return pa.MapArray.from_arrays(offsets, values.field(0), values.field(1), column.type)
    return pa.ListArray.from_arrays(offsets, values, column.type)


def _last_of_keys(rows: Places, keys: pa.Array) -> Places:
    """Of entries of one row with one key the last."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = rows * (len(codes) + 1) + codes
    _, back = np.unique(pairs[::-1], return_index=True)
    return np.sort(len(pairs) - 1 - back)


class _Enum:
    """Numbers as the names of their values."""

    def __init__(self, values: Mapping[int, str]) -> None:
        self._values = values

    def __call__(self, data: Bytes, found: Tokens) -> pa.Array:
        known, places = np.unique(scalars.numbers(data, "int32", found), return_inverse=True)
        names = [self._values.get(number, str(number)) for number in known.tolist()]
        return pa.array(names, pa.string()).take(pa.array(places))


class _Moments:
    """Seconds and nanoseconds as a moment, to the microsecond."""

    least, most = _SECONDS_MIN, _SECONDS_MAX
    what = "a Timestamp of it lies beyond the years 1 to 9999"

    def __init__(self, parts: Sequence[Column]) -> None:
        self._parts = parts

    def __call__(self, data: Bytes, found: Tokens) -> pa.Array:
        return self.micros(data, found).cast(_MOMENT)

    def micros(self, data: Bytes, found: Tokens) -> pa.Array:
        """Microseconds. Raises MalformedError for those that are out of bounds."""
        by_name = dict(zip([each.name for each in self._parts], _inner(data, found, self._parts), strict=True))
        seconds = by_name["seconds"].to_numpy(zero_copy_only=False)
        nanos = by_name["nanos"].to_numpy(zero_copy_only=False).astype(np.int64)
        bad = np.flatnonzero((seconds < self.least) | (seconds > self.most))
        if len(bad):
            raise MalformedError(int(found.rows[bad[0]]), self.what)
        return pa.array(seconds * 1_000_000 + nanos // 1_000)


class _Durations(_Moments):
    """The same as microseconds."""

    least, most = -_DURATION_SECONDS_MAX, _DURATION_SECONDS_MAX
    what = "a Duration of it is longer than ten thousand years"

    def __call__(self, data: Bytes, found: Tokens) -> pa.Array:
        return self.micros(data, found)
