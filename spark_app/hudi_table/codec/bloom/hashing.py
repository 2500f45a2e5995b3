"""The chained hash of record keys that bloom filters are made of, block by block.

Facts (measured on Hudi 0.15.0). Hash i is MurmurHash2 (constant 0x5bd1e995, shift 24, final 13 and
15) of the key's UTF-8 bytes, seeded with hash i-1, the first with 0. The last one to three bytes of
a key are mixed in as sign-extended bytes in the reverse of the usual order. Bit = abs(hash rem m),
the remainder being Java's: of the absolute value, 2^31 for the least int.

Mixing a word does not depend on the seed, so it is done once per key and not once per hash. A block
holds keys of one length, and so few that the arrays of a step stay in a core's cache: a step is
then bound by arithmetic, not by memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hudi_table.codec.text.utf8 import Utf8

BLOCK_KEYS: Final = 32 * 1024
"""Keys of a block: arrays of 128 KiB. A quarter as many halve the speed, twice as many gain nothing
(docs/explanation/performance.md)."""
_FEW: Final = 8
_PIECE: Final = 1 << 18
_MIX: Final = np.uint32(0x5BD1E995)

Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.intp]
Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Keys of one `length` (bytes, at least 1); `indices` are their places in the array that they
    come from, ascending.

    `words`: a row for each four bytes, mixed; `tail`: the last bytes, None if there are none.
    `first`: the first hashes of every key where they are kept, for keys that meet many filters.
    """

    length: int
    indices: Indices
    words: Words
    tail: Words | None
    first: tuple[Words, ...] = ()

    def __len__(self) -> int:
        return len(self.indices)

    def between(self, start: int, stop: int) -> KeyBlock:
        """The keys whose place is from `start` to before `stop`. No copy."""
        low, high = (int(place) for place in np.searchsorted(self.indices, (start, stop)))
        return self._part(slice(low, high))

    def pieces(self) -> Iterator[KeyBlock]:
        """The keys in blocks of at most BLOCK_KEYS. No copy."""
        for start in range(0, len(self), BLOCK_KEYS):
            yield self._part(slice(start, start + BLOCK_KEYS))

    def remembering(self, hashes: int) -> KeyBlock:
        """The block with the first so many hashes of its keys."""
        chain = HashChain(self)
        return replace(self, first=tuple(chain.next().copy() for _ in range(hashes)))

    def _part(self, chosen: slice) -> KeyBlock:
        tail = None if self.tail is None else self.tail[chosen]
        first = tuple(hashed[chosen] for hashed in self.first)
        return KeyBlock(self.length, self.indices[chosen], self.words[:, chosen], tail, first)


class HashChain:
    """Hash 0, 1, … of a block's keys; keys that no longer matter can be left out on the way.

    `kept`: which keys of the block are left, ascending.
    """

    __slots__ = ("_block", "_done", "_hashed", "_shifted", "_tail", "_words", "kept")

    def __init__(self, block: KeyBlock) -> None:
        self.kept: Indices = np.arange(len(block))
        self._block = block
        self._done = 0
        self._hashed: Words = np.zeros(len(block), np.uint32)
        self._shifted: Words = np.empty(len(block), np.uint32)
        # Of keys whose first hashes are known words may never be needed.
        self._words: Words | None = None
        self._tail: Words | None = None

    def keep(self, chosen: Indices) -> None:
        """Go on with these of the keys left, ascending."""
        self.kept = self.kept.take(chosen)
        self._hashed = self._hashed.take(chosen)
        self._shifted = self._shifted[: len(chosen)]
        self._words = None if self._words is None else self._words.take(chosen, axis=1)
        self._tail = None if self._tail is None else self._tail.take(chosen)

    def next(self) -> Words:
        """The next hash of every key left. The array is the chain's own and lives until the next
        call."""
        known = self._block.first[self._done : self._done + 1]
        self._done += 1
        if known:
            # A copy: the chain goes on in place, and the block keeps its hashes.
            np.take(known[0], self.kept, out=self._hashed, mode="clip")
        else:
            self._step()
        return self._hashed

    def _mixed(self) -> tuple[Words, Words | None]:
        if self._words is None:
            block, every = self._block, len(self.kept) == len(self._block)
            self._words = block.words if every else block.words.take(self.kept, axis=1)
            self._tail = block.tail if every or block.tail is None else block.tail.take(self.kept)
        return self._words, self._tail

    def _step(self) -> None:
        (words, tail), hashed, shifted = self._mixed(), self._hashed, self._shifted
        np.bitwise_xor(hashed, np.uint32(self._block.length & 0xFFFFFFFF), out=hashed)
        if len(hashed) <= _FEW:
            _mix_few(hashed, words)
        else:
            for word in words:
                np.multiply(hashed, _MIX, out=hashed)
                np.bitwise_xor(hashed, word, out=hashed)
        if tail is not None:
            np.bitwise_xor(hashed, tail, out=hashed)
            np.multiply(hashed, _MIX, out=hashed)
        np.right_shift(hashed, 13, out=shifted)
        np.bitwise_xor(hashed, shifted, out=hashed)
        np.multiply(hashed, _MIX, out=hashed)
        np.right_shift(hashed, 15, out=shifted)
        np.bitwise_xor(hashed, shifted, out=hashed)


def _mix_few(hashed: Words, words: Words) -> None:
    """The words mixed into a few hashes, in place, by Python's own numbers: a long key of its own
    length would cost a call of numpy for every four bytes and every hash."""
    mix = int(_MIX)
    for key in range(len(hashed)):
        value = int(hashed[key])
        for start in range(0, len(words), _PIECE):
            for word in words[start : start + _PIECE, key].tolist():
                value = (value * mix & 0xFFFFFFFF) ^ word
        hashed[key] = value


class Positions:
    """Hashes to bits of a filter of `bits` bits, in arrays that are used again."""

    __slots__ = ("_bits", "_places", "_quotient", "_rest")

    def __init__(self, bits: int, keys: int) -> None:
        self._bits = np.uint32(bits)
        self._rest: Words = np.empty(keys, np.uint32)
        self._quotient: Words = np.empty(keys, np.uint32)
        self._places: Indices = np.empty(keys, np.intp)

    def of(self, hashed: Words) -> Indices:
        """The bit of every hash; lives until the next call."""
        size = len(hashed)
        rest, quotient, places = self._rest[:size], self._quotient[:size], self._places[:size]
        np.abs(hashed.view(np.int32), out=rest.view(np.int32))
        # numpy divides by a constant with vector instructions, but has no such remainder.
        np.floor_divide(rest, self._bits, out=quotient)
        np.multiply(quotient, self._bits, out=quotient)
        np.subtract(rest, quotient, out=rest)
        np.copyto(places, rest)
        return places


def key_blocks(keys: Utf8, indices: Indices, block_keys: int = BLOCK_KEYS) -> Iterator[KeyBlock]:
    """The keys at these places (ascending, none null or empty) in blocks of at most
    `block_keys`."""
    starts = keys.offsets[indices]
    lengths = keys.offsets[indices + 1] - starts
    for length in np.unique(lengths):
        group = np.flatnonzero(lengths == length)
        for start in range(0, len(group), block_keys):
            chosen = group[start : start + block_keys]
            yield KeyBlock(int(length), indices[chosen], *_words(keys.data, starts[chosen], int(length)))


def _words(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> tuple[Words, Words | None]:
    """(mixed words, one row per word and one column per key; the xor of the tail bytes or None)."""
    table = _table(data, starts, length)
    whole, left = divmod(length, 4)
    words: Words = np.empty((whole, len(starts)), np.uint32)
    if len(starts) < whole:
        # Of few long keys a key at a time: a call for every word of them would cost more than their hashes.
        for number, row in enumerate(table):
            words[:, number] = np.ndarray((whole,), "<u4", row, 0, (4,))
    else:
        for number, word in enumerate(words):
            np.copyto(word, _column(table, 4 * number, "<u4"))
    words *= _MIX
    words ^= words >> 24
    words *= _MIX
    if not left:
        return words, None
    tail: Words = np.zeros(len(starts), np.uint32)
    for distance in range(left, 0, -1):
        signed = _column(table, length - distance, "i1").astype(np.int32).view(np.uint32)
        tail ^= signed << np.uint32(8 * (distance - 1))
    return words, tail


def _table(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.uint8]:
    """A row of bytes for every key; where keys lie side by side, the bytes as they are."""
    first, count = int(starts[0]), len(starts)
    if int(starts[-1]) - first == (count - 1) * length and bool((np.diff(starts) == length).all()):
        return data[first : first + count * length].reshape(count, length)
    # One item of `length` bytes at every offset: numpy then copies whole keys, five times as fast as byte by byte.
    items: npt.NDArray[np.void] = np.ndarray((len(data) - length + 1,), f"V{length}", data, 0, (1,))
    return items[starts].view(np.uint8).reshape(count, length)


def _column(table: npt.NDArray[np.uint8], offset: int, kind: str) -> npt.NDArray[Any]:
    """Numbers of a kind that lie `offset` bytes into every row, aligned or not."""
    return np.ndarray((len(table),), kind, table, offset, (table.shape[1],))
