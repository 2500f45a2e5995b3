"""Rows of one key put together column by column, against the same told row by row."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import example, given

from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.table.rows.combine import combine, combined_per_key

SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        (RECORD_KEY, pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.list_(pa.int64())),
        (IS_DELETED, pa.bool_()),
    ]
)
Given = tuple[str, int, str | None, list[int] | None, bool]
ENTRY = st.tuples(
    st.sampled_from("abc"),
    st.integers(1, 3),
    st.sampled_from([None, "x", "y", "z"]),
    st.sampled_from([None, [1], [2, 3], []]),
    st.booleans(),
)


def table(entries: list[Given]) -> pa.Table:
    rows = [(str(number), key, ts, a, b, deleted) for number, (key, ts, a, b, deleted) in enumerate(entries)]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def told(entries: list[Given]) -> dict[str, dict[str, Any]]:
    """What PartialUpdateAvroPayload does, one row after the other."""
    state: dict[str, dict[str, Any]] = {}
    for row in table(entries).to_pylist():
        old = state.get(row[RECORD_KEY])
        if old is None:
            state[row[RECORD_KEY]] = row
            continue
        newer, older = (old, row) if old["ts"] > row["ts"] else (row, old)
        if newer[IS_DELETED]:
            # A delete takes what was there away; a row that came after a newer delete stands alone.
            state[row[RECORD_KEY]] = row
            if newer is old and row[IS_DELETED]:
                state[row[RECORD_KEY]] = old
            continue
        merged = {name: older[name] if newer[name] is None else newer[name] for name in SCHEMA.names}
        state[row[RECORD_KEY]] = merged | {"_hoodie_commit_time": row["_hoodie_commit_time"]}
    return state


@given(st.lists(ENTRY.filter(lambda e: not e[4]), max_size=12))
def test_rows_are_put_together_as_if_one_came_after_the_other(entries: list[Given]) -> None:
    found = combined_per_key(table(entries), RECORD_KEY, ["ts"])
    assert found.schema == SCHEMA
    assert {row[RECORD_KEY]: row for row in found.to_pylist()} == told(entries)
    assert found[RECORD_KEY].to_pylist() == list(dict.fromkeys(entry[0] for entry in entries))


@given(st.lists(ENTRY, max_size=12))
@example([("k", 2, None, None, True), ("k", 1, None, [1], True), ("k", 2, None, None, False)])
def test_flagged_deletes_among_them_take_away_what_is_not_newer(entries: list[Given]) -> None:
    found = {row[RECORD_KEY]: row for row in combined_per_key(table(entries), RECORD_KEY, ["ts"]).to_pylist()}
    expected = told(entries)
    assert {key for key, row in found.items() if row[IS_DELETED]} == {
        key for key, row in expected.items() if row[IS_DELETED]
    }
    for key, row in expected.items():
        if not row[IS_DELETED]:
            assert {name: found[key][name] for name in ("ts", "a", "b")} == {
                name: row[name] for name in ("ts", "a", "b")
            }


def test_a_delete_without_ordering_value_takes_all_before_it_away() -> None:
    rows = table([("k", 9, "x", None, False), ("k", 1, None, None, True), ("k", 2, None, [1], False)])
    found = combine(rows, np.zeros(3, np.int64), np.array([2, -1, 1]), np.array([False, True, False]))
    assert [(row["ts"], row["a"], row["b"]) for row in found.to_pylist()] == [(2, None, [1])]


def test_without_an_ordering_column_the_later_row_overwrites() -> None:
    rows = table([("k", 9, "x", [1], False), ("k", 1, None, [2], False)])
    assert [(row["a"], row["b"]) for row in combined_per_key(rows, RECORD_KEY, ()).to_pylist()] == [("x", [2])]
