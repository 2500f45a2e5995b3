"""The record index by partition: what it opens, what it believes, and what it does where there is
no index to ask.

Matrix: {copy-on-write, merge-on-read}: look-ups of writes and of filters on the key; entries of
another engine that lie where they do not belong; a metadata table that is gone or has the other
kind; names and options of Hudi; two writers, of which one acts at each storage call of the other; a
fault at each call of a building; random steps, after each of which the index agrees with a scan.
Omitted: what every index must do (`test_conformance.py`), how it is built and kept
(`tests/hudi_table/metadata/test_partitioned_record_index.py`), other engines
(`tests/interop/test_partitioned_record_index.py`).
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
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.index.base import Keys, Lookup
from hudi_table.index.record_index import RecordIndex, RecordIndexWarning
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.options.write_options import (
    PARTITION_SHARDS,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
)
from hudi_table.model.table.config import IndexType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.hudi_table.metadata.test_partitioned_record_index import NAME, assert_agrees, begun
from tests.support.crashes import copied, opened, rows
from tests.support.fault_points import after_each_fault
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.meanwhile import AtCall
from tests.support.scale import scaled

BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
APART = {"hoodie.parquet.small.file.limit": "0"}
WITHOUT = {"hoodie.metadata.enable": "false"}
Row = tuple[str, str, int]


def contents(store: Storage) -> list[Row]:
    """(id, city, value) of every row, sorted."""
    found = opened(store).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["city"], row["value"]) for row in found)


def snapshot_of(table: HudiTable, storage: Storage | None = None) -> tuple[RecordShards, Lookup]:
    """The shards of the table's index, and a snapshot of the table."""
    ctx, timeline = table.context, load_timeline(table.context)
    slices, shards = FileSystemView(ctx, timeline).latest_slices(), RecordShards.load(ctx, timeline)
    assert shards is not None
    return shards, Lookup(storage or ctx.storage, slices, LocalEngine(1), visible=VisibleInstants.of(timeline))


def found(shards: RecordShards, lookup: Lookup, *pairs: tuple[str, str]) -> list[bool]:
    """Whether each (key, partition) is known."""
    paths = sorted({path for _, path in pairs})
    codes = np.array([paths.index(path) for _, path in pairs], np.int32)
    routed = RecordIndex(is_global=False, shards=shards).route(
        Keys(pa.array([key for key, _ in pairs], pa.string()), tuple(paths), codes), lookup
    )
    slots = [routed.slots[code] for code in routed.codes]
    assert [slot.partition for slot in slots] == [path for _, path in pairs]
    return [slot.file_id is not None for slot in slots]


@BOTH
def test_it_opens_the_shards_of_the_rows_own_partitions_and_no_data_file(kind: str) -> None:
    table, plan = opened(begun(kind)), FaultPlan()
    snapshot = snapshot_of(table, FaultyStorage(table.context.storage, plan))
    asked = (("k1", "x"), ("k0", "x"), ("k2", "x"), ("k2", "z"), ("nobody", "z"), ("k0", "nowhere"))
    assert found(*snapshot, *asked) == [False, True, True, True, False, False]
    opened_files = {call.path.rpartition("/")[2].removeprefix(".").partition("_")[0] for call in plan.calls}
    assert opened_files == {"record-index-x-0000-0", "record-index-z-0000-0"}


def test_without_shards_of_a_partition_its_files_are_asked() -> None:
    store = begun()
    shards, lookup = snapshot_of(opened(store))
    spans = {of: span for of, span in (shards.spans or {}).items() if of != "x"}
    bare = RecordShards(shards.slices, shards.counted, spans)
    assert found(bare, lookup, ("k0", "x"), ("k1", "x"), ("k1", "y")) == [True, False, True]


def test_what_a_shard_tells_of_another_partition_is_not_believed() -> None:
    store = begun()
    shards, lookup = snapshot_of(opened(store))
    spans = shards.spans or {}
    mixed = RecordShards(shards.slices, shards.counted, {**spans, "x": spans["y"]})
    keys, paths = pa.array(["k1", "k7"], pa.string()), pa.array(["x", "y"], pa.string()).dictionary_encode()
    located = mixed.find(lookup.storage, keys, paths)
    assert located.rows.tolist() == [1]


@BOTH
def test_without_an_index_the_files_are_asked_with_a_warning_and_the_answers_are_the_same(kind: str) -> None:
    store, other = begun(kind), begun(kind)
    with pytest.warns(RecordIndexWarning, match="no partitioned record index that is ready"):
        opened(store).write(rows(("k1", "x", 50), ("k1", "y", 51)), operation="upsert", options=WITHOUT)
    assert read_partitions(opened(store).context).all == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecordIndexWarning)
        opened(store).write(rows(("k0", "z", 52), ("n", "y", 2)), operation="upsert")
        opened(other).write(rows(("k1", "x", 50), ("k1", "y", 51)), operation="upsert")
        opened(other).write(rows(("k0", "z", 52), ("n", "y", 2)), operation="upsert")
    assert contents(store) == contents(other)
    assert_agrees(store)


def test_the_other_kind_is_kept_and_not_asked() -> None:
    store = begun(index="Simple")
    opened(store).write(rows(("k2", "x", 0)), operation="delete")
    opened(store).build_metadata(["record_index"])
    opened(store).use_index("PartitionedRecordIndex")
    with pytest.warns(RecordIndexWarning) as seen:
        opened(store).write(rows(("k0", "x", 7)), operation="upsert")
    said = " ".join(str(item.message) for item in seen)
    assert "but one that is global" in said
    assert "record_index" in read_partitions(opened(store).context).ready
    assert ("k0", "x", 7) in contents(store)


def _taken(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise AssertionError(f"{batch.num_rows} rows were read before the options were looked at")


def test_options_that_ask_for_the_other_kind_than_the_tables_index_are_refused() -> None:
    store = begun()
    given = rows(("k0", "x", 7))
    unread = pa.RecordBatchReader.from_batches(given.schema, (_taken(batch) for batch in given.to_batches()))
    with pytest.raises(InvalidOptionError, match="finds keys by its partitioned_record_index"):
        opened(store).write(unread, operation="upsert", options={RECORD_INDEX_ENABLE: "true"})
    never = {PARTITIONED_RECORD_INDEX_ENABLE: "false", RECORD_INDEX_ENABLE: "false"}
    opened(store).drop_metadata()
    with pytest.warns(RecordIndexWarning):
        opened(store).write(rows(("k0", "x", 7)), operation="upsert", options=never)
    assert read_partitions(opened(store).context).all == ()


def test_the_name_of_hudi_means_it_and_it_may_replace_a_simple_index() -> None:
    assert IndexType.named("record_level_index") is IndexType.PARTITIONED_RECORD_INDEX
    store = begun(index="Simple")
    opened(store).use_index("PartitionedRecordIndex")
    opened(store).write(rows(("k0", "y", 1)), operation="upsert", options={"hoodie.index.type": "RECORD_LEVEL_INDEX"})
    assert_agrees(store)
    opened(store).use_index("Bloom")
    with pytest.raises(InvalidRequestError, match="cannot become RecordIndex"):
        opened(store).use_index("RecordIndex")


@BOTH
def test_a_filter_on_the_key_opens_its_file_in_each_partition_that_is_left(kind: str) -> None:
    store = begun(kind)
    for number in range(3):
        batch = rows(*((f"{number}:{n}", "xyz"[n % 3], number) for n in range(6)), ("both", "xyz"[number], number))
        opened(store).write(batch, operation="upsert", options=APART)
    table = opened(store)

    def files(text: str) -> int:
        return len(table.scan(filter=text).plan_files())

    assert files("id = '2:4'") == 1
    assert files("id = 'both'") == 3
    assert files("id = 'both' and city = 'y'") == 1
    assert files("id = '2:4' and city = 'x'") == 0
    assert files("id = 'nobody'") == 0
    assert sorted(table.scan(filter="id = 'both'").to_arrow()["city"].to_pylist()) == ["x", "y", "z"]


def test_two_writers_of_a_new_partition_leave_one_index_wherever_one_acts_in_the_other(
    figure: Callable[[int, str], None],
) -> None:
    start = begun(index="Simple")
    opened(start).build_metadata([NAME], {PARTITION_SHARDS: "2"})
    counting = AtCall(copied(start), 0, lambda: None)
    _new_partition(counting, "a")
    calls, tried = counting.calls, range(1, counting.calls, max(1, calls_stride(counting.calls)))
    for number in tried:
        store = copied(start)

        def meanwhile(store: Storage = store) -> None:
            _new_partition(store, "b")

        _new_partition(AtCall(store, number, meanwhile), "a")
        assert_agrees(store, f"call {number} of {calls}")
        _new_partition(store, "a")
        _new_partition(store, "b")
        assert len(contents(store)) == len(contents(start)) + 8, f"call {number} of {calls}"
    figure(len(tried), "interleavings")


def calls_stride(calls: int) -> int:
    """Of so many calls each n-th one is tried."""
    return max(1, calls // scaled(12))


def _new_partition(store: Any, prefix: str) -> None:
    opened(store).write(rows(*((f"{prefix}{n}", "new", n) for n in range(4))), operation="upsert")


@BOTH
def test_a_fault_at_any_call_of_its_building_leaves_none_or_one_that_agrees(
    kind: str, figure: Callable[[int, str], None]
) -> None:
    start = begun(kind, index="Simple")

    def build(store: Any) -> None:
        opened(store).build_metadata([NAME], {PARTITION_SHARDS: "2"})

    count, before = 0, len(contents(start))
    for point in after_each_fault(start, build, stride=9):
        for suspect in point.suspects:
            after = copied(point.store)
            opened(after, suspect=suspect).write(rows(("k0", "x", 7), ("more", "new", 2)), operation="upsert")
            opened(after, suspect=suspect).write(rows(("k5", "z", 0)), operation="delete")
            build(after)
            assert_agrees(after, point.where)
            assert len(contents(after)) == before, point.where
        count += 1
    figure(count, "crash points")


CITIES = ("x", "y", "z", "new", "late")
KEYS = tuple(f"r{n}" for n in range(14))


@BOTH
def test_it_agrees_with_a_scan_after_every_random_step(kind: str, figure: Callable[[int, str], None]) -> None:
    chance, store = random.Random(kind), begun(kind)
    model = {row[:2]: row for row in contents(store)}
    steps = scaled(8, quick=5)
    for number in range(steps):
        done = _step(store, model, chance)
        assert contents(store) == sorted(model.values()), f"step {number}: {done}"
        if MetadataPartition.RECORD_INDEX in read_partitions(opened(store).context).ready:
            assert_agrees(store, f"step {number}: {done}")
    figure(steps, "steps")


def _step(store: Storage, model: dict[tuple[str, str], Row], chance: random.Random) -> str:
    table, choice = opened(store), chance.randrange(20)
    if choice < 10:
        drawn = [(chance.choice(KEYS), chance.choice(CITIES), chance.randrange(1000)) for _ in range(5)]
        table.write(rows(*drawn), operation="upsert", options=APART if chance.random() < 0.5 else {})
        model.update({row[:2]: row for row in drawn})
        return f"upsert of {drawn}"
    if choice < 13:
        gone = [(key, chance.choice(CITIES), 0) for key in chance.sample(KEYS, 3)]
        table.write(rows(*gone), operation="delete")
        for row in gone:
            model.pop(row[:2], None)
        return f"delete of {gone}"
    if choice < 15:
        city = chance.choice(CITIES)
        table.write(rows(("over", city, choice)), operation="insert_overwrite")
        for place in [place for place in model if place[1] == city]:
            del model[place]
        model["over", city] = ("over", city, choice)
        return f"insert_overwrite of {city}"
    if choice < 16:
        table.cluster(force=True, options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
        return "clustering"
    if choice < 17 and table.context.config.type.hudi_name == "MERGE_ON_READ":
        table.compact(force=True)
        return "compaction"
    if choice < 19:
        table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
        return "clean"
    table.drop_metadata()
    return "drop of the metadata table"
