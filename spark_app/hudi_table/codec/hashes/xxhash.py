"""xxHash32 over Arrow strings: the hash by which consistent hashing finds the place of a record
key.

Facts (measured on Hudi 0.15.0 and 1.1.1): a key's place is xxHash32 with seed 0 of the UTF-8 bytes
of its hash fields' values, one after the other without a separator, modulo 2^31 (the sign bit is
cleared).

How: all strings advance together, sixteen, four and at last one byte at a step, each string for as
many steps as its length has: a loop over the steps of the longest string, not over rows or bytes.
The few strings that are much longer than the others end one by one, by Python's own numbers: an
array of a few costs twenty times as much. So the time grows with the bytes, whatever the lengths.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.text.utf8 import Utf8, chunks_of, utf8_of

Hashes = npt.NDArray[np.uint32]
Rows = npt.NDArray[np.intp]

HASH_MASK: Final = 0x7FFFFFFF
_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (2654435761, 2246822519, 3266489917, 668265263, 374761393))
_STRIPE: Final = 16
_FEW: Final = 8
"""Strings of which numpy's cost is that of its calls alone."""
_PIECE: Final = 1 << 20
"""Bytes, whole stripes, that are made Python's numbers at once."""


def ring_hashes(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """The place on a hash ring of each text, from 0 to 2^31 - 1; a null counts as the empty
    text."""
    hashed = xxh32(texts)
    return (hashed & np.uint32(HASH_MASK)).view(np.int32)


def xxh32(texts: pa.Array | pa.ChunkedArray, seed: int = 0) -> Hashes:
    """xxHash32 of the UTF-8 bytes of each text."""
    parts = [_hash(utf8_of(_plain(chunk)), np.uint32(seed)) for chunk in chunks_of(texts)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint32), *parts])


def _plain(values: pa.Array) -> pa.Array:
    values = values.dictionary_decode() if pt.is_dictionary(values.type) else values
    values = values.cast(pa.string()) if pt.is_string_view(values.type) else values
    return values.fill_null("") if values.null_count else values


def _hash(values: Utf8, seed: np.uint32) -> Hashes:
    starts, lengths = values.offsets[:-1].copy(), np.diff(values.offsets)
    # A word that is read where a text ends may reach into what follows; behind the last one follows this.
    data = np.concatenate([values.data, np.zeros(3, np.uint8)])
    with np.errstate(over="ignore"):
        total = np.full(len(lengths), seed + _P5, np.uint32)
        rows = np.flatnonzero(lengths >= _STRIPE)
        if len(rows):
            total[rows] = _stripes(data, starts, lengths, rows, seed)
            starts[rows] += lengths[rows] // _STRIPE * _STRIPE
        total += lengths.astype(np.uint32)
        left = lengths % _STRIPE
        for step in range(int(left.max(initial=0)) // 4):
            rows = np.flatnonzero(left >= 4 * (step + 1))
            word = _words(data, starts[rows] + 4 * step)
            total[rows] = _rotated(total[rows] + word * _P3, 17) * _P4
        starts += left // 4 * 4
        left %= 4
        for step in range(3):
            rows = np.flatnonzero(left > step)
            byte = data[starts[rows] + step].astype(np.uint32)
            total[rows] = _rotated(total[rows] + byte * _P5, 11) * _P1
        total = (total ^ (total >> np.uint32(15))) * _P2
        total = (total ^ (total >> np.uint32(13))) * _P3
        return total ^ (total >> np.uint32(16))


def _stripes(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    rows: Rows,
    seed: np.uint32,
) -> Hashes:
    """The four lanes of the given texts, which have sixteen bytes or more, put together."""
    begun = np.array([seed + _P1 + _P2, seed + _P2, seed, seed - _P1], np.uint32)
    lanes = np.repeat(begun[:, None], len(rows), axis=1)
    stripes = lengths[rows] // _STRIPE
    # The longest first: those that are on at a step are then the first so many.
    order = np.argsort(-stripes, kind="stable")
    left, at = stripes[order], starts[rows[order]]
    step, on = 0, len(order)
    while on > _FEW:
        for lane in range(4):
            word = _words(data, at[:on] + (_STRIPE * step + 4 * lane))
            lanes[lane, :on] = _rotated(lanes[lane, :on] + word * _P2, 13) * _P1
        step += 1
        while on and left[on - 1] <= step:
            on -= 1
    for one in range(on):
        first, last = int(at[one]) + _STRIPE * step, int(at[one]) + _STRIPE * int(left[one])
        lanes[:, one] = _run_on([int(lane) for lane in lanes[:, one]], data[first:last])
    lanes[:, order] = lanes.copy()
    turned = [_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)]
    return turned[0] + turned[1] + turned[2] + turned[3]


def _run_on(lanes: list[int], data: npt.NDArray[np.uint8]) -> list[int]:
    """The lanes after these stripes."""
    one, two, three, four = lanes
    p1, p2, mask = int(_P1), int(_P2), 0xFFFFFFFF
    for start in range(0, len(data), _PIECE):
        words = np.frombuffer(data[start : start + _PIECE].tobytes(), "<u4").tolist()
        for number in range(0, len(words), 4):
            one = (one + words[number] * p2) & mask
            one = ((one << 13 | one >> 19) & mask) * p1 & mask
            two = (two + words[number + 1] * p2) & mask
            two = ((two << 13 | two >> 19) & mask) * p1 & mask
            three = (three + words[number + 2] * p2) & mask
            three = ((three << 13 | three >> 19) & mask) * p1 & mask
            four = (four + words[number + 3] * p2) & mask
            four = ((four << 13 | four >> 19) & mask) * p1 & mask
    return [one, two, three, four]


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> Hashes:
    """The little-endian words at these places."""
    found = data[at].astype(np.uint32)
    for byte in (1, 2, 3):
        found |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return found


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
