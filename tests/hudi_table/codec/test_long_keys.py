"""Record keys of megabytes: what they cost grows with their length, not with its square.

Work is counted, not timed: the lines of this package that run, and the most memory that is held at
once, for a key and for one of twice its length.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.codec.hashes import javahash
from hudi_table.codec.hashes.javahash import COLON_RULES, bucket_ids, file_group_index
from hudi_table.codec.keyrange import key_range, may_lie_within

FIELDS = ["a", "b"]
SPEC = BloomFilterSpec(num_entries=10, fpp=0.1)
UNITS = {"letters": "k", "commas": ",", "colons": ":", "fields": ",b:", "not ascii": "é\U0001f600"}


def filtered(keys: pa.Array) -> None:
    assert BloomFilter.from_keys(keys, SPEC).might_contain(keys).all()


def ranged(keys: pa.Array) -> None:
    smallest, largest = key_range(keys) or ("", "")
    assert may_lie_within(keys, smallest, largest).to_pylist() == [True] * len(keys)


WORK: dict[str, Callable[[pa.Array], object]] = {
    "bloom filter": filtered,
    "key range": ranged,
    "buckets, 0.15": lambda keys: bucket_ids(keys, 7, record_key_fields=FIELDS, hash_fields=["b"], colon_rule="0.15"),
    "buckets, 1.x": lambda keys: bucket_ids(keys, 7, record_key_fields=FIELDS, hash_fields=["b"], colon_rule="1.x"),
    "file groups": lambda keys: file_group_index(keys, 7),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("work", WORK)
def test_twice_the_length_is_twice_the_work(work: str, unit: str) -> None:
    short, long = (pa.array([f"a:{UNITS[unit] * count},b:{end}" for end in "xy"]) for count in (2_000, 4_000))
    WORK[work](short)
    # What is held beside the key's own share: buffers of a fixed size.
    assert lines(WORK[work], long) <= 2.2 * lines(WORK[work], short) + 100
    assert held(WORK[work], long) <= 2.2 * held(WORK[work], short) + (1 << 20)


class Counted(np.ndarray[Any, Any]):
    """Numbers that count how many of them are computed with, and so do those that are made of
    them."""

    looked = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        plain = [np.asarray(value) for value in inputs]
        Counted.looked += max(value.size for value in plain)
        return np.asarray(getattr(ufunc, method)(*plain, **more)).view(Counted)


@pytest.mark.parametrize("rule", COLON_RULES)
def test_a_long_key_costs_the_short_keys_beside_it_nothing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = pa.array(["a:" + ",b:" * 1_000, *(f"a:{number},b:x" for number in range(1_000))])
    by_ordinal = javahash._by_ordinal

    def counting(starts: npt.NDArray[np.int64]) -> Iterator[tuple[Any, Any]]:
        for rows, at in by_ordinal(starts.view(Counted)):
            yield np.asarray(rows), np.asarray(at)

    monkeypatch.setattr(Counted, "looked", 0)
    monkeypatch.setattr(javahash, "_by_ordinal", counting)
    bucket_ids(keys, 7, record_key_fields=FIELDS, hash_fields=["b"], colon_rule=rule)
    assert 0 < Counted.looked <= 20_000


def lines(work: Callable[[pa.Array], object], keys: pa.Array) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if "hudi_table" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(keys)
    finally:
        sys.settrace(before)
    return count


def held(work: Callable[[pa.Array], object], keys: pa.Array) -> int:
    tracemalloc.start()
    try:
        work(keys)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
