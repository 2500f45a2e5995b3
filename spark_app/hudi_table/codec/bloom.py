"""Hudi's bloom filters over record keys, SIMPLE and DYNAMIC_V0.

Facts (measured on Hudi 0.15.0). `m = ceil(n * -ln(p) / ln(2)^2)` bits, `k = ceil(ln(2) * m / n)` hashes; hash i is
MurmurHash2 of the key seeded with hash i-1 (first seed 0), bit = abs(hash rem m), stored least significant bit first.
The last one to three bytes of a key are mixed in as sign-extended bytes in the reverse of the usual order.
Serialised big-endian, then base64: SIMPLE is int -1, int k, byte 1 (murmur), int m, bits; DYNAMIC_V0 is int -1,
int k, byte 1, int m, int n, int count, int rows, then a SIMPLE filter per row. A key goes to the last row until that
has n keys; then a row is added while rows * n < max, after which the next key goes to row 0 and later ones to rows
0, 1, 2, … in turn. Empty keys are refused, as Hudi does.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.utf8 import Utf8, chunks_of, utf8_of
from hudi_table.errors import CorruptTableError, InvalidDataError, InvalidOptionError, UnsupportedTableError

SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"
_VERSION: Final = -1
_MURMUR: Final = 1
_HEAD = struct.Struct(">iibi")
_GROWTH = struct.Struct(">iii")
_MIX: Final = np.uint32(0x5BD1E995)
_CHUNK_KEYS: Final = 64 * 1024
_HASHES_MAX: Final = 1024
"""Each costs time for every key that is looked up; an error rate of 1e-300 needs 997."""

Bits = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class BloomFilterSpec:
    """How to size a filter; the defaults are Hudi's. `max_entries` bounds the growth of DYNAMIC_V0."""

    type: str = DYNAMIC
    num_entries: int = 60_000
    fpp: float = 1e-9
    max_entries: int = 100_000

    def __post_init__(self) -> None:
        if self.type not in (SIMPLE, DYNAMIC):
            raise InvalidOptionError(f"Unknown bloom filter type '{self.type}': use {SIMPLE} or {DYNAMIC}.")
        if self.num_entries < 1 or self.max_entries < 1:
            raise InvalidOptionError(f"A bloom filter of {self.num_entries} entries holds nothing: give at least 1.")
        if not 0 < self.fpp < 1:
            raise InvalidOptionError(f"Bloom filter error rate {self.fpp} is not between 0 and 1.")

    @property
    def bits(self) -> int:
        """Bits of one row."""
        return math.ceil(self.num_entries * (-math.log(self.fpp) / (math.log(2) * math.log(2))))

    @property
    def hashes(self) -> int:
        """Hashes of a key."""
        return math.ceil(math.log(2) * self.bits / self.num_entries)


class BloomFilter:
    """A filter that grows by `add` and answers `might_contain`; rows of bits, one for SIMPLE."""

    __slots__ = ("_bits", "_count", "_cursor", "_full", "_hashes", "_max", "_row_keys", "_rows", "type")

    def __init__(self, kind: str, bits: int, hashes: int, row_keys: int, max_keys: int) -> None:
        self.type = kind
        self._bits = bits
        self._hashes = hashes
        self._row_keys = row_keys
        self._max = max_keys
        self._rows: list[Bits] = [np.zeros(bits, np.bool_)]
        self._count = 0
        self._full = False
        self._cursor = 0

    @classmethod
    def from_spec(cls, spec: BloomFilterSpec) -> BloomFilter:
        """An empty filter."""
        return cls(spec.type, spec.bits, spec.hashes, spec.num_entries, spec.max_entries)

    @classmethod
    def from_keys(cls, keys: pa.Array | pa.ChunkedArray, spec: BloomFilterSpec | None = None) -> BloomFilter:
        """The filter of these keys, added in order."""
        result = cls.from_spec(spec or BloomFilterSpec())
        result.add(keys)
        return result

    @classmethod
    def parse(cls, text: str | bytes, kind: str) -> BloomFilter:
        """A serialised filter. Raises CorruptTableError, or UnsupportedTableError for an unknown kind of filter."""
        try:
            body = base64.b64decode(text, validate=True)
            return _parse(body, kind)
        except (binascii.Error, struct.error, ValueError) as error:
            raise CorruptTableError(f"The bloom filter of type {kind} cannot be parsed: {error}.") from error

    @property
    def bit_count(self) -> int:
        """Bits of one row."""
        return self._bits

    @property
    def hash_count(self) -> int:
        """Hashes of a key."""
        return self._hashes

    @property
    def row_count(self) -> int:
        """Rows of bits, 1 unless a DYNAMIC_V0 filter has grown."""
        return len(self._rows)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add keys in order; nulls are passed over. Raises InvalidDataError if a key is empty (nothing is added)."""
        arrays = [utf8_of(chunk) for chunk in chunks_of(keys)]
        for array in arrays:
            empty = np.diff(array.offsets) == 0
            if array.valid is not None:
                empty &= array.valid
            if empty.any():
                raise InvalidDataError("An empty record key cannot be in a bloom filter: fill it or drop the row.")
        for array in arrays:
            present = np.arange(len(array)) if array.valid is None else np.flatnonzero(array.valid)
            targets = self._targets(len(present))
            for row in np.unique(targets):
                bits = self._rows[row]
                for _, positions in self._positions(array, present[targets == row]):
                    for position in positions:
                        bits[position] = True

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Per key: False if it was surely never added. A null or empty key never was."""
        return np.concatenate([self._lookup(utf8_of(chunk)) for chunk in chunks_of(keys)] or [np.empty(0, np.bool_)])

    def to_bytes(self) -> bytes:
        """The serialised form before base64."""
        head = _HEAD.pack(_VERSION, self._hashes, _MURMUR, self._bits)
        rows = [head + np.packbits(row, bitorder="little").tobytes() for row in self._rows]
        if self.type == SIMPLE:
            return rows[0]
        return b"".join([head, _GROWTH.pack(self._row_keys, self._count, len(rows)), *rows])

    def to_base64(self) -> str:
        """The text that a file's footer holds."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    def _targets(self, keys: int) -> npt.NDArray[np.intp]:
        """The row of each of the next `keys` keys; grows the filter and advances its counters."""
        targets = np.zeros(keys, np.intp)
        if self.type == SIMPLE:
            return targets
        done = 0
        while done < keys:
            rows = len(self._rows)
            if self._full:
                targets[done:] = (self._cursor + np.arange(keys - done)) % rows
                self._cursor += keys - done
                self._count += keys - done
                break
            take = min(keys - done, self._row_keys - self._count)
            if take > 0:
                targets[done : done + take] = rows - 1
            elif rows * self._row_keys < self._max:
                self._rows.append(np.zeros(self._bits, np.bool_))
                self._count = take = 0
            else:
                self._full = True
                take = 1
            done += take
            self._count += take
        return targets

    def _lookup(self, keys: Utf8) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(keys), np.bool_)
        filled = np.diff(keys.offsets) > 0
        present = np.flatnonzero(filled if keys.valid is None else filled & keys.valid)
        for indices, positions in self._positions(keys, present):
            alive = [np.ones(len(indices), np.bool_) for _ in self._rows]
            for position in positions:
                for row, left in zip(self._rows, alive, strict=True):
                    left &= row[position]
            found[indices] = np.logical_or.reduce(alive)
        return found

    def _positions(
        self, keys: Utf8, indices: npt.NDArray[np.intp]
    ) -> Iterator[tuple[npt.NDArray[np.intp], Iterator[npt.NDArray[np.uint32]]]]:
        """(keys, then for each hash their bits), for keys of one length and a bounded number at a time."""
        lengths = np.diff(keys.offsets)[indices]
        for length in np.unique(lengths):
            group = indices[lengths == length]
            for start in range(0, len(group), _CHUNK_KEYS):
                chunk = group[start : start + _CHUNK_KEYS]
                yield chunk, self._hash_chain(*_words(keys, chunk, int(length)), int(length))

    def _hash_chain(self, words: Words, tail: Words | None, length: int) -> Iterator[npt.NDArray[np.uint32]]:
        """Bit positions of hash 0, 1, …: each hash seeds the next one. `words` are mixed already: done once per key."""
        hashed = np.zeros(words.shape[1], np.uint32)
        shifted = np.empty_like(hashed)
        for _ in range(self._hashes):
            hashed ^= np.uint32(length)
            for word in words:
                hashed *= _MIX
                hashed ^= word
            if tail is not None:
                hashed ^= tail
                hashed *= _MIX
            np.right_shift(hashed, 13, out=shifted)
            hashed ^= shifted
            hashed *= _MIX
            np.right_shift(hashed, 15, out=shifted)
            hashed ^= shifted
            yield np.abs(hashed.view(np.int32)).view(np.uint32) % np.uint32(self._bits)


def _words(keys: Utf8, indices: npt.NDArray[np.intp], length: int) -> tuple[Words, Words | None]:
    """(premixed words, one row per word and one column per key; the xor of the tail bytes or None)."""
    starts = keys.offsets[indices]
    table = keys.data[starts[:, None] + np.arange(length)]
    whole = length // 4
    joined = np.ascontiguousarray(table[:, : whole * 4]).reshape(-1).view("<u4")
    words = np.ascontiguousarray(joined.reshape(len(indices), whole).T)
    words *= _MIX
    words ^= words >> 24
    words *= _MIX
    left = length - whole * 4
    if not left:
        return words, None
    signed = table[:, length - left :].view(np.int8).astype(np.int32).view(np.uint32)
    tail = np.zeros(len(indices), np.uint32)
    for distance in range(left, 0, -1):
        tail ^= signed[:, left - distance] << np.uint32(8 * (distance - 1))
    return words, tail


def _parse(body: bytes, kind: str) -> BloomFilter:
    if kind not in (SIMPLE, DYNAMIC):
        raise UnsupportedTableError(f"Bloom filter type '{kind}' is not known; known are {SIMPLE} and {DYNAMIC}.")
    hashes, bits, at = _parse_head(body, 0)
    row_keys = count = 0
    rows = 1
    if kind == DYNAMIC:
        row_keys, count, rows = _GROWTH.unpack_from(body, at)
        at += _GROWTH.size
    else:
        at = 0
    size = (bits + 7) // 8
    if size > len(body) or hashes > _HASHES_MAX:
        raise ValueError(f"{hashes} hashes, {bits} bits in {len(body)} bytes")
    result = BloomFilter(kind, bits, hashes, row_keys, rows * row_keys)
    result._count = count
    result._rows = []
    for _ in range(rows):
        row_hashes, row_bits, start = _parse_head(body, at)
        at = start + size
        if (row_hashes, row_bits) != (hashes, bits) or at > len(body):
            raise ValueError("a row does not have the size that the head tells")
        packed = np.frombuffer(body, np.uint8, size, start)
        result._rows.append(np.unpackbits(packed, count=bits, bitorder="little").view(np.bool_))
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes follow the last row")
    return result


def _parse_head(body: bytes, at: int) -> tuple[int, int, int]:
    version, hashes, function, bits = _HEAD.unpack_from(body, at)
    if version != _VERSION or function != _MURMUR or hashes < 1 or bits < 1:
        raise ValueError(f"version {version}, hash function {function}, {hashes} hashes, {bits} bits")
    return hashes, bits, at + _HEAD.size
