"""Avro records, one a message: with the id of their schema in a registry before them, or all of one
schema that is known.

Facts: Confluent's framing is a zero byte, the id in four bytes, the greatest first, and the record.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.avro.aliases import columns_of, fields_of, with_columns
from hudi_table.codec.avro.decode import MalformedError, decode_flat
from hudi_table.codec.avro.guard import parsed_schema
from hudi_table.codec.avro.schema import avro_to_arrow
from hudi_table.codec.avro.types import flat_fields
from hudi_table.errors import CorruptTableError, InvalidDataError, UnsupportedTableError
from hudi_table.model.bounded import Bounded
from hudi_table.sources.formats.decoder import Judge, UndecodableError, first_bad, joined

FRAME = 5
"""Bytes before a record of a registry's schema."""
_NONE = b"\xff" * FRAME
SCHEMAS_MAX = 1000
"""Schemas that a decoder keeps."""


class Reader:
    """Records of one schema."""

    def __init__(self, text: str) -> None:
        self._schema = avro_to_arrow(text)
        self._loose = pa.schema([_loose(field) for field in self._schema])
        self._fields = flat_fields(text)
        self._parsed: Any = parsed_schema(text) if self._fields is None else None

    def read(self, messages: Sequence[bytes], skip: int) -> pa.Table:
        """One row a message, whose first `skip` bytes are none of it; every column may be null.
        Raises MalformedError."""
        return self._rows(messages, skip).cast(self._loose)

    def _rows(self, messages: Sequence[bytes], skip: int) -> pa.Table:
        if self._fields is None:
            return self._by_row(messages, skip)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        stops = np.cumsum(lengths)
        buffer = pa.py_buffer(b"".join(messages))
        return decode_flat(buffer, stops - lengths + skip, stops, self._fields, self._schema.names)

    def _by_row(self, messages: Sequence[bytes], skip: int) -> pa.Table:
        """Lists, maps and unions have no columnar decoder: fastavro's, which is compiled."""
        try:
            rows = [self._record(message[skip:]) for message in messages]
            return pa.Table.from_pylist(rows, self._schema)
        except (EOFError, ValueError, TypeError, IndexError, KeyError, OverflowError, pa.ArrowException) as error:
            raise MalformedError(str(error) or "it ends too early") from error

    def _record(self, data: bytes) -> Any:
        source = io.BytesIO(data)
        record = fastavro.schemaless_reader(source, self._parsed, None)
        if source.tell() < len(data):
            raise ValueError("bytes follow its end")
        return record


def _loose(field: pa.Field) -> pa.Field:
    """A field that may be null, as may all in it: what one schema requires another may not have,
    and a record that is null has no fields."""
    kind = field.type
    if pt.is_struct(kind):
        kind = pa.struct([_loose(child) for child in kind])
    elif pt.is_list(kind):
        kind = pa.list_(_loose(kind.value_field))
    elif pt.is_map(kind):
        kind = pa.map_(kind.key_type, _loose(kind.item_field))
    return pa.field(field.name, kind, nullable=True)


class AvroDecoder:
    """Records of one schema, `text`. `resolves`: a field whose alias is a column of the table fills
    that."""

    def __init__(self, text: str, *, resolves: bool = False) -> None:
        self._name = "the schema file"
        self._readers: Bounded[tuple[tuple[str, str], ...], Reader] = Bounded(SCHEMAS_MAX)
        self._readers[()] = reader_of(text, self._name)
        self._text, self._fields = text, fields_of(text) if resolves else ()

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Raises InvalidSchemaError too."""
        columns = columns_of(self._name, self._fields, known.names if known is not None else ())
        key = tuple(columns.items())
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = reader_of(with_columns(self._text, columns), self._name)
        return read_records(reader, messages, 0)


class RegistryDecoder:
    """Records whose schemas a registry has: `schema_of` brings the text of an id, and raises
    InvalidDataError where there is none. `judge`: of each schema alone. `resolves`: a field whose
    alias is a column of the table fills that, or a column of an older schema of the same commit."""

    def __init__(self, schema_of: Callable[[int], str], judge: Judge | None = None, *, resolves: bool = False) -> None:
        self._schema_of = schema_of
        self._judge = judge
        self._resolves = resolves
        self._texts: Bounded[int, str] = Bounded(SCHEMAS_MAX)
        self._readers: Bounded[tuple[int, tuple[tuple[str, str], ...]], Reader] = Bounded(SCHEMAS_MAX)
        self.beside: frozenset[int] = frozenset()
        self.together: frozenset[int] = frozenset()

    def begin(self, messages: Sequence[bytes]) -> None:
        """See `Resolving`."""
        if self._resolves:
            framed = [message for message in messages if len(message) >= FRAME and not message[0]]
            self.together = self.beside.union(np.unique(ids_of(framed)).tolist())

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Messages of several schemas are one table with the union of their
        columns. Raises InvalidSchemaError too."""
        columns = self._columns(messages, known) if self._resolves else {}

        def read(number: int, some: Sequence[bytes]) -> tuple[pa.Table, pa.Schema]:
            rows = read_records(self._of(number, columns.get(number, {})), some, FRAME)
            return rows, rows.schema

        return by_schema(messages, known, self._judge, read)

    def _columns(self, messages: Sequence[bytes], known: pa.Schema | None) -> dict[int, dict[str, str]]:
        """Of each schema the columns that fields of other names fill. An older schema has the
        smaller id."""
        taken = set(known.names) if known is not None else set()
        found = {}
        for number in sorted(self.together.union(ids_of(messages).tolist())):
            try:
                fields = fields_of(self._text(number))
            except (InvalidDataError, ValueError, KeyError, TypeError, AttributeError):
                continue  # that it is none is told with its messages
            found[number] = columns_of(_words(number), fields, taken)
            taken |= {found[number].get(field.name, field.name) for field in fields}
        return found

    def _text(self, number: int) -> str:
        known = self._texts.get(number)
        if known is None:
            known = self._texts[number] = self._schema_of(number)
        return known

    def _of(self, number: int, columns: dict[str, str]) -> Reader:
        key = number, tuple(columns.items())
        known = self._readers.get(key)
        if known is None:
            known = self._readers[key] = reader_of(with_columns(self._text(number), columns), _words(number))
        return known


def _words(number: int) -> str:
    return f"schema {number} of the registry"


def reader_of(text: str, name: str) -> Reader:
    """The reader of a schema. Raises InvalidDataError that names the schema."""
    try:
        return Reader(text)
    except (ValueError, KeyError, TypeError, CorruptTableError, UnsupportedTableError) as error:
        raise InvalidDataError(f"{name} is no Avro schema of a record that can be stored: {error}") from error


def read_records(reader: Reader, messages: Sequence[bytes], skip: int) -> pa.Table:
    """One row a message, whose first `skip` bytes are none of it. Raises UndecodableError."""

    def fails(some: Sequence[bytes]) -> str:
        try:
            reader.read(some, skip)
        except MalformedError as error:
            return f"it is no record of its schema: {error}"
        return ""

    try:
        return reader.read(messages, skip)
    except MalformedError:
        raise UndecodableError(*first_bad(messages, fails)) from None


def by_schema(
    messages: Sequence[bytes],
    known: pa.Schema | None,
    judge: Judge | None,
    read: Callable[[int, Sequence[bytes]], tuple[pa.Table, pa.Schema]],
) -> pa.Table:
    """What messages of several schemas of a registry make together: `read` gives the rows of those
    of one id, and the columns of which is judged whether the table, of columns `known`, takes
    them. Raises UndecodableError at the first message that cannot be read."""
    ids = ids_of(messages)
    found, places = [], []
    for each in np.unique(ids).tolist():
        rows = np.flatnonzero(ids == each)
        some = messages if len(rows) == len(messages) else [messages[row] for row in rows.tolist()]
        try:
            made, columns = read(each, some)
        except UndecodableError as error:
            raise UndecodableError(int(rows[error.place]), error.why) from None
        except InvalidDataError as error:
            raise UndecodableError(int(rows[0]), error.message) from error
        if judge is not None and known is not None:
            judge(_words(each), known, columns)
        found.append(made)
        places.append(rows)
    return joined(found, places)


def ids_of(messages: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """The ids before the records. Raises UndecodableError for a message without one."""
    heads = b"".join([message[:FRAME] if len(message) >= FRAME else _NONE for message in messages])
    frames = np.frombuffer(heads, np.uint8).reshape(-1, FRAME)
    bad = np.flatnonzero(frames[:, 0] != 0)
    if len(bad):
        raise UndecodableError(int(bad[0]), "it does not begin with a zero byte and the id of a schema")
    return np.ascontiguousarray(frames[:, 1:]).view(">u4").reshape(-1).astype(np.uint32)
