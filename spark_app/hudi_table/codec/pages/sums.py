"""Whether the pages of a column chunk are what their check sums say.

Facts (the Parquet format): a chunk is a run of pages, each behind a header in compact Thrift: 1
kind (0 data, 2 dictionary, 3 data of version 2), 3 bytes that follow, 4 CRC-32 of these bytes where
the writer made one, 5 and 8 the headers of data pages, whose field 1 counts values. Arrow and Hudi
write the sum.
"""

from __future__ import annotations

from zlib import crc32

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12
_KIND, _SIZE, _SUM = 1, 3, 4
_OF_DATA = ([5], [8])
_COUNT = 1
_DEEPEST = 4


def pages_hold(chunk: memoryview, values: int) -> bool:
    """Whether every page of a chunk is of a known kind and has the bytes of its check sum, or none,
    and the pages have that many values."""
    start = 0
    try:
        while start < len(chunk):
            start, found, count = _header(chunk, start)
            size, kind, stored_sum = found.get(_SIZE, -1), found.get(_KIND), found.get(_SUM)
            stop = start + size
            if size < 0 or stop > len(chunk):
                return False
            if stored_sum is not None and crc32(chunk[start:stop]) != stored_sum & 0xFFFFFFFF:
                return False
            if kind in (_DATA, _DATA_2):
                values -= count
            elif kind != _DICTIONARY:
                return False
            start = stop
    except (IndexError, ValueError):
        return False
    return values == 0


def _header(data: memoryview, at: int) -> tuple[int, dict[int, int], int]:
    """Where the header of a page ends, its own numbers, and how many values it counts. One loop,
    for a file has thousands of them. Raises IndexError or ValueError if it is none."""
    found: dict[int, int] = {}
    count = number = 0
    outer: list[int] = []
    while True:
        head, at = data[at], at + 1
        if head == 0:
            if not outer:
                return at, found, count
            number = outer.pop()
            continue
        wire = head & 15
        if head < 16:
            number, at = _number(data, at)
        else:
            number += head >> 4
        if _I16 <= wire <= _I64:
            value, at = _number(data, at)
            if not outer:
                found[number] = value
            elif number == _COUNT and outer in _OF_DATA:
                count = value
        elif wire == _BINARY:
            size, at = _varint(data, at)
            at += size
        elif wire == _STRUCT and len(outer) < _DEEPEST:
            outer.append(number)
            number = 0
        elif wire in (_BYTE, _DOUBLE):
            at += 1 if wire == _BYTE else 8
        elif wire not in (_TRUE, _FALSE):
            raise ValueError(f"kind {wire} of Thrift stands in no page's header, at depth {len(outer)}")


def _number(data: memoryview, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    byte, at = data[at], at + 1
    value, shift = byte & 127, 7
    while byte > 127:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
    return value, at
