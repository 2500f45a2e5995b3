"""Key ranges follow Java's order of strings, which is not Arrow's beyond U+FFFF."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.codec.keyrange import key_range, may_lie_within, merge_ranges

# The alphabet mixes characters whose order differs between UTF-8 and UTF-16.
KEYS = st.lists(st.none() | st.text(st.sampled_from("aé中\ue000\ufffd😀\U0010ffff"), max_size=4), max_size=20)


def java_order(key: str) -> bytes:
    return key.encode("utf-16-be")


def expected_range(keys: list[str | None]) -> tuple[str, str] | None:
    present = [key for key in keys if key is not None]
    return (min(present, key=java_order), max(present, key=java_order)) if present else None


@given(KEYS, st.integers(0, 5))
def test_the_range_is_by_utf_16_code_units(keys: list[str | None], start: int) -> None:
    assert key_range(pa.array(keys, pa.string()).slice(start)) == expected_range(keys[start:])


@given(KEYS, KEYS)
def test_merged_ranges_are_the_range_of_all_keys(first: list[str | None], second: list[str | None]) -> None:
    parts = [key_range(pa.array(keys, pa.string())) for keys in (first, second)]
    assert merge_ranges(*parts) == expected_range(first + second)


def test_a_supplementary_character_comes_before_a_private_use_one() -> None:
    assert key_range(pa.array(["\ue000", "😀"])) == ("😀", "\ue000")


@given(KEYS, KEYS)
def test_a_key_of_a_file_lies_in_its_range_whichever_order_the_writer_took(keys: list, others: list) -> None:
    present = [key for key in keys if key is not None]
    if not present:
        return
    for order in (java_order, str.encode):
        smallest, largest = min(present, key=order), max(present, key=order)
        assert may_lie_within(pa.array(present), smallest, largest).to_pylist() == [True] * len(present)
        probes = [key for key in others if key is not None]
        within = may_lie_within(pa.array(probes, pa.string()), smallest, largest).to_pylist()
        for probe, inside in zip(probes, within, strict=True):
            either = any(o(smallest) <= o(probe) <= o(largest) for o in (java_order, str.encode))
            assert inside == either


def test_a_null_key_lies_in_no_range_and_plain_keys_are_compared_as_they_are() -> None:
    assert may_lie_within(pa.array([None, "a", "b", "c", ""]), "b", "b").to_pylist() == [
        None,
        False,
        True,
        False,
        False,
    ]
