"""What a dynamic bloom filter promises: growth by rows, errors that grow slowly, and no key that it
forgets.

Aspects: where rows begin; the error rate at loads up to ten times the capacity, beside a filter
that cannot grow; rows that fill evenly; keys that were added, looked up again. The loads and rates
are those that Hudi 1.1.1's class showed. Not here: bytes (test_bloom.py).
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.codec.bloom.filters import DYNAMIC, SIMPLE, BloomFilter, BloomFilterSpec
from hudi_table.codec.bloom.probe import PreparedKeys
from tests.support.scale import scaled

PROBES = min(1_000_000, scaled(100_000))


def numbered(count: int, stem: str = "key", start: int = 0) -> pa.Array:
    """`count` keys of one length, all different."""
    digits = pc.utf8_lpad(pa.array(range(start, start + count), pa.int64()).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(stem, digits, "")


def loaded(kind: str, keys: int, *, capacity: int = 60_000, fpp: float = 1e-9, most: int = 100_000) -> BloomFilter:
    return BloomFilter.from_keys(numbered(keys), BloomFilterSpec(kind, capacity, fpp, most))


def wrong(filter_: BloomFilter, probes: int = PROBES) -> float:
    """The part of keys that were never added and look as if they were."""
    return float(filter_.might_contain(numbered(probes, "abs")).mean())


@pytest.mark.parametrize(
    ("keys", "rows"), [(0, 1), (1, 1), (60_000, 1), (60_001, 2), (120_000, 2), (120_001, 2), (300_000, 2)]
)
def test_at_the_defaults_the_second_row_begins_with_key_60001_and_is_the_last(keys: int, rows: int) -> None:
    assert loaded(DYNAMIC, keys).row_count == rows


def test_capacity_1000_and_maximum_5000_give_five_rows() -> None:
    rows = [loaded(DYNAMIC, keys, capacity=1_000, most=5_000).row_count for keys in (4_000, 4_001, 5_001, 20_000)]
    assert rows == [4, 5, 5, 5]


def test_from_key_120001_on_keys_go_to_the_rows_in_turn() -> None:
    filter_ = loaded(DYNAMIC, 120_000)
    fills = [filter_.fill_ratios()]
    for number in range(120_000, 120_004):
        filter_.add(numbered(1, start=number))
        fills.append(filter_.fill_ratios())
    changed = [[after > before for before, after in zip(*pair, strict=True)] for pair in pairwise(fills)]
    # The first key past the maximum goes to row 0, and so does the one after it; then they alternate.
    assert changed == [[True, False], [True, False], [False, True], [True, False]]


def test_the_filter_of_two_rows_takes_twice_the_characters() -> None:
    assert len(loaded(DYNAMIC, 60_000).to_base64()) == 431_380
    assert len(loaded(DYNAMIC, 60_001).to_base64()) == 862_724


@pytest.mark.parametrize(
    ("keys", "dynamic", "simple"),
    [
        (120_000, (0, 1e-7), (1e-4, 4e-4)),
        (200_000, (0, 2e-4), (0.04, 0.05)),
        (300_000, (0.004, 0.009), (0.37, 0.41)),
        (500_000, (0.31, 0.36), (0.90, 0.93)),
        (1_000_000, (0.99, 0.996), (0.9995, 1)),
    ],
)
def test_past_its_capacity_a_dynamic_filter_errs_less_than_one_that_cannot_grow(
    keys: int, dynamic: tuple[float, float], simple: tuple[float, float]
) -> None:
    for kind, (least, most) in ((DYNAMIC, dynamic), (SIMPLE, simple)):
        filter_ = loaded(kind, keys)
        # The rate that the set bits tell is exact enough for the band; what is seen of it is a sample.
        assert least <= filter_.false_positive_rate() <= most
        spread = 5 * (most * (1 - min(most, 0.999)) / PROBES) ** 0.5
        assert least - spread <= wrong(filter_) <= most + spread


def test_the_error_of_a_filter_is_about_the_sum_of_its_rows() -> None:
    one = loaded(DYNAMIC, 1_000, capacity=1_000, fpp=1e-3, most=5_000)
    five = loaded(DYNAMIC, 5_000, capacity=1_000, fpp=1e-3, most=5_000)
    assert one.false_positive_rate() == pytest.approx(1e-3, rel=0.2)
    assert five.false_positive_rate() == pytest.approx(5e-3, rel=0.2)
    assert wrong(five) == pytest.approx(five.false_positive_rate(), rel=0.4)


@pytest.mark.parametrize("keys", [120_000, 200_000, 500_000])
def test_the_rows_of_a_filter_that_is_too_full_fill_evenly(keys: int) -> None:
    fills = loaded(DYNAMIC, keys).fill_ratios()
    assert max(fills) - min(fills) < 0.001


def test_ten_million_lookups_of_keys_that_were_added_find_every_one() -> None:
    looked_up, turn = 0, 0
    while looked_up < min(10_000_000, scaled(1_000_000)):
        turn += 1
        for keys in (1, 1_000, 60_000, 120_000, 300_000):
            added = numbered(keys, f"{turn:x}-")
            for kind in (DYNAMIC, SIMPLE):
                filter_ = BloomFilter.from_keys(added, BloomFilterSpec(kind))
                assert filter_.might_contain(added).all()
                assert filter_.might_contain_prepared(PreparedKeys.of(added)).all()
                looked_up += 2 * keys
