"""Incremental queries agree with what changed between two instants, whatever happened in
between."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import ExpiredError, InvalidOptionError
from hudi_table.read.incremental import last_stable
from tests.hudi_table.write.test_conflicts import write_beside
from tests.support import golden, later_tables
from tests.support.rows import canonical
from tests.support.scale import scaled

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
KEYS = st.sampled_from("abcdefgh")
CITY = {key: "xyz"[number % 3] for number, key in enumerate("abcdefgh")}
STEP = st.tuples(
    st.sampled_from(["upsert", "upsert", "delete", "insert_overwrite"]), st.sets(KEYS, min_size=1, max_size=4)
)
KINDS = [("CopyOnWrite", "Simple"), ("CopyOnWrite", "Bucket"), ("MergeOnRead", "Bucket"), ("MergeOnRead", "Simple")]


def new_table(kind, index: str) -> HudiTable:
    given_index: Any = {"type": "Bucket", "buckets": 2} if index == "Bucket" else index
    return create_table(
        f"memory://{uuid.uuid4().hex}/t",
        SCHEMA,
        record_key="id",
        partition_by="city",
        type=kind,
        index=given_index,
        version=6,
    )


def rows_of(keys: set[str], value: int) -> pa.Table:
    return pa.table({"id": sorted(keys), "city": [CITY[k] for k in sorted(keys)], "value": [value] * len(keys)}, SCHEMA)


@pytest.mark.parametrize(("kind", "index"), KINDS)
@settings(max_examples=scaled(8))
@given(steps=st.lists(STEP, min_size=1, max_size=6))
def test_every_range_gives_the_rows_that_changed_in_it_in_their_latest_state(
    kind: str, index: str, steps: list[tuple[Any, set[str]]]
) -> None:
    table = new_table(kind, index)
    states: list[tuple[str, dict[str, tuple[int, str]]]] = []
    state: dict[str, tuple[int, str]] = {}
    for value, (operation, keys) in enumerate(steps):
        data = rows_of(keys, value)
        found = table.write(data.select(["id", "city"]) if operation == "delete" else data, operation=operation)
        if not found.instant:
            continue
        state = dict(state)
        if operation == "insert_overwrite":
            gone = {CITY[key] for key in keys}
            state = {key: held for key, held in state.items() if CITY[key] not in gone}
        for key in keys:
            if operation == "delete":
                state.pop(key, None)
            else:
                state[key] = (value, found.instant)
        states.append((found.instant, state))
    times = [""] + [instant for instant, _ in states]
    for low, since in enumerate(times):
        for until, held in states[low:]:
            seen = table.scan(query="incremental", since=since or None, until=until).to_arrow().to_pylist()
            expected = {k: v for k, (v, changed) in held.items() if changed > since}
            assert {row["id"]: row["value"] for row in seen} == expected
            assert len(seen) == len(expected)


def test_a_range_reads_only_the_files_that_it_changed() -> None:
    table = new_table("CopyOnWrite", "Simple")
    table.write(rows_of(set("abc"), 1), operation="upsert")
    since = table.write(rows_of({"d"}, 1), operation="upsert").instant
    table.write(rows_of({"a"}, 2), operation="upsert")
    scan = table.scan(query="incremental", since=since)
    assert scan.plan_files()["partition"].to_pylist() == [CITY["a"]]
    assert scan.to_arrow()["id"].to_pylist() == ["a"]
    assert table.scan(["value"], "id = 'b'", query="incremental", since=since).to_arrow().num_rows == 0


@pytest.mark.parametrize("version", later_tables.VERSIONS)
def test_who_reads_on_from_a_completed_write_gets_one_that_began_before_it_and_ended_after_it(
    version: int, tmp_path: Any
) -> None:
    table = later_tables.new_table(tmp_path / "t", version, index="Simple")
    since: list[str] = []

    def theirs(other: Any) -> None:
        other.upsert(later_tables.rows(("theirs", 1), city="y"))
        since.append(last_stable(other.context))

    write_beside(table, lambda **engine: table.upsert(later_tables.rows(("ours", 2)), **engine), theirs)
    found = open_table(table.base_path).scan(query="incremental", since=since[0]).to_arrow()
    assert found["id"].to_pylist() == ["ours"]


def test_what_cannot_be_answered_is_refused_by_name(tmp_path: Any) -> None:
    table = new_table("CopyOnWrite", "Simple")
    with pytest.raises(InvalidOptionError, match="belong to query='incremental'"):
        table.scan(since="2026-01-01")
    with pytest.raises(InvalidOptionError, match="swap them"):
        table.scan(query="incremental", since="2026-01-02", until="2026-01-01")
    bare = open_table(str(golden.unpack("nometa", tmp_path).base))
    with pytest.raises(InvalidOptionError, match="keeps no meta columns"):
        bare.scan(query="incremental", since="2026-01-01").to_arrow()


def test_an_archived_range_is_refused_and_read_whole_when_asked(tmp_path: Any) -> None:
    table = open_table(str(golden.unpack("arch", tmp_path).base))
    with pytest.raises(ExpiredError, match="partly archived"):
        table.scan(query="incremental", since="earliest").to_arrow()
    everything = table.scan(query="incremental", since="earliest", full_scan=True).to_arrow()
    assert canonical(everything) == canonical(table.scan().to_arrow())
    last = table.history(1)["instant"][0].as_py()
    before = table.history(2)["instant"][1].as_py()
    times = table.scan(["_hoodie_commit_time"], query="incremental", since=before).to_arrow()
    assert set(times["_hoodie_commit_time"].to_pylist()) == {last}
