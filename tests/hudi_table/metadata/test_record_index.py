"""A record index that is built of a table with rows: what it holds, how many file groups it has,
when it is refused.

Matrix: {copy-on-write, merge-on-read with logs, deletes, moved keys}; keys held on disk; a writer
between plan and base files; the options of both generations of Hudi. Omitted: what Hudi makes of it
(`tests/interop/test_record_index.py`), looking keys up
(`tests/hudi_table/index/test_record_index.py`).
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.codec.metadata.keys import file_group_index
from hudi_table.errors import InvalidDataError, InvalidOptionError, UnsupportedTableError
from hudi_table.metadata.building_plans import pending_buildings
from hudi_table.metadata.definitions import DEFINITIONS, noted_by_partition
from hudi_table.metadata.indexing import build_metadata
from hudi_table.metadata.reading import latest_of, slice_parts
from hudi_table.metadata.record_index.build import recorded_shards
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import MetadataPartition, ShardLimits
from hudi_table.model.options.write_options import shard_limits
from hudi_table.model.table.config import IndexSpec, IndexType, MergeMode
from hudi_table.services.metadata.report import report
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write.checks.create_table import TableSpec, create
from tests.hudi_table.metadata.test_indexes import loaded, located, stored
from tests.support.crashes import LATER, LAYOUTS, SCHEMA, copied, new_store, opened, prepared, rows
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.meanwhile import AfterPut
from tests.support.metadata_table import table_of_keys

RECORD_INDEX = MetadataPartition.RECORD_INDEX
BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
TWO_SHARDS = {"hoodie.metadata.record.index.min.filegroup.count": "2"}


def begun(kind: str = "CopyOnWrite", index: str = "GlobalSimple") -> Storage:
    return table_of_keys(kind, index)


@BOTH
def test_it_knows_every_live_row_and_no_other_key(kind: str) -> None:
    table = opened(begun(kind))
    assert table.build_metadata(["record_index"])
    assert located(table) == stored(table)
    assert set(read_partitions(table.context).ready) == {"files", "record_index"}
    assert differences(table.context) == []
    assert not table.build_metadata(["record_index"])


@BOTH
def test_every_later_write_keeps_it(kind: str) -> None:
    store = begun(kind)
    opened(store).build_metadata(["record_index"])
    opened(store).write(rows(("k5", "x", 5), ("k3", "z", 3), ("more", "y", 1)), operation="upsert")
    opened(store).write(rows(("k6", "x", 0), ("new", "z", 0)), operation="delete")
    assert located(opened(store)) == stored(opened(store))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("how", ["delete", "flag", "flag, compacted"])
def test_no_entry_of_a_deleted_key_names_a_file_group_that_clustering_has_replaced(version: int, how: str) -> None:
    """Hudi writes the next row of such a key to that group, where it is lost."""
    store, schema = new_store(), SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    index = IndexSpec(IndexType.RECORD_INDEX)
    described = TableSpec(
        schema, "id", ordering_fields="value", index=index, type="MergeOnRead", name="t", version=version
    )
    create(store, described)
    table = opened(store)
    data = rows(*((f"k{number}", "x", 1) for number in range(6))).append_column("_hoodie_is_deleted", [[False] * 6])
    table.insert(data)
    gone = data.slice(1, 2)
    if how == "delete":
        table.delete(gone)
    else:
        flagged = gone.drop_columns(["_hoodie_is_deleted"]).append_column("_hoodie_is_deleted", [[True] * 2])
        table.upsert(flagged)
    if how == "flag, compacted":
        assert table.compact(force=True)
    assert table.cluster(force=True)
    assert set(stored(table)) == {"k0", "k3", "k4", "k5"}
    assert located(table) == stored(table)
    table.upsert(gone)
    assert located(table) == stored(table)
    assert len(stored(table)) == 6


FLAGS = pa.field("_hoodie_is_deleted", pa.bool_())


def in_logs(version: int, value: pa.DataType, mode: MergeMode = MergeMode.EVENT_TIME) -> Storage:
    """A merge-on-read table with a record index, of the keys `k0` to `k5` at 5, of which `k1` is
    at 7 in a log."""
    store = new_store()
    described = TableSpec(
        pa.schema([("id", pa.string()), ("value", value), FLAGS]), "id", ordering_fields="value", merge_mode=mode, name="t",
        index=IndexSpec(IndexType.RECORD_INDEX), type="MergeOnRead", version=version,
    )  # fmt: skip
    create(store, described)
    opened(store).upsert(flagged(value, *((f"k{number}", 5) for number in range(6)), deleted=False))
    opened(store).upsert(flagged(value, ("k1", 7), deleted=False))
    return store


def flagged(value: pa.DataType, *items: tuple[str, int], deleted: bool) -> pa.Table:
    rows = [{"id": key, "value": number, FLAGS.name: deleted} for key, number in items]
    return pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.string()), ("value", value), FLAGS]))


@pytest.mark.parametrize("mode", MergeMode)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_flagged_delete_takes_the_entry_with_the_row_and_leaves_it_with_a_newer_one(
    version: int, mode: MergeMode
) -> None:
    """As Hudi has it, whose clustering keeps entries of deleted keys in groups that it replaces. A
    key without an entry that has a row would be written a second time."""
    table = opened(in_logs(version, pa.int64(), mode))
    table.upsert(flagged(pa.int64(), ("k0", 5), ("k1", 6), ("k2", 4), ("k3", 9), deleted=True))
    by_time = mode is MergeMode.EVENT_TIME
    # On version 6 base rows do not look at ordering values there, and log entries do (docs/how-to/writing.md, cases 19 and 21).
    left = {"k1"} if by_time or version == 6 else set()
    left |= {"k2"} if by_time and version > 6 else set()
    assert set(stored(table)) == {"k4", "k5"} | left
    assert located(table) == stored(table)
    table.upsert(flagged(pa.int64(), *((f"k{number}", 10) for number in range(6)), deleted=False))
    assert table.scan().count() == 6


@pytest.mark.parametrize("version", [6, 8, 9])
def test_so_does_one_whose_write_widens_the_ordering_column(version: int) -> None:
    table = opened(in_logs(version, pa.int32()))
    table.upsert(flagged(pa.int64(), ("k0", 2**40), ("k1", 6), deleted=True))
    assert set(stored(table)) == {"k1", "k2", "k3", "k4", "k5"}
    assert located(table) == stored(table)


def test_each_key_lies_in_the_file_group_of_its_hash() -> None:
    table = opened(begun())
    assert table.build_metadata(["record_index"], TWO_SHARDS)
    groups = loaded(table).groups[RECORD_INDEX]
    assert [group.file_id for group in groups] == ["record-index-0000-0", "record-index-0001-0"]
    held = [latest_of(slice_parts(loaded(table), group.latest))["key"].combine_chunks() for group in groups]
    assert all(len(keys) for keys in held)
    for number, keys in enumerate(held):
        assert set(np.asarray(file_group_index(keys, 2)).tolist()) == {number}


def test_a_write_builds_it_with_the_options_of_either_generation() -> None:
    for name in ("hoodie.metadata.record.index.enable", "hoodie.metadata.global.record.level.index.enable"):
        store = begun()
        options = {"hoodie.metadata.enable": "true", name: "true"} | TWO_SHARDS
        opened(store).write(rows(("last", "x", 1)), operation="upsert", options=options)
        table = opened(store)
        assert len(loaded(table).groups[RECORD_INDEX]) == 2
        assert located(table) == stored(table)


def test_more_keys_than_memory_holds_go_by_way_of_disk_and_come_out_the_same() -> None:
    table = opened(begun("MergeOnRead"))
    timeline = load_timeline(table.context)
    held, spilled = (dict(recorded_shards(table.context, timeline, {None: 3}, size)) for size in (1 << 30, 1))
    assert held.keys() == spilled.keys()
    assert all(held[number].equals(spilled[number]) for number in held)
    assert sum(map(len, held.values())) == len(stored(table))


def test_a_key_in_two_partitions_is_refused_and_leaves_the_table_without() -> None:
    store = begun(index="Simple")
    table = opened(store)
    table.build_metadata()
    with pytest.raises(InvalidDataError, match=r"record key 'k2' is in partitions 'x' and 'z'"):
        table.build_metadata(["record_index"])
    assert set(read_partitions(opened(store).context).all) == {"files"}
    assert pending_buildings(table.context, load_timeline(table.context)) == []
    opened(store).write(rows(("k9", "x", 9)), operation="upsert")
    assert differences(opened(store).context) == []
    opened(store).write(rows(("k2", "x", 0)), operation="delete")
    assert opened(store).build_metadata(["record_index"])
    assert located(opened(store)) == stored(opened(store))


def test_a_building_that_died_and_cannot_be_is_ended_by_the_next_write_which_goes_on() -> None:
    store = begun(index="Simple")
    counting = FaultPlan()
    with pytest.raises(InvalidDataError):
        opened(FaultyStorage(copied(store), counting)).build_metadata(["record_index"])
    begins = next(call.number for call in counting.calls if call.path.endswith(".indexing.inflight"))
    dying = opened(FaultyStorage(store, FaultPlan(at=begins, fault=Fault.CRASH_BEFORE)))
    with pytest.raises(Crash):
        dying.build_metadata(["record_index"])
    assert pending_buildings(opened(store).context, load_timeline(opened(store).context))
    opened(store, suspect=0.0).write(rows(("k9", "x", 9)), operation="upsert")
    assert pending_buildings(opened(store).context, load_timeline(opened(store).context)) == []
    assert read_partitions(opened(store).context).all == ()


def test_a_key_in_two_files_of_a_partition_is_refused() -> None:
    store = begun()
    apart = {"hoodie.parquet.small.file.limit": "0"}
    opened(store).write(rows(("k0", "x", 7)), operation="insert", options=apart)
    with pytest.raises(InvalidDataError, match=r"record key 'k0' is in two files of partition 'x'"):
        opened(store).build_metadata(["record_index"])
    assert read_partitions(opened(store).context).all == ()
    opened(store).write(rows(("k9", "x", 9)), operation="upsert")


def test_tables_that_store_no_keys_are_refused() -> None:
    store = new_store()
    create(store, TableSpec(SCHEMA, "id", name="t", populate_meta_fields=False))
    with pytest.raises(UnsupportedTableError, match="_hoodie_record_key"):
        opened(store).build_metadata(["record_index"])


def test_a_note_of_an_index_by_partition_that_is_gone_does_not_outlive_the_building_of_a_global_one() -> None:
    store = begun()
    noted = {"indexDefinitions": {"record_index": {"indexOptions": {"isPartitioned": "true"}}}}
    store.put(".hoodie/.index_defs/index.json", json.dumps(noted).encode())
    assert opened(store).build_metadata(["record_index"])
    assert not noted_by_partition(opened(store).context)
    assert located(opened(store)) == stored(opened(store))


@BOTH
def test_what_is_written_between_plan_and_base_files_is_in_it(kind: str) -> None:
    store = begun(kind)

    def meanwhile() -> None:
        opened(store).write(rows(("k0", "y", 1), ("between", "x", 1)), operation="upsert")
        opened(store).write(rows(("k11", "z", 0)), operation="delete")

    hooked = AfterPut(store, ".indexing.inflight", meanwhile)
    assert build_metadata(opened(hooked).context, [RECORD_INDEX])
    table = opened(store)
    assert located(table) == stored(table)
    opened(store).write(rows(("k11", "x", 1)), operation="upsert")
    assert located(opened(store)) == stored(opened(store))


def test_the_number_of_file_groups_is_the_one_of_hudi() -> None:
    assert ShardLimits().shards(0) == 10
    assert ShardLimits().shards(1_000_000_000) == 2_000_000_000 // ((1 << 30) // 48)
    assert ShardLimits(most=20).shards(1_000_000_000) == 20
    assert ShardLimits(least=5, most=5).shards(1_000_000_000) == 5
    assert ShardLimits(least=1, growth=1.0, group_bytes=480).shards(100) == 10


def test_the_limits_come_from_the_options_and_bad_ones_are_refused() -> None:
    given = {
        "hoodie.metadata.record.index.min.filegroup.count": "3",
        "hoodie.metadata.global.record.level.index.max.filegroup.count": "30",
        "hoodie.metadata.record.index.growth.factor": "1.5",
        "hoodie.metadata.record.index.max.filegroup.size": "1000",
    }
    assert shard_limits(given) == ShardLimits(3, 30, 1.5, 1000)
    assert shard_limits({}) == ShardLimits()
    for key, value in (("hoodie.metadata.record.index.growth.factor", "0.5"), (next(iter(TWO_SHARDS)), "0")):
        with pytest.raises(InvalidOptionError):
            shard_limits({key: value})
    twice = TWO_SHARDS | {"hoodie.metadata.global.record.level.index.min.filegroup.count": "4"}
    with pytest.raises(InvalidOptionError, match="given twice"):
        shard_limits(twice)


LIMIT = "hoodie.metadata.global.record.level.index."
GROUP_BYTES = "hoodie.metadata.record.index.max.filegroup.size"
GROWTH = "hoodie.metadata.record.index.growth.factor"


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        # 100 keys of 48 bytes each, doubled for what is to come.
        ({GROUP_BYTES: str(48 * 20)}, 10),
        ({GROUP_BYTES: str(48 * 20), GROWTH: "1.0"}, 5),
        ({GROUP_BYTES: str(48 * 20), f"{LIMIT}max.filegroup.count": "4"}, 4),
        ({f"{LIMIT}min.filegroup.count": "3"}, 3),
    ],
)
def test_there_are_as_many_file_groups_as_the_options_say(options: dict[str, str], groups: int) -> None:
    store = new_store()
    create(store, TableSpec(SCHEMA, "id", name="t", index="GlobalSimple"))
    opened(store).write(rows(*((f"k{n}", "x", n) for n in range(100))), operation="insert")
    opened(store).build_metadata(["record_index"], {f"{LIMIT}min.filegroup.count": "1"} | options)
    (found,) = [item for item in report(opened(store).context) if item.partition == "record_index"]
    assert found.file_groups == groups


def test_keys_of_any_characters_are_sorted_by_their_bytes() -> None:
    store = new_store()
    create(store, TableSpec(SCHEMA, "id", name="t", index="GlobalSimple"))
    keys = ["\ue000", "\U0001f600", "é", "a:b", " ", "\x00", "k" * 4_000, "中"]
    opened(store).write(rows(*((key, "x", 1) for key in keys)), operation="insert")
    opened(store).build_metadata(["record_index"], TWO_SHARDS)
    assert located(opened(store)).keys() == set(keys)
    assert located(opened(store)) == stored(opened(store))


@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER], ids=str)
def test_it_is_noted_as_a_global_one_on_versions_8_and_9(layout):
    store = prepared(layout)
    build_metadata(opened(store).context, [RECORD_INDEX])
    noted = json.loads(store.get(DEFINITIONS))["indexDefinitions"] if layout is LATER else {}
    assert (DEFINITIONS in {info.path for info in store.list(".hoodie")}) == (layout is LATER)
    assert {name: each["indexOptions"] for name, each in noted.items()} == (
        {"record_index": {"isPartitioned": "false"}} if layout is LATER else {}
    )
