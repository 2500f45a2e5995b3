"""Filters: text, tuples and expressions mean the same; SQL's nulls; literals of the column's type;
what is refused.

Not here: pruning (test_pruning.py) and filters over whole tables (test_scan.py).
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.errors import InvalidOptionError
from hudi_table.read.filter.predicates import Filter
from tests.support.scale import scaled

ROWS = pa.table(
    {
        "n": pa.array([0, 1, 2, 3], pa.int32()),
        "city": ["sf", "ny", None, "o'x"],
        "ts": [1, 6, 7, None],
        "day": pa.array([date(2024, 1, 1), date(2024, 6, 1), None, date(2025, 1, 1)]),
        "price": pa.array([Decimal("1.10"), Decimal("2.00"), None, Decimal("3.00")], pa.decimal128(10, 2)),
        "at": pa.array([datetime(2024, 1, 1, 12, tzinfo=UTC)] * 3 + [None], pa.timestamp("us", tz="UTC")),
        "ok": [True, False, None, True],
        "ratio": [1.5, math.nan, None, 2.0],
        "place": [{"zip": 1}, {"zip": 2}, None, {"zip": None}],
        "raw": [b"a", b"b", None, b""],
    }
)


def matching(condition: object, rows: pa.Table = ROWS) -> list[int]:
    found = Filter.of(condition)
    assert found is not None
    return rows.filter(found.bind(rows.schema).expression)["n"].to_pylist()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("city = 'sf'", [0]),
        ("city = 'sf' and ts > 5", []),
        ("city = 'sf' or ts > 5", [0, 1, 2]),
        ("city = 'sf' or ts > 5 and n = 1", [0, 1]),
        ("(city = 'sf' or ts > 5) and n = 1", [1]),
        ("city = 'o''x'", [3]),
        ("'sf' = city", [0]),
        ("`city` = 'ny'", [1]),
        ("\"city\" <> 'ny'", [0, 3]),
        ("n < ts", [0, 1, 2]),
        ("not city = 'sf'", [1, 3]),
        ("not (city = 'sf' or ts = 6)", []),
        ("not (city = 'sf' and ts = 1)", [1, 2, 3]),
        ("city in ('sf', 'ny')", [0, 1]),
        ("city not in ('sf')", [1, 3]),
        ("not city in ('sf')", [1, 3]),
        ("city is null", [2]),
        ("not city is null", [0, 1, 3]),
        ("city is not null and ts between 1 and 6", [0, 1]),
        ("ts not between 1 and 6", [2]),
        ("city like '%y'", [1]),
        ("city not like '%y'", [0, 3]),
        ("city LIKE 's_' AND ok", [0]),
        ("ok", [0, 3]),
        ("not ok", [1]),
        ("ok = false", [1]),
        ("price = 1.10", [0]),
        ("price >= 2", [1, 3]),
        ("day >= '2024-06-01'", [1, 3]),
        ("day < date '2024-06-01'", [0]),
        ("at = '2024-01-01 12:00:00'", [0, 1, 2]),
        ("at = timestamp '2024-01-01T13:00:00+01:00'", [0, 1, 2]),
        ("at > '2024-01-01'", [0, 1, 2]),
        ("ts > 5.5", [1, 2]),
        ("ts in (1, 6.0)", [0, 1]),
        ("ts = -1 or ts = 7", [2]),
        ("ts=7", [2]),
        ("ratio not in (1.5)", [1, 3]),
        ("ratio > 1e0", [0, 3]),
        ("place.zip = 2", [1]),
        ("place.zip is null", [2, 3]),
        ("raw = 'b'", [1]),
    ],
)
def test_text_selects_the_rows_that_sql_selects(condition: str, expected: list[int]) -> None:
    assert matching(condition) == expected


@pytest.mark.parametrize(
    ("tuples", "text"),
    [
        (("ts", ">", 5), "ts > 5"),
        ([("city", "=", "sf"), ("ts", "<", 5)], "city = 'sf' and ts < 5"),
        ([[("city", "=", "sf")], [("ts", ">", 5), ("n", "==", 2)]], "city = 'sf' or ts > 5 and n = 2"),
        (("city", "in", ["sf", "ny"]), "city in ('sf', 'ny')"),
        (("city", "not in", {"sf"}), "city not in ('sf')"),
        (("city", "is", None), "city is null"),
        (("city", "is not", None), "city is not null"),
        (("city", "like", "%y"), "city like '%y'"),
        (("day", "=", date(2024, 1, 1)), "day = '2024-01-01'"),
        (("at", "<=", datetime(2024, 1, 1, 12, tzinfo=UTC)), "at <= '2024-01-01 12:00:00'"),
        (("price", "<", Decimal("1.11")), "price < 1.11"),
        (("ok", "!=", True), "ok = false"),
    ],
)
def test_tuples_mean_what_their_text_means(tuples: object, text: str) -> None:
    assert matching(tuples) == matching(text)
    assert matching(text)


WIDE = pa.table(
    {
        "n": [0, 1, 2, 3],
        "tiny": pa.array([-128, 1, None, 127], pa.int8()),
        "long": pa.array([2**53 + 1, -(2**63), None, 2**63 - 1], pa.int64()),
        "cents": pa.array(
            [Decimal("1.10"), Decimal("-99999999.99"), None, Decimal("99999999.99")], pa.decimal128(10, 2)
        ),
        "fine": pa.array(
            [Decimal("1.1234567890"), Decimal("-1.5"), None, Decimal("1234567890123456789012345678.0123456789")],
            pa.decimal128(38, 10),
        ),
        "ms": pa.array([1, -(2**63), None, 2**63 - 1], pa.int64()).view(pa.timestamp("ms")),
        "near": pa.array([1.1, -0.0, None, math.inf], pa.float32()),
        "real": [1.1, -0.0, None, math.nan],
    }
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("long > 9007199254740992.5", [0, 3]),
        ("long > 9007199254740993.5", [3]),
        ("long >= 9007199254740992.5", [0, 3]),
        ("long < 9007199254740993.5", [0, 1]),
        ("9007199254740993.5 > long", [0, 1]),
        ("long = 9007199254740993.0", [0]),
        ("long = 1.5", []),
        ("not long = 1.5", [0, 1, 3]),
        ("long != 1.5", [0, 1, 3]),
        ("long between 0.5 and 9007199254740993.5", [0]),
        ("long in (9007199254740993, 1.5, 1e40)", [0]),
        ("long not in (9007199254740993, 1.5)", [1, 3]),
        ("long in (1.5)", []),
        ("long not in (1.5)", [0, 1, 3]),
        ("long < 9223372036854775808", [0, 1, 3]),
        ("long > 9223372036854775808", []),
        ("not long > 9223372036854775808", [0, 1, 3]),
        ("long >= -9223372036854775808.5", [0, 1, 3]),
        ("long <= -9223372036854775808.5", []),
        ("long > 1e999999999", []),
        ("long > 1e-999999999", [0, 3]),
        ("tiny < 3000000000", [0, 1, 3]),
        ("tiny >= 126.5", [3]),
        ("tiny in (127, 128)", [3]),
        ("cents > 1.0999999999", [0, 3]),
        ("cents >= 1.105", [3]),
        ("cents = 1.105", []),
        ("cents != 1.105", [0, 1, 3]),
        ("cents in (1.1, 2.505)", [0]),
        ("cents in (1.105)", []),
        ("cents in (1, 99999999.99)", [3]),
        ("cents > 12345678901234567890123456789012345678", []),
        ("cents < 1e30", [0, 1, 3]),
        ("fine > 1.123456789012", [3]),
        ("fine >= 1.12345678899", [0, 3]),
        ("fine > 12345678901234567890123456789.5", []),
        ("fine = 1234567890123456789012345678.0123456789", [3]),
        (("cents", "in", [1.1, Decimal("99999999.99")]), [0, 3]),
        (("long", "in", [np.int64(2**53 + 1), np.float64(0.5)]), [0]),
        ("ms > '1970-01-01 00:00:00.0005'", [0, 3]),
        ("long > real", [0]),
        ("near < long", [0]),
        ("tiny <= real", [0]),
        ("ms = '1970-01-01 00:00:00.0015'", []),
        ("ms in ('1970-01-01 00:00:00.001', '1970-01-01 00:00:00.0015')", [0]),
    ],
)
def test_a_constant_that_the_type_of_the_column_does_not_hold_is_compared_exactly(
    condition: object, expected: list[int]
) -> None:
    assert matching(condition, WIDE) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("real = 0", [1]),
        ("real in (0)", [1]),
        ("real in (0, 5)", [1]),
        ("real not in (0)", [0, 3]),
        ("real != 0", [0, 3]),
        ("near in (-0.0)", [1]),
        ("near = 1.1", [0]),
        ("near in (1.1)", [0]),
        ("near in (1.1, 1e300)", [0]),
        ("near != 1.1", [1, 3]),
        ("near not in (1.1)", [1, 3]),
        ("near > 1e300", [3]),
        ("near = 1e300", []),
        (("real", "=", math.nan), []),
        (("real", "in", [math.nan]), []),
        (("real", "not in", [math.nan]), [0, 1, 3]),
        (("near", "=", math.inf), [3]),
        (("near", "in", [math.inf]), [3]),
    ],
)
def test_in_of_floats_finds_what_equals_finds(condition: object, expected: list[int]) -> None:
    assert matching(condition, WIDE) == expected


MOMENTS = pa.table(
    {
        "n": [0, 1, 2],
        "at": pa.array([0, 1, 2]).view(pa.timestamp("us", tz="UTC")),
        "there": pa.array([0, 1, 2]).view(pa.timestamp("us", tz="Europe/Berlin")),
        "clock": pa.array([0, 1, 2], pa.int32()).view(pa.time32("ms")),
    }
)
BESIDE_1 = [
    ("at", np.datetime64(1_000_001, "ps")), ("at", pd.Timestamp(1001)), ("at", pa.scalar(1001, pa.timestamp("ns"))),
    ("at", pa.scalar(1001, pa.timestamp("ns", tz="Asia/Tokyo"))), ("at", "1970-01-01 00:00:00.000001001"),
    ("at", "1970-01-01T02:00:00,0000010000000000000000000000000001+02:00"), ("at", "1970-W01-4T000000.0000011Z"),
    ("there", "1970-01-01 01:00:00.0000011"), ("there", pd.Timestamp(1001, tz="Asia/Tokyo")),
    ("clock", time(microsecond=1001)), ("clock", pa.scalar(1_000_001, pa.time64("ns"))),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), BESIDE_1, ids=repr)
def test_moments_are_compared_to_their_last_digit(column: str, value: Any) -> None:
    """Of each value it is known that it lies between the second and the third of the column."""
    found = {op: matching((column, op, value), MOMENTS) for op in ("=", "!=", "<", "<=", ">", ">=")}
    assert found == {"=": [], "!=": [0, 1, 2], "<": [0, 1], "<=": [0, 1], ">": [2], ">=": [2]}
    assert matching((column, "in", [value]), MOMENTS) == []


@pytest.mark.parametrize(
    "value", [np.datetime64("2024-06-01"), np.datetime64("2024-06"), np.datetime64("2024-06-01T00")]
)
def test_moments_of_numpy_compare_with_timestamps_and_whole_days_with_dates(value: np.datetime64) -> None:
    assert matching(("at", ">", value)) == []
    assert matching(("at", "<", value)) == [0, 1, 2]
    if value.dtype != np.dtype("datetime64[h]"):
        assert matching(("day", "=", value)) == [1]


def test_an_expression_reports_the_columns_that_it_reads() -> None:
    condition = (pc.field("ts") > 5) & (pc.field("place", "zip") == 2)
    found = Filter.of(condition)
    assert found is not None
    assert found.bind(ROWS.schema).columns == ("ts", "place")
    assert matching(condition) == [1]


def test_a_filter_reports_its_columns_in_the_order_of_the_schema() -> None:
    found = Filter.of("place.zip = 1 or ts = 2 or city = 'x' or ts = 3")
    assert found is not None
    assert found.bind(ROWS.schema).columns == ("city", "ts", "place")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("nope = 1", "no column 'nope'; the table has n, city, ts"),
        ('city = "open"', "a text stands in single quotes, column = 'open'"),
        ("place.nope = 1", "no column 'place.nope'"),
        ("city.x = 1", "no column 'city.x'"),
        ("city = 5", "5 does not compare with a column of type string"),
        ("ts = 'x'", "'x' does not compare with a column of type int64"),
        ("ts = true", "True does not compare"),
        ("ok = 1", "1 does not compare"),
        ("day = '2024-13-01'", "'2024-13-01' does not compare with a column of type date32"),
        (("ts", ">", math.inf), "inf does not compare with a column of type int64"),
        (("day", "=", np.datetime64("2024-06-01T00")), "does not compare with a column of type date32"),
        (("at", "=", np.datetime64("NaT")), "nothing equals null"),
        (("at", "=", pd.NaT), "nothing equals null"),
        (("city", "=", [1]), "[1] does not compare with a column of type string"),
        (("city", "like", "\ud800"), r"the pattern '\ud800' is no text"),
        (("price", ">", math.nan), "nan does not compare with a column of type decimal128"),
        ("ratio > 1e400", "does not compare with a column of type double"),
        ("ts > 1e9999999999999999999999", "does not compare with a column of type int64"),
        ("at = 'noon'", "'noon' does not compare with a column of type timestamp"),
        ("place = 1", "name a field in it"),
        ("ts like '1%'", "like compares string columns"),
        ("ts = null", "write 'is null'"),
        ("ts in (1, null)", "write 'is null'"),
        ("ts >", "the end at character 5 stands where a column or a value is expected"),
        ("(ts = 1", "the end at character 8 stands where ')' is expected"),
        ("ts = 1 ts", "'ts' at character 8 is left over"),
        ("lower(city) = 'sf'", "knows no functions and no arithmetic; `hudictl query` and DuckDB do"),
        ("ts = abs(1)", "knows no functions"),
        ("ts + 1 = 2", "'+ 1 = 2' at character 3 cannot be read here: a filter compares columns with values"),
        ("ts ~ 1", "'~ 1' at character 3 cannot be read"),
        ("ts = 'open", "cannot be read here: the quote has no end; double a quote inside a text"),
        ("city = 'O'Brien'", "Brien"),
        ("ts in ()", "')' at character 8"),
        ("ts", "True does not compare"),
        ("1abc = 3", "cannot be read"),
        ("1 = 1", "needs a column"),
        ("1 in (ts)", "in takes one column and values"),
        ("'a' like city", "like takes a column and a pattern"),
        ("", "the end at character 1"),
        ("; drop table flights", "cannot be read"),
        ("not " * 100 + "ok", "more than 64 levels"),
        ("(" * 100 + "ok" + ")" * 100, "more than 64 levels"),
        (7, "neither SQL text"),
        ([], "neither SQL text"),
        (("ts", ">", None), "use =, !="),
        (("ts", "~", 1), "use =, !="),
        ([("ts", "=", 1), "x"], "is not (column, operator, value)"),
        ([[]], "is not (column, operator, value)"),
        ("city = ts", "does not fit the table"),
        (("place", "=", {"zip": 1}), "name a field in it"),
        (pc.field("nope") > 1, "does not fit the table"),
        (pc.field("city") > 1, "does not fit the table"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(condition: Any, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        matching(condition)


def test_many_conditions_in_a_row_are_no_nesting() -> None:
    assert matching(" or ".join(f"ts = {i}" for i in range(500))) == [0, 1, 2]


COLUMN = st.sampled_from(["a", "b"])
VALUE = st.integers(-2, 2)
TEST = st.one_of(
    st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), COLUMN, VALUE),
    st.tuples(st.just("in"), COLUMN, st.lists(VALUE, min_size=1, max_size=3)),
    st.tuples(st.just("null"), COLUMN),
)
TREE = st.recursive(
    TEST,
    lambda inner: st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner)),
    max_leaves=8,
)
GRID = [(a, b) for a in (None, -1, 0, 1) for b in (None, -1, 0, 1)]


def as_text(tree: Any) -> str:
    op, *parts = tree
    if op in ("and", "or"):
        return f"({as_text(parts[0])} {op} {as_text(parts[1])})"
    if op == "not":
        return f"not {as_text(parts[0])}"
    if op == "null":
        return f"{parts[0]} is null"
    if op == "in":
        return f"{parts[0]} in ({', '.join(map(str, parts[1]))})"
    return f"{parts[0]} {op} {parts[1]}"


def truth(tree: Any, row: dict[str, int | None]) -> bool | None:
    """SQL's three-valued logic, by its definition."""
    op, *parts = tree
    if op in ("and", "or"):
        found = [truth(part, row) for part in parts]
        decisive = op == "or"
        return decisive if decisive in found else None if None in found else not decisive
    if op == "not":
        inner = truth(parts[0], row)
        return None if inner is None else not inner
    value = row[parts[0]]
    if op == "null":
        return value is None
    if value is None:
        return None
    if op == "in":
        return value in parts[1]
    other = parts[1]
    return {
        "=": value == other,
        "!=": value != other,
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
    }[op]


@settings(max_examples=scaled(200), deadline=None)
@given(TREE)
def test_every_filter_agrees_with_three_valued_logic(tree: Any) -> None:
    rows = pa.table({"n": range(len(GRID)), "a": [a for a, _ in GRID], "b": [b for _, b in GRID]})
    expected = [n for n, (a, b) in enumerate(GRID) if truth(tree, {"a": a, "b": b})]
    assert matching(as_text(tree), rows) == expected
