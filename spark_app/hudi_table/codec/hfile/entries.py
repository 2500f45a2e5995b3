"""Entries of data blocks: many at once, in numpy.

Facts (measured on Hudi 0.15.0 and 1.1.1), numbers big-endian: length of the key (4), length of the
value (4), key, value, one byte 0 (a version that Hudi never uses). The key: length of the row (2),
the row, which is Hudi's key, a byte 0 (no column family), eight bytes 7fffffffffffffff (the time),
a byte 4 (a put). The index of a file by Hudi 1.x leaves the last ten bytes out.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hfile.protobuf import MalformedError

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

SCHEMA: Final = pa.schema([pa.field("key", pa.binary(), False), pa.field("value", pa.binary(), False)])
ROW_BYTES_MAX: Final = (1 << 15) - 1
SUFFIX: Final = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
_AROUND_ROW: Final = 2 + len(SUFFIX)
_LENGTHS: Final = 8
_VERSION: Final = 1
FRAME_BYTES: Final = _LENGTHS + _AROUND_ROW + _VERSION
_TWO_INTS = struct.Struct(">II")
_TWO_PARTS = struct.Struct(">QH")
_LANES_LEAST: Final = 24


def parse_entries(blocks: list[bytes]) -> pa.RecordBatch:
    """The entries of the blocks, in their order, as `key` and `value`. Raises MalformedError."""
    lengths = np.array([len(block) for block in blocks], np.int64)
    stops = np.cumsum(lengths)
    buffer = pa.py_buffer(b"".join(blocks))
    data = np.frombuffer(buffer, np.uint8)
    starts = entry_starts(data, stops - lengths, stops)
    ends = _ends(starts, stops)
    keys, values = _ints(data, starts), _ints(data, starts + 4)
    begin = starts + _LENGTHS
    rows = _shorts(data, begin)
    if ((keys != rows + _AROUND_ROW) | (begin + keys + values + _VERSION != ends)).any():
        raise MalformedError("an entry of a data block has lengths that contradict each other")
    after, (head, tail) = begin + 2 + rows, _TWO_PARTS.unpack(SUFFIX)
    differ = (_numbers(data, after, ">u8") != head) | (_numbers(data, after + 8, ">u2") != tail)
    if differ.any() or data[ends - 1].any():
        raise MalformedError("an entry of a data block is no put of a row without a column")
    columns = [_slices(buffer, begin + 2, rows), _slices(buffer, begin + keys, values)]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    if not in_order(batch.column(0)):
        raise MalformedError("the keys of its data blocks are not sorted")
    return batch


def entry_starts(data: Bytes, starts: Places, stops: Places) -> Places:
    """Where each entry starts, in blocks that lie at `starts` to `stops` one after the other.
    Raises MalformedError.

    Only an entry's lengths tell where the next one is, so the blocks advance side by side; a few
    blocks advance one by one.
    """
    if len(starts) < _LANES_LEAST:
        view = memoryview(data)  # type: ignore[arg-type] # numpy arrays are buffers; typeshed says so from 3.12 on
        found = [_starts_in(view, start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        return np.concatenate([np.empty(0, np.int64), *found])
    at, ends, parts = starts, stops, []
    while True:
        going = at < ends
        at, ends = at[going], ends[going]
        if not len(at):
            break
        if (ends - at < FRAME_BYTES).any():
            raise MalformedError("an entry leaves its data block")
        parts.append(at)
        after = at + (_LENGTHS + _VERSION) + _ints(data, at) + _ints(data, at + 4)
        if (after > ends).any():
            raise MalformedError("an entry leaves its data block")
        at = after
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))


def in_order(keys: pa.Array) -> bool:
    """Whether no key is smaller than the one before it."""
    return len(keys) < 2 or bool(pc.all(pc.less_equal(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py())


def row_of(key: bytes) -> bytes:
    """Hudi's key within an index key, which may be without its last bytes. Raises
    MalformedError."""
    length = int.from_bytes(key[:2], "big")
    if len(key) < 2 + length:
        raise MalformedError("a key of its index is shorter than its row")
    return key[2 : 2 + length]


def key_of(row: bytes) -> bytes:
    """The whole key of a row."""
    return len(row).to_bytes(2, "big") + row + SUFFIX


def entries_bytes(keys: pa.Array, values: pa.Array) -> tuple[memoryview, Places]:
    """The entries one after the other, and where each one starts and the last one ends.
    `large_binary`, no nulls."""
    rows = np.asarray(pc.binary_length(keys), np.int64)
    heads = np.empty((len(keys), _LENGTHS + 2), np.uint8)
    heads[:, :4] = _big_endian(rows + _AROUND_ROW, ">u4")
    heads[:, 4:8] = _big_endian(np.asarray(pc.binary_length(values), np.int64), ">u4")
    heads[:, 8:] = _big_endian(rows, ">u2")
    offsets = np.arange(len(keys) + 1, dtype=np.int64) * heads.shape[1]
    ahead = pa.Array.from_buffers(pa.large_binary(), len(keys), [None, pa.py_buffer(offsets), pa.py_buffer(heads)])
    suffix, version, nothing = (pa.scalar(part, pa.large_binary()) for part in (SUFFIX, b"\0", b""))
    joined = pc.binary_join_element_wise(ahead, keys, suffix, values, version, nothing)
    _, places, data = joined.buffers()
    return memoryview(data), np.frombuffer(places, np.int64)[: len(keys) + 1]


def _starts_in(view: memoryview, at: int, stop: int) -> Places:
    found = []
    while at < stop:
        if stop - at < FRAME_BYTES:
            raise MalformedError("an entry leaves its data block")
        found.append(at)
        key, value = _TWO_INTS.unpack_from(view, at)
        at += _LENGTHS + _VERSION + key + value
    if at != stop:
        raise MalformedError("an entry leaves its data block")
    return np.array(found, np.int64)


def _ends(starts: Places, stops: Places) -> Places:
    """Where each entry ends: the blocks lie without a gap, so it is where the next one starts."""
    return np.append(starts[1:], stops[-1:]) if len(starts) else starts


def _ints(data: Bytes, at: Places) -> Places:
    return _numbers(data, at, ">u4").astype(np.int64)


def _shorts(data: Bytes, at: Places) -> Places:
    return _numbers(data, at, ">u2").astype(np.int64)


def _numbers(data: Bytes, at: Places, kind: str) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Numbers that start at any byte. Raises MalformedError if one leaves the data."""
    count = len(data) - np.dtype(kind).itemsize + 1
    if len(at) and not 0 <= at.min() <= at.max() < count:
        raise MalformedError("an entry leaves its data block")
    anywhere: npt.NDArray[np.unsignedinteger[Any]] = np.ndarray(max(count, 0), kind, data, strides=(1,))
    return anywhere[at]


def _big_endian(numbers: Places, kind: str) -> Bytes:
    found: Bytes = numbers.astype(kind).view(np.uint8).reshape(len(numbers), -1)
    return found


def _slices(buffer: pa.Buffer, begin: Places, lengths: Places) -> pa.Array:
    """The stretches of the buffer as binary values: they and the gaps between them are one array,
    of which every other is taken."""
    bounds = np.empty(2 * len(begin) + 1, np.int64)
    bounds[0:-1:2] = begin
    bounds[1::2] = begin + lengths
    bounds[-1] = bounds[-2] if len(begin) else 0
    whole = pa.Array.from_buffers(pa.large_binary(), 2 * len(begin), [None, pa.py_buffer(bounds), buffer])
    return whole.take(pa.array(np.arange(0, 2 * len(begin), 2))).cast(pa.binary())
