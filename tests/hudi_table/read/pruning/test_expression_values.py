"""What a filter says of the values of an expression.

Aspects: it holds for every row that matches, of random values, filters and time zones of who wrote
the entries (hypothesis); what single filters say, and that others say nothing. Omitted: which files
are left out by it (`test_expressions.py`), which values an expression gives
(`tests/hudi_table/metadata/test_expression_index.py`, `tests/interop/test_expression_index.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hudi_table.metadata.definitions import ExpressionNote
from hudi_table.metadata.expression_index.entries import Expression
from hudi_table.metadata.expression_index.functions import UnknownValueError, bound_function
from hudi_table.model.metadata_table import ExpressionPartition
from hudi_table.read.filter.expression_tree import tree
from hudi_table.read.pruning.column_ranges import Ranges
from hudi_table.read.pruning.expression_values import Between, Several, Wanted, implied
from tests.support.scale import scaled

NAME = ExpressionPartition("expr_index_x")
INT, LONG, DATE, AT, TEXT = pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.string()
YEAR, MAY = 31_557_600, 130 * 86_400
SECONDS = st.one_of(
    st.integers(-3 * YEAR, 3 * YEAR),
    st.sampled_from([-62_167_219_200, 253_402_300_800, 9_223_372_036_854, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
DAYS = st.one_of(st.integers(-900, 900), st.sampled_from([-719_528, 2_932_897, 2**31 - 1, -(2**31)]))
TEXTS = st.text(alphabet="aAiIkK\u0130\u212a\u0131\u017fßé z\ue000\U00010000", max_size=3)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    INT: st.integers(-3 * YEAR, 3 * YEAR) | st.sampled_from([2**31 - 1, -(2**31)]),
    LONG: SECONDS,
    DATE: DAYS,
    AT: SECONDS.map(lambda found: max(-(2**63), min(2**63 - 1, found * 1_000_000))),
    TEXT: TEXTS,
}
CASES: list[tuple[str, dict[str, str], pa.DataType]] = [
    *((name, {}, TEXT) for name in ("upper", "lower", "length", "trim")),
    ("ltrim", {"trimString": "aé"}, TEXT),
    *(("substring", {"pos": place, "len": length}, TEXT) for place in ("0", "1", "2", "-2") for length in ("1", "0")),
    *(
        ("from_unixtime", {"format": form}, kind)
        for kind in (INT, LONG)
        for form in ("yyyy-MM-dd", "yyyyMM", "MM", "yyyy dd")
    ),
    ("from_unixtime", {}, LONG),
    *(("date_format", {"format": form}, kind) for kind in (DATE, AT) for form in ("yyyy", "yyyy-MM-dd HH", "dd/MM")),
    *((name, {}, kind) for name in ("year", "month", "day", "to_date") for kind in (DATE, AT)),
    ("hour", {}, AT),
    *((name, {"days": days}, kind) for name in ("date_add", "date_sub") for days in ("3", "-3") for kind in (DATE, AT)),
]


def expression(function: str, options: Mapping[str, str], stored: pa.DataType) -> Expression:
    kind, values = bound_function(function, options, stored)
    return Expression(NAME, ExpressionNote("c", function, options), stored, kind, values)


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pt.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    return pa.array(values, pa.int64()).view(kind) if pt.is_timestamp(kind) else pa.array(values, kind)


def in_zone(values: pa.Array, of: Expression, seconds: int) -> pa.Array:
    """What a session in this zone takes the values for, as one in UTC takes others."""
    if pt.is_timestamp(of.stored):
        numbers = values.view(pa.int64()).to_numpy(zero_copy_only=False)
        shift, most = seconds * 1_000_000, 2**63 - 1
        return column_of([max(-most, min(most, int(each) + shift)) for each in numbers], of.stored)
    if of.note.function == "from_unixtime":
        with np.errstate(over="ignore"):
            wrapped = values.cast(LONG).to_numpy() * 1_000_000 // 1_000_000
        assume(not pt.is_int32(of.stored) or (np.abs(wrapped + seconds) < 2**31).all())
        return column_of([int(each) + seconds for each in wrapped], of.stored)
    return values


def calls(of: Expression, text: str) -> list[Callable[[pc.Expression], pc.Expression]]:
    """Arrow's functions that may stand for the one of the index."""
    options = of.note.options
    found: dict[str, list[Callable[[pc.Expression], pc.Expression]]] = {
        "upper": [pc.utf8_upper, pc.ascii_upper],
        "lower": [pc.utf8_lower, pc.ascii_lower],
        "length": [pc.utf8_length],
        "trim": [lambda column: pc.utf8_trim(column, characters=" ")],
        "ltrim": [lambda column: pc.utf8_ltrim(column, characters=text or " ")],
        "substring": [lambda column: pc.utf8_slice_codeunits(column, *(int(each) for each in ends(options)))],
        "year": [pc.year],
        "month": [pc.month],
        "day": [pc.day],
        "to_date": [lambda column: column.cast(pa.date32())],
    }
    return found.get(of.note.function, [])


def ends(options: Mapping[str, str]) -> tuple[int, int]:
    start = max(int(options["pos"]) - 1, 0)
    return start, start + max(1, int(options["len"]))


@st.composite
def filters(draw: Callable[..., Any], of: Expression, depth: int = 2) -> pc.Expression:
    if depth and draw(st.booleans()):
        left, right = draw(filters(of, depth - 1)), draw(filters(of, depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    column = pc.field("c")
    value = column_of([draw(VALUES[of.stored])], of.stored)[0]
    functions = calls(of, draw(TEXTS))
    if functions and draw(st.booleans()):
        column = draw(st.sampled_from(functions))(column)
        value = draw(st.sampled_from(list(results(of, value)))) if pt.is_string(of.kind) else results(of, value)[0]
    tests: list[Callable[[], pc.Expression]] = [
        lambda: column == value,
        lambda: column != value,
        lambda: column < value,
        lambda: column <= value,
        lambda: column >= value,
        lambda: pc.scalar(value) < column,
        lambda: column.isin(pa.array([value.as_py()] if pt.is_string(value.type) else [], value.type)),
        lambda: (column >= value) & (pc.field("c") <= column_of([draw(VALUES[of.stored])], of.stored)[0]),
        column.is_valid,
    ]
    return draw(st.sampled_from(tests))()


def results(of: Expression, value: pa.Scalar) -> list[pa.Scalar]:
    try:
        found = of.values(pa.repeat(value, 1))[0]
    except UnknownValueError:
        found = pa.scalar("x", of.kind)
    return [found, *(pa.scalar(each) for each in ("i", "AI", "ki"))] if pt.is_string(of.kind) else [found]


def holds(wanted: Wanted | None, ranges: Ranges) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, Between):
        return bool(ranges.may_be(wanted.low, wanted.high)[0])
    each = [holds(part, ranges) for part in wanted.parts]
    return all(each) if wanted.every else any(each)


@settings(max_examples=scaled(800), deadline=None)
@given(data=st.data(), case=st.sampled_from(CASES), zone=st.integers(-64_800, 64_800))
def test_what_a_filter_says_of_an_expression_holds_for_every_row_that_matches(
    data: st.DataObject, case: tuple[str, dict[str, str], pa.DataType], zone: int
) -> None:
    of = expression(*case)
    asked = data.draw(filters(of))
    rows = column_of(data.draw(st.lists(VALUES[of.stored], min_size=1, max_size=4)), of.stored)
    try:
        told = of.values(in_zone(rows, of, zone))
    except (UnknownValueError, OverflowError, pa.ArrowInvalid):
        assume(False)
    try:
        matching = pa.table({"c": rows}).filter(asked)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        assume(False)
    least, most = (pa.repeat(pc.min_max(told)[side], 1) for side in ("min", "max"))
    ranges = Ranges(least, most, pa.array([0]))
    assert holds(implied(tree(asked), of), ranges) or not matching.num_rows


column = pc.field("c")
SAID: list[tuple[str, dict[str, str], pa.DataType, pc.Expression, tuple[Any, Any] | None]] = [
    ("year", {}, DATE, column == date(2024, 2, 2), (2024, 2024)),
    ("year", {}, AT, column >= datetime(2024, 1, 1, tzinfo=UTC), (2023, None)),
    ("month", {}, DATE, column == date(2024, 2, 2), (2, 2)),
    ("month", {}, DATE, pc.month(column) == 2, None),
    ("to_date", {}, AT, column.cast(DATE) <= date(2024, 1, 1), (None, date(2024, 1, 2))),
    ("length", {}, TEXT, pc.utf8_length(column) > 3, (3, None)),
    ("trim", {}, TEXT, pc.utf8_trim(column, characters=" ") == "a", ("a", "a")),
    ("trim", {}, TEXT, pc.utf8_trim(column, characters="a") == "b", None),
    ("ltrim", {"trimString": "x"}, TEXT, pc.utf8_ltrim(column, characters="x") < "a", (None, "a")),
    ("substring", {"pos": "1", "len": "2"}, TEXT, pc.utf8_slice_codeunits(column, 0, 2) == "ab", ("ab", "ab")),
    ("substring", {"pos": "-2", "len": "2"}, TEXT, pc.utf8_slice_codeunits(column, -2) == "ab", ("ab", "ab")),
    ("substring", {"pos": "1", "len": "2"}, TEXT, pc.utf8_slice_codeunits(column, 1, 2) == "ab", None),
    ("upper", {}, TEXT, pc.utf8_upper(column) == "ANN", ("ANN", "ANN")),
    ("upper", {}, TEXT, pc.utf8_upper(column) == "\u00c9", None),
    ("upper", {}, TEXT, pc.utf8_upper(column) > "ANN", None),
    ("lower", {}, TEXT, pc.utf8_lower(column) == "kai", ("kai", "kai\u0307")),
    ("upper", {}, TEXT, column == "\u00e9", ("\u00c9", "\u00c9")),
    ("upper", {}, TEXT, column == "\u10d0", None),
    ("upper", {}, TEXT, column != "a", None),
    ("substring", {"pos": "0", "len": "2"}, TEXT, column >= "abc", ("ab", None)),
    ("from_unixtime", {}, LONG, column >= 0, None),
    ("from_unixtime", {"format": "yyyy-MM"}, LONG, (column >= 0) & (column < MAY), ("1969-12", "1970-05")),
    ("from_unixtime", {"format": "yyyy"}, INT, column < MAY, (None, "1970")),
    ("date_format", {"format": "dd/MM/yyyy"}, DATE, column >= date(1970, 1, 2), None),
    ("date_format", {"format": "dd/MM/yyyy"}, DATE, column == date(1970, 1, 2), ("02/01/1970", "02/01/1970")),
    ("hour", {}, AT, column == datetime(2024, 1, 1, tzinfo=UTC), None),
]


@pytest.mark.parametrize("case", SAID, ids=lambda case: f"{case[0]} {case[2]} {case[3]}"[:60])
def test_a_filter_says_this_of_an_expression(
    case: tuple[str, dict[str, str], pa.DataType, pc.Expression, tuple[Any, Any] | None],
) -> None:
    function, options, stored, asked, expected = case
    found = implied(tree(asked), expression(function, options, stored))
    while isinstance(found, Several) and len(found.parts) == 1:
        (found,) = found.parts
    assert found is None if expected is None else isinstance(found, Between)
    if isinstance(found, Between):
        assert expected == tuple(None if end is None else end.as_py() for end in (found.low, found.high))


def test_years_that_arrow_takes_for_others_are_read() -> None:
    of = expression("year", {}, DATE)
    said = implied(tree(pc.year(column) == 2024), of)
    told = [2023, 2024, 2025, 2024 + (1 << 16)]
    years = [pa.array([year], pa.int32()) for year in told]
    assert [holds(said, Ranges(year, year, pa.array([0]))) for year in years] == [False, True, False, True]
