"""`write_hfile`: a file as HBase's writer lays it out, whose readers in Hudi 0.15.0 and 1.1.1 and
in hudi-rs read it.

One level of index. A data block ends with the entry that fills its 64 KiB: Hudi's own reader looks
for no entry in the last bytes of a block, as many as its checksums have, and so the last entry is
longer than that. Memory: the entries once more, and the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.hfile import blocks, index, trailer
from hudi_table.codec.hfile.compression import CODECS
from hudi_table.codec.hfile.entries import ROW_BYTES_MAX, SUFFIX, entries_bytes, key_of
from hudi_table.codec.hfile.index import Entry
from hudi_table.codec.hfile.reader import BLOOM_BLOCK
from hudi_table.errors import InvalidDataError, InvalidOptionError

_BLOCK_BYTES: Final = 64 << 10
_BLOCKS_AT_ONCE: Final = 64
_ROWS_AT_ONCE: Final = 256 << 10
WRITTEN: Final = ("GZ", "NONE")


class Sink(Protocol):
    """Where the bytes of a file go, in their order."""

    def write(self, data: bytes, /) -> object:
        """Append `data`."""


class _Bytes:
    """A sink that keeps what is written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes, /) -> object:
        self.parts.append(data)
        return len(data)


def write_hfile(
    keys: pa.Array | pa.ChunkedArray,
    values: pa.Array | pa.ChunkedArray,
    *,
    schema: str,
    info: Mapping[str, bytes] | None = None,
    compression: str = "GZ",
    bloom: BloomFilter | None = None,
) -> bytes:
    """A whole file of these entries. Raises what `write_hfile_to` raises."""
    sink = _Bytes()
    write_hfile_to(sink, keys, values, schema=schema, info=info, compression=compression, bloom=bloom)
    return b"".join(sink.parts)


def write_hfile_to(
    sink: Sink,
    keys: pa.Array | pa.ChunkedArray,
    values: pa.Array | pa.ChunkedArray,
    *,
    schema: str,
    info: Mapping[str, bytes] | None = None,
    compression: str = "GZ",
    bloom: BloomFilter | None = None,
) -> int:
    """Write a file of these entries to `sink`; returns its bytes.

    `keys` (strings or binary) are sorted by their bytes, without duplicates and nulls; `values` are
    binary without nulls; `schema` is their Avro schema as JSON text; `info` goes into the file info
    beside what belongs there; `bloom` is the filter over the keys, with which Hudi writes base
    files. Raises InvalidDataError, InvalidOptionError for a compression other than GZ and NONE.
    """
    if compression not in WRITTEN:
        raise InvalidOptionError(f"HFiles are written with {' or '.join(WRITTEN)}, not with '{compression}'.")
    names, data = _checked(keys), _checked(values)
    if len(names) != len(data):
        raise InvalidDataError(f"{len(names)} keys cannot have {len(data)} values.")
    _check_keys(names)
    file = _File(sink, compression)
    for first in range(0, len(names), _ROWS_AT_ONCE):
        file.entries(
            names.slice(first, _ROWS_AT_ONCE), data.slice(first, _ROWS_AT_ONCE), first + _ROWS_AT_ONCE >= len(names)
        )
    pairs = {"schema": schema.encode(), **(info or {}), **_about(names, data)}
    if bloom is not None:
        ends = (names[0].as_py(), names[-1].as_py()) if len(names) else (b"", b"")
        pairs |= {"minRecordKey": ends[0], "maxRecordKey": ends[1], "bloomFilterTypeCode": bloom.type.encode()}
    return file.close(pairs, bloom)


class _File:
    """A file that grows: data blocks, then everything that is read when it is opened."""

    def __init__(self, sink: Sink, codec: str) -> None:
        self._sink = sink
        self._codec = CODECS[codec]
        self._offset = 0
        self._data: list[Entry] = []
        self._inflated = 0
        self._entries = 0
        self._open: list[bytes] = []
        self._first = b""

    def entries(self, keys: pa.Array, values: pa.Array, last: bool) -> None:
        """Append entries; a block that they do not fill waits for the next ones, unless these are
        the last."""
        data, places = entries_bytes(keys, values)
        self._entries += len(keys)
        cuts = _cuts(places, sum(map(len, self._open)), last)
        full: list[tuple[bytes, bytes]] = []
        begin = 0
        for cut in cuts:
            first = self._first if self._open else keys[begin].as_py()
            full.append((first, b"".join([*self._open, data[places[begin] : places[cut]]])))
            self._open, begin = [], cut
        if begin < len(keys):
            self._first = self._first if self._open else keys[begin].as_py()
            self._open.append(bytes(data[places[begin] : places[len(keys)]]))
        for at in range(0, len(full), _BLOCKS_AT_ONCE):
            self._data_blocks(full[at : at + _BLOCKS_AT_ONCE])

    def close(self, info: Mapping[str, bytes], bloom: BloomFilter | None) -> int:
        """Write what follows the data; returns the bytes of the file."""
        meta = []
        if bloom is not None:
            meta.append(self._block(blocks.META, bloom.to_base64().encode(), BLOOM_BLOCK))
        root = index.root_bytes(self._data)
        load = self._block(blocks.ROOT_INDEX, root)
        self._block(blocks.ROOT_INDEX, index.root_bytes(meta, names=True), previous=load.offset)
        place = self._block(blocks.FILE_INFO, trailer.info_bytes(info))
        tail = trailer.Trailer(
            info_offset=place.offset,
            load_offset=load.offset,
            index_bytes=len(root),
            uncompressed_bytes=self._inflated,
            index_count=len(self._data),
            meta_count=len(meta),
            entries=self._entries,
            levels=1,
            first_data_offset=self._data[0].offset if self._data else 0,
            last_data_offset=self._data[-1].offset if self._data else 0,
            codec=self._codec,
        )
        self._write(trailer.trailer_bytes(tail))
        return self._offset

    def _data_blocks(self, contents: list[tuple[bytes, bytes]]) -> None:
        # The head of a block tells where the one before it starts, which its checksum covers: sizes come first.
        stored = blocks.compressed([data for _, data in contents], self._codec)
        previous, at = [], self._offset
        before = self._data[-1].offset if self._data else -1
        for part in stored:
            previous.append(before)
            before, at = at, at + part.whole
        for (first, _), block in zip(contents, blocks.finished(blocks.DATA, stored, previous), strict=True):
            self._data.append(Entry(first, self._offset, len(block)))
            self._write(block)
        self._inflated += sum(part.inflated + blocks.HEAD_BYTES for part in stored)

    def _block(self, magic: bytes, data: bytes, key: bytes = b"", previous: int = -1) -> Entry:
        (block,) = blocks.finished(magic, blocks.compressed([data], self._codec), [previous])
        entry = Entry(key, self._offset, len(block))
        self._write(block)
        self._inflated += len(data) + blocks.HEAD_BYTES
        return entry

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._offset += len(data)


def _cuts(places: npt.NDArray[np.int64], waiting: int, last: bool) -> Iterator[int]:
    """After which entries a block ends: as soon as it has its bytes, `waiting` of which are there
    already."""
    begin, entries = 0, len(places) - 1
    while begin < entries:
        cut = int(np.searchsorted(places, places[begin] + _BLOCK_BYTES - waiting))
        if cut > entries:
            break
        yield cut
        begin, waiting = cut, 0
    if last and begin < entries:
        yield entries


def _about(keys: pa.Array, values: pa.Array) -> dict[str, bytes]:
    """What HBase writes into the file info, in its form."""
    found = {
        "hfile.AVG_KEY_LEN": _average(keys, len(SUFFIX) + 2),
        "hfile.AVG_VALUE_LEN": _average(values, 0),
        "hfile.CREATE_TIME_TS": bytes(8),
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": bytes(8),
    }
    return found | ({"hfile.LASTKEY": key_of(keys[-1].as_py())} if len(keys) else {})


def _average(values: pa.Array, more: int) -> bytes:
    total = pc.sum(pc.binary_length(values)).as_py() or 0
    return struct.pack(">i", total // len(values) + more if len(values) else 0)


def _checked(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if whole.null_count:
        raise InvalidDataError(f"{whole.null_count} entries of an HFile are null: leave them out.")
    return whole.cast(pa.large_binary())


def _check_keys(keys: pa.Array) -> None:
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > ROW_BYTES_MAX:
        raise InvalidDataError(f"A key of {longest} bytes is too long for an HFile, which holds {ROW_BYTES_MAX}.")
    rising = pc.less(keys.slice(0, max(0, len(keys) - 1)), keys.slice(1))
    if not pc.all(rising, min_count=0).as_py():
        at = int(np.argmin(np.asarray(rising)))
        raise InvalidDataError(
            f"The keys of an HFile are sorted by their bytes, each one once; {keys[at + 1].as_py()!r} follows {keys[at].as_py()!r}."
        )
