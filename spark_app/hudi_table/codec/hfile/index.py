"""The index of an HFile: for each block its first key, its place and its size.

Facts (measured on Hudi 0.15.0 and 1.1.1), numbers big-endian. Root: per entry offset (8), size (4),
the key after a Hadoop variable-length number; the trailer counts the entries. Below it, where the
trailer tells more than one level, blocks with a count (4), count + 1 offsets of entries (4 each),
then entries: offset (8), size (4), key. Root indexes of data and of meta blocks follow each other.
A first key may be shortened: it is greater than all keys before the block and not greater than
those in it.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hudi_table.codec.hfile import blocks
from hudi_table.codec.hfile.entries import key_of, row_of
from hudi_table.codec.hfile.protobuf import MalformedError

_PLACE = struct.Struct(">qi")
_INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Entry:
    """One block: its first key (for meta blocks its name), offset and size in bytes, checksums
    included."""

    key: bytes
    offset: int
    size: int


def parse_root(data: bytes, count: int, *, names: bool = False, whole: bool = True) -> list[Entry]:
    """The `count` entries of a root index; `names`: of meta blocks, whose keys are plain names;
    `whole`: nothing else follows them, as only where there are lower levels. Raises
    MalformedError."""
    entries, at = [], 0
    # An entry has at least 13 bytes: a count beyond that ends with the data.
    for _ in range(count):
        offset, size = _place(data, at)
        length, at = _hadoop_number(data, at + _PLACE.size)
        if not 0 <= length <= len(data) - at:
            raise MalformedError("a key of its root index leaves the block")
        key = data[at : at + length]
        at += length
        entries.append(Entry(key if names else row_of(key), offset, size))
    if whole and at != len(data):
        raise MalformedError(f"its root index has more than the {count} entries that its trailer counts")
    return entries if names else _apart(entries)


def parse_level(data: bytes) -> list[Entry]:
    """The entries of a block of a lower level. Raises MalformedError."""
    if len(data) < 4:
        raise MalformedError("a block of its index is empty")
    (count,) = _INT.unpack_from(data)
    base = 4 * (count + 2)
    if not count >= 0 or base > len(data):
        raise MalformedError(f"a block of its index counts {count} entries")
    offsets = struct.unpack_from(f">{count + 1}i", data, 4)
    found = []
    for start, stop in itertools.pairwise(offsets):
        if not 0 <= start <= stop - _PLACE.size <= len(data) - base - _PLACE.size:
            raise MalformedError("an entry of its index leaves the block")
        offset, size = _place(data, base + start)
        found.append(Entry(row_of(data[base + start + _PLACE.size : base + stop]), offset, size))
    return found


Read = Callable[[Sequence[Entry]], Iterable[tuple[bytes, bytes]]]
"""Gives (magic, data) of the blocks of entries."""


def below(entries: Sequence[Entry], level: int, read: Read) -> list[Entry]:
    """The entries in the blocks of these entries, which stand at `level`; 1 is that of data blocks.
    Raises MalformedError."""
    wanted = blocks.LEAF_INDEX if level == 2 else blocks.INNER_INDEX
    found = []
    for magic, data in read(entries):
        if magic != wanted:
            raise MalformedError(f"a block of its index is a {magic!r}")
        found += parse_level(data)
    return _apart(found)


def _apart(entries: list[Entry]) -> list[Entry]:
    """The entries of one level, whose blocks follow each other in the file. Otherwise blocks could
    name each other, and a small file spell out any number of them. Raises MalformedError."""
    for before, after in itertools.pairwise(entries):
        if after.offset < before.offset + before.size:
            raise MalformedError(f"its index names a block at {after.offset} within or before that at {before.offset}")
    return entries


def root_bytes(entries: Sequence[Entry], *, names: bool = False) -> bytes:
    """A root index; keys are written whole, as HBase does."""
    parts = []
    for entry in entries:
        key = entry.key if names else key_of(entry.key)
        parts += [_PLACE.pack(entry.offset, entry.size), _hadoop_bytes(len(key)), key]
    return b"".join(parts)


def _place(data: bytes, at: int) -> tuple[int, int]:
    if at + _PLACE.size > len(data):
        raise MalformedError("its index ends within an entry")
    offset, size = _PLACE.unpack_from(data, at)
    if offset < 0 or size < blocks.HEAD_BYTES:
        raise MalformedError(f"its index names a block of {size} bytes at {offset}")
    return offset, size


def _hadoop_number(data: bytes, at: int) -> tuple[int, int]:
    """(number, place after it). One byte from -112 on is the number; below, it tells how many bytes
    follow."""
    if at >= len(data):
        raise MalformedError("its index ends within an entry")
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1
    length = -112 - first
    if length > 4 or at + 1 + length > len(data):
        raise MalformedError("its index names a key that no block holds")
    return int.from_bytes(data[at + 1 : at + 1 + length], "big"), at + 1 + length


def _hadoop_bytes(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    body = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(body)]) + body
