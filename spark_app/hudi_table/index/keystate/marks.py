"""128 bits of each record key, as two columns of 64: what a key state knows a key by.

Each half takes the eight-byte words of a key one after the other, under a secret of the state, so
that nobody can choose keys that meet. All keys advance together: a loop over the words of the
longest key, not over keys.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.text.utf8 import chunks_of, utf8_of

Words = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4 = (
    np.uint64(p) for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63)
)
_WIDTH: Final = 8
_BLOCK_KEYS: Final = 1 << 16
_MASKS: Final = np.array([(1 << 8 * n) - 1 for n in range(_WIDTH)], np.uint64)


def new_secret() -> Words:
    """A secret that nobody can guess: one word for each half."""
    return np.frombuffer(os.urandom(2 * _WIDTH), np.uint64)


@dataclass(frozen=True, slots=True)
class Marks:
    """`high[i]` and `low[i]` are the mark of key i. Equal keys have equal marks under one
    secret."""

    high: Words
    low: Words

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray, secret: Words) -> Marks:
        """The marks of strings, none of them null."""
        blocks = [
            _marks(chunk.slice(start, _BLOCK_KEYS), secret)
            for chunk in chunks_of(keys)
            for start in range(0, len(chunk), _BLOCK_KEYS)
        ]
        return cls.joined([cls(high, low) for high, low in blocks])

    @classmethod
    def joined(cls, parts: list[Marks]) -> Marks:
        """All of several."""
        none = np.empty(0, np.uint64)
        return cls(
            np.concatenate([none, *(part.high for part in parts)]),
            np.concatenate([none, *(part.low for part in parts)]),
        )

    def __len__(self) -> int:
        return len(self.high)

    def take(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Marks:
        """Some of them."""
        return Marks(self.high[places], self.low[places])


def _marks(keys: pa.Array, secret: Words) -> tuple[Words, Words]:
    texts = utf8_of(keys)
    starts, left = texts.offsets[:-1].copy(), np.diff(texts.offsets)
    # A word that is read where a key ends may reach into what follows; behind the last one follows this.
    data = np.concatenate([texts.data, np.zeros(_WIDTH, np.uint8)])
    windows: Words = np.ndarray((len(data) - _WIDTH + 1,), "<u8", data, 0, (1,))
    halves = [word ^ (left.astype(np.uint64) * _P1) for word in secret]
    rows: npt.NDArray[np.intp] | slice = slice(None)
    with np.errstate(over="ignore"):
        while True:
            whole = np.flatnonzero(left >= _WIDTH)
            if not len(whole):
                break
            rows = whole if len(whole) < len(left) else slice(None)
            words = windows[starts[rows]]
            for half in halves:
                half[rows] = _mixed(half[rows], words)
            starts[rows] += _WIDTH
            left[rows] -= _WIDTH
        words = windows[starts] & _MASKS[left]
        return _ended(_mixed(halves[0], words)), _ended(_mixed(halves[1], words))


def _mixed(total: Words, words: Words) -> Words:
    return _rotated(total ^ (_rotated(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _ended(total: Words) -> Words:
    total = (total ^ (total >> np.uint64(33))) * _P2
    total = (total ^ (total >> np.uint64(29))) * _P3
    return total ^ (total >> np.uint64(32))


def _rotated(values: Words, bits: int) -> Words:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
