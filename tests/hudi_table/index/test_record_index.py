"""The record-level index: what it opens, what it believes, where keys stay, and what it does where
there is no index to ask.

Matrix: {keys that stay, keys that move} × {copy-on-write, merge-on-read}, by commit time and by
event time; entries of file groups that the snapshot does not have; a metadata table that is gone;
names and options of both generations of Hudi. A thousand random steps in `make test-full`, after
each of which the index agrees with a scan; a fault at each call of a building. Omitted: what every
index must do (`test_conformance.py`), how the index is built and kept
(`tests/hudi_table/metadata/test_record_index.py`), other engines
(`tests/interop/test_record_index.py`).
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.index.base import Keys, Lookup
from hudi_table.index.record_index import RecordIndex, RecordIndexWarning
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.table.config import IndexType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.create_table import TableSpec, create
from tests.hudi_table.metadata.test_indexes import located, stored
from tests.support.crashes import SCHEMA, copied, new_store, opened, rows
from tests.support.fault_points import after_each_fault
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.scale import scaled

MOVES = {"hoodie.record.index.update.partition.path": "true"}
APART = {"hoodie.parquet.small.file.limit": "0"}
BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
FIRST = tuple((f"k{n:02d}", "xyz"[n % 3], n) for n in range(12))
Row = tuple[str, str, int]


def begun(kind: str = "CopyOnWrite", options: dict[str, str] | None = None, **more: Any) -> Storage:
    """A table of twelve keys in three partitions, that finds them by its record index."""
    store = new_store()
    spec = {"partition_by": ["city"], "index": "RecordIndex", "name": "t", "type": kind, "options": options or {}}
    create(store, TableSpec(SCHEMA, "id", **(spec | more)))
    opened(store).write(rows(*FIRST), operation="upsert")
    return store


def contents(store: Storage) -> list[tuple[str, str, int, str]]:
    """(id, city, value, partition path) of every row, sorted."""
    found = opened(store).scan(meta=True).to_arrow().to_pylist()
    return sorted((row["id"], row["city"], row["value"], row["_hoodie_partition_path"]) for row in found)


def snapshot_of(table: HudiTable, storage: Storage | None = None) -> tuple[RecordIndex, Lookup]:
    """The table's index with its shards, and a snapshot of the table."""
    ctx, timeline = table.context, load_timeline(table.context)
    slices = FileSystemView(ctx, timeline).latest_slices()
    index = RecordIndex().as_of(ctx, timeline)
    return index, Lookup(storage or ctx.storage, slices, LocalEngine(1), visible=VisibleInstants.of(timeline))


def keys_of(*names: str) -> Keys:
    return Keys(pa.array(names, pa.string()), ("x",), np.zeros(len(names), np.int32))


def places(index: RecordIndex, lookup: Lookup, *names: str) -> list[str | None]:
    """The partition of the file group that each key is sent to, None for a new key."""
    routed = index.route(keys_of(*names), lookup)
    return [slot.partition if slot.file_id else None for slot in (routed.slots[code] for code in routed.codes)]


def test_it_opens_the_shards_of_the_keys_and_no_data_file() -> None:
    table = opened(begun())
    plan = FaultPlan()
    names = ("k00", "k01", "nobody")
    index, lookup = snapshot_of(table, FaultyStorage(table.context.storage, plan))
    assert places(index, lookup, *names) == ["x", "y", None]
    assert index.shards is not None
    shards = {index.shards.slices[n].file_id for n in index.shards.numbers(pa.array(names)).tolist()}
    opened_files = {call.path for call in plan.calls}
    assert opened_files
    assert {path.rpartition("/")[0] for path in opened_files} == {".hoodie/metadata/record_index"}
    assert {path.rpartition("/")[2].removeprefix(".").partition("_")[0] for path in opened_files} == shards


def test_keys_are_found_in_base_files_and_in_logs_and_not_where_they_were_deleted() -> None:
    store = begun("MergeOnRead", MOVES, merge_mode="CommitTime")
    compact_metadata(opened(store).context, 1)
    opened(store).write(rows(("more", "z", 1), ("k00", "y", 5)), operation="upsert")
    opened(store).write(rows(("k01", "y", 0)), operation="delete")
    table = opened(store)
    assert places(*snapshot_of(table), "k00", "k01", "k02", "more") == ["y", None, "z", "z"]


@BOTH
def test_a_key_stays_in_its_partition_with_its_new_row_unless_the_table_says_that_it_moves(kind: str) -> None:
    store = begun(kind)
    opened(store).write(rows(("k00", "z", 100), ("new", "z", 1)), operation="upsert")
    assert ("k00", "z", 100, "x") in contents(store)
    assert ("new", "z", 1, "z") in contents(store)
    assert len(contents(store)) == 13
    assert located(opened(store)) == stored(opened(store))
    moving = begun(kind, MOVES)
    opened(moving).write(rows(("k00", "z", 100), ("new", "z", 1)), operation="upsert")
    assert ("k00", "z", 100, "z") in contents(moving)
    assert len(contents(moving)) == 13
    assert located(opened(moving)) == stored(opened(moving))


def test_a_write_may_move_keys_of_a_table_that_does_not_say_and_not_contradict_one_that_does() -> None:
    store = begun()
    opened(store).write(rows(("k00", "z", 100)), operation="upsert", options=MOVES)
    assert ("k00", "z", 100, "z") in contents(store)
    never = dict.fromkeys(MOVES, "false")
    with pytest.raises(InvalidOptionError, match="contradicts the table, which stores true"):
        opened(begun(options=MOVES)).write(rows(("k00", "z", 100)), operation="upsert", options=never)
    with pytest.raises(InvalidOptionError, match="neither 'true' nor 'false'"):
        opened(store).write(rows(("k00", "z", 1)), operation="upsert", options=dict.fromkeys(MOVES, "perhaps"))


def test_a_row_that_stayed_is_found_by_the_value_that_its_folder_does_not_say() -> None:
    store = begun()
    opened(store).write(rows(("k00", "z", 100)), operation="upsert")
    found = opened(store).scan(filter="city = 'z'").to_arrow()["id"].to_pylist()
    assert sorted(found) == ["k00", "k02", "k05", "k08", "k11"]
    moving = begun(options=MOVES)
    pruned = opened(moving).scan(filter="city = 'z'").plan_files()
    assert len(pruned) == 1


@BOTH
@pytest.mark.parametrize("moves", [False, True])
def test_by_event_time_an_older_row_changes_nothing_wherever_it_would_go(kind: str, moves: bool) -> None:
    if kind == "MergeOnRead" and moves:
        with pytest.raises(UnsupportedTableError, match="global index"):
            begun(kind, MOVES, ordering_fields="value", merge_mode="EventTime")
        return
    store = begun(kind, MOVES if moves else {}, ordering_fields="value", merge_mode="EventTime")
    before = contents(store)
    opened(store).write(rows(("k11", "x", 3), ("k10", "y", 4)), operation="upsert")
    assert contents(store) == before
    opened(store).write(rows(("k11", "x", 300)), operation="upsert")
    assert ("k11", "x", 300, "x" if moves else "z") in contents(store)
    assert len(contents(store)) == len(before)


def test_entries_of_file_groups_that_are_not_there_are_looked_up_in_the_files() -> None:
    store = begun(options=MOVES)
    table = opened(store)
    _, early = snapshot_of(table)
    opened(store).cluster(force=True, options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    index, late = snapshot_of(opened(store))
    assert {item.file_id for item in late.slices}.isdisjoint({item.file_id for item in early.slices})
    # The index has gone on, the snapshot has not.
    routed = index.route(keys_of("k00", "k01", "nobody"), early)
    found = [routed.slots[code].file_id for code in routed.codes]
    assert found[:2] == [stored_id for _, stored_id in (_place(early, "x"), _place(early, "y"))]
    assert found[2] is None


def _place(lookup: Lookup, partition: str) -> tuple[str, str]:
    (item,) = [item for item in lookup.slices if item.partition == partition]
    return item.partition, item.file_id


@BOTH
def test_without_an_index_the_files_are_asked_with_a_warning_and_the_answers_are_the_same(kind: str) -> None:
    store = begun(kind, MOVES)
    without = {"hoodie.metadata.enable": "false"}
    with pytest.warns(RecordIndexWarning, match="keys are looked up in the files"):
        opened(store).write(
            rows(("k00", "y", 50), ("k01", "y", 51), ("n", "x", 1)), operation="upsert", options=without
        )
    with pytest.warns(RecordIndexWarning):
        opened(store).write(rows(("k02", "x", 0)), operation="delete", options=without)
    assert read_partitions(opened(store).context).all == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecordIndexWarning)
        opened(store).write(rows(("k00", "z", 52), ("n", "y", 2)), operation="upsert")
    expected = {(key, city, value, city) for key, city, value in FIRST[3:]}
    expected |= {("k00", "z", 52, "z"), ("k01", "y", 51, "y"), ("n", "y", 2, "y")}
    assert contents(store) == sorted(expected)
    assert located(opened(store)) == stored(opened(store))


def test_a_table_whose_keys_forbid_an_index_is_written_with_a_warning() -> None:
    store = begun(options=MOVES)
    opened(store).drop_metadata()
    opened(store).write(rows(("k00", "y", 7)), operation="insert", options={"hoodie.metadata.enable": "false"})
    with pytest.warns(RecordIndexWarning) as seen:
        opened(store).write(rows(("k01", "y", 70)), operation="upsert")
    said = [str(item.message) for item in seen]
    assert any("no record index is built: record key 'k00' is in partitions 'x' and 'y'" in text for text in said)
    with pytest.warns(RecordIndexWarning):
        opened(store).write(rows(("k00", "y", 71)), operation="upsert")
    assert sorted(row for row in contents(store) if row[0] == "k00") == [("k00", "y", 71, "y")]
    opened(store).write(rows(("k02", "z", 72)), operation="upsert")
    assert located(opened(store)) == stored(opened(store))


def test_both_names_of_hudi_mean_it_and_it_may_replace_a_global_simple_index() -> None:
    assert IndexType.named("record_index") is IndexType.RECORD_INDEX
    assert IndexType.named("GLOBAL_RECORD_LEVEL_INDEX") is IndexType.RECORD_INDEX
    store = begun(index="GlobalSimple")
    with pytest.raises(InvalidOptionError, match="contradicts"):
        opened(store).write(rows(("k00", "x", 1)), operation="upsert", options={"hoodie.index.type": "RECORD_INDEX"})
    opened(store).use_index("RecordIndex")
    opened(store).write(rows(("k00", "y", 1)), operation="upsert")
    assert ("k00", "y", 1, "y") in contents(store)
    assert located(opened(store)) == stored(opened(store))
    opened(store).use_index("GlobalBloom")
    with pytest.raises(InvalidRequestError, match="cannot become Simple"):
        opened(store).use_index("Simple")


@pytest.mark.parametrize("other", ["GlobalSimple", "GlobalBloom", "KeyState"])
def test_an_index_whose_keys_stay_takes_no_other_one_by_which_partitions_would_lose_rows(other: str) -> None:
    store = begun()
    opened(store).write(rows(("k00", "z", 100)), operation="upsert")
    with pytest.raises(
        InvalidRequestError, match=r"keys stay in the partition in which they are found.*: keep RecordIndex"
    ):
        opened(store).use_index(other)
    assert opened(store).scan(filter="city = 'z' and value = 100").count() == 1
    whole = begun(partition_by=())
    opened(whole).use_index(other)
    opened(whole).use_index("RecordIndex")
    opened(whole).write(rows(("k00", "z", 100)), operation="upsert")
    assert len(contents(whole)) == 12


def test_no_index_is_taken_by_which_nobody_could_write() -> None:
    store = begun("MergeOnRead", partition_by=(), ordering_fields="value")
    with pytest.raises(UnsupportedTableError, match="merge-on-read by event time with a global index"):
        opened(store).use_index("GlobalSimple")
    opened(store).write(rows(("k00", "z", 100)), operation="upsert")
    assert len(contents(store)) == 12


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_an_inserted_key_that_is_in_another_file_already_ends_the_index_and_no_row_is_lost(operation) -> None:
    store = begun(options=MOVES)
    with pytest.warns(MetadataDroppedWarning, match="record key 'k00' was written and is in two file groups now"):
        opened(store).write(rows(("k00", "y", 7), ("n", "z", 1)), operation=operation, options=APART)
    assert opened(store).scan(filter="id = 'k00'").count() == 2
    assert read_partitions(opened(store).context).all == ()


def test_an_upsert_by_partition_that_doubles_a_key_ends_the_index_and_no_row_is_lost() -> None:
    store = begun(index="Simple")
    opened(store).build_metadata(["record_index"])
    opened(store).write(rows(("k00", "x", 7), ("n", "z", 1)), operation="upsert")
    assert located(opened(store)) == stored(opened(store))
    with pytest.warns(MetadataDroppedWarning, match="record key 'k00' was written and is in two file groups now"):
        opened(store).write(rows(("k00", "y", 7)), operation="upsert")
    assert opened(store).scan(filter="id = 'k00'").count() == 2


@BOTH
def test_a_fault_at_any_call_of_its_building_leaves_none_or_one_that_agrees(
    kind: str, figure: Callable[[int, str], None]
) -> None:
    start = begun(kind, index="GlobalSimple")
    opened(start).write(rows(("k00", "z", 5), ("new", "x", 1)), operation="upsert")
    two = {"hoodie.metadata.record.index.min.filegroup.count": "2"}

    def build(store: Any) -> None:
        opened(store).build_metadata(["record_index"], two)

    count = 0
    for point in after_each_fault(start, build, stride=9):
        for suspect in point.suspects:
            after = copied(point.store)
            opened(after, suspect=suspect).write(rows(("k01", "x", 7), ("more", "y", 2)), operation="upsert")
            opened(after, suspect=suspect).write(rows(("k02", "z", 0)), operation="delete")
            build(after)
            assert located(opened(after)) == stored(opened(after)), point.where
            assert len(contents(after)) == 13, point.where
        count += 1
    figure(count, "crash points")


CITIES = ("x", "y", "z")
KEYS = tuple(f"r{n}" for n in range(14))


@pytest.mark.parametrize("moves", [False, True])
@BOTH
def test_it_agrees_with_a_scan_after_every_random_step(
    kind: str, moves: bool, figure: Callable[[int, str], None]
) -> None:
    chance = random.Random(f"{kind}-{moves}")
    store = begun(kind, MOVES if moves else {})
    model: dict[str, Row] = {row[0]: row for row in FIRST}
    steps = scaled(8, quick=5)
    for number in range(steps):
        done = _step(store, model, chance)
        assert [row[:3] for row in contents(store)] == sorted(model.values()), f"step {number}: {done}"
        table = opened(store)
        if MetadataPartition.RECORD_INDEX in read_partitions(table.context).ready:
            assert located(table) == stored(table), f"step {number}: {done}"
    figure(steps, "steps")


def _step(store: Storage, model: dict[str, Row], chance: random.Random) -> str:
    table, choice = opened(store), chance.randrange(20)
    if choice < 11:
        batch = [
            (chance.choice(KEYS), chance.choice(CITIES), chance.randrange(1000)) for _ in range(chance.randrange(1, 6))
        ]
        table.write(rows(*batch), operation="upsert", options=APART if chance.random() < 0.5 else {})
        model.update({row[0]: row for row in batch})
        return f"upsert of {batch}"
    if choice < 15:
        gone = [(key, "x", 0) for key in chance.sample(KEYS, 3)]
        table.write(rows(*gone), operation="delete")
        for row in gone:
            model.pop(row[0], None)
        return f"delete of {gone}"
    if choice < 16:
        table.cluster(force=True, options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
        return "clustering"
    if choice < 17 and table.context.config.type.hudi_name == "MERGE_ON_READ":
        table.compact(force=True)
        return "compaction"
    if choice < 18:
        compact_metadata(table.context, 1)
        return "compaction of the metadata table"
    if choice < 19:
        table.clean({"hoodie.clean.commits.retained": "2"}, force=True)
        return "clean"
    table.drop_metadata()
    return "drop of the metadata table"
