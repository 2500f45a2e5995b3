"""The range of a file selects every wanted key that lies in it, and few others.

Aspects: ranges in either order of keys, odd bounds, keys that agree for long; spans are empty where
nothing can be there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.index.sorted_keys import Wanted

TEXTS = st.text(st.sampled_from("ab\x00z\ue000\uffee\U0001f600é"), max_size=12).map(lambda text: text)
PREFIXED = st.builds(lambda stem, rest: stem + rest, st.sampled_from(["", "key-000", "\U0001f600"]), TEXTS)


def wanted_of(keys: list[str]) -> Wanted:
    return Wanted.of(pa.array(keys, pa.string()), np.arange(len(keys), dtype=np.int64))


def selected(wanted: Wanted, smallest: str | None, largest: str | None) -> set[str]:
    return set(wanted.between(wanted.span(smallest, largest)).keys.to_pylist())


def units(key: str) -> bytes:
    return key.encode("utf-16-be")


@given(st.lists(PREFIXED, max_size=30), PREFIXED, PREFIXED)
def test_a_span_holds_every_key_between_its_bounds_by_bytes_and_by_utf_16_units(
    keys: list[str], one: str, other: str
) -> None:
    for order in (str.encode, units):
        low, high = sorted((one, other), key=order)
        found = selected(wanted_of(keys), low, high)
        assert found >= {key for key in keys if order(low) <= order(key) <= order(high)}


@given(st.lists(PREFIXED, max_size=30))
def test_rows_stay_with_their_keys_and_shared_bytes_lead_all(keys: list[str]) -> None:
    wanted = wanted_of(keys)
    assert [keys[row] for row in wanted.rows] == wanted.keys.to_pylist()
    assert all(key.encode().startswith(wanted.shared) for key in keys)
    assert wanted.heads.tolist() == sorted(wanted.heads.tolist())


def test_a_span_is_exact_where_keys_differ_within_eight_bytes_of_what_they_share() -> None:
    keys = [f"order-2026-{number:06d}" for number in range(10_000)]
    wanted = wanted_of(keys[::-1])
    assert wanted.span("order-2026-000100", "order-2026-000199") == (100, 200)
    assert selected(wanted, "order-2026-000100", "order-2026-000199") == set(keys[100:200])


def test_a_range_beside_all_keys_selects_none_and_no_range_selects_all() -> None:
    wanted = wanted_of(["m1", "m2", "m3"])
    assert wanted.span("a", "b") == wanted.span("n", "z") == wanted.span("m21", "m22") == (0, 0)
    assert wanted.span("m2", "m2") == (1, 2)
    assert wanted.span("", "m") == (0, 0)
    assert wanted.span(None, "b") == wanted.span("a", None) == wanted.span("a", "z") == (0, 3)
    assert wanted_of([]).span("a", "z") == (0, 0)
