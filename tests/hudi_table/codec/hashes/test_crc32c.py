"""CRC-32C: the vectors of RFC 3720, and a definition bit by bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.hashes.crc32c import crc32c
from tests.support.scale import scaled


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_the_known_checksums_come_out(data: bytes, expected: int) -> None:
    found = crc32c(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]))
    assert found.tolist() == [expected]


@settings(max_examples=scaled(60))
@given(data=st.binary(max_size=3000), cuts=st.lists(st.integers(0, 3000), max_size=12))
def test_many_stretches_at_once_are_each_as_by_the_definition(data: bytes, cuts: list[int]) -> None:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    stretches = [*list(itertools.pairwise(ends)), (0, len(data))]
    starts = np.array([start for start, _ in stretches], np.int64)
    lengths = np.array([stop - start for start, stop in stretches], np.int64)
    found = crc32c(np.frombuffer(data, np.uint8), starts, lengths)
    assert found.tolist() == [bit_by_bit(data[start:stop]) for start, stop in stretches]


def test_stretches_beyond_what_is_worked_on_at_once_are_all_done() -> None:
    data = np.arange(700, dtype=np.int64).astype(np.uint8)
    starts = np.arange(600)
    found = crc32c(np.tile(data, 100), starts, np.full(600, 20_000))
    assert found[0] == bit_by_bit(np.tile(data, 100)[:20_000].tobytes())
    assert found[599] == bit_by_bit(np.tile(data, 100)[599:20_599].tobytes())
