"""A record index by partition: what it holds, how many shards each data partition has, who begins
those of a new one, what it refuses.

Matrix: {copy-on-write, merge-on-read with logs, deletes, keys in several partitions} × {built from
rows, kept from the first write}; odd partition paths and none; two writers that begin a partition
at once, one of which dies; partitions that come between plan and base files. Omitted: what Hudi
makes of it (`tests/interop/test_partitioned_record_index.py`), looking keys up
(`tests/hudi_table/index/test_partitioned_record_index.py`), what both kinds share
(`test_record_index.py`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.metadata.entries import joined_file_ids
from hudi_table.codec.metadata.keys import file_group_index
from hudi_table.errors import InvalidDataError, InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import noted_by_partition
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.reading import latest_of, slice_parts
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import MetadataPartition, ShardLimits, group_file_id, partition_of_shard
from hudi_table.model.names import FILE_NAME, PARTITION_PATH, RECORD_KEY
from hudi_table.model.options.write_options import (
    PARTITION_SHARDS,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    shard_limits,
)
from hudi_table.services.metadata.upkeep import keep_metadata
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write.checks.create_table import TableSpec, create
from tests.hudi_table.metadata.test_indexes import loaded
from tests.support.aged import AgedStorage
from tests.support.crashes import SCHEMA, new_store, opened, rows
from tests.support.faults import Crash
from tests.support.meanwhile import AfterPut
from tests.support.metadata_table import table_of_keys

RECORD_INDEX = MetadataPartition.RECORD_INDEX
BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
NAME = "partitioned_record_index"
THREE = {PARTITION_SHARDS: "3"}
KEPT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
APART = {"hoodie.parquet.small.file.limit": "0"}
Places = dict[tuple[str, str], str]


def placed(table: HudiTable) -> Places:
    """File id of every (partition, key) in the index; each is in the shard of its partition and its
    hash."""
    found: Places = {}
    metadata = loaded(table)
    shards = RecordShards.load(table.context, load_timeline(table.context))
    assert shards is not None
    assert shards.spans is not None
    for item in shards.slices:
        of = partition_of_shard(item.file_id)
        assert of is not None
        entries = latest_of(slice_parts(metadata, item))
        where, keys = entries["location"].combine_chunks(), entries["key"].combine_chunks()
        assert set(where.field("partition").to_pylist()) <= {of}
        ids = [group_file_id(RECORD_INDEX, int(n), of) for n in np.asarray(file_group_index(keys, shards.spans[of][1]))]
        assert set(ids) <= {item.file_id}
        files = joined_file_ids(where).to_pylist() if len(where) else []
        found |= {(of, key): file for key, file in zip(keys.to_pylist(), files, strict=True)}
    return found


def stored_places(table: HudiTable) -> Places:
    """The same of every row, as a scan finds it."""
    found = table.scan(meta=True).to_arrow().to_pylist()
    return {(row[PARTITION_PATH], row[RECORD_KEY]): row[FILE_NAME].partition("_")[0] for row in found}


def counts(table: HudiTable) -> dict[str, int]:
    """Shards of each data partition."""
    shards = RecordShards.load(table.context, load_timeline(table.context))
    assert shards is not None
    return {of: count for of, (_, count) in (shards.spans or {}).items()}


def assert_agrees(store: Storage, where: object = "") -> None:
    """The index tells of each row where it is, and of nothing else."""
    table = opened(store)
    assert RECORD_INDEX in read_partitions(table.context).ready, where
    assert placed(table) == stored_places(table), where
    assert differences(table.context) == [], where


def begun(kind: str = "CopyOnWrite", index: str = "PartitionedRecordIndex", **more: Any) -> Storage:
    return table_of_keys(kind, index, **more)


@BOTH
def test_it_knows_every_live_row_of_each_partition(kind: str) -> None:
    store = begun(kind, "Simple")
    assert opened(store).build_metadata([NAME])
    assert_agrees(store)
    assert noted_by_partition(opened(store).context)
    assert ("z", "k2") in placed(opened(store))
    assert ("x", "k2") in placed(opened(store))
    assert not opened(store).build_metadata([NAME])


@BOTH
def test_every_later_write_and_service_keeps_it(kind: str) -> None:
    store = begun(kind)
    assert_agrees(store, "begun with the table")
    opened(store).write(rows(("k5", "x", 5), ("k3", "z", 3), ("more", "new", 1)), operation="upsert")
    assert_agrees(store, "upsert")
    opened(store).write(rows(("k6", "x", 0), ("new", "z", 0)), operation="delete")
    assert_agrees(store, "delete")
    keep_metadata(opened(store).context, 1)
    assert_agrees(store, "compaction of the metadata table")
    opened(store).write(rows(("k5", "x", 6), ("k9", "x", 7), ("late", "late", 7)), operation="upsert", options=APART)
    opened(store).cluster(force=True, options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    assert_agrees(store, "clustering")
    opened(store).write(rows(("o1", "x", 6)), operation="insert_overwrite")
    assert_agrees(store, "insert_overwrite")
    opened(store).write(None, operation="delete_partition", partitions=["y"])
    assert_agrees(store, "delete_partition")
    opened(store).clean({"hoodie.clean.commits.retained": "1"}, force=True)
    opened(store).write(rows(("k1", "y", 6), ("k7", "y", 6)), operation="upsert")
    assert_agrees(store, "a partition that comes again")
    opened(store).write(rows(("k1", "y", 6), ("k1", "x", 7)), operation="insert_overwrite_table")
    assert_agrees(store, "insert_overwrite_table")
    keep_metadata(opened(store).context, 1)
    opened(store).archive(KEPT, force=True)
    assert_agrees(store, "archiving")


def test_shards_follow_from_the_keys_of_each_partition_and_new_partitions_begin_with_the_least() -> None:
    store = begun(index="Simple")
    opened(store).write(rows(*((f"m{n}", "x", n) for n in range(100))), operation="insert")
    options = {PARTITION_SHARDS: "2", "hoodie.metadata.record.index.max.filegroup.size": str(48 * 20)}
    assert opened(store).build_metadata([NAME], options)
    assert counts(opened(store)) == {"x": 10, "y": 2, "z": 2}
    opened(store).write(rows(("k1", "new", 1)), operation="upsert")
    assert counts(opened(store)) == {"x": 10, "y": 2, "z": 2, "new": 2}
    assert_agrees(store)


def test_a_partition_begins_with_no_more_shards_than_the_option_says() -> None:
    store = begun(index="Simple")
    opened(store).write(rows(*((f"m{n}", "x", n) for n in range(100))), operation="insert")
    most = "hoodie.metadata.record.level.index.max.filegroup.count"
    opened(store).build_metadata([NAME], {most: "3", "hoodie.metadata.record.index.max.filegroup.size": str(48 * 20)})
    assert counts(opened(store))["x"] == 3


def test_the_limits_of_both_kinds_have_their_own_options() -> None:
    assert shard_limits({}, by_partition=True) == ShardLimits(1, 10, by_partition=True)
    assert shard_limits(THREE, by_partition=True).least == 3
    assert shard_limits(THREE) == ShardLimits()


@pytest.mark.parametrize("path", ["a b", "a_b-0001-0", "a=b", "50%", "中", "a.log.1_0-0-0", "%2F"])
def test_partitions_of_any_name_have_shards_that_are_told_apart(path: str) -> None:
    store = new_store()
    create(store, TableSpec(SCHEMA, "id", partition_by=["city"], index="PartitionedRecordIndex", name="t", version=6))
    opened(store).write(rows(("a", path, 1), ("a", "x", 2)), operation="upsert")
    opened(store).write(rows(("a", path, 3), ("b", path, 4)), operation="upsert")
    keep_metadata(opened(store).context, 1)
    opened(store).write(rows(("a", path, 5)), operation="upsert")
    assert_agrees(store)
    assert len(stored_places(opened(store))) == 3


def test_names_of_shards_are_those_of_hudi() -> None:
    names = {"a/b=1": "a%2Fb%3D1", "a_b": "a%5Fb", "2024-01": "2024%2D01", "": "", 'A b"c': "A b%22c"}
    for partition, escaped in names.items():
        found = group_file_id(RECORD_INDEX, 7, partition)
        assert found == f"record-index-{escaped}-0007-0"
        assert partition_of_shard(found) == partition
    assert partition_of_shard(group_file_id(RECORD_INDEX, 7)) is None


@BOTH
def test_a_table_without_partitions_has_one_too(kind: str) -> None:
    store = begun(kind, partition_by=[])
    opened(store).write(rows(("k5", "x", 5), ("more", "new", 1)), operation="upsert")
    assert_agrees(store)
    assert counts(opened(store)) == {"": 1}


def test_none_becomes_the_other_kind_unasked() -> None:
    store = begun(index="Simple")
    opened(store).build_metadata([NAME])
    with pytest.raises(UnsupportedTableError, match="is by partition and a global one is asked for"):
        opened(store).build_metadata(["record_index"])
    opened(store).drop_metadata()
    opened(store).write(rows(("k2", "x", 0)), operation="delete", options={"hoodie.metadata.enable": "false"})
    assert opened(store).build_metadata(["record_index"])
    assert not noted_by_partition(opened(store).context)
    with pytest.raises(UnsupportedTableError, match="is global and a by partition one is asked for"):
        opened(store).build_metadata([NAME])
    with pytest.raises(InvalidRequestError, match="global or by partition"):
        opened(store).build_metadata([NAME, "record_index"])
    both = dict.fromkeys([RECORD_INDEX_ENABLE, PARTITIONED_RECORD_INDEX_ENABLE], "true")
    with pytest.raises(InvalidOptionError, match="global or by partition"):
        opened(store).write(rows(("k1", "x", 1)), operation="upsert", options=both)


def test_the_option_of_hudi_builds_it() -> None:
    store = begun(index="Simple")
    assert read_partitions(opened(store).context).all == ()
    options = {"hoodie.metadata.enable": "true", PARTITIONED_RECORD_INDEX_ENABLE: "true"} | THREE
    opened(store).write(rows(("last", "x", 1)), operation="upsert", options=options)
    assert set(counts(opened(store)).values()) == {3}
    assert_agrees(store)


def test_a_key_in_two_files_of_a_partition_is_refused_and_one_that_an_insert_doubles_ends_it() -> None:
    store = begun(index="Simple")
    opened(store).write(rows(("k0", "x", 7)), operation="insert", options=APART)
    with pytest.raises(InvalidDataError, match=r"record key 'k0' is in two files of partition 'x'"):
        opened(store).build_metadata([NAME])
    assert read_partitions(opened(store).context).all == ()
    store = begun()
    opened(store).write(rows(("k0", "y", 7)), operation="insert", options=APART)
    assert_agrees(store, "the same key in another partition")
    with pytest.warns(MetadataDroppedWarning, match="record key 'k0' was written and is in two file groups now"):
        opened(store).write(rows(("k0", "x", 7)), operation="insert", options=APART)


def upserted(store: Storage, *items: tuple[str, str, int]) -> None:
    opened(store).write(rows(*items), operation="upsert")


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("compacted", [False, True])
def test_two_writers_that_begin_a_partition_at_once_share_its_shards(least: int, compacted: bool) -> None:
    store = begun(index="Simple")
    opened(store).build_metadata([NAME], {PARTITION_SHARDS: str(least)})

    def meanwhile() -> None:
        upserted(store, *((f"b{n}", "new", n) for n in range(4)))
        if compacted:
            keep_metadata(opened(store).context, 1)

    # Between the listing of one and its first log.
    hooked = AfterPut(store, ".deltacommit.inflight", meanwhile)
    upserted(hooked, *((f"a{n}", "new", n) for n in range(4)))
    assert counts(opened(store))["new"] == least
    assert_agrees(store)
    upserted(store, *((f"a{n}", "new", n + 9) for n in range(4)), *((f"b{n}", "new", n + 9) for n in range(4)))
    assert_agrees(store)
    assert opened(store).scan(filter="city = 'new'").count() == 8


def test_shards_that_a_dying_writer_began_are_begun_again_by_who_goes_on() -> None:
    store = begun(index="Simple")
    opened(store).build_metadata([NAME], THREE)

    def die() -> None:
        raise Crash

    dying = AfterPut(store, "record_index/.record-index-new-0001", die)
    with pytest.raises(Crash):
        upserted(dying, *((f"a{n}", "new", n) for n in range(9)))
    upserted(store, ("k1", "new", 1))
    assert counts(opened(store))["new"] == 3
    assert_agrees(store)
    opened(store, suspect=0.0).write(rows(("k5", "new", 1)), operation="upsert")
    assert counts(opened(store))["new"] == 3
    assert_agrees(store)


@BOTH
@pytest.mark.parametrize("moment", [".indexing.inflight", "record_index/.record-index-y-0000", ".indexing.requested"])
def test_partitions_that_come_while_it_is_built_have_shards_too(kind: str, moment: str) -> None:
    store = begun(kind, "Simple")

    def meanwhile() -> None:
        upserted(store, ("k0", "new", 1), ("between", "x", 1), ("k1", "y", 4))
        opened(store).write(rows(("k11", "z", 0)), operation="delete")
        upserted(store, ("k1", "new", 1), ("k0", "newer", 1))

    hooked = AfterPut(store, moment, meanwhile)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataDroppedWarning)
        assert opened(hooked).build_metadata([NAME], THREE)
    assert_agrees(store, "built")
    assert set(counts(opened(store)).values()) == {3}
    upserted(store, ("k0", "new", 2), ("k9", "newer", 3), ("k11", "z", 1))
    assert_agrees(store, "written")
    keep_metadata(opened(store).context, 1)
    assert_agrees(store, "compacted")


def test_shards_to_which_nobody_writes_do_not_hold_the_timeline_of_the_metadata_table() -> None:
    store = begun(index="Simple")
    opened(store).build_metadata([NAME], {PARTITION_SHARDS: "10"})
    for number in range(42):
        opened(AgedStorage(store)).write(rows(("k1", "y", number)), operation="upsert")
    assert len(loaded(opened(store)).timeline.completed) < 42
    assert_agrees(store)


def test_a_partition_without_shards_is_found_wrong() -> None:
    store = begun()
    for info in store.list(".hoodie/metadata/record_index"):
        if "record-index-y-" in info.path:
            store.delete(info.path)
    told = [(item.path, item.what) for item in differences(opened(store).context)]
    assert told == [("y", "has no shards in the record index")]
