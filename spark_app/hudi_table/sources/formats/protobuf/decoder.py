"""Messages of Protocol Buffers, one a message of Kafka: with the id of their definition in a
registry before them, or all of one definition that is known.

Facts: Confluent's framing is a zero byte, the id in four bytes, the greatest first, and the path of
the message in its file: how many places it has, then each, as zigzag varints; a single zero stands
for the first message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hudi_table.errors import InvalidDataError
from hudi_table.model.bounded import Bounded
from hudi_table.sources.formats.avro import FRAME, SCHEMAS_MAX, ids_of
from hudi_table.sources.formats.decoder import Judge, UndecodableError, joined
from hudi_table.sources.formats.protobuf.columns import Shapes, read, schema_of
from hudi_table.sources.formats.protobuf.known import built_in
from hudi_table.sources.formats.protobuf.text import ProtoFile, ProtoMessage, ProtoTextError, parsed, resolved
from hudi_table.sources.formats.protobuf.wire import PADDING, MalformedError

PATH_MAX = 64
Texts = tuple[str, Mapping[str, str]]
"""A definition, and those that it imports, by the names under which it does."""


class Reader:
    """Messages of one definition."""

    def __init__(self, file: ProtoFile, message: ProtoMessage) -> None:
        self._columns = Shapes(file).columns(message)
        self._schema = schema_of(self._columns)
        if not self._columns:
            raise ProtoTextError(f"message {message.name} has no field")

    def read(self, messages: Sequence[bytes], skip: int) -> pa.Table:
        """One row a message, whose first `skip` bytes are none of it. Raises UndecodableError."""
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        stops = np.cumsum(lengths)
        data = np.frombuffer(b"".join((*messages, bytes(PADDING))), np.uint8)
        try:
            arrays = read(data, stops - lengths + skip, stops, self._columns)
        except MalformedError as error:
            raise UndecodableError(error.row, f"it is no message of its schema: {error.why}") from None
        return pa.Table.from_arrays(arrays, schema=self._schema)


class ProtobufDecoder:
    """Messages of one definition: `message` by its name, or the first one of the text."""

    def __init__(self, text: str, message: str | None = None) -> None:
        try:
            file = file_of((text, {}))
            name = message or next(iter(file.top), "")
            name = name if name in file.messages or not file.package else f"{file.package}.{name}"
            if name not in file.messages:
                raise ProtoTextError(f"it has no message {message or ''}".rstrip())
            self._reader = Reader(file, file.messages[name])
        except ProtoTextError as error:
            raise InvalidDataError(f"the schema file is no definition that can be stored: {error}") from error

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`."""
        del known
        return self._reader.read(messages, 0)


class ProtobufRegistryDecoder:
    """Messages whose definitions a registry has: `texts_of` brings those of an id, and raises
    InvalidDataError where there is none. `judge`: of each definition alone."""

    def __init__(self, texts_of: Callable[[int], Texts], judge: Judge | None = None) -> None:
        self._texts_of = texts_of
        self._judge = judge
        self._files: Bounded[int, ProtoFile] = Bounded(SCHEMAS_MAX)
        self._readers: Bounded[bytes, Reader] = Bounded(SCHEMAS_MAX)

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Messages of several definitions are one table with the union of their
        columns."""
        ids_of(messages)
        left = np.ones(len(messages), bool)
        found, places = [], []
        while left.any():
            first = int(np.flatnonzero(left)[0])
            head = _head(messages[first], first)
            alike = np.fromiter((each.startswith(head) for each in messages), bool, len(messages))
            rows = np.flatnonzero(left & alike)
            left[rows] = False
            some = messages if len(rows) == len(messages) else [messages[row] for row in rows.tolist()]
            try:
                found.append(self._of(head).read(some, len(head)))
            except UndecodableError as error:
                raise UndecodableError(int(rows[error.place]), error.why) from None
            except InvalidDataError as error:
                raise UndecodableError(first, error.message) from error
            if self._judge is not None and known is not None:
                number = int.from_bytes(head[1:FRAME])
                self._judge(f"schema {number} of the registry", known, found[-1].schema)
            places.append(rows)
        return joined(found, places)

    def _of(self, head: bytes) -> Reader:
        known = self._readers.get(head)
        if known is not None:
            return known
        number = int.from_bytes(head[1:FRAME])
        try:
            file = self._files.get(number)
            if file is None:
                file = self._files[number] = file_of(self._texts_of(number))
            made = self._readers[head] = Reader(file, file.at(_path(head)))
        except ProtoTextError as error:
            raise InvalidDataError(
                f"schema {number} of the registry is no definition that can be stored: {error}"
            ) from error
        return made


def file_of(texts: Texts) -> ProtoFile:
    """A definition with what it imports. Raises ProtoTextError."""
    text, imports = texts
    return resolved(parsed(text), {**built_in(), **{name: parsed(each) for name, each in imports.items()}})


def _head(message: bytes, place: int) -> bytes:
    """The id and the path before a message. Raises UndecodableError."""
    count, at = _zigzag(message, FRAME, place)
    if not 0 <= count <= PATH_MAX:
        raise UndecodableError(place, "the path of its message cannot be read")
    for _ in range(count):
        _, at = _zigzag(message, at, place)
    return message[:at]


def _path(head: bytes) -> tuple[int, ...]:
    count, at = _zigzag(head, FRAME, 0)
    found = []
    for _ in range(count):
        number, at = _zigzag(head, at, 0)
        found.append(number)
    return tuple(found) or (0,)


def _zigzag(data: bytes, at: int, place: int) -> tuple[int, int]:
    bits = 0
    for count, byte in enumerate(data[at : at + 5]):
        bits |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return bits >> 1 ^ -(bits & 1), at + count + 1
    raise UndecodableError(place, "the path of its message cannot be read")
