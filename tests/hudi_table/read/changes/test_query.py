"""Changes of every commit are what full snapshots before and after it say, whatever happened and
whatever was logged."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE
from hudi_table.model.table.config import TableType
from tests.support.clustering import cluster
from tests.support.rows import Row
from tests.support.scale import scaled

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("value", pa.int64()),
        ("ts", pa.int64()),
        ("place", pa.struct([("x", pa.float64()), ("note", pa.string())])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
IDS = "abcdefgh"
CITY = {key: "xyz"[number % 3] for number, key in enumerate(IDS)}
KEYS = st.sets(st.sampled_from(IDS), min_size=1, max_size=4)
INDEXES: dict[str, Any] = {"bucket": {"type": "Bucket", "buckets": 2}, "simple": "Simple"}
LOGGED = (None, "op_key_only", "data_before", "data_before_after")
FORMS = {
    "data_before_after": ("op", "ts_ms", "before", "after"),
    "data_before": ("op", "record_key", "before"),
    "op_key_only": ("op", "record_key"),
}


@dataclass
class History:
    """A table and what was done to it. `instants` are its commits, `replaced` those of them that
    replaced file groups."""

    table: HudiTable
    steps: int = 0
    instants: list[str] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)

    @property
    def logs(self) -> bool:
        """Whether the table is merge-on-read."""
        return self.table.context.config.type is TableType.MERGE_ON_READ

    def rows(self, keys: set[str], ts: int | None = None) -> pa.Table:
        number = self.steps
        given_rows = [
            {
                "id": key,
                "city": CITY[key],
                "value": number,
                "ts": number if ts is None else ts,
                "place": None if key == "a" else {"x": number / 2, "note": None if key == "b" else f"{key}é"},
            }
            for key in sorted(keys)
        ]
        return pa.Table.from_pylist(given_rows, SCHEMA)

    def write(self, operation, data: pa.Table | None, **more: Any) -> None:
        found = self.table.write(data, operation=operation, **more)
        if found.instant:
            self.instants.append(found.instant)
            if "overwrite" in operation or "partition" in operation:
                self.replaced.add(found.instant)


def upsert(history: History, keys: set[str]) -> None:
    history.write("upsert", history.rows(keys))


def late(history: History, keys: set[str]) -> None:
    """Rows older than the stored ones, which lose by event time."""
    history.write("upsert", history.rows(keys, ts=max(0, history.steps - 3)))


def flagged(history: History, keys: set[str]) -> None:
    """Deletes among upserts."""
    flags = pa.array([key < "e" for key in sorted(keys)])
    history.write("upsert", history.rows(keys).drop(["_hoodie_is_deleted"]).append_column("_hoodie_is_deleted", flags))


def insert(history: History, keys: set[str]) -> None:
    """Inserts of keys that are not there; with a simple index they fill small files."""
    known = {row["id"] for row in history.table.scan(["id"]).to_arrow().to_pylist()}
    if keys - known:
        history.write("insert", history.rows(keys - known))


def delete(history: History, keys: set[str]) -> None:
    history.write("delete", history.rows(keys).select(["id", "city"]))


def insert_overwrite(history: History, keys: set[str]) -> None:
    history.write("insert_overwrite", history.rows(keys))


def delete_partition(history: History, keys: set[str]) -> None:
    there = {row["partition"] for row in history.table.files().to_pylist()}
    dropped = sorted({CITY[key] for key in keys} & there)
    if dropped:
        history.write("delete_partition", None, partitions=dropped)


def clustering(history: History, keys: set[str]) -> None:
    cluster(history.table, CITY[min(keys)])


def plan(history: History, keys: set[str]) -> None:
    """A compaction that waits: what follows is logged beside it."""
    if history.logs:
        history.table.schedule_compaction(force=True)


def compact(history: History, keys: set[str]) -> None:
    if history.logs:
        history.table.compact(force=True)


def reopen(history: History, keys: set[str]) -> None:
    history.table = open_table(history.table.base_path)


STEPS: dict[str, Callable[[History, set[str]], None]] = {
    step.__name__: step
    for step in (
        upsert,
        late,
        flagged,
        insert,
        delete,
        insert_overwrite,
        delete_partition,
        clustering,
        plan,
        compact,
        reopen,
    )
}
"""Every kind of step. One that changes no row, as `clustering`, appends no instant."""
WEIGHTED = st.sampled_from(
    ["upsert"] * 4 + ["delete"] * 2 + [name for name in STEPS if name not in ("upsert", "delete")]
)


def play(table: HudiTable, steps: list[tuple[str, set[str]]]) -> History:
    history = History(table)
    for name, keys in steps:
        STEPS[name](history, keys)
        history.steps += 1
    return history


def new_table(kind, index: str, logged: str | None = None, **more: Any) -> HudiTable:
    options = {} if logged is None else {CDC_ENABLED: "true", CDC_MODE: logged}
    given_options: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering_fields": "ts", "version": 6}
    return create_table(
        f"memory://{uuid.uuid4().hex}/t",
        SCHEMA,
        type=kind,
        index=INDEXES[index],
        options=options,
        **(given_options | more),
    )


def snapshot(table: HudiTable, instant: str | None) -> dict[str, Row]:
    """All rows as of an instant by key, with their meta columns; none before the first."""
    if instant is None:
        return {}
    found = table.scan(as_of=instant, meta=True).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row for row in found}


def data(row: Row) -> Row:
    return {name: row[name] for name in SCHEMA.names}


def changed(before: dict[str, Row], after: dict[str, Row], instant: str, *, replaces: bool) -> list[tuple[Any, ...]]:
    """(op, instant, key, before, after) of what a commit did, told by the snapshots around it
    alone."""
    found: list[tuple[Any, ...]] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        written = new is not None and new["_hoodie_commit_time"] == instant
        gone = old is not None and (new is None or written)
        if replaces:
            # The old group goes with all its rows, the new one comes with all of its own.
            found += [("d", instant, key, data(old), None)] if old is not None and gone else []
            found += [("i", instant, key, None, data(new))] if new is not None and written else []
        elif gone or written:
            op = "u" if gone and written else "d" if gone else "i"
            found.append(
                (op, instant, key, data(old) if old and gone else None, data(new) if new and written else None)
            )
    return found


def order(change: tuple[Any, ...]) -> tuple[str, str, str]:
    return (change[1], change[2], change[0])


def told(changes: pa.Table) -> list[tuple[Any, ...]]:
    """The same from a table of changes with both images."""
    rows = changes.to_pylist()
    assert [row["ts_ms"] for row in rows] == sorted(row["ts_ms"] for row in rows)
    found = [(r["op"], r["ts_ms"], (r["after"] or r["before"])["id"], r["before"], r["after"]) for r in rows]
    return sorted(found, key=order)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@settings(max_examples=scaled(4))
@given(
    steps=st.lists(st.tuples(WEIGHTED, KEYS), min_size=1, max_size=10),
    logged=st.sampled_from(LOGGED),
    merge_mode=st.sampled_from(["EventTime", "CommitTime"]),
)
def test_changes_and_incremental_rows_are_what_the_snapshots_before_and_after_say(
    kind: str,
    index: str,
    steps: list[tuple[str, set[str]]],
    logged: str | None,
    merge_mode: str,
) -> None:
    history = play(new_table(kind, index, logged, merge_mode=merge_mode), steps)
    table, instants = open_table(history.table.base_path), history.instants
    states = [snapshot(table, instant) for instant in instants]
    expected = [
        changed(before, after, instant, replaces=instant in history.replaced)
        for before, after, instant in zip([{}, *states], states, instants, strict=False)
    ]
    everything = sorted((change for one in expected for change in one), key=order)
    assert told(table.changes().to_arrow()) == everything
    for images, names in FORMS.items():
        seen = table.changes(images=images).to_arrow()
        assert tuple(seen.column_names) == names
        positions = {"op": 0, "ts_ms": 1, "record_key": 2, "before": 3, "after": 4}
        wanted = [tuple(change[positions[name]] for name in names) for change in everything]
        assert sorted(map(repr, (tuple(row.values()) for row in seen.to_pylist()))) == sorted(map(repr, wanted))
    for low in range(len(instants)):
        since, until = (instants[low - 1] if low else None), instants[(low + len(instants)) // 2]
        part = [change for change in everything if (since or "") < change[1] <= until]
        assert told(table.changes(since, until).to_arrow()) == part
        rows = table.scan(query="incremental", since=since, until=until, meta=True).to_arrow().to_pylist()
        state = states[instants.index(until)]
        assert {r["id"]: r for r in rows} == {
            key: row for key, row in state.items() if row["_hoodie_commit_time"] > (since or "")
        }
        assert len({row["id"] for row in rows}) == len(rows)


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_clustering_changes_no_row(kind: str) -> None:
    history = History(new_table(kind, "simple", None))
    for keys in ({"a", "d"}, {"a"}):
        upsert(history, keys)
        before = told(history.table.changes().to_arrow())
        assert cluster(history.table, CITY["a"])
        assert told(history.table.changes().to_arrow()) == before
