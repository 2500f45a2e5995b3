"""Keys that are looked for, in an order that lets a file's range of keys select them without
looking at each.

They are sorted by the eight bytes that follow what all of them begin with. Keys that agree in these
may lie in any order, so what a range selects may hold a few keys too many at its ends, and never
one too few. Two binary searches a file take the place of Hudi's interval tree: the tree finds the
files of a key, which has to be asked for every key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.bloom.probe import PreparedKeys
from hudi_table.codec.keyrange import may_lie_within
from hudi_table.codec.text.utf8 import Utf8, utf8_of
from hudi_table.index.base import Positions

_WIDTH: Final = 8
_FIRST_DISPUTED_LEAD: Final = 0xEE

Heads = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keys that a file may hold, and the row of each among the incoming ones."""

    keys: pa.Array
    rows: Positions

    def take(self, places: Positions) -> Candidates:
        """Some of them."""
        return (
            self if len(places) == len(self.rows) else Candidates(self.keys.take(pa.array(places)), self.rows[places])
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Keys that are looked for in the same files. `keys[i]` is that of row `rows[i]` of the
    incoming ones.

    `heads`: of each key the eight bytes after `shared`, ascending. `prepared`: the keys as bloom
    filters need them, made only where they meet several.
    """

    keys: pa.Array
    rows: Positions
    shared: bytes
    heads: Heads
    prepared: PreparedKeys | None = None

    @classmethod
    def of(cls, record_keys: pa.Array, rows: Positions, *, prepare: bool = False) -> Wanted:
        """Sort the keys of these rows."""
        keys = record_keys if len(rows) == len(record_keys) else record_keys.take(pa.array(rows))
        shared = _shared(keys)
        heads = _heads(utf8_of(keys), len(shared))
        order = np.argsort(heads, kind="stable")
        sorted_keys = keys.take(pa.array(order))
        prepared = PreparedKeys.of(sorted_keys) if prepare else None
        return cls(sorted_keys, rows[order], shared, heads[order], prepared)

    def span(self, smallest: str | None, largest: str | None) -> tuple[int, int]:
        """(first, behind the last) of the keys that a file of this range may hold; all for a file
        that tells no range."""
        every = (0, len(self.keys))
        if smallest is None or largest is None or not len(self.keys):
            return every
        if not orders_agree(smallest, largest):
            places = np.flatnonzero(np.asarray(may_lie_within(self.keys, smallest, largest)))
            return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        first, last = self._place(smallest.encode(), "left"), self._place(largest.encode(), "right")
        return (first, last) if first < last else (0, 0)

    def between(self, span: tuple[int, int]) -> Candidates:
        """The keys of a span. No copy."""
        first, last = span
        return Candidates(self.keys.slice(first, last - first), self.rows[first:last])

    def _place(self, bound: bytes, side: str) -> int:
        start = bound[: len(self.shared)]
        if start != self.shared:
            return 0 if start < self.shared else len(self.keys)
        head = bound[len(self.shared) :][:_WIDTH].ljust(_WIDTH, b"\0")
        value = np.uint64(int.from_bytes(head, "big"))
        return int(np.searchsorted(self.heads, value, "left" if side == "left" else "right"))


def orders_agree(smallest: str, largest: str) -> bool:
    """Whether a range selects the same keys in both orders that are in use (`codec/keyrange.py`).

    They differ only between characters from U+E000 on: a key differs from an end without one in
    another way.
    """
    return max((smallest + largest).encode(), default=0) < _FIRST_DISPUTED_LEAD


def _shared(keys: pa.Array) -> bytes:
    """What all keys begin with: what the smallest and the largest of them do."""
    extremes = pc.min_max(keys.cast(pa.binary()))
    smallest, largest = extremes["min"].as_py(), extremes["max"].as_py()
    if smallest is None:
        return b""
    differing = (at for at, (first, last) in enumerate(zip(smallest, largest, strict=False)) if first != last)
    return bytes(smallest[: next(differing, len(smallest))])


def _heads(keys: Utf8, skipped: int) -> Heads:
    """Eight bytes of every key from `skipped` on as a number, zeros where the key ends sooner."""
    padded = np.concatenate([keys.data, np.zeros(_WIDTH, np.uint8)])
    windows: npt.NDArray[np.uint64] = np.ndarray((len(keys.data) + 1,), ">u8", padded, 0, (1,))
    starts = np.minimum(keys.offsets[:-1] + skipped, keys.offsets[1:])
    left = np.minimum(keys.offsets[1:] - starts, _WIDTH)
    masks = np.array([(1 << 64) - (1 << 8 * (_WIDTH - n)) for n in range(_WIDTH + 1)], np.uint64)
    return windows[starts].astype(np.uint64) & masks[left]
