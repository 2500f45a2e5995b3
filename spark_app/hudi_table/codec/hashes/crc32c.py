"""CRC-32C (Castagnoli) of many stretches of bytes at once, as the blocks of an HFile carry it.

A checksum is linear, so a stretch is cut into lanes that advance side by side, two bytes a step,
and are put together by the operator that moves a checksum over the bytes of a lane. Zero bytes
ahead of a stretch change nothing, so all stretches are padded on the left to one width. No loop
over bytes; the number of steps is the width divided by twice the lanes. Of few bytes a loop is done
before the lanes are laid out.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Sums = npt.NDArray[np.uint32]

_POLYNOMIAL: Final = 0x82F63B78
_LANES: Final = 64
_BYTES_AT_ONCE: Final = 4 << 20
_NARROWEST: Final = 2 * _LANES
_FEW_BYTES: Final = 4 << 10


def crc32c(data: Bytes, starts: Places, lengths: Places) -> Sums:
    """The checksum of each stretch `data[start:start + length]`. Memory: a few times 4 MiB, or the
    longest stretch."""
    if int(lengths.sum()) <= _FEW_BYTES:
        pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
        return np.array([_of_few(data[start : start + length].tobytes()) for start, length in pairs], np.uint32)
    found = np.zeros(len(starts), np.uint32)
    longest = max(int(lengths.max(initial=0)), 4)
    width = max(_NARROWEST, 1 << (longest - 1).bit_length())
    at_once = max(1, _BYTES_AT_ONCE // width)
    for first in range(0, len(starts), at_once):
        chosen = slice(first, first + at_once)
        found[chosen] = _checksums(data, starts[chosen], lengths[chosen], width)
    return found


def _checksums(data: Bytes, starts: Places, lengths: Places, width: int) -> Sums:
    rows = np.zeros((len(starts), width), np.uint8)
    for line, start, length in zip(rows, starts.tolist(), lengths.tolist(), strict=True):
        line[width - length :] = data[start : start + length]
    # The register starts with ones: that is the same as the first four bytes turned around, where there are four.
    short = np.flatnonzero(lengths < 4)
    heads = width - lengths[:, None] + np.arange(4)
    heads[short] = 0
    turned = np.take_along_axis(rows, heads, axis=1) ^ np.uint8(0xFF)
    np.put_along_axis(rows, heads, turned, axis=1)
    sums = _lanes_joined(rows.reshape(-1, width // _LANES)) ^ np.uint32(0xFFFFFFFF)
    for row in short.tolist():
        sums[row] = _of_few(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return sums


def _lanes_joined(lanes: Bytes) -> Sums:
    """The register after each row of lanes, from zero."""
    steps = np.ascontiguousarray(lanes.view("<u2").T)
    table = _pair_table()
    sums = np.zeros(steps.shape[1], np.uint32)
    for step in steps:
        sums = table[(sums ^ step) & np.uint32(0xFFFF)] ^ (sums >> np.uint32(16))
    size = lanes.shape[1]
    # Neighbours in a stretch are neighbours here, and every stretch has an even number of them until one is left.
    for _ in range(_LANES.bit_length() - 1):
        sums = _moved(sums[0::2], size) ^ sums[1::2]
        size *= 2
    return sums


def _of_few(data: bytes) -> int:
    """The checksum, two bytes a step."""
    table = _pair_list()
    register = 0xFFFFFFFF
    for pair in np.frombuffer(data, "<u2", len(data) // 2).tolist():
        register = table[register & 0xFFFF ^ pair] ^ register >> 16
    if len(data) % 2:
        register = int(_byte_table()[register & 0xFF ^ data[-1]]) ^ register >> 8
    return register ^ 0xFFFFFFFF


def _moved(sums: Sums, size: int) -> Sums:
    """The registers after `size` zero bytes; `size` is a power of two."""
    tables = _moving_tables(size)
    moved: Sums = tables[0][sums & np.uint32(0xFF)]
    for place in range(1, 4):
        moved = moved ^ tables[place][(sums >> np.uint32(8 * place)) & np.uint32(0xFF)]
    return moved


@functools.cache
def _moving_tables(size: int) -> tuple[Sums, ...]:
    """Per byte of a register, what each of its values becomes after `size` zero bytes."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    table = _byte_table()
    images = table[bits & np.uint32(0xFF)] ^ (bits >> np.uint32(8))
    for _ in range(size.bit_length() - 1):
        images = _applied(images, images)
    values = np.arange(256, dtype=np.uint32)
    return tuple(_applied(images, values << np.uint32(8 * place)) for place in range(4))


def _applied(images: Sums, values: Sums) -> Sums:
    """A linear operator, given by what it makes of each bit, applied to registers."""
    result = np.zeros(len(values), np.uint32)
    for bit, image in enumerate(images):
        result ^= np.where((values >> np.uint32(bit)) & np.uint32(1), image, np.uint32(0))
    return result


@functools.cache
def _byte_table() -> Sums:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(
            values & np.uint32(1), (values >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), values >> np.uint32(1)
        )
    return values


@functools.cache
def _pair_table() -> Sums:
    table = _byte_table()
    values = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        values = table[values & np.uint32(0xFF)] ^ (values >> np.uint32(8))
    return values


@functools.cache
def _pair_list() -> list[int]:
    found: list[int] = _pair_table().tolist()
    return found
