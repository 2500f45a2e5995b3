"""Files skipped by the smallest and largest values of their columns.

Aspects: no file with a matching row is ever left out, by any filter (hypothesis); files are left
out where they surely match nothing; the tables that Hudi wrote with column statistics; statistics
that Hudi writes wrong (NaN, long texts); scans handed down.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import open_table
from hudi_table.codec.bounds import values_of
from hudi_table.codec.metadata.column_stats import stats_of_rows
from hudi_table.read.filter.expression_tree import tree
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.pruning.column_ranges import Ranges, may_match
from tests.support import metadata_files
from tests.support.scale import scaled

TEXTS = st.text("ab\u00e9\ue000\U00010000", max_size=3)
WHOLE = st.integers(-4, 4)
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "n": (pa.int32(), WHOLE),
    "big": (pa.int64(), WHOLE),
    "s": (pa.string(), TEXTS),
    "yes": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), WHOLE),
    "at": (pa.timestamp("us", tz="UTC"), WHOLE),
    "price": (pa.decimal128(6, 2), st.decimals(-4, 4, places=2)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in KINDS.items()])


@st.composite
def filters(draw: Callable[..., Any], depth: int = 2) -> pc.Expression:
    """Any tree of tests."""
    if depth and draw(st.booleans()):
        left, right = draw(filters(depth - 1)), draw(filters(depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    name = draw(st.sampled_from(sorted(KINDS)))
    kind, values = KINDS[name]
    column, value = pc.field(name), pa.scalar(draw(values), kind)
    # Seventy values are drawn where they are asked for alone: they took most of the test's time.
    tests: list[Callable[[], pc.Expression]] = [
        lambda: column == value,
        lambda: column != value,
        lambda: column < value,
        lambda: column <= value,
        lambda: pc.scalar(value) < column,
        lambda: column >= value,
        column.is_null,
        column.is_valid,
        lambda: column.isin(pa.array(draw(st.lists(st.none() | values, max_size=4)), kind)),
        lambda: column.isin(pa.array(draw(st.lists(values, min_size=70, max_size=70)), kind)),
    ]
    if name == "s":
        text = draw(TEXTS)
        tests += [
            lambda: pc.starts_with(column, text),
            lambda: pc.match_like(column, f"{text}%a_"),
            lambda: pc.match_like(column, text),
        ]
    return draw(st.sampled_from(tests))()


def ranges(files: list[pa.Table]) -> dict[str, Ranges]:
    stats = [stats_of_rows(file, "f", file.schema.names) for file in files]
    found = {}
    for place, field in enumerate(files[0].schema):
        own = pa.concat_arrays([each.slice(place, 1) for each in stats])
        low, high = (values_of(own.field(side), field.type) for side in ("min", "max"))
        found[field.name] = Ranges(low, high, own.field("null_count"))
    return found


@settings(max_examples=scaled(300), deadline=None)
@given(data=st.data(), expression=filters())
def test_no_file_with_a_matching_row_is_left_out(data: st.DataObject, expression: pc.Expression) -> None:
    rows = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in KINDS.items()})
    files = [
        pa.table(
            {name: pa.array([row[name] for row in found], kind) for name, (kind, _) in KINDS.items()}, schema=SCHEMA
        )
        for found in data.draw(st.lists(st.lists(rows, max_size=3), min_size=1, max_size=4))
    ]
    kept = may_match(tree(expression), ranges(files), len(files))
    for file, may in zip(files, kept.tolist(), strict=True):
        assert may or file.filter(expression).num_rows == 0


def test_a_file_of_whose_nulls_nothing_is_known_may_hold_some() -> None:
    one = pa.array([1, 1, None], pa.int64())
    found = {"n": Ranges(one, one, pa.array([0, None, None], pa.int64()))}
    assert may_match(tree(pc.field("n").is_null()), found, 3).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 5", [False, True, False]),
        ("n != 1", [False, True, True]),
        ("n < 4", [True, True, False]),
        ("n <= 3", [True, True, False]),
        ("n > 9", [False, False, False]),
        ("n >= 9", [False, True, True]),
        ("4 > n", [True, True, False]),
        ("n between 2 and 3", [False, True, False]),
        ("n in (1, 20)", [True, False, False]),
        ("n not in (1)", [True, True, True]),
        ("n is null", [False, False, True]),
        ("s = 'c'", [False, True, False]),
        ("s like 'ab%'", [True, False, False]),
        ("s like '%b'", [True, True, True]),
        ("price > 2.5", [False, True, True]),
        ("n = 1 and s = 'zz'", [False, False, False]),
        ("n = 1 or s = 'zz'", [True, False, True]),
    ],
)
def test_files_that_surely_match_nothing_are_left_out(text: str, kept: list[bool]) -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string()), ("price", pa.decimal128(6, 2))])
    files = [
        pa.table({"n": [1, 1], "s": ["aa", "abc"], "price": [Decimal("1.00"), Decimal("2.50")]}, schema=schema),
        pa.table({"n": [2, 9], "s": ["c", "d"], "price": [Decimal("1.00"), Decimal("2.51")]}, schema=schema),
        pa.table({"n": [9, None], "s": ["y", "zzz"], "price": [Decimal("3.00"), None]}, schema=schema),
    ]
    found = Filter.of(text)
    assert found is not None
    assert may_match(tree(found.bind(schema).expression), ranges(files), 3).tolist() == kept


def test_nothing_follows_from_bounds_that_are_absent_or_of_astral_texts() -> None:
    unknown = Ranges(pa.array([None, "\ue000"]), pa.array([None, "\U00010000"]), pa.array([10, 0]))
    for expression in (pc.field("s") == "a", pc.field("s").is_valid(), pc.field("s").is_null(), pc.field("s") != "a"):
        assert may_match(tree(expression), {"s": unknown}, 2).all()


def matching(base: Path, text: str | None) -> tuple[int, int]:
    """(files planned, rows) of a scan."""
    scan = open_table(str(base)).scan(filter=text)
    return len(scan.plan_files()), scan.to_arrow().num_rows


FILTERS = [
    "i > 0 and city = 'nyc'",
    "i = 110",
    "l < -100000000000000",
    "day >= '1970-06-01'",
    "ts < '1970-01-01 00:00:00'",
    "p <= -2.0",
    "wide > 1500000",
    "s = 'nothing'",
    "id = 'k024'",
    "b = true",
    "void = 'a'",
    "_hoodie_record_key = 'k007'",
    "ver = 0",
    "f > 0",
]


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_scans_of_hudis_tables_read_fewer_files_and_the_same_rows(version: str, tmp_path: Path) -> None:
    base = metadata_files.table(version, tmp_path / "with")
    without = shutil.copytree(base, tmp_path / "without")
    shutil.rmtree(without / ".hoodie" / "metadata")
    fewer = 0
    for text in FILTERS:
        (files, rows), (all_files, all_rows) = matching(base, text), matching(without, text)
        assert rows == all_rows, text
        assert files <= all_files
        fewer += files < all_files
    assert fewer >= 4
    assert matching(base, "id = 'zzz'")[0] == 0
    assert matching(base, None)[0] == 2


def test_conditions_handed_down_skip_files_too(tmp_path: Path) -> None:
    import duckdb

    base = metadata_files.table("1.1.1", tmp_path)
    scan = open_table(str(base)).scan()
    with duckdb.connect() as connection:
        found = scan.to_duckdb(connection).filter("i < 0").fetchall()
    assert len(found) == scan.to_arrow().filter(pc.field("i") < 0).num_rows > 0


def test_metadata_that_cannot_be_read_costs_no_rows(tmp_path: Path) -> None:
    base = metadata_files.table("0.15.0", tmp_path)
    expected = matching(base, "i = 110")[1]
    for path in base.glob(".hoodie/metadata/column_stats/*.hfile"):
        path.write_bytes(path.read_bytes()[:-100])
    assert matching(base, "i = 110") == (2, expected)
