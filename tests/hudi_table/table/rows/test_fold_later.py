"""Log entries of table versions 8 and 9, folded at once, against the rule applied entry by
entry."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.model.names import COMMIT_TIME, RECORD_KEY
from hudi_table.model.table.merge_settings import PartialUpdates
from hudi_table.table.rows.log_merge import folded
from hudi_table.table.rows.merge import ALWAYS_DELETE, FLAGGED, Merger, present_column
from hudi_table.table.rows.slice_merge import SliceMerge

SCHEMA = pa.schema([(COMMIT_TIME, pa.string()), (RECORD_KEY, pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])  # fmt: skip
Entry = dict[str, Any]


def fold(older: Entry | None, newer: Entry, how: SliceMerge) -> Entry:
    """The rule for two entries, as the format has it."""
    if older is None:
        return newer
    reset = any(entry[ALWAYS_DELETE] and entry["ts"] is None for entry in (older, newer))
    wins = reset or how.ordering is None or newer["ts"] >= older["ts"]
    high, low = (newer, older) if wins else (older, newer)
    if any(entry[ALWAYS_DELETE] or entry[FLAGGED] for entry in (high, low)):
        return high
    made = dict(high)
    for name in ("a", "b"):
        lacks = not high.get(present_column(name), True) or (how.partial is not None and high[name] is None)
        if lacks:
            made[name] = low[name]
            made[present_column(name)] = high.get(present_column(name), True) or low.get(present_column(name), True)
    return made


def entries(seed: int, *, blocks: bool, nulls: bool, ordered: bool) -> list[Entry]:
    pick = random.Random(seed)
    found = []
    for number in range(60):
        kind = pick.choice(["row", "row", "row", "flagged", "delete"])
        has = {name: not blocks or kind != "row" or pick.random() < 0.6 for name in ("a", "b")}
        row = {name: None if not has[name] or (nulls and pick.random() < 0.4) else number for name in ("a", "b")}
        entry: Entry = {
            COMMIT_TIME: str(number),
            RECORD_KEY: pick.choice("klmn"),
            "ts": None if kind == "delete" or not ordered else pick.randrange(5),
            **row,
            ALWAYS_DELETE: kind == "delete" or (kind == "flagged" and not ordered),
            FLAGGED: kind == "flagged" and ordered,
        }
        if blocks:
            entry |= {present_column(name): has[name] for name in ("a", "b")}
        found.append(entry)
    return found


def table(rows: list[Entry], *, blocks: bool) -> pa.Table:
    more = [(ALWAYS_DELETE, pa.bool_()), (FLAGGED, pa.bool_())]
    more += [(present_column(name), pa.bool_()) for name in ("a", "b") if blocks]
    return pa.Table.from_pylist(rows, pa.schema([*SCHEMA, *more]))


def rows_of(found: pa.Table) -> dict[str, tuple[Any, ...]]:
    return {
        row[RECORD_KEY]: (row[COMMIT_TIME], row["a"], row["b"])
        for row in found.to_pylist()
        if not row.get(ALWAYS_DELETE) and not row.get(FLAGGED)
    }


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("blocks", "nulls"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("seed", range(12))
def test_entries_folded_at_once_are_those_folded_one_after_the_other(
    seed: int, blocks: bool, nulls: bool, ordered: bool
) -> None:
    partial = PartialUpdates.IGNORE_DEFAULTS if nulls else None
    how = SliceMerge("ts" if ordered else None, ordered, partial, nulls, later=True)
    logged = entries(seed, blocks=blocks, nulls=nulls, ordered=ordered)
    expected: dict[str, Entry] = {}
    for entry in logged:
        expected[entry[RECORD_KEY]] = fold(expected.get(entry[RECORD_KEY]), entry, how)
    split = random.Random(seed).randrange(1, len(logged))
    # Folding the beginning first changes nothing: entries are folded as memory fills.
    first = folded([table(logged[:split], blocks=blocks)], SCHEMA, how)
    found = folded([first, table(logged[split:], blocks=blocks)], SCHEMA, how)
    assert rows_of(found) == rows_of(table(list(expected.values()), blocks=blocks))

    base = [
        {COMMIT_TIME: "base", RECORD_KEY: key, "ts": 2, "a": -1, "b": None if nulls else -2, ALWAYS_DELETE: False, FLAGGED: False}
        for key in "klmnop"
    ]  # fmt: skip
    merged = {row[RECORD_KEY]: row for row in base}
    for key, entry in expected.items():
        merged[key] = fold(merged.get(key), entry, how)
    merger = Merger(found, SCHEMA, how.rule)
    got = pa.concat_tables([merger.apply(table(base, blocks=False).select(SCHEMA.names)), merger.rest()])
    assert rows_of(got) == rows_of(table(list(merged.values()), blocks=blocks))


def test_several_ordering_columns_are_compared_in_turn() -> None:
    how = SliceMerge("ts", True, later=True, then_by=("a",))
    logged = [
        {COMMIT_TIME: str(n), RECORD_KEY: "k", "ts": ts, "a": a, "b": n, ALWAYS_DELETE: False, FLAGGED: False}
        for n, (ts, a) in enumerate([(1, 9), (2, 3), (2, 5), (2, 4), (1, 99)])
    ]
    assert rows_of(folded([table(logged, blocks=False)], SCHEMA, how)) == {"k": ("2", 5, 2)}
    base = pa.Table.from_pylist(
        [{COMMIT_TIME: "base", RECORD_KEY: "k", "ts": 2, "a": stored, "b": -1} for stored in (6,)], SCHEMA
    )
    merger = Merger(folded([table(logged, blocks=False)], SCHEMA, how), SCHEMA, how.rule)
    assert rows_of(merger.apply(base)) == {"k": ("base", 6, -1)}
    assert np.asarray(merger.met[0]).size == 0
