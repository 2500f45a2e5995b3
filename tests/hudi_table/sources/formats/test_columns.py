"""Columns of values as Kafka Connect writes them are what Python makes of each value by itself."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.sources.formats.columns import (
    BadValueError,
    binary,
    clocks,
    decimals,
    moments,
    timestamps,
    variable_decimals,
)
from hudi_table.sources.formats.connect import kind_of

WIDEST = 10**38 - 1
Numbers = list[int | None]
numbers = st.lists(st.none() | st.integers(-WIDEST, WIDEST) | st.integers(-300, 300), max_size=12)


def big_endian(number: int) -> bytes:
    """As Java writes it: as short as its sign allows."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def text(number: int | None) -> str | None:
    return None if number is None else base64.b64encode(big_endian(number)).decode()


@given(numbers)
def test_a_decimal_is_its_unscaled_number_in_base64_or_in_bytes(values: Numbers) -> None:
    kind = pa.decimal128(38, 7)
    # The decimal module would round to 28 digits.
    expected = [None if each is None else pa.scalar(str(each)).cast(pa.decimal128(38, 0)).as_py() for each in values]
    expected = [None if each is None else Decimal(f"{each}E-7") for each in expected]
    assert decimals(kind)(pa.array(map(text, values), pa.string()), False).to_pylist() == expected
    raw = pa.array([None if each is None else big_endian(each) for each in values], pa.binary())
    assert decimals(kind)(raw, False).to_pylist() == expected
    assert decimals(kind)(raw.slice(1), False).to_pylist() == expected[1:]


@given(st.lists(st.none() | st.tuples(st.integers(-3, 40), st.integers(-(10**50), 10**50) | st.integers(-20, 20))))
def test_a_decimal_of_any_scale_is_its_text(values: list[tuple[int, int] | None]) -> None:
    raw = pa.array(
        [None if each is None else {"scale": each[0], "value": text(each[1])} for each in values],
        pa.struct([("scale", pa.int64()), ("value", pa.string())]),
    )
    wide = [None if each is None else Decimal((int(each[1] < 0), tuple(map(int, str(abs(each[1])))), -each[0])) for each in values]  # fmt: skip
    assert variable_decimals(raw, False).to_pylist() == [None if each is None else f"{each:f}" for each in wide]


@given(st.lists(st.none() | st.binary(max_size=9)))
def test_bytes_are_what_their_base64_says(values: list[bytes | None]) -> None:
    raw = pa.array([None if each is None else base64.b64encode(each).decode() for each in values], pa.string())
    assert binary(raw, False).to_pylist() == values


@pytest.mark.parametrize("value", ["a", "====", "AA=A", "A===", "AAAA*AAA", "é", "QUJD\n"])
def test_what_is_no_base64_is_refused_with_its_row(value: str) -> None:
    raw = pa.array(["QUJD", None, "QQ==", value, "QUJD"])
    with pytest.raises(BadValueError, match="is no base64") as caught:
        binary(raw, False)
    assert caught.value.row == 3


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (0, "00:00:00"), (14_706_789_000, "04:05:06.789"), (86_400_000_000, "24:00:00"), (1, "00:00:00.000001"),
        (-1_800_000_000, "-00:30:00"), (-3_020_399_000_000, "-838:59:59"), (None, None),
    ],
)  # fmt: skip
def test_a_time_is_its_text_also_below_zero_and_beyond_a_day(micros: int | None, expected: str | None) -> None:
    assert clocks(1)(pa.array([micros], pa.int64()), False).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("read", "good", "bad", "words"),
    [
        (decimals(pa.decimal128(4, 2)), text(9999), text(10_000), "does not fit in precision"),
        (decimals(pa.decimal128(4, 2)), text(-1), text(1 << 140), "has more digits than decimal128"),
        (moments, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "is no moment of ISO 8601 with a zone"),
        (moments, "2026-01-01T02:00:00.5+02:00", "yesterday", "'yesterday' is no moment"),
        (timestamps(1000), 5, 253_402_300_800_000, "the timestamp 253402300800000 is infinite"),
        (timestamps(1), 5, -9_223_372_036_832_400_000, "is infinite"),
    ],
)
def test_the_first_value_that_is_none_is_refused_with_its_row(read: Any, good: Any, bad: Any, words: str) -> None:
    with pytest.raises(BadValueError, match=words) as caught:
        read(pa.array([good, None, good, bad, good, bad]), False)
    assert caught.value.row == 3


def test_a_bad_item_of_a_list_is_told_by_the_row_of_its_list() -> None:
    kind = kind_of({"type": "array", "items": {"type": "bytes"}})
    raw = pa.array([["QUJD", None], None, [], ["QQ=="], ["QQ==", "?"]], kind.raw)
    assert kind.read(raw.slice(0, 4), False).to_pylist() == [[b"ABC", None], None, [], [b"A"]]
    with pytest.raises(BadValueError, match="is no base64") as caught:
        kind.read(raw, False)
    assert caught.value.row == 4
