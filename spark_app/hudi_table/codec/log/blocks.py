"""Log blocks: the frames of a log file, with their headers; contents belong to `rows`.

Facts (table version 6, measured on Hudi 0.15.0), all numbers big-endian: magic `#HUDI#`; size (8
bytes) of all that follows it, trailer included; format version (4), 1; type (4); header: count (4),
then ordinal (4), length (4), UTF-8 text each; content length (8); content; footer: a header map
that is always empty; trailer (8): size + 6. A block is corrupt if its end lies past the file's, if
its trailer is not size + 6, or if six bytes follow it that are no magic (fewer are passed over);
the next magic is then searched byte by byte, and what lies before it is skipped as one corrupt
stretch. The format has no check sum: ours stands among the properties of the schema in the header,
and a header that it does not fit is corrupt too. Table versions 8 and 9 (measured on 1.0.2 and
1.1.1) add to the header the records' places in the base file (5, 8), which are a hint and not read,
and whether the records hold changed columns alone (7).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any
from zlib import crc32

from hudi_table.errors import CorruptTableError
from hudi_table.model.timeline.seals import header_seal, with_header_seal, without_header_seal

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
INSTANT_TIME, TARGET_INSTANT_TIME, SCHEMA, COMMAND_TYPE, COMPACTED_BLOCK_TIMES = range(5)
IS_PARTIAL = 7
ROLLBACK_COMMAND = "0"
_NO_SCHEMA = '{"type":"null"}'

_SIZE = struct.Struct(">q")
_TWO_INTS = struct.Struct(">ii")
_INT = struct.Struct(">i")
_SEARCH_BYTES_MIN, _SEARCH_BYTES_MAX = 1 << 10, 1 << 20
_HEADER_BYTES_MAX = 64 << 20
"""A header holds a schema; a length beyond this is damage, not a schema."""


class BlockType(IntEnum):
    """What a block holds; the numbers are those of the format. No block of type CORRUPT is ever
    written."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block, or one corrupt stretch, of the file `path`. Offsets and lengths are bytes;
    `header` is by ordinal."""

    type: BlockType
    path: str
    offset: int
    content_offset: int = 0
    content_length: int = 0
    header: Mapping[int, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The file and the place, for messages."""
        return f"{self.path or 'a log file'} (block at {self.offset})"

    @property
    def instant(self) -> str:
        """The instant that wrote the block, '' if it names none (blocks of the archive, corrupt
        stretches)."""
        return self.header.get(INSTANT_TIME, "")

    @property
    def target(self) -> str:
        """The instant that a rollback block takes back."""
        return self.header.get(TARGET_INSTANT_TIME, "")

    @property
    def schema(self) -> str | None:
        """Avro schema of the content, as JSON text."""
        text = self.header.get(SCHEMA)
        return None if text is None else without_header_seal(text)

    @property
    def is_partial(self) -> bool:
        """Whether its rows hold those columns alone that were changed."""
        return self.header.get(IS_PARTIAL, "").strip().lower() == "true"

    @property
    def compacted(self) -> tuple[str, ...]:
        """The instants whose blocks this one replaces: it was written by a log compaction."""
        times = self.header.get(COMPACTED_BLOCK_TIMES, "")
        return tuple(time.strip() for time in times.split(",") if time.strip())


class _DamagedError(Exception):
    """The bytes at a magic are no whole block."""


def scan_blocks(source: Any, *, path: str = "") -> list[LogBlock]:
    """The blocks of a log file in their order. `source` is a seekable binary file; contents are
    skipped, not read.

    Never raises for damage: a torn, overwritten or foreign stretch comes as one block of type
    CORRUPT.
    """
    end = _length(source)
    return list(_blocks(source, path, end))


def encode_block(kind: BlockType, header: Mapping[int, str], content: bytes) -> bytes:
    """One whole block, as the scan gives it."""
    parts = [_header(kind, header), _SIZE.pack(len(content)), content, _INT.pack(0)]
    size = sum(map(len, parts)) + _SIZE.size
    return b"".join([MAGIC, _SIZE.pack(size), *parts, _SIZE.pack(size + len(MAGIC))])


def sealed_block(kind: BlockType, header: Mapping[int, str], content: bytes) -> bytes:
    """One whole block with check sums of its header and content."""
    return encode_block(kind, _with_seal(kind, header, content), content)


def rollback_block(instant: str, target: str) -> bytes:
    """A command block by which `instant` takes back the blocks of `target`."""
    header = {INSTANT_TIME: instant, TARGET_INSTANT_TIME: target, COMMAND_TYPE: ROLLBACK_COMMAND}
    return encode_block(BlockType.COMMAND, header, b"")


def read_content(source: Any, block: LogBlock) -> bytes:
    """The content of a block, of the file `source`. Raises CorruptTableError that names the file
    and the place."""
    source.seek(block.content_offset)
    data: bytes = source.read(block.content_length)
    try:
        if len(data) < block.content_length:
            raise ValueError("it ends within its content")
        check_content(block, data)
    except ValueError as error:
        raise unreadable(block, error) from error
    return data


def unreadable(block: LogBlock, error: Exception) -> CorruptTableError:
    """What is raised for a block whose content is not what it should be."""
    return CorruptTableError(f"{block.where} cannot be read: {error}", path=block.path)


def check_content(block: LogBlock, content: Any) -> None:
    """Raise ValueError if these are not the bytes that were written as the block's content, where
    it tells."""
    seal = header_seal(block.header.get(SCHEMA, ""))
    if seal is not None and crc32(content) != seal[1]:
        raise ValueError("its check sum is wrong: bytes of it have changed since it was written")


def _with_seal(kind: BlockType, header: Mapping[int, str], content: bytes) -> Mapping[int, str]:
    """The header with check sums in its schema. Blocks of deletes need none of their own: Hudi does
    not read theirs."""
    schema = header.get(SCHEMA, _NO_SCHEMA if kind is BlockType.DELETE else "")
    if not schema.endswith("}"):
        return header
    unsealed = {**header, SCHEMA: with_header_seal(schema, 0, 0)}
    return unsealed | {SCHEMA: with_header_seal(schema, crc32(_header(kind, unsealed)), crc32(content))}


def _header(kind: BlockType, header: Mapping[int, str]) -> bytes:
    texts = [(ordinal, text.encode()) for ordinal, text in header.items()]
    parts = [_TWO_INTS.pack(FORMAT_VERSION, kind), _INT.pack(len(texts))]
    for ordinal, text in texts:
        parts += [_TWO_INTS.pack(ordinal, len(text)), text]
    return b"".join(parts)


def _is_sound(kind: BlockType, header: Mapping[int, str]) -> bool:
    schema = header.get(SCHEMA, "")
    seal = header_seal(schema)
    if seal is None:
        return True
    return crc32(_header(kind, {**header, SCHEMA: with_header_seal(without_header_seal(schema), 0, 0)})) == seal[0]


def _blocks(source: Any, path: str, end: int) -> Iterator[LogBlock]:
    at = 0
    while at < end:
        damaged = None
        while at < end:
            try:
                block, after = _block(source, path, at, end)
                break
            except _DamagedError:
                damaged = at if damaged is None else damaged
                at = _next_magic(source, at + 1, end)
        if damaged is not None:
            yield LogBlock(BlockType.CORRUPT, path, damaged)
        if at < end:
            yield block
            at = after


def _block(source: Any, path: str, start: int, end: int) -> tuple[LogBlock, int]:
    """The block at `start` and where the next one begins. Raises _DamagedError."""
    head = _Reader(source, start, end)
    if head.take(len(MAGIC)) != MAGIC:
        raise _DamagedError
    (size,) = _SIZE.unpack(head.take(_SIZE.size))
    stop = start + len(MAGIC) + _SIZE.size + size
    if size < 0 or stop > end:
        raise _DamagedError
    if _SIZE.unpack(_Reader(source, stop - _SIZE.size, end).take(_SIZE.size))[0] != size + len(MAGIC):
        raise _DamagedError
    if end - stop >= len(MAGIC) and _Reader(source, stop, end).take(len(MAGIC)) != MAGIC:
        raise _DamagedError
    inside = _Reader(source, head.at, stop)
    version, number = _TWO_INTS.unpack(inside.take(8))
    if version != FORMAT_VERSION or number not in set(BlockType):
        raise _DamagedError
    header = inside.header()
    (length,) = _SIZE.unpack(inside.take(_SIZE.size))
    if not 0 <= length <= stop - inside.at or not _is_sound(BlockType(number), header):
        raise _DamagedError
    return LogBlock(BlockType(number), path, start, inside.at, length, header), stop


class _Reader:
    """Bytes of a file from a place on, none beyond `end`."""

    def __init__(self, source: Any, at: int, end: int) -> None:
        self._source, self.at, self._end = source, at, end

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > self._end:
            raise _DamagedError
        self._source.seek(self.at)
        data = bytes(self._source.read(count))
        if len(data) < count:
            raise _DamagedError
        self.at += count
        return data

    def header(self) -> dict[int, str]:
        (count,) = _INT.unpack(self.take(4))
        if not 0 <= count <= 64:
            raise _DamagedError
        found = {}
        for _ in range(count):
            ordinal, length = _TWO_INTS.unpack(self.take(8))
            if not 0 <= length <= _HEADER_BYTES_MAX:
                raise _DamagedError
            try:
                found[ordinal] = self.take(length).decode()
            except UnicodeDecodeError:
                raise _DamagedError from None
        return found


def _next_magic(source: Any, start: int, end: int) -> int:
    """Where the next magic begins, or the end of the file."""
    at, size = start, _SEARCH_BYTES_MIN
    while at < end:
        source.seek(at)
        window = bytes(source.read(min(size + len(MAGIC), end - at)))
        found = window.find(MAGIC)
        if found >= 0:
            return at + found
        at += size
        # Magics may lie close together: what was read behind the next one would be read again.
        size = min(2 * size, _SEARCH_BYTES_MAX)
    return end


def _length(source: Any) -> int:
    source.seek(0, 2)
    return int(source.tell())
