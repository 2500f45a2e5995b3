"""Avro binary records to Arrow, column by column: all records advance field by field in numpy.

The starts of the records are known from the frame around them, so no record has to wait for the one
before. Flat fields and records of them only (see `types.flat_fields`); everything else is
fastavro's. Nine times fastavro's speed (measured).

Records lie far apart, so that each access to a field costs a cache line a record: a number is read
as the eight bytes that it may have, and a field that nobody wants is passed over by one look at its
branch and length where no record has null there or a long text.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.avro.types import AvroField

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
_VARINT_BYTES = 10
DECIMAL_BYTES = 16
"""Bytes of a decimal128's number."""
_WORD = 8
_NEAR_BYTES = 1 << 20
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_ONE = np.uint64(1)
_HIGH_BITS = np.uint64(0x8080808080808080)
_SQUEEZED = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in ((1, 0x007F007F007F007F), (2, 0x00003FFF00003FFF), (4, 0x000000000FFFFFFF))
)
"""Groups of 7 bits in 8 become 14 in 16, 28 in 32 and 56 in 64."""


class MalformedError(ValueError):
    """The bytes are no records of this schema."""


def decode_flat(
    buffer: pa.Buffer, starts: Places, stops: Places, fields: tuple[AvroField, ...], wanted: Collection[str]
) -> pa.Table:
    """The wanted fields, in the order of `fields`, of the records that lie at `starts` to `stops`
    in `buffer`.

    Raises MalformedError if a record does not end where it should, or a value leaves it.
    """
    padded = with_padding(buffer)
    tables = [
        _decoded(Cursor(buffer, starts[some].copy(), stops[some], padded), stops[some], fields, wanted)
        for some in _near(starts, stops)
    ]
    if not tables[0].column_names:
        return pa.table({"rows": pa.nulls(len(starts))}).select([])
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _near(starts: Places, stops: Places) -> Iterator[slice]:
    """Records that lie in a stretch which a processor's cache holds while field after field is read
    of them."""
    if not len(starts):
        yield slice(0, 0)
        return
    size = max(1, len(starts) * _NEAR_BYTES // max(1, int(stops[-1] - starts[0])))
    for first in range(0, len(starts), size):
        yield slice(first, first + size)


def _decoded(cursor: Cursor, stops: Places, fields: tuple[AvroField, ...], wanted: Collection[str]) -> pa.Table:
    columns = [(field, cursor.column(field, field.name in wanted)) for field in fields]
    if not np.array_equal(cursor.at, stops):
        raise MalformedError("a record does not end where its length says")
    kept = [(field, column) for field, column in columns if column is not None]
    schema = pa.schema([pa.field(field.name, field.type, field.nullable) for field, _ in kept])
    return pa.Table.from_arrays([column for _, column in kept], schema=schema)


def with_padding(buffer: pa.Buffer) -> Bytes:
    """The bytes, and zeros behind them, so that eight bytes can be read from each."""
    return np.concatenate([np.frombuffer(buffer, dtype=np.uint8), np.zeros(_WORD, np.uint8)])


class Cursor:
    """All records at once: `at` is where each one goes on."""

    def __init__(self, buffer: pa.Buffer, starts: Places, stops: Places, padded: Bytes | None = None) -> None:
        self._buffer = buffer
        self._bytes: Bytes = np.frombuffer(buffer, dtype=np.uint8)
        self._padded = with_padding(buffer) if padded is None else padded
        self.at, self._stops = starts, stops

    def column(self, field: AvroField, wanted: bool) -> pa.Array | None:
        """Read the field of every record; its values only if they are wanted."""
        if not wanted and self._passed(field):
            return None
        rows: Places | None = None
        valid: npt.NDArray[np.bool_] | None = None
        if field.null_branch is not None:
            branch = self.branches()
            if ((branch != 0) & (branch != 2)).any():
                raise MalformedError(f"field {field.name} names a branch that its union has not")
            valid = branch != 2 * field.null_branch
            rows = None if valid.all() else np.flatnonzero(valid)
        values = self._values(field, rows, wanted)
        if values is None or not wanted:
            return None
        if rows is None:
            return values
        # Values were read for the records that have one: each goes back to its record, the others are null.
        places = np.full(len(self.at), -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        return values.take(pa.array(places, mask=places < 0))

    def some(self, rows: Places) -> Cursor:
        """Some of the records, from where they are; `moved` brings their places back."""
        return Cursor(self._buffer, self.at[rows], self._stops[rows], self._padded)

    def moved(self, rows: Places, some: Cursor) -> None:
        """These records go on where `some` of them, read apart, are."""
        self.at[rows] = some.at

    def pass_over(self, parsed: Any) -> None:
        """Read one value of a schema that fastavro has parsed from each record: slow, for what is
        rare."""
        for number, (at, stop) in enumerate(zip(self.at.tolist(), self._stops.tolist(), strict=True)):
            source = io.BytesIO(self._buffer[at:stop])
            fastavro.schemaless_reader(source, parsed, None)
            self.at[number] = at + source.tell()

    def branches(self) -> Bytes:
        """The byte by which each record names its branch of a union: twice its number."""
        self._check(self.at, 1, self._stops)
        branch = self._bytes[self.at]
        self.at += 1
        return branch

    def _values(self, field: AvroField, rows: Places | None, wanted: bool) -> pa.Array | None:
        at = self.at if rows is None else self.at[rows]
        stops = self._stops if rows is None else self._stops[rows]
        if field.wire in ("int", "long"):
            numbers, after = self._varint(at, stops)
            column = _as_type(numbers, field) if wanted else None
        elif field.wire in ("string", "bytes"):
            lengths, begin = self._varint(at, stops)
            after = begin + lengths
            if (lengths < 0).any() or (after > stops).any():
                raise MalformedError(f"field {field.name} has a length that leaves its record")
            column = self._sized(begin, lengths, field) if wanted else None
        elif field.wire == "record":
            inside = Cursor(self._buffer, at.copy(), stops, self._padded)
            columns = [inside.column(child, wanted) for child in field.children]
            after = inside.at
            column = pa.StructArray.from_arrays(columns, fields=list(field.type)) if wanted else None
        else:
            size = _SIZES.get(field.wire, field.size)
            self._check(at, size, stops)
            after = at + size
            column = self._fixed(at, size, field) if wanted else None
        if rows is None:
            self.at = after
        else:
            self.at[rows] = after
        return column

    def _check(self, at: Places, size: int, stops: Places) -> None:
        if (at + size > stops).any():
            raise MalformedError("a value leaves its record")

    def _varint(self, at: Places, stops: Places) -> tuple[Places, Places]:
        """(zigzag numbers, places after them)."""
        self._check(at, 1, stops)
        byte = self._bytes[at]
        if not (byte & 0x80).any():
            raw, after = byte.astype(np.uint64), at + 1
        else:
            raw, after = self._long_varint(at, stops)
        numbers = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
        return numbers, after

    def _long_varint(self, at: Places, stops: Places) -> tuple[npt.NDArray[np.uint64], Places]:
        """Numbers of up to eight bytes at once, seven bits of each byte; longer ones are gone on
        with byte by byte."""
        word = self._run(np.dtype("<u8"))[at]
        end = _lowest(~word & _HIGH_BITS)
        raw = word & (end - _ONE) & ~_HIGH_BITS
        for shift, mask in _SQUEEZED:
            raw = (raw & mask) | ((raw >> shift) & (mask << np.uint64(7 * int(shift))))
        after = at + _bytes_to(end)
        going = np.flatnonzero(end == 0)
        for count in range(_WORD, _VARINT_BYTES):
            if not len(going) or (after[going] >= stops[going]).any():
                break
            byte = self._bytes[after[going]]
            raw[going] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * count)
            after[going] += 1
            going = going[(byte & 0x80) != 0]
        if len(going) or (after > stops).any():
            raise MalformedError("a number leaves its record")
        return raw, after

    def _run(self, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """What begins at each byte of the buffer, as numbers of this type; beyond the end are
        zeros."""
        return np.ndarray((len(self._bytes) + 1,), kind, self._padded, 0, (1,))

    def _passed(self, field: AvroField) -> bool:
        """Pass over a field that no record has null, nor a text of 64 bytes or a number of seven;
        false where it is not so."""
        lead = 0 if field.null_branch is None else 1
        code = 2 - 2 * (field.null_branch or 0)
        if field.wire in ("string", "bytes"):
            head = self._run(np.dtype("<u2"))[self.at]
            if not lead:
                head <<= 8
                code = 0
            alike = (head & 0x81FF) == code
            sizes: Any = head >> 9
            sizes += 1
        elif field.wire in ("int", "long"):
            word = self._run(np.dtype("<u8"))[self.at]
            if not lead:
                word <<= np.uint64(8)
                code = 0
            end = _lowest(~word & _HIGH_BITS & ~np.uint64(0xFF))
            alike = ((word & np.uint64(0xFF)) == code) & (end != 0)
            sizes = _bytes_to(end) - 1
        elif field.wire == "record":
            return False
        else:
            alike = self._run(np.dtype(np.uint8))[self.at] == code if lead else np.ones(1, dtype=bool)
            sizes = _SIZES.get(field.wire, field.size)
        if not alike.all():
            return False
        after = self.at + sizes + lead
        if (after > self._stops).any():
            raise MalformedError(f"field {field.name} leaves its record")
        self.at = after
        return True

    def _sized(self, begin: Places, lengths: Places, field: AvroField) -> pa.Array:
        if not pt.is_decimal(field.type):
            return self._texts(begin, lengths, field.type)
        if len(lengths) and int(lengths.max()) > DECIMAL_BYTES:
            raise MalformedError(f"field {field.name} holds a decimal of {lengths.max()} bytes, beyond {field.type}")
        wide = unscaled(self._bytes, begin, lengths)
        found = pa.Array.from_buffers(field.type, len(begin), [None, pa.py_buffer(wide)])
        try:
            found.validate(full=True)
        except pa.ArrowInvalid as error:
            raise MalformedError(f"field {field.name} holds a decimal beyond {field.type}: {error}") from error
        return found

    def _texts(self, begin: Places, lengths: Places, kind: pa.DataType) -> pa.Array:
        """Values and the gaps between them are one array over the buffer as it is; every other
        element is taken."""
        bounds = np.empty(2 * len(begin) + 1, dtype=np.int64)
        bounds[0:-1:2] = begin
        bounds[1::2] = begin + lengths
        bounds[-1] = bounds[-2] if len(begin) else 0
        whole = pa.Array.from_buffers(
            pa.large_binary(), 2 * len(begin), [None, pa.py_buffer(bounds.tobytes()), self._buffer]
        )
        try:
            return whole.take(pa.array(np.arange(0, 2 * len(begin), 2))).cast(kind)
        except pa.ArrowInvalid as error:
            raise MalformedError(f"a text is not UTF-8: {error}") from error

    def _gather(self, at: Places, size: int) -> Bytes:
        """`size` bytes from each place, a row each; beyond the buffer's end zeros."""
        index = at[:, None] + np.arange(size)
        if len(at) and int(at.max()) + size > len(self._bytes):
            inside = index < len(self._bytes)
            found: Bytes = np.where(inside, self._bytes[np.where(inside, index, 0)], 0).astype(np.uint8)
            return found
        rows: Bytes = self._bytes[index]
        return rows

    def _fixed(self, at: Places, size: int, field: AvroField) -> pa.Array:
        data = self._gather(at, size)
        if field.wire == "boolean":
            if (data > 1).any():
                raise MalformedError(f"field {field.name} holds a boolean that is neither 0 nor 1")
            return pa.array(data[:, 0].astype(bool))
        if field.wire == "float":
            return pa.array(data.view("<f4")[:, 0])
        if field.wire == "double":
            return pa.array(data.view("<f8")[:, 0])
        if pt.is_decimal(field.type):
            return _decimals(data, field.type)
        return pa.Array.from_buffers(field.type, len(at), [None, pa.py_buffer(data.tobytes())])


def unscaled(data: Bytes, starts: Places, sizes: Places) -> Bytes:
    """Big-endian two's complements that lie in `data`, of up to `DECIMAL_BYTES` each, as a row of
    that many bytes in the order of Arrow's decimals; of no byte is zero."""
    back = np.arange(DECIMAL_BYTES)
    inside = back < sizes[:, None]
    data = data if len(data) else np.zeros(1, np.uint8)
    at = np.where(inside, (starts + sizes)[:, None] - 1 - back, 0)
    negative = (data[np.minimum(starts, len(data) - 1)] & 0x80).astype(bool) & (sizes > 0)
    wide: Bytes = np.where(inside, data[at], np.where(negative, 0xFF, 0).astype(np.uint8)[:, None])
    return np.ascontiguousarray(wide)


def _lowest(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The lowest bit alone; 0 where there is none."""
    return bits & (~bits + _ONE)


def _bytes_to(bit: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many bytes end with the one of this bit; eight where there is none."""
    size: Places = (np.bitwise_count(bit - _ONE).astype(np.int64) + 1) >> 3
    return size


def _as_type(numbers: Places, field: AvroField) -> pa.Array:
    if field.wire == "int":
        if len(numbers) and (numbers.max() > 2**31 - 1 or numbers.min() < -(2**31)):
            raise MalformedError(f"field {field.name} holds a number beyond an int")
        return pa.array(numbers.astype(np.int32)).view(field.type)
    return pa.array(numbers).view(field.type)


def _decimals(data: Bytes, kind: pa.DataType) -> pa.Array:
    """Big-endian two's complement of up to 16 bytes to decimal128."""
    rows, size = data.shape
    if size > DECIMAL_BYTES:
        raise MalformedError(f"a decimal of {size} bytes is beyond {kind}")
    wide = np.zeros((rows, DECIMAL_BYTES), dtype=np.uint8)
    wide[:, :size] = data[:, ::-1]
    wide[:, size:] = np.where(data[:, :1] & 0x80, 0xFF, 0)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(wide.tobytes())])
