"""Space-filling curves on numpy columns: points of small unsigned coordinates → one 64-bit position
each.

z-order interleaves the coordinates' bits. Hilbert's curve follows J. Skilling, "Programming the
Hilbert curve" (AIP Conference Proceedings 707, 2004): its transform turns coordinates into those
whose interleaved bits are the position on the curve.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

BITS_MAX = 16
"""Bits of one coordinate; fewer where so many columns would not fit into 64."""
_ROWS_AT_ONCE = 1 << 16

Coordinates = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.uint64]


def coordinate_bits(columns: int) -> int:
    """Bits that each of so many coordinates has: 16 up to four columns."""
    return max(1, min(BITS_MAX, 64 // columns))


def z_order(columns: Sequence[Coordinates], bits: int) -> Positions:
    """The interleaved bits of each point, the first column's the most significant; coordinates
    below 2**bits."""
    table = _spread(len(columns), bits)
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for number, column in enumerate(columns):
        found |= table[column] << np.uint64(len(columns) - 1 - number)
    return found


def hilbert(columns: Sequence[Coordinates], bits: int) -> Positions:
    """The position of each point on Hilbert's curve; coordinates below 2**bits."""
    rows = len(columns[0])
    pieces = [
        z_order(_transposed([column[start : start + _ROWS_AT_ONCE] for column in columns], bits), bits)
        for start in range(0, rows, _ROWS_AT_ONCE)
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)


def _spread(columns: int, bits: int) -> Positions:
    """For every coordinate its bits, each followed by room for those of the other columns."""
    values = np.arange(1 << bits, dtype=np.uint64)
    found = np.zeros(1 << bits, dtype=np.uint64)
    for bit in range(bits):
        found |= ((values >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * columns)
    return found


def _transposed(columns: Sequence[Coordinates], bits: int) -> list[Coordinates]:
    points = [column.astype(np.uint32) for column in columns]
    zero = np.uint32(0)
    for bit in range(bits - 1, 0, -1):
        probe, below = np.uint32(1 << bit), np.uint32((1 << bit) - 1)
        for _number, point in enumerate(points):
            inverted = (point & probe) != zero
            exchanged = np.where(inverted, zero, (points[0] ^ point) & below)
            points[0] ^= np.where(inverted, below, exchanged)
            point ^= exchanged
    for before, point in itertools.pairwise(points):
        point ^= before
    turned = np.zeros_like(points[-1])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where((points[-1] & np.uint32(1 << bit)) != zero, np.uint32((1 << bit) - 1), zero)
    for point in points:
        point ^= turned
    return points
