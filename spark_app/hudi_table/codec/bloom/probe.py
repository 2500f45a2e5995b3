"""Keys against the rows of bits of a bloom filter: setting theirs, asking for them.

What makes asking fast: a key that is ruled out is hashed no further, and most keys are after one or
two hashes; the rows of a filter that has grown share one hashing; and keys that meet many filters
keep their first hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_table.codec.bloom.hashing import HashChain, Indices, KeyBlock, Marks, Positions, key_blocks
from hudi_table.codec.text.utf8 import Utf8, utf8_of

_REMEMBERED: Final = 4
"""Hashes kept of keys that meet many filters: a key that is in none seldom needs more, since half
of the bits are set."""
_STAYING: Final = 0.75
"""Keys that are ruled out are left out of what follows once no more than this part is left: copying
costs a step, too."""


@dataclass(frozen=True, slots=True)
class PreparedKeys:
    """`count` keys as many filters need them: mixed once, and the first hashes computed once.

    Takes the keys' bytes and 24 bytes a key.
    """

    count: int
    blocks: tuple[KeyBlock, ...]

    @classmethod
    def of(cls, keys: pa.Array) -> PreparedKeys:
        """Prepare keys. Null and empty ones keep their place and are in no filter."""
        array = utf8_of(keys)
        blocks = key_blocks(array, filled(array))
        return cls(len(array), tuple(block.remembering(_REMEMBERED) for block in blocks))


def filled(keys: Utf8) -> Indices:
    """The places of keys that are neither null nor empty."""
    some = np.diff(keys.offsets) > 0
    return np.flatnonzero(some if keys.valid is None else some & keys.valid)


def set_bits(row: Marks, hashes: int, block: KeyBlock) -> None:
    """Set the bits of a block's keys in one row of a filter."""
    chain, positions = HashChain(block), Positions(len(row), len(block))
    for _ in range(hashes):
        row[positions.of(chain.next())] = True


def probe(rows: Sequence[Marks], hashes: int, block: KeyBlock) -> Indices:
    """Which keys of a block some row may contain, ascending. All rows share one hashing."""
    chain, positions = HashChain(block), Positions(len(rows[0]), len(block))
    # Per row the keys of the chain that it may still contain, None for all of them.
    left: list[Indices | None] = [None for _ in rows]
    for _ in range(hashes):
        places = positions.of(chain.next())
        left = [_possible(row, places, mine) for row, mine in zip(rows, left, strict=True)]
        most = sum(len(places) if mine is None else len(mine) for mine in left)
        if most <= _STAYING * len(places):
            left = _leave_out(chain, left, len(places))
            if not most:
                break
    return chain.kept[_union(left, len(chain.kept))]


def _possible(row: Marks, places: Indices, mine: Indices | None) -> Indices | None:
    # Positions are below the number of bits: `clip` merely spares the check of each.
    hit = row.take(places if mine is None else places.take(mine), mode="clip")
    if np.count_nonzero(hit) == len(hit):
        return mine
    return np.flatnonzero(hit) if mine is None else mine[hit]


def _leave_out(chain: HashChain, left: Sequence[Indices | None], count: int) -> list[Indices | None]:
    """Let the chain go on with the keys that some row may contain; returns `left` for what is
    left."""
    chosen = _union(left, count)
    chain.keep(chosen)
    if len(left) == 1:
        return [None]
    after = np.empty(count, np.intp)
    after[chosen] = np.arange(len(chosen))
    return [None if mine is None else after[mine] for mine in left]


def _union(left: Sequence[Indices | None], count: int) -> Indices:
    if len(left) == 1 and left[0] is not None:
        return left[0]
    some = np.zeros(count, np.bool_)
    for mine in left:
        some[slice(None) if mine is None else mine] = True
    return np.flatnonzero(some)
