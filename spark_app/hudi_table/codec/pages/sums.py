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
_KIND, _SIZE, _SUM, _OF_DATA, _OF_DATA_2 = 1, 3, 4, 5, 8
_COUNT = 1
_DEEPEST = 4


def pages_hold(chunk: memoryview, values: int) -> bool:
    """Whether every page of a chunk is of a known kind and has the bytes of its check sum, or none,
    and the pages have that many values."""
    start = 0
    try:
        while start < len(chunk):
            header = _Header(chunk, start)
            start, stop = header.end, header.end + header.size
            if header.size < 0 or stop > len(chunk):
                return False
            if header.sum is not None and crc32(chunk[start:stop]) != header.sum & 0xFFFFFFFF:
                return False
            if header.kind in (_DATA, _DATA_2):
                values -= header.count
            elif header.kind != _DICTIONARY:
                return False
            start = stop
    except (IndexError, ValueError):
        return False
    return values == 0


class _Header:
    """The header of a page, and where it ends. Raises IndexError or ValueError if it is none."""

    def __init__(self, view: memoryview, start: int) -> None:
        self._view, self.end = view, start
        self.kind = self.size = -1
        self.count = 0
        self.sum: int | None = None
        self._struct(0, 0)

    def _struct(self, depth: int, inside: int) -> None:
        """One struct; `inside` is the field of the header that it is."""
        if depth > _DEEPEST:
            raise ValueError("structs lie too deep for a page's header")
        number = 0
        while byte := self._byte():
            kind, step = byte & 15, byte >> 4
            number = number + step if step else self._signed()
            if kind in (_I16, _I32, _I64):
                self._found(depth, inside, number, self._signed())
            elif kind == _STRUCT:
                self._struct(depth + 1, number if depth == 0 else 0)
            elif kind == _BINARY:
                length = self._varint()
                self.end += length
            elif kind in (_BYTE, _DOUBLE):
                self.end += 1 if kind == _BYTE else 8
            elif kind not in (_TRUE, _FALSE):
                raise ValueError(f"kind {kind} of Thrift stands in no page's header")

    def _found(self, depth: int, inside: int, number: int, value: int) -> None:
        if depth == 0:
            if number == _KIND:
                self.kind = value
            elif number == _SIZE:
                self.size = value
            elif number == _SUM:
                self.sum = value
        elif depth == 1 and number == _COUNT and inside in (_OF_DATA, _OF_DATA_2):
            self.count = value

    def _byte(self) -> int:
        byte = self._view[self.end]
        self.end += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
