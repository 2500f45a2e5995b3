"""Clustering on hash rings: large buckets split, small neighbours merge, within their bounds,
beside writers, there and back; and what goes wrong is refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.codec.hashes.xxhash import ring_hashes
from hudi_table.errors import (
    CorruptTableError,
    InvalidOptionError,
    InvalidRequestError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_table.model.table.rings import Ring
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.kept_properties import KEPT
from hudi_table.table.view.hash_rings import RINGS, TableRings, ring_path
from tests.support.crashes import new_store
from tests.support.written import slices

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("value", pa.int64())])
SPLIT = {"hoodie.parquet.max.file.size": "1", "hoodie.bucket.index.merge.threshold": "0"}
MERGE = {"hoodie.bucket.index.split.threshold": "1000"}


def rows(first: int, last: int, plus: int = 0, day: str = "x") -> pa.Table:
    numbers = list(range(first, last))
    return pa.table(
        {"id": [f"k{i}" for i in numbers], "day": [day] * len(numbers), "value": [i + plus for i in numbers]}, SCHEMA
    )


def new_table(**index: int) -> HudiTable:
    spec = {"type": "ConsistentBucket", "buckets": 4, "minBuckets": 1, "maxBuckets": 8} | index
    return create_table(
        new_store().base_path, SCHEMA, record_key="id", partition_by="day", type="MergeOnRead", index=spec
    )


def made(**index: int) -> HudiTable:
    """Two partitions, with base files and logs."""
    table = new_table(**index)
    table.upsert(rows(0, 200))
    table.upsert(rows(0, 60, 1, "y"))
    table.upsert(rows(50, 90, 1000))
    table.delete(rows(0, 10))
    return table


def values(table: HudiTable) -> dict[tuple[str, str], int]:
    found = table.scan().to_arrow().to_pylist()
    assert table.doctor(keys=True) == ()
    return {(row["day"], row["id"]): row["value"] for row in found}


def ring(table: HudiTable, day: str = "x") -> Ring:
    return TableRings(table.context, load_timeline(table.context), 4).ring(day)


def test_large_buckets_split_and_small_ones_merge_and_no_row_changes() -> None:
    table = made()
    before = values(table)
    (split,) = table.cluster(SPLIT, force=True)
    assert (split.figures["fileGroups"], len(ring(table).nodes), len(ring(table, "y").nodes)) == (8, 8, 8)
    assert values(table) == before
    table.upsert(rows(80, 300, 5))
    (merged,) = table.cluster(MERGE, force=True)
    assert [len(ring(table, day).nodes) for day in "xy"] == [1, 1]
    assert merged.figures["filesAfter"] == 2
    assert values(table) == before | {("x", f"k{i}"): i + 5 for i in range(80, 300)}
    assert ring(table).sequence == 2
    table.upsert(rows(0, 5, 7, "y"))
    assert values(table)["y", "k1"] == 8


def test_the_bounds_that_the_table_stores_hold_and_options_give_others() -> None:
    table = made(minBuckets=3, maxBuckets=5)
    table.cluster(SPLIT, force=True)
    assert len(ring(table).nodes) == 5
    table.cluster(MERGE, force=True)
    assert len(ring(table).nodes) == 3
    table.cluster(SPLIT | {"hoodie.bucket.index.max.num.buckets": "6"}, force=True)
    assert len(ring(table).nodes) == 6


def test_without_bounds_nothing_splits_and_nothing_merges() -> None:
    spec = {"type": "ConsistentBucket", "buckets": 4}
    table = create_table(
        new_store().base_path, SCHEMA, record_key="id", partition_by="day", type="MergeOnRead", index=spec
    )
    table.upsert(rows(0, 100))
    assert table.cluster(SPLIT, force=True) == table.cluster(MERGE, force=True) == []


def test_logs_count_for_the_size_of_a_bucket() -> None:
    table = made()
    base = max(item.base.size for item in slices(table) if item.base is not None)
    options = {"hoodie.parquet.max.file.size": str(base + 1), "hoodie.bucket.index.split.threshold": "1"}
    plan = table.preview_clustering(options | {"hoodie.bucket.index.merge.threshold": "0"}, force=True)
    assert plan is not None
    assert plan.file_groups == sum(item.size > base + 1 for item in slices(table))


def test_while_a_plan_waits_its_partition_takes_no_other_and_writers_go_on_elsewhere() -> None:
    table = made(minBuckets=1, maxBuckets=5)
    plan = table.schedule_clustering(SPLIT, force=True)
    assert plan is not None
    assert table.schedule_clustering(MERGE, force=True) is None
    table.upsert(rows(0, 20, 0, "z"))
    with pytest.raises(WriteConflictError, match=plan.instant):
        table.upsert(rows(0, 200, 3))
    other = open_table(table.base_path)
    assert other.run_clustering(plan.instant).figures["rowsWritten"] > 0
    assert table.run_clustering(plan.instant).replayed
    table.upsert(rows(0, 200, 3))
    assert values(table)["x", "k7"] == 10


def test_rows_that_were_taken_in_by_the_ring_of_before_are_grouped_anew() -> None:
    table = made()

    class Late(LocalEngine):
        def imap(self, function, items):
            found = list(super().imap(function, items))
            if table.pending_clusterings() == [] and len(ring(table).nodes) == 4:
                table.cluster(SPLIT, force=True)
            return iter(found)

    open_table(table.base_path).upsert(rows(0, 200, 3), engine=Late(1))
    assert len(ring(table).nodes) == 8
    assert (len(values(table)), values(table)["x", "k70"]) == (260, 73)


class Beside(LocalEngine):
    """An engine whose tasks have ended when something happens, once."""

    def __init__(self, happens):
        super().__init__(1)
        self.happens = happens

    def map(self, function, items):
        found = super().map(function, items)
        happens, self.happens = self.happens, lambda: None
        happens()
        return found


def keys_of(table: HudiTable, node: int, count: int) -> list[int]:
    """Numbers whose keys lie on a node of the first ring of a partition."""
    places = ring_hashes(pa.array([f"k{i}" for i in range(1000)])).tolist()
    first = Ring.initial("n", 4)
    return [i for i, place in enumerate(places) if first.node_at(place) == first.nodes[node]][:count]


def test_two_first_writes_to_a_node_exclude_each_other_and_to_two_nodes_do_not() -> None:
    table = made()
    (one, two), (three,) = keys_of(table, 0, 2), keys_of(table, 1, 1)
    other = open_table(table.base_path)
    with pytest.raises(WriteConflictError):
        table.upsert(rows(one, one + 1, 0, "n"), engine=Beside(lambda: other.upsert(rows(two, two + 1, 0, "n"))))
    table.upsert(rows(one, one + 1, 0, "n"), engine=Beside(lambda: other.upsert(rows(three, three + 1, 0, "n"))))
    assert {key for day, key in values(table) if day == "n"} == {f"k{one}", f"k{two}", f"k{three}"}


def test_a_partition_that_another_writer_begins_with_another_ring_keeps_that_one() -> None:
    table = made()

    class Foreign(LocalEngine):
        def imap(self, function, items):
            found = list(super().imap(function, items))
            table.context.storage.put(ring_path("n", "00000000000000"), Ring.initial("n", 2).to_json())
            return iter(found)

    with pytest.raises(WriteConflictError, match="'n'"):
        table.upsert(rows(0, 50, 0, "n"), engine=Foreign(1))
    table.upsert(rows(0, 50, 0, "n"))
    assert len(ring(table, "n").nodes) == 2
    assert len(values(table)) == 300


def test_a_write_to_the_groups_of_a_plan_voids_it_if_it_is_allowed() -> None:
    table = made()
    plan = table.schedule_clustering(SPLIT, force=True)
    assert plan is not None
    table.upsert(rows(0, 9, 4), options={"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"})
    with pytest.raises(WriteConflictError):
        table.run_clustering(plan.instant)
    assert len(ring(table).nodes) == 4
    (split,) = table.cluster(SPLIT, force=True)
    assert split.figures["fileGroups"] == 8
    assert len(values(table)) == 259


def test_a_rollback_and_a_restore_take_the_ring_back() -> None:
    table = made()
    before, first = values(table), ring(table)
    (split,) = table.cluster(SPLIT, force=True)
    # Hudi 1.1.1 marks the rings that it has found committed, and fails on a mark without its ring.
    store = table.context.storage
    store.put(ring_path("x", split.instant).replace(".hashing_meta", ".commit"), b"")
    table.rollback(split.instant, writers_stopped=True)
    assert (ring(table), values(table)) == (first, before)
    assert not [info for info in store.list(RINGS) if split.instant in info.path]
    saved = table.savepoint()
    table.cluster(SPLIT, force=True)
    table.upsert(rows(0, 30, 9))
    table.restore(saved.instant, writers_stopped=True)
    assert (ring(table), values(table)) == (first, before)
    table.upsert(rows(0, 30, 9))
    assert values(table)["x", "k20"] == 29


def test_what_replaces_a_partition_makes_a_new_ring() -> None:
    table = made()
    first = ring(table)
    table.write(rows(500, 520), operation="insert_overwrite")
    table.upsert(rows(510, 540, 1))
    assert {node.value for node in ring(table).nodes} == {node.value for node in first.nodes}
    assert not {node.prefix for node in ring(table).nodes} & {node.prefix for node in first.nodes}
    table.write(None, operation="delete_partition", partitions=["y"])
    table.upsert(rows(0, 3, 0, "y"))
    assert len(values(table)) == 43
    table.write(rows(0, 9), operation="insert_overwrite_table")
    table.upsert(rows(5, 12, 1, "y"))
    assert len(values(table)) == 16


def test_rows_that_another_engine_would_lose_are_refused_until_the_partition_is_overwritten() -> None:
    table = made()
    ring_before = ring(table)
    table.write(rows(500, 520), operation="insert_overwrite")
    # What Hudi leaves: its groups are no nodes, and the ring's groups are hidden.
    table.context.storage.put(
        ring_path("x", ring(table).instant), Ring("x", ring_before.nodes, 4, ring(table).instant, 1).to_json()
    )
    with pytest.raises(CorruptTableError, match="insert_overwrite"):
        open_table(table.base_path).upsert(rows(510, 530))
    assert {found.check.value for found in open_table(table.base_path).doctor()} == {"WrongBucket"}
    fresh = open_table(table.base_path)
    fresh.write(rows(500, 520), operation="insert_overwrite")
    fresh.upsert(rows(510, 530, 1))
    assert len(values(fresh)) == 90


def test_a_ring_of_a_commit_that_was_archived_counts_if_the_files_are_its_nodes() -> None:
    table = made()
    table.cluster(SPLIT, force=True)
    for number in range(8):
        table.upsert(rows(0, 200, number))
        table.upsert(rows(0, 60, number, "y"))
    table.compact(force=True)
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    # Stands for what another engine's failed clustering leaves behind: a ring of no commit.
    stray = ring(table).changed(ring(table).split(0, ("s1", "s2")) or (), "20000101000000000")
    table.context.storage.put(ring_path("x", stray.instant), stray.to_json())
    fresh = open_table(table.base_path)
    assert len(ring(fresh).nodes) == 8
    fresh.upsert(rows(190, 210, 5))
    assert len(values(fresh)) == 270


def test_a_damaged_ring_is_named_and_readers_go_on_without_it() -> None:
    table = made()
    path = ring_path("x", "00000000000000")
    table.context.storage.put(path, b"{")
    with pytest.raises(CorruptTableError, match=path.replace(".", r"\.")):
        open_table(table.base_path).upsert(rows(0, 3))
    assert len(open_table(table.base_path).scan().to_arrow()) == 250
    assert path in {found.path for found in open_table(table.base_path).doctor()}


def test_a_table_that_stores_no_index_is_clustered_by_what_the_options_say(tmp_path: Path) -> None:
    table = made()
    told = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.bucket.index.max.num.buckets": "8",
        "hoodie.bucket.index.min.num.buckets": "1",
    }
    store = table.context.storage
    text = store.get(".hoodie/hoodie.properties").decode()
    kept = [line for line in text.splitlines() if "index" not in line and "colon" not in line]
    store.put(".hoodie/hoodie.properties", "\n".join(kept).encode())
    store.delete(KEPT)
    foreign = open_table(table.base_path)
    assert foreign.context.config.index is None
    with pytest.raises(InvalidOptionError, match="CONSISTENT_HASHING"):
        foreign.cluster(force=True)
    with pytest.raises(InvalidOptionError, match="CONSISTENT_HASHING"):
        foreign.upsert(rows(0, 3), options={"hoodie.index.type": "SIMPLE"})
    foreign.upsert(rows(190, 230), options=told)
    (split,) = foreign.cluster(told | SPLIT, force=True)
    assert split.figures["filesAfter"] > 8
    foreign.upsert(rows(190, 240), options=told)
    assert len(foreign.scan().to_arrow()) == 290


@pytest.mark.parametrize(
    ("more", "index", "error"),
    [
        ({"type": "CopyOnWrite"}, {}, UnsupportedTableError),
        ({}, {"buckets": 0}, InvalidRequestError),
        ({}, {"minBuckets": 5}, InvalidRequestError),
        ({}, {"maxBuckets": 3}, InvalidRequestError),
        ({}, {"type": "Bucket"}, InvalidRequestError),
    ],
)
def test_tables_that_cannot_be_are_refused(
    more: dict[str, str], index: dict[str, object], error: type[Exception]
) -> None:
    spec = {"type": "ConsistentBucket", "buckets": 4, "minBuckets": 2, "maxBuckets": 8} | index
    given: dict[str, Any] = {"record_key": "id", "type": "MergeOnRead", "index": spec, **more}
    with pytest.raises(error, match=r"(?i)bucket"):
        create_table(new_store().base_path, SCHEMA, **given)


def test_other_options_and_a_resize_are_refused_by_name() -> None:
    table = made()
    with pytest.raises(InvalidRequestError, match="cluster it"):
        table.resize_buckets(8)
    for key, value in (
        ("hoodie.bucket.index.split.threshold", "x"),
        ("hoodie.bucket.index.merge.threshold", "-1"),
        ("hoodie.bucket.index.min.num.buckets", "9"),
    ):
        with pytest.raises(InvalidOptionError, match=key):
            table.cluster({key: value}, force=True)
    with pytest.raises(InvalidOptionError, match="CONSISTENT_HASHING"):
        table.upsert(rows(0, 3), options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"})


def test_the_files_are_the_same_whatever_the_memory() -> None:
    table = made()
    plan = table.schedule_clustering(SPLIT, force=True)
    assert plan is not None
    table.run_clustering(plan.instant, max_memory=1 << 12, engine=LocalEngine(2))
    assert len(values(table)) == 250


HUDI = "org.apache.hudi.client.clustering."
PLAN_CLASS, RUN_CLASS = "hoodie.clustering.plan.strategy.class", "hoodie.clustering.execution.strategy.class"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.clustering.plan.strategy.sort.columns", "value"),
        ("hoodie.layout.optimize.strategy", "z-order"),
        (PLAN_CLASS, f"{HUDI}plan.strategy.SparkSingleFileSortPlanStrategy"),
        (RUN_CLASS, f"{HUDI}run.strategy.SparkSortAndSizeExecutionStrategy"),
    ],
)
def test_what_would_move_rows_out_of_their_buckets_or_sort_them_is_refused_before_anything_is_written(
    key: str, value: str
) -> None:
    table = new_table()
    with pytest.raises(InvalidOptionError, match=re.escape(key)):
        table.preview_clustering({key: value})
    with pytest.raises(InvalidOptionError, match=re.escape(key)):
        table.upsert(rows(0, 5), options={"hoodie.clustering.inline": "true", key: value})
    assert values(table) == {}


def test_the_classes_that_hudi_wants_for_such_tables_are_taken_and_are_for_no_others() -> None:
    classes = {
        PLAN_CLASS: f"{HUDI}plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
        RUN_CLASS: f"{HUDI}run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    }
    table = made()
    before = values(table)
    nodes = len(ring(table).nodes)
    assert table.cluster(SPLIT | classes) is not None
    assert (values(table), len(ring(table).nodes) > nodes) == (before, True)
    plain = create_table(new_store().base_path, SCHEMA, record_key="id", partition_by="day", index="Simple")
    plain.insert(rows(0, 5))
    with pytest.raises(InvalidOptionError, match="tables with a ConsistentBucket index"):
        plain.preview_clustering({PLAN_CLASS: classes[PLAN_CLASS]})
