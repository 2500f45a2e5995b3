"""`HFile`: a file read from its trailer on; blocks are fetched when their entries are asked for.

The trailer and the section that it points to (root indexes, file info) are read at once, lower
levels of the index and data blocks in runs of neighbours. Memory: the index, and one run of data
blocks inflated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.hfile import blocks, compression, index, trailer
from hudi_table.codec.hfile.entries import SCHEMA, parse_entries
from hudi_table.codec.hfile.index import Entry
from hudi_table.codec.hfile.protobuf import MalformedError
from hudi_table.errors import CorruptTableError, UnsupportedTableError

_RUN_BYTES: Final = 8 << 20
_RUN_GAP_BYTES: Final = 256 << 10
_BATCH_BYTES: Final = 32 << 20
BLOOM_BLOCK: Final = b"bloomFilter"


class HFile:
    """Sorted keys and values of one file. Every method but `open` raises what `batches` raises."""

    __slots__ = ("_meta", "_root", "_source", "_trailer", "info", "path")

    def __init__(
        self, source: pa.NativeFile, path: str, tail: trailer.Trailer, sections: tuple[bytes, bytes, bytes]
    ) -> None:
        self._source, self.path, self._trailer = source, path, tail
        root, meta, info = sections
        self._root = index.parse_root(root, tail.index_count, whole=tail.levels == 1)
        self._meta = index.parse_root(meta, tail.meta_count, names=True)
        self.info: Mapping[str, bytes] = trailer.parse_info(info)

    @classmethod
    def open(cls, source: pa.NativeFile, *, path: str) -> HFile:
        """The file in `source`, which stays open as long as it is read; `path` is for messages.

        Raises CorruptTableError, UnsupportedTableError for a compression that nothing here can
        undo.
        """
        try:
            size = source.size()
            if size < trailer.TRAILER_BYTES:
                raise MalformedError(f"its {size} bytes are too few for a trailer")
            tail = trailer.parse_trailer(_read(source, size - trailer.TRAILER_BYTES, trailer.TRAILER_BYTES), size)
            if not compression.can_inflate(tail.codec):
                name = compression.codec_name(tail.codec)
                raise UnsupportedTableError(
                    f"{path} is an HFile with compression {name}, which cannot be read: write it with GZ or NONE",
                    path=path,
                )
            loaded = memoryview(_read(source, tail.load_offset, size - trailer.TRAILER_BYTES - tail.load_offset))
            return cls(source, path, tail, _sections(loaded, tail))
        except MalformedError as error:
            raise _corrupt(path, error) from error

    @property
    def entries(self) -> int:
        """How many entries the file says that it has."""
        return self._trailer.entries

    @property
    def index_levels(self) -> int:
        """How many levels its index has: the root, and what lies between it and the data."""
        return self._trailer.levels

    @property
    def schema(self) -> str:
        """Avro schema of the values as JSON text; '' if the file names none, as other writers'
        files may."""
        return self.info.get("schema", b"").decode("utf-8", "replace")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All entries in the order of the file: columns `key` and `value`, binary without nulls.

        Raises CorruptTableError where bytes contradict the format, their checksum or each other.
        """
        count = 0
        for batch in self._batches(self._data_blocks()):
            count += len(batch)
            yield batch
        if count != self.entries:
            raise _corrupt(self.path, f"it holds {count} entries where its trailer says {self.entries}")

    def read(self) -> pa.Table:
        """All entries as one table."""
        return pa.Table.from_batches(self.batches(), schema=SCHEMA)

    def lookup(self, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
        """The entries whose key is one of `keys` (binary or strings, in any order): only their
        blocks are read."""
        wanted = pc.unique(_binary(keys).drop_null())
        names = _Sorted(wanted)

        def holds(entry: Entry, following: bytes | None) -> bool:
            first = bisect_left(names, entry.key)
            return first < len(names) and (following is None or names[first] < following)

        found = self._batches(self._chosen(holds)) if len(names) else iter(())
        return _table(batch.filter(pc.is_in(batch.column(0), value_set=wanted)) for batch in found)

    def prefix(self, prefixes: pa.Array | pa.ChunkedArray) -> pa.Table:
        """The entries whose key starts with one of `prefixes`: only blocks that may hold one are
        read."""
        wanted = pc.unique(_binary(prefixes).drop_null())
        names = sorted(wanted.to_pylist())
        lengths, known = {len(name) for name in names}, set(names)

        def holds(entry: Entry, following: bytes | None) -> bool:
            first = bisect_left(names, entry.key)
            if first < len(names) and (following is None or names[first] < following):
                return True
            # A prefix smaller than the block's keys is in it if its first key has it.
            return any(entry.key[:length] in known for length in lengths)

        found = self._batches(self._chosen(holds)) if names else iter(())
        return _table(batch.filter(_has_prefix(batch.column(0), wanted)) for batch in found)

    def bloom(self) -> BloomFilter | None:
        """The filter over the keys, where the file has one."""
        kind = self.info.get("bloomFilterTypeCode")
        place = next((entry for entry in self._meta if entry.key == BLOOM_BLOCK), None)
        if kind is None or place is None:
            return None
        try:
            ((magic, data),) = self._fetch([place])
            if magic != blocks.META:
                raise MalformedError(f"its bloom filter is a {magic!r}")
        except MalformedError as error:
            raise _corrupt(self.path, error) from error
        return BloomFilter.parse(data, kind.decode("utf-8", "replace"))

    def _data_blocks(self) -> list[Entry]:
        return self._chosen(lambda _entry, _following: True)

    def _chosen(self, holds: Callable[[Entry, bytes | None], bool]) -> list[Entry]:
        """The data blocks that `holds` takes, going down only into those parts of the index that it
        takes."""
        entries = self._root
        try:
            for level in range(self._trailer.levels, 0, -1):
                following = [entry.key for entry in entries[1:]]
                entries = [
                    entry for entry, after in zip(entries, [*following, None], strict=False) if holds(entry, after)
                ]
                if level > 1:
                    entries = index.below(entries, level, self._fetch)
        except MalformedError as error:
            raise _corrupt(self.path, error) from error
        return entries

    def _batches(self, entries: Sequence[Entry]) -> Iterator[pa.RecordBatch]:
        held: list[bytes] = []
        try:
            for magic, data in self._fetch(entries):
                if magic != blocks.DATA:
                    raise MalformedError(f"a data block is a {magic!r}")
                if held and sum(map(len, held)) + len(data) > _BATCH_BYTES:
                    yield parse_entries(held)
                    held = []
                held.append(data)
            if held:
                yield parse_entries(held)
        except (MalformedError, pa.ArrowInvalid) as error:
            raise _corrupt(self.path, error) from error

    def _fetch(self, entries: Sequence[Entry]) -> Iterator[tuple[bytes, bytes]]:
        """(magic, inflated data) of each block; neighbours are read together. Raises
        MalformedError."""
        end = self._source.size() - trailer.TRAILER_BYTES
        for run in _runs(entries):
            start, stop = run[0].offset, run[-1].offset + run[-1].size
            if stop > end:
                raise MalformedError(f"its index names a block that ends at {stop}, beyond {end}")
            data = memoryview(_read(self._source, start, stop - start))
            heads = [blocks.head_at(data, entry.offset - start) for entry in run]
            for entry, head in zip(run, heads, strict=True):
                if head.whole != entry.size and head.stored != entry.size:
                    raise MalformedError(
                        f"the block at {entry.offset} is not of the {entry.size} bytes that its index says"
                    )
            blocks.verify(data, heads)
            for head in heads:
                yield head.magic, blocks.content(data, head, self._trailer.codec)


class _Sorted(Sequence[bytes]):
    """Keys in the order of their bytes, of which a binary search looks at a few."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys.take(pc.sort_indices(keys))

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        return self._keys[place].as_py()


def _sections(loaded: memoryview, tail: trailer.Trailer) -> tuple[bytes, bytes, bytes]:
    """Root index of data, root index of meta blocks, file info: the blocks that are read when a
    file is opened."""
    wanted = [blocks.ROOT_INDEX, blocks.ROOT_INDEX, blocks.FILE_INFO]
    heads, at = [], 0
    for magic in wanted:
        if magic == blocks.FILE_INFO:
            at = tail.info_offset - tail.load_offset
        head = blocks.head_at(loaded, at)
        if head.magic != magic:
            raise MalformedError(f"the block at {tail.load_offset + at} is a {head.magic!r}, not a {magic!r}")
        heads.append(head)
        at += head.whole
    blocks.verify(loaded, heads)
    root, meta, info = (blocks.content(loaded, head, tail.codec) for head in heads)
    return root, meta, info


def _runs(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Blocks that are read at once: neighbours in the file, few bytes altogether."""
    run: list[Entry] = []
    for entry in entries:
        end = run[-1].offset + run[-1].size if run else 0
        if run and not (
            0 <= entry.offset - end <= _RUN_GAP_BYTES and entry.offset + entry.size - run[0].offset <= _RUN_BYTES
        ):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _read(source: pa.NativeFile, start: int, length: int) -> bytes:
    if length < 0:
        raise MalformedError("its sections overlap")
    data: bytes = source.read_at(length, start)
    if len(data) < length:
        raise MalformedError(f"it ends within the {length} bytes at {start}")
    return data


def _binary(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return whole.cast(pa.binary())


def _has_prefix(keys: pa.Array, prefixes: pa.Array) -> pa.Array:
    lengths = pc.binary_length(prefixes)
    found = None
    for length in pc.unique(lengths).to_pylist():
        some = prefixes.filter(pc.equal(lengths, length))
        matches = pc.is_in(pc.binary_slice(keys, 0, length), value_set=some)
        found = matches if found is None else pc.or_(found, matches)
    return found


def _table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches((batch for batch in batches if len(batch)), schema=SCHEMA)


def _corrupt(path: str, error: Exception | str) -> CorruptTableError:
    return CorruptTableError(f"HFile {path} cannot be read: {error}", path=path)
