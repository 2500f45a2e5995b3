"""Hudi's bloom filters over record keys, SIMPLE and DYNAMIC_V0.

Facts (measured on Hudi 0.15.0). `m = ceil(n * -ln(p) / ln(2)^2)` bits, `k = ceil(ln(2) * m / n)`
hashes (`hashing.py`), bits stored least significant first. Serialised big-endian, then base64:
SIMPLE is int -1, int k, byte 1 (murmur), int m, bits; DYNAMIC_V0 is int -1, int k, byte 1, int m,
int n, int count, int rows, then a SIMPLE filter per row. A key goes to the last row until that has
n keys; then a row is added while rows * n < max, after which the next key goes to row 0 and later
ones to rows 0, 1, 2, … in turn. Empty keys are refused, as Hudi does.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_table.codec.bloom.hashing import Indices, KeyBlock, Marks, key_blocks
from hudi_table.codec.bloom.probe import PreparedKeys, filled, probe, set_bits
from hudi_table.codec.text.utf8 import chunks_of, utf8_of
from hudi_table.errors import CorruptTableError, InvalidDataError, InvalidOptionError, UnsupportedTableError

SIMPLE: Final = "SIMPLE"
DYNAMIC: Final = "DYNAMIC_V0"
_VERSION: Final = -1
_MURMUR: Final = 1
_HEAD = struct.Struct(">iibi")
_GROWTH = struct.Struct(">iii")
_HASHES_MAX: Final = 1024
"""Each costs time for every key that is looked up; an error rate of 1e-300 needs 997."""


@dataclass(frozen=True, slots=True)
class BloomFilterSpec:
    """How to size a filter; the defaults are Hudi's. `max_entries` bounds the growth of
    DYNAMIC_V0."""

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
        self._rows: list[Marks] = [np.zeros(bits, np.bool_)]
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
        """A serialised filter. Raises CorruptTableError, or UnsupportedTableError for an unknown
        kind of filter."""
        try:
            body = base64.b64decode(text, validate=True)
            return _parse(body, kind)
        except (binascii.Error, struct.error, ValueError) as error:
            raise CorruptTableError(f"The bloom filter of type {kind} cannot be parsed: {error}.") from error

    def going_on(self, spec: BloomFilterSpec) -> BloomFilter | None:
        """This filter, to add more keys to it, if an empty one of the spec would be like it."""
        row_keys = spec.num_entries if spec.type == DYNAMIC else 0
        if (self.type, self._bits, self._hashes, self._row_keys) != (spec.type, spec.bits, spec.hashes, row_keys):
            return None
        self._max = spec.max_entries
        return self

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
        """Add keys in order; nulls are passed over. Raises InvalidDataError if a key is empty
        (nothing is added)."""
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
                for block in key_blocks(array, present[targets == row]):
                    set_bits(self._rows[row], self._hashes, block)

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> Marks:
        """Per key: False if it was surely never added. A null or empty key never was."""
        arrays = [utf8_of(chunk) for chunk in chunks_of(keys)]
        found = [self._probed(key_blocks(array, filled(array)), len(array)) for array in arrays]
        return np.concatenate(found or [np.empty(0, np.bool_)])

    def might_contain_prepared(self, keys: PreparedKeys, start: int = 0, stop: int | None = None) -> Marks:
        """As `might_contain`, of the keys from place `start` to before `stop`."""
        stop = keys.count if stop is None else stop
        pieces = (piece for block in keys.blocks for piece in block.between(start, stop).pieces())
        return self._probed(pieces, stop - start, start)

    def fill_ratios(self) -> tuple[float, ...]:
        """The part of the bits that is set, per row."""
        return tuple(float(np.count_nonzero(row)) / self._bits for row in self._rows)

    def false_positive_rate(self) -> float:
        """The part of keys that were never added and are taken for added ones, as the set bits
        say."""
        return 1 - math.prod(1 - fill**self._hashes for fill in self.fill_ratios())

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

    def _targets(self, keys: int) -> Indices:
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

    def _probed(self, blocks: Iterable[KeyBlock], count: int, first: int = 0) -> Marks:
        found = np.zeros(count, np.bool_)
        for block in blocks:
            if len(block):
                found[block.indices[probe(self._rows, self._hashes, block)] - first] = True
        return found


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
    if size > len(body) or hashes > _HASHES_MAX or rows < 1:
        raise ValueError(f"{hashes} hashes, {rows} rows of {bits} bits in {len(body)} bytes")
    result = BloomFilter(kind, bits, hashes, row_keys, rows * row_keys)
    result._count = count
    result._rows = []
    for _ in range(rows):
        row_hashes, row_bits, start = _parse_head(body, at)
        at = start + size
        if (row_hashes, row_bits) != (hashes, bits) or at > len(body):
            raise ValueError("a row does not have the size that the head states")
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
