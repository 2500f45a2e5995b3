"""Which row wins, and what it takes with it. The table of results is the one measured on Hudi
0.15.0, copy-on-write."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.table.rows.merge import ALWAYS_DELETE, Merger, MergeRule, newest, newest_per_key, strictly_less

SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("name", pa.string()), ("ts", pa.int64())])


def base(*rows: tuple[str, str, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def merged(
    stored: pa.Table, incoming: pa.Table, ordering: str | None, *, batch_rows: int = 1_000
) -> tuple[list[tuple[Any, ...]], Merger]:
    merger = Merger(incoming, SCHEMA, MergeRule(ordering))
    tables = [merger.apply(stored.slice(at, batch_rows)) for at in range(0, len(stored), batch_rows)]
    tables.append(merger.rest())
    return [tuple(row.values()) for table in tables for row in table.to_pylist()], merger


EVENT, COMMIT = "ts", None
UPDATE, FLAGGED, DELETE = "update", "flagged", "delete"
HISTORIES = [
    ([(UPDATE, 50)], 50, 100),
    ([(UPDATE, 150), (UPDATE, 120)], 120, 150),
    ([(UPDATE, 100)], "update 100", "update 100"),
    ([(FLAGGED, 50)], None, 100),
    ([(UPDATE, 150), (FLAGGED, 120)], None, 150),
    ([(UPDATE, 150), (FLAGGED, 160)], None, None),
    ([(FLAGGED, 150), (UPDATE, 120)], 120, 120),
    ([(DELETE, 0)], None, None),
]


@pytest.mark.parametrize(
    ("history", "by_commit", "by_event"), HISTORIES, ids=lambda v: str(v) if isinstance(v, list) else ""
)
@pytest.mark.parametrize("mode", [COMMIT, EVENT])
def test_a_history_ends_as_hudi_ends_it(
    history: list[tuple[str, int]], by_commit: Any, by_event: Any, mode: str | None
) -> None:
    rows = base(("k", "base 100", 100))
    for what, ts in history:
        incoming = base(("k", f"{what} {ts}", ts))
        incoming = incoming.append_column(IS_DELETED, pa.array([what == FLAGGED]))
        incoming = incoming.append_column(ALWAYS_DELETE, pa.array([what == DELETE]))
        found, _ = merged(rows, incoming, mode)
        rows = base(*found)
    expected = by_event if mode else by_commit
    shown = rows.to_pylist()
    if expected is None:
        assert shown == []
    elif isinstance(expected, str):
        assert [row["name"] for row in shown] == [expected]
    else:
        assert [row["ts"] for row in shown] == [expected]


def test_rows_keep_their_place_and_new_ones_follow() -> None:
    stored = base(*((key, "old", 1) for key in "abcdef"))
    found, merger = merged(stored, base(("z", "new", 1), ("e", "new", 1), ("b", "new", 1)), None, batch_rows=4)
    assert [(row[0], row[1]) for row in found] == [
        ("a", "old"), ("b", "new"), ("c", "old"), ("d", "old"), ("e", "new"), ("f", "old"), ("z", "new"),
    ]  # fmt: skip
    counts = merger.counts
    assert (counts.updated, counts.inserted, counts.deleted, counts.kept) == (2, 1, 0, 4)


def test_deletes_of_keys_that_are_not_there_are_dropped() -> None:
    incoming = base(("x", "gone", 1), ("y", "gone", 1)).append_column(IS_DELETED, pa.array([True, None]))
    found, merger = merged(base(("a", "old", 1)), incoming, None)
    assert [row[0] for row in found] == ["a", "y"]
    assert merger.counts.inserted == 1


def test_every_stored_row_of_a_key_is_updated() -> None:
    found, _ = merged(base(("a", "1", 1), ("a", "2", 1)), base(("a", "new", 2)), None)
    assert [row[1] for row in found] == ["new", "new"]


def test_a_stored_row_without_ordering_value_loses() -> None:
    found, _ = merged(base(("a", "old", None)), base(("a", "new", 0)), "ts")
    assert found == [("a", "new", 0)]


@given(
    stored=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5), max_size=8),
    given_rows=st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 5), st.booleans()), max_size=8),
    event=st.booleans(),
    batch_rows=st.integers(1, 5),
)
def test_a_merge_agrees_with_a_dictionary(
    stored: dict[str, int], given_rows: dict[str, tuple[int, bool]], event: bool, batch_rows: int
) -> None:
    incoming = base(*((key, "new", ts) for key, (ts, _) in given_rows.items()))
    incoming = incoming.append_column(IS_DELETED, pa.array([gone for _, gone in given_rows.values()], pa.bool_()))
    found, _ = merged(
        base(*((key, "old", ts) for key, ts in stored.items())),
        incoming,
        "ts" if event else None,
        batch_rows=batch_rows,
    )
    expected = {key: ("old", ts) for key, ts in stored.items()}
    for key, (ts, gone) in given_rows.items():
        if event and key in expected and ts < expected[key][1]:
            continue
        expected.pop(key, None)
        if not gone:
            expected[key] = ("new", ts)
    assert {row[0]: row[1:] for row in found} == expected
    assert len(found) == len(expected)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), max_size=12))
def test_the_newest_row_of_a_key_is_the_last_of_the_largest_ordering(items: list[tuple[str, int | None]]) -> None:
    table = pa.table(
        {
            "k": pa.array([i[0] for i in items], pa.string()),
            "o": pa.array([i[1] for i in items], pa.int64()),
            "n": pa.array(range(len(items)), pa.int64()),
        }
    )
    best: dict[str, tuple[int, int]] = {}
    for number, (key, ordering) in enumerate(items):
        rank = (-1 if ordering is None else ordering, number)
        best[key] = max(best.get(key, rank), rank)
    assert newest_per_key(table, "k", ["o"]).column("n").to_pylist() == sorted(rank[1] for rank in best.values())


def test_without_ordering_the_last_row_of_a_key_is_the_newest() -> None:
    assert newest(np.array([0, 1, 0, 2]), None).tolist() == [False, True, True, True]  # type: ignore[union-attr]
    assert newest(np.array([2, 0, 1]), None) is None


def test_nan_orders_last_and_null_never_less() -> None:
    left = pa.array([1.0, math.nan, 1.0, None, 2.0, math.nan])
    right = pa.array([2.0, 1.0, math.nan, 1.0, None, math.nan])
    assert strictly_less(left, right).tolist() == [True, False, True, False, False, False]
