"""Caches with a bound: what was used longest ago goes first, and one bound may be shared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.model.bounded import Bounded, Shelf


def test_what_was_used_longest_ago_goes_first() -> None:
    kept: Bounded[str, int] = Bounded(2)
    kept["a"], kept["b"] = 1, 2
    assert kept.get("a") == 1
    kept["c"] = 3
    assert dict(kept) == {"a": 1, "c": 3}
    with pytest.raises(KeyError):
        kept["b"]


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=9)), max_size=40))
def test_the_weight_is_never_more_than_the_bound_and_the_newest_is_there(puts: list[tuple[int, bytes]]) -> None:
    kept: Bounded[int, bytes] = Bounded(20, len)
    for key, value in puts:
        kept[key] = value
        assert kept[key] == value
        assert kept.total == sum(len(each) for each in kept.values()) <= 20


def test_one_that_is_heavier_than_the_bound_stays_until_the_next() -> None:
    kept: Bounded[str, bytes] = Bounded(3, len)
    kept["a"] = b"12345"
    assert kept["a"] == b"12345"
    kept["b"] = b"1"
    assert dict(kept) == {"b": b"1"}


def test_shelves_share_a_bound_and_nothing_else() -> None:
    cache: Bounded[tuple[object, str], int] = Bounded(3)
    one, two = Shelf(cache, "one"), Shelf(cache, "two")
    one["a"], two["a"], two["b"] = 1, 2, 3
    assert (dict(one), dict(two)) == ({"a": 1}, {"a": 2, "b": 3})
    two["c"] = 4
    assert (len(one), len(two)) == (0, 3)
    assert two.pop("a") == 2
    assert one.pop("a", None) is None
    with pytest.raises(KeyError):
        del one["a"]
