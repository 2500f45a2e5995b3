"""Rows in order within a budget: the order is Arrow's own, and neither it nor the cuts depend on
how much memory there was."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.table.rows.row_order import Layout, RowOrder, RowSample, check_columns, sortable
from hudi_table.table.rows.sorted_rows import SortedRows

ROWS = 8_000


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """One key in three quarters of the rows, nulls, and texts of which the later ones are long."""
    rng = np.random.default_rng(7)
    hot = np.where(rng.random(ROWS) < 0.75, 5, rng.integers(0, 1_000, ROWS))
    return pa.table(
        {
            "place": np.arange(ROWS),
            "hot": pa.array(hot, mask=rng.random(ROWS) < 0.05),
            "name": pa.array([f"name-{n}" for n in rng.integers(0, 300, ROWS)]),
            "text": pa.array(["x" * int(n) for n in np.arange(ROWS) // 40]),
        }
    )


def sorted_by(rows: pa.Table, order: RowOrder, budget: int, runs: int = 3) -> tuple[list[pa.Table], int]:
    with SortedRows(order, budget, readers=2) as held:
        for start in range(0, len(rows), 1_000):
            piece = rows.slice(start, 1_000)
            # Every other table brings its names as a dictionary.
            names = piece["name"].dictionary_encode() if start % 2_000 else piece["name"]
            held.add(piece.set_column(2, "name", names))
        held.finish({})
        found = [list(held.run(number, runs)) for number in range(runs)]
        plain = [pa.concat_tables([t.cast(rows.schema) for t in tables], promote_options="none") for tables in found]
        return plain, held.spilled_bytes


ORDERS = [
    RowOrder(("hot",)),
    RowOrder(("name", "hot")),
    RowOrder(),
    RowOrder(("hot", "name"), Layout.Z_ORDER),
    RowOrder(("name", "hot", "place"), Layout.HILBERT),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: f"{order.layout}-{'-'.join(order.columns) or 'none'}")
def test_neither_order_nor_cuts_depend_on_the_memory(rows: pa.Table, order: RowOrder) -> None:
    whole, spilled = sorted_by(rows, order, 1 << 30)
    assert spilled == 0
    assert sorted(value for run in whole for value in run["place"].to_pylist()) == list(range(ROWS))
    for share in (2, 10):
        found, spilled = sorted_by(rows, order, rows.nbytes // share)
        assert spilled > 0
        assert [run.equals(other) for run, other in zip(whole, found, strict=True)] == [True] * 3


@pytest.mark.parametrize("columns", [("hot",), ("name", "hot"), ()])
def test_a_linear_order_is_that_of_the_columns_and_equal_rows_stay_as_they_came(
    rows: pa.Table, columns: tuple[str, ...]
) -> None:
    found, _ = sorted_by(rows, RowOrder(columns), rows.nbytes // 4)
    expected = rows.sort_by([(name, "ascending") for name in (*columns, "place")])
    assert pa.concat_tables(found)["place"].to_pylist() == expected["place"].to_pylist()


def test_runs_weigh_the_same_where_rows_do_not(rows: pa.Table) -> None:
    found, _ = sorted_by(rows, RowOrder(("place",)), 1 << 30, runs=4)
    sizes = [run.nbytes for run in found]
    assert max(sizes) / min(sizes) < 1.25
    assert len(found[0]) > 1.5 * len(found[-1])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_rows_than_runs_leave_runs_empty(rows: pa.Table, count: int) -> None:
    with SortedRows(RowOrder(("hot", "name"), Layout.HILBERT), 1 << 20) as held:
        if count:
            held.add(rows.slice(0, count))
        held.finish({})
        assert sum(len(table) for number in range(3) for table in held.run(number, 3)) == count


VALUES = {
    "bool": [True, False],
    "int": [3, -5, 2**40],
    "uint": pa.array([3, 2**63, 1], pa.uint64()),
    "float": [1.5, float("nan"), float("-inf")],
    "decimal": [decimal.Decimal("1.50"), decimal.Decimal("-3.25")],
    "date": [dt.date(2020, 1, 1), dt.date(1960, 1, 1)],
    "moment": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)],
    "text": ["same-b", "same-a", "same-"],
    "bytes": [b"\xff", b"\x00"],
}


@pytest.mark.parametrize("name", VALUES)
def test_a_curve_along_two_equal_columns_has_their_order_and_nulls_last(name: str) -> None:
    values = VALUES[name]
    array = values if isinstance(values, pa.Array) else pa.array(values)
    array = pa.concat_arrays([array, pa.nulls(1, array.type)])
    rows = pa.table({"a": array, "b": array, "place": range(len(array))})
    with SortedRows(RowOrder(("a", "b"), Layout.Z_ORDER), 1 << 20) as held:
        held.add(rows)
        held.finish({})
        found = pa.concat_tables(list(held.run(0, 1)))
    assert found["place"].to_pylist() == rows.sort_by("a")["place"].to_pylist()


def test_a_sample_of_a_long_stream_is_even_and_bounded() -> None:
    sample = RowSample(("n",), limit=100)
    for start in range(0, 10_000, 70):
        sample.add(pa.table({"n": range(start, min(start + 70, 10_000))}))
    found = sample.table()
    assert 100 <= len(found) <= 200
    assert found["n"].to_pylist() == found["place"].to_pylist()
    steps = np.diff(found["place"].to_numpy())
    assert len(set(steps.tolist())) == 1


def test_columns_without_an_order_are_named() -> None:
    schema = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string())), ("at", pa.timestamp("us", "UTC"))])
    assert check_columns(("id", "at"), schema) is None
    assert check_columns(("nope",), schema) == "'nope' is no column of the table"
    assert check_columns(("tags",), schema) == "'tags' is list<item: string>, which has no order"
    assert not sortable(pa.struct([("a", pa.int64())]))
