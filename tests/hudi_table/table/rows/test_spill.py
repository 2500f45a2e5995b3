"""Grouped rows come back by group and in order, whether they waited in memory or on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from hudi_table.errors import InvariantError
from hudi_table.table.rows.spill import GroupedRows


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64()), "s": pa.array([f"text {v}" for v in values])})


def read(rows: GroupedRows, code: int, start: int = 0, stop: int | None = None) -> list[int]:
    return [n for found in rows.read(code, start, stop) for n in found.column("n").to_pylist()]


@given(
    batches=st.lists(st.lists(st.integers(-1, 5), min_size=1, max_size=30), max_size=12),
    max_bytes=st.sampled_from([1, 300, 1 << 20]),
    window=st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_each_group_reads_back_in_the_order_of_arrival(
    batches: list[list[int]], max_bytes: int, window: tuple[int, int]
) -> None:
    expected: dict[int, list[int]] = {}
    with GroupedRows(max_bytes) as rows:
        number = 0
        for codes in batches:
            values = list(range(number, number + len(codes)))
            number += len(codes)
            rows.add(batch(*values), np.array(codes, dtype=np.int32))
            for value, code in zip(values, codes, strict=True):
                if code >= 0:
                    expected.setdefault(code, []).append(value)
        assert rows.rows == {code: len(values) for code, values in expected.items()}
        for code, values in expected.items():
            assert read(rows, code) == values
            start, stop = sorted(window)
            assert read(rows, code, start, stop) == values[start:stop]


def test_rows_past_the_budget_lie_on_disk_until_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with GroupedRows(max_bytes=1_000) as rows:
        for start in range(0, 1_000, 100):
            rows.add(batch(*range(start, start + 100)), np.zeros(100, dtype=np.int32))
        assert rows.spilled_bytes > 10 * 100 * 8
        assert list(tmp_path.rglob("*.arrow"))
        assert read(rows, 0) == list(range(1_000))
    assert not list(tmp_path.iterdir())


def test_a_budget_that_suffices_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with GroupedRows(max_bytes=1 << 20) as rows:
        rows.add(batch(1, 2, 3), np.array([0, 1, 0], dtype=np.int32))
        assert rows.spilled_bytes == 0
        assert not list(tmp_path.iterdir())


def test_an_unknown_group_is_empty() -> None:
    with GroupedRows(1) as rows:
        assert read(rows, 7) == []


@pytest.mark.parametrize("max_bytes", [1, 1 << 20], ids=["on disk", "in memory"])
@pytest.mark.parametrize("code", [0, 7], ids=["with rows", "without rows"])
def test_closed_rows_are_refused_and_not_taken_for_none(max_bytes: int, code: int) -> None:
    rows = GroupedRows(max_bytes)
    rows.add(batch(1, 2), np.zeros(2, dtype=np.int32))
    rows.close()
    with pytest.raises(InvariantError, match="after they were closed"):
        list(rows.read(code))
    with pytest.raises(InvariantError, match="after they were closed"):
        list(rows.pieces(code))
    with pytest.raises(InvariantError, match="after they were closed"):
        rows.add(batch(3), np.zeros(1, dtype=np.int32))


@pytest.mark.parametrize("max_bytes", [1, 1 << 20], ids=["on disk", "in memory"])
def test_rows_that_are_closed_while_they_are_read_do_not_end_early(max_bytes: int) -> None:
    rows = GroupedRows(max_bytes)
    for value in (1, 2, 3):
        rows.add(batch(value), np.zeros(1, dtype=np.int32))
    found, pieces = rows.read(0), list(rows.pieces(0))
    assert next(found).column("n").to_pylist() == [1]
    rows.close()
    with pytest.raises(InvariantError, match="after they were closed"):
        list(found)
    with pytest.raises(InvariantError, match="after they were closed"):
        pieces[1][1]()
