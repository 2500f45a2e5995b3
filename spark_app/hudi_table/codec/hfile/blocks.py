"""Blocks of an HFile: a head, data that may be compressed, checksums.

Facts (measured on Hudi 0.15.0 and 1.1.1), numbers big-endian: magic (8 bytes), bytes after the head
(4), bytes of the data once inflated (4), offset of the previous block of that type or -1 (8), kind
of checksum (1: none 0, CRC-32 1, CRC-32C 2), bytes that one checksum covers (4), bytes of head and
data (4); then the data and 4 bytes of checksum for each such stretch of head and data. HBase writes
CRC-32C over 16,384 bytes; Hudi 1.x writes kind 0 and no checksums.

hudi-rs counts the checksums from the length that includes them. Where that gives one more than
there are, it cuts the end off the data: `compressed` then makes the gzip stream a little longer, so
that both counts agree.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hudi_table.codec.hashes.crc32c import crc32c
from hudi_table.codec.hfile.compression import GZ, gzip, inflate
from hudi_table.codec.hfile.protobuf import MalformedError

DATA: Final = b"DATABLK*"
META: Final = b"METABLKc"
ROOT_INDEX: Final = b"IDXROOT2"
LEAF_INDEX: Final = b"IDXLEAF2"
INNER_INDEX: Final = b"IDXINTE2"
FILE_INFO: Final = b"FILEINF2"
BLOCK_BYTES_MAX: Final = 1 << 30
"""An inflated block beyond this is damage: Hudi cuts blocks at 1 MiB, and one record of a million
files has some 100 MB."""
_ROOMY_BYTES: Final = 64 << 20
_PACKED_MOST: Final = 64
"""Larger than roomy, a block is damage if it was packed closer than this: names of files, of which
large ones are made, shrink some five times."""

_HEAD = struct.Struct(">8siiqBii")
HEAD_BYTES: Final = _HEAD.size
_CRC32, _CRC32C = 1, 2
_CHUNK_BYTES: Final = 16 * 1024
_PADDING_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a block at `start`: lengths in bytes; `stored` counts head and data, `whole` the
    checksums too."""

    magic: bytes
    start: int
    stored: int
    whole: int
    inflated: int
    checksum: int
    chunk: int


def head_at(data: memoryview, start: int) -> Head:
    """The head of the block that lies at `start` and ends within `data`. Raises MalformedError."""
    if start < 0 or start + HEAD_BYTES > len(data):
        raise MalformedError(f"a block at {start} leaves its {len(data)} bytes")
    magic, after, inflated, _, checksum, chunk, stored = _HEAD.unpack_from(data, start)
    whole = HEAD_BYTES + after
    if not HEAD_BYTES <= stored <= whole <= len(data) - start or not 0 <= inflated <= BLOCK_BYTES_MAX:
        raise MalformedError(f"the block at {start} has lengths that contradict each other")
    if inflated > max(_ROOMY_BYTES, _PACKED_MOST * stored):
        raise MalformedError(f"the block at {start} would make {inflated:,} bytes of {stored:,}")
    if checksum not in (0, _CRC32, _CRC32C):
        raise MalformedError(f"the block at {start} has checksums of the unknown kind {checksum}")
    if checksum and (chunk < 1 or whole - stored != 4 * -(-stored // chunk)):
        raise MalformedError(f"the block at {start} has no room for its checksums")
    return Head(magic, start, stored, whole, inflated, checksum, chunk)


def verify(data: memoryview, heads: Sequence[Head]) -> None:
    """Compare the checksums of the blocks, all at once. Raises MalformedError that names the first
    block that differs."""
    checked = [head for head in heads if head.checksum == _CRC32C]
    for head in heads:
        if head.checksum == _CRC32:
            found = [zlib.crc32(data[start : start + length]) for start, length in _chunks(head)]
            _compare(data, [head], found)
    if checked:
        places = np.array([chunk for head in checked for chunk in _chunks(head)], np.int64).reshape(-1, 2)
        sums = crc32c(np.frombuffer(data, np.uint8), places[:, 0], places[:, 1])
        _compare(data, checked, sums.tolist())


def content(data: memoryview, head: Head, codec: int) -> bytes:
    """The inflated data of a block. Raises MalformedError."""
    stored = bytes(data[head.start + HEAD_BYTES : head.start + head.stored])
    return inflate(stored, codec, head.inflated)


@dataclass(frozen=True, slots=True)
class Stored:
    """The data of a block as it is stored; lengths in bytes, `inflated` before compression."""

    data: bytes
    inflated: int

    @property
    def size(self) -> int:
        """Head and data."""
        return HEAD_BYTES + len(self.data)

    @property
    def whole(self) -> int:
        """Head, data and checksums."""
        return self.size + _checksum_bytes(self.size)


def compressed(contents: Sequence[bytes], codec: int) -> list[Stored]:
    """The contents of blocks as they are stored, GZ or NONE."""
    return [Stored(data if codec != GZ else _gzipped(data), len(data)) for data in contents]


def finished(magic: bytes, contents: Sequence[Stored], previous: Sequence[int]) -> list[bytes]:
    """Blocks of these contents with heads and checksums; `previous`: offset of the block of their
    type before each."""
    parts, places, at = [], [], 0
    for stored, before in zip(contents, previous, strict=True):
        size = stored.size
        after = stored.whole - HEAD_BYTES
        parts.append(_HEAD.pack(magic, after, stored.inflated, before, _CRC32C, _CHUNK_BYTES, size) + stored.data)
        places += [(at + start, min(_CHUNK_BYTES, size - start)) for start in range(0, size, _CHUNK_BYTES)]
        at += size
    joined = np.frombuffer(b"".join(parts), np.uint8)
    table = np.array(places, np.int64).reshape(-1, 2)
    sums = crc32c(joined, table[:, 0], table[:, 1]).astype(">u4").tobytes()
    found, used = [], 0
    for part in parts:
        own = _checksum_bytes(len(part))
        found.append(part + sums[used : used + own])
        used += own
    return found


def _gzipped(data: bytes) -> bytes:
    stored = gzip(data)
    size = HEAD_BYTES + len(stored)
    if _checksum_bytes(size) == _checksum_bytes(size + _checksum_bytes(size)):
        return stored
    return gzip(data, padding=_PADDING_BYTES + _checksum_bytes(size))


def _checksum_bytes(size: int) -> int:
    return 4 * -(-size // _CHUNK_BYTES)


def _chunks(head: Head) -> list[tuple[int, int]]:
    """(start, length) of each stretch that has a checksum."""
    end = head.start + head.stored
    return [(start, min(head.chunk, end - start)) for start in range(head.start, end, head.chunk)]


def _compare(data: memoryview, heads: Sequence[Head], sums: Sequence[int]) -> None:
    at = 0
    for head in heads:
        count = (head.whole - head.stored) // 4
        stored = struct.unpack(f">{count}I", data[head.start + head.stored : head.start + head.whole])
        if list(stored) != list(sums[at : at + count]):
            raise MalformedError(f"the block at {head.start} does not have its checksum")
        at += count
