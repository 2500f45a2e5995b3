"""`hudi_spark.write`: what Spark writes is what the local engine would have written.

Matrix: {bucket, simple, global simple, bloom, global bloom} × {partitioned, not}: insert, upsert
with duplicates and new keys, delete, compared with a dictionary. Then what is Spark's own: key
types and composite keys computed in the JVM and in Python, colons, time zones, task retries, errors
of tasks, replays, object stores.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import hudi_spark
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidDataError, InvalidOptionError, InvalidSchemaError
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.s3 import running_s3

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
INDEXES: dict[str, Any] = {
    "bucket": {"type": "Bucket", "buckets": 3},
    "simple": "Simple",
    "global": "GlobalSimple",
    "bloom": "Bloom",
    "global-bloom": "GlobalBloom",
}


def rows_of(table: HudiTable) -> set[tuple[Any, ...]]:
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert len(found) == len(set(found)), "a row came twice"
    return set(found)


def frame(spark: SparkSession, *rows: tuple[Any, ...], schema: str = "id string, city string, ts long") -> DataFrame:
    return spark.createDataFrame(list(rows), schema)


LONG = pytest.mark.at_scale(2)
WITH_PARTITIONS = ("bucket", "global", "global-bloom")
"""Of these `make test` writes a table with partitions, of the others one without."""


def layouts() -> Iterator[Any]:
    for index in INDEXES:
        for partitioned in (True, False):
            kept = partitioned is (index in WITH_PARTITIONS)
            yield pytest.param(
                index, partitioned, marks=() if kept else LONG, id=f"{index}-{'partitioned' if partitioned else 'flat'}"
            )


@pytest.mark.parametrize(("index", "partitioned"), list(layouts()))
def test_insert_upsert_and_delete_agree_with_a_dictionary(spark, tmp_path, index, partitioned):
    path = str(tmp_path / "t")
    table = create_table(
        path,
        SCHEMA,
        record_key="id",
        partition_by=["city"] if partitioned else [],
        index=INDEXES[index],
        ordering_fields="ts",
        merge_mode="EventTime",
    )
    model = {f"k{n:03d}": (f"k{n:03d}", f"c{n % 3}", n) for n in range(60)}
    hudi_spark.write(frame(spark, *model.values()), path, "insert")
    changes = [(f"k{n:03d}", f"c{n % 3}", 1000 + n) for n in range(0, 60, 7)]
    late = [("k001", "c1", -5)]
    new = [("n1", "c0", 1), ("n1", "c0", 3), ("n1", "c0", 2), ("n2", "c9", 1)]
    result = hudi_spark.write(frame(spark, *changes, *late, *new), path, "upsert")
    model |= {row[0]: row for row in [*changes, ("n1", "c0", 3), ("n2", "c9", 1)]}
    assert (result.rows_inserted, result.rows_updated) == (2, len(changes))
    gone = [model.pop(f"k{n:03d}") for n in range(0, 60, 10)]
    result = hudi_spark.write(frame(spark, *gone, ("unknown", "c1", 0)), path, "delete")
    assert result.rows_deleted == len(gone)
    assert rows_of(table) == set(model.values())


@pytest.mark.parametrize(
    ("version", "kind", "index"),
    [(9, "MergeOnRead", "bucket"), (8, "MergeOnRead", "simple"), (9, "CopyOnWrite", "bloom")],
)
def test_tasks_write_tables_of_later_versions(spark, tmp_path, version, kind, index):
    path = str(tmp_path / "t")
    table = create_table(
        path, SCHEMA, record_key="id", partition_by="city", index=INDEXES[index], ordering_fields="ts", type=kind, version=version,
    )  # fmt: skip
    model = {f"k{n:03d}": (f"k{n:03d}", f"c{n % 3}", n) for n in range(60)}
    hudi_spark.write(frame(spark, *model.values()), path, "insert")
    changes = [(f"k{n:03d}", f"c{n % 3}", 1000 + n) for n in range(0, 60, 7)]
    written = hudi_spark.write(frame(spark, *changes, ("k001", "c1", -5), ("n1", "c0", 1)), path, "upsert").instant
    model |= {row[0]: row for row in [*changes, ("n1", "c0", 1)]}
    gone = [model.pop(f"k{n:03d}") for n in range(0, 60, 10)]
    hudi_spark.write(frame(spark, *gone), path, "delete")
    assert rows_of(table) == set(model.values())
    logs = [name for name in (found.name for found in Path(path).rglob(".*.log.*")) if f"_{written}.log.1_" in name]
    assert bool(logs) is (kind == "MergeOnRead")
    commits = load_timeline(table.context).commits
    assert [i.completion for i in commits] == sorted({i.completion for i in commits if i.completion > i.time})


@pytest.mark.parametrize("by", ["write", "format"])
def test_a_write_that_does_not_pass_its_validators_is_not_there(spark, tmp_path, by):
    path = str(tmp_path / "t")
    table = create_table(
        path, SCHEMA, record_key="id", partition_by=["city"], index=INDEXES["simple"], ordering_fields="ts"
    )
    hudi_spark.write(frame(spark, ("a", "x", 1), ("b", "x", 1)), path, "insert")
    asked = {
        "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator",
        "hoodie.precommit.validators.equality.sql.queries": "select count(*) from <TABLE_NAME>",
    }

    def upsert(*found: tuple[str, str, int]) -> None:
        if by == "write":
            hudi_spark.write(frame(spark, *found), path, "upsert", options=asked)
        else:
            frame(spark, *found).write.format("hudi").options(**asked).mode("append").save(path)

    with pytest.raises((InvalidDataError, PySparkException), match="before 2, after 3"):
        upsert(("n", "x", 2))
    assert rows_of(table) == {("a", "x", 1), ("b", "x", 1)}
    upsert(("b", "x", 2))
    assert rows_of(table) == {("a", "x", 1), ("b", "x", 2)}


@pytest.mark.parametrize("index", [pytest.param("bucket", marks=LONG), "simple", "global"])
def test_an_insert_drops_rows_of_stored_keys_or_fails(spark, tmp_path, index):
    path = str(tmp_path / "t")
    table = create_table(
        path, SCHEMA, record_key="id", partition_by=["city"], index=INDEXES[index], ordering_fields="ts",
        type="MergeOnRead" if index == "simple" else "CopyOnWrite",
    )  # fmt: skip
    policy = "hoodie.datasource.insert.dup.policy"
    hudi_spark.write(frame(spark, *((f"k{n}", f"c{n % 2}", n) for n in range(9))), path, "insert")
    hudi_spark.write(frame(spark, ("k0", "c0", 0)), path, "delete")
    before = rows_of(table)
    new = [("k0", "c0", 50), ("n", "c1", 50), ("n2", "c3", 50)]
    incoming = frame(spark, ("k1", "c1", 50), ("k2", "c0", 50), *new)
    with pytest.raises(InvalidDataError, match="'k1' is stored already, as is 1 more key of the data"):
        hudi_spark.write(incoming, path, "insert", options={policy: "fail"})
    assert rows_of(table) == before
    result = hudi_spark.write(incoming, path, "insert", options={policy: "drop"})
    assert (result.rows_inserted, rows_of(table)) == (3, before | set(new))
    # The key of another partition is stored too if the index is global.
    hudi_spark.write(frame(spark, ("k1", "c0", 60)), path, "insert", options={policy: "drop"})
    assert rows_of(table) == before | set(new) | (set() if index == "global" else {("k1", "c0", 60)})


@pytest.mark.parametrize("index", [pytest.param("bucket", marks=LONG), "simple", pytest.param("bloom", marks=LONG)])
def test_updates_of_a_merge_on_read_table_go_to_logs_and_every_query_sees_its_rows(spark, tmp_path, index):
    path = str(tmp_path / "t")
    create_table(
        path, SCHEMA, record_key="id", partition_by=["city"], index=INDEXES[index], ordering_fields="ts",
        type="MergeOnRead", merge_mode="EventTime",
    )  # fmt: skip
    model = {f"k{n:03d}": (f"k{n:03d}", f"c{n % 3}", n) for n in range(30)}
    first = hudi_spark.write(frame(spark, *model.values()), path, "insert")
    base = set(model.values())
    changes = [(f"k{n:03d}", f"c{n % 3}", 1000 + n) for n in range(0, 30, 7)]
    hudi_spark.write(frame(spark, *changes, ("k001", "c1", -5)), path, "upsert")
    model |= {row[0]: row for row in changes}
    gone = [model.pop(f"k{n:03d}") for n in range(0, 30, 10)]
    hudi_spark.write(frame(spark, *gone), path, "delete")
    assert any(row["log_files"] for row in open_table(path).files().to_pylist())
    seen = {query: {tuple(row) for row in hudi_spark.read(spark, path, query=query).collect()}
            for query in ("snapshot", "read_optimized")}  # fmt: skip
    assert seen == {"snapshot": set(model.values()), "read_optimized": base}
    changed = hudi_spark.read(spark, path, query="incremental", since=first.moment).collect()
    assert {tuple(row) for row in changed} == {row for row in changes if row[0] in model}
    told = hudi_spark.read(spark, path, query="cdc", since=first.moment).collect()
    assert {tuple(row["before"]) for row in told if row["op"] == "d"} == set(gone)
    assert {tuple(row["after"]) for row in told if row["op"] == "u"} == set(changes)
    assert len(told) == len(gone) + len(changes)
    asked = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    hudi_spark.write(frame(spark, ("k001", "c1", 5000)), path, "upsert", options=asked)
    assert not any(row["log_files"] for row in open_table(path).files().to_pylist() if row["latest"])
    expected = set(model.values()) - {model["k001"]} | {("k001", "c1", 5000)}
    assert {tuple(row) for row in hudi_spark.read(spark, path).collect()} == expected


@pytest.mark.parametrize("way", ["ranges", "filters-alone", "all-keys"])
def test_by_whatever_way_a_bloom_index_meets_files_every_key_is_found(spark, tmp_path, monkeypatch, way):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", partition_by=["city"], index="Bloom")
    plain, odd = [f"k{n:03d}" for n in range(40)], ["\ue000a", "\U0001f600b", "é", "k\U0001f600"]
    model = {key: (key, f"c{number % 2}", number) for number, key in enumerate([*plain, *odd])}
    options = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.index.bloom.num_entries": "10",
        "hoodie.index.bloom.fpp": "0.1",
    }
    for start in range(0, len(model), 11):
        table.insert(pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True))
                                           for row in list(model.values())[start : start + 11]], schema=SCHEMA),
                     options=options)  # fmt: skip
    if way == "all-keys":
        monkeypatch.setattr("hudi_spark.routing.bloom_lookup.PAIRS_MAX", 0)
    changes = {key: (key, model[key][1], 100) for key in [*plain[::3], *odd]} | {
        "new": ("new", "c0", 1),
        "z": ("z", "c9", 2),
    }
    asked = options | {"hoodie.bloom.index.prune.by.ranges": str(way != "filters-alone").lower()}
    result = hudi_spark.write(frame(spark, *changes.values()), path, "upsert", options=asked)
    assert (result.rows_updated, result.rows_inserted) == (len(changes) - 2, 2)
    assert rows_of(table) == set((model | changes).values())


def test_spark_clusters_after_its_commit_every_group_a_task(spark, tmp_path):
    path = str(tmp_path / "t")
    create_table(path, SCHEMA, record_key="id", partition_by="city")
    asked = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.clustering.plan.strategy.sort.columns": "ts",
    }
    given = [[(f"k{version}{n}", f"c{n % 2}", 10 - version) for n in range(4)] for version in range(2)]
    for batch in given:
        hudi_spark.write(frame(spark, *batch), path, "insert", options=asked)
    assert [(row["partition"], row["latest"]) for row in open_table(path).files().to_pylist() if row["latest"]] == [
        ("c0", True), ("c1", True),
    ]  # fmt: skip
    assert {tuple(row) for row in hudi_spark.read(spark, path).collect()} == {row for batch in given for row in batch}
    with pytest.raises(InvalidOptionError, match="exclude each other"):
        hudi_spark.write(
            frame(spark, *given[0]), path, "insert", options=asked | {"hoodie.clustering.schedule.inline": "true"}
        )


def test_spark_logs_the_changes_of_a_table_that_asks_for_it_and_tells_them(spark, tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.table.cdc.enabled": "true"}
    create_table(path, SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"], options=options)
    hudi_spark.write(frame(spark, ("a", "x", 1), ("b", "x", 1), ("c", "y", 1)), path, "insert")
    second = hudi_spark.write(frame(spark, ("a", "x", 2), ("d", "x", 2)), path, "upsert")
    assert list(tmp_path.rglob("*.cdc"))
    told = hudi_spark.read(spark, path, query="cdc", columns=["id", "ts"]).collect()
    assert {(row["op"], row["before"] and tuple(row["before"]), tuple(row["after"])) for row in told} == {
        ("i", None, ("a", 1)), ("i", None, ("b", 1)), ("i", None, ("c", 1)), ("u", ("a", 1), ("a", 2)), ("i", None, ("d", 2)),
    }  # fmt: skip
    assert {row["ts_ms"] for row in told if row["op"] == "u"} == {second.instant}
    with pytest.raises(InvalidOptionError, match="filter and meta do not go with query='cdc'"):
        hudi_spark.read(spark, path, query="cdc", filter="ts > 1")


def test_a_key_that_changes_its_partition_under_a_global_index_is_deleted_in_the_old_one(spark, tmp_path):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", partition_by="city", index="GlobalSimple")
    hudi_spark.write(frame(spark, ("a", "x", 1), ("b", "x", 1)), path, "insert")
    hudi_spark.write(frame(spark, ("a", "y", 2)), path, "upsert")
    assert rows_of(table) == {("a", "y", 2), ("b", "x", 1)}


def test_spark_and_the_local_engine_choose_the_same_bucket_for_every_key(spark, tmp_path):
    keys = ["", "a", "polygenelubricants", "\u00e9\u4e2d", "\U0001f600", "a:b", "id:k000", "x" * 300][1:]
    ours, theirs = str(tmp_path / "spark"), str(tmp_path / "local")
    for path in (ours, theirs):
        create_table(path, SCHEMA, record_key="id", index={"type": "Bucket", "buckets": 7})
    rows = [(key, "c", number) for number, key in enumerate(keys)]
    hudi_spark.write(frame(spark, *rows), ours, "insert")
    local = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    open_table(theirs).write(local, operation="insert")
    assert _buckets(ours) == _buckets(theirs)


def _buckets(path: str) -> dict[str, str]:
    found = open_table(path).scan(["_hoodie_record_key", "_hoodie_file_name"]).to_arrow().to_pylist()
    return {row["_hoodie_record_key"]: row["_hoodie_file_name"][:8] for row in found}


def test_timestamps_mean_the_same_moment_whatever_the_session_zone(spark, tmp_path):
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    path = str(tmp_path / "t")
    by_hour = {"field": "at", "type": "Timestamp", "format": "yyyy/MM/dd/HH"}
    table = create_table(path, schema, record_key="id", partition_by=[by_hour], index=INDEXES["bucket"])
    moment = dt.datetime(2013, 3, 10, 7, 30, tzinfo=dt.UTC)
    data = spark.createDataFrame([("a", moment)], "id string, at timestamp")
    hudi_spark.write(data, path, "upsert")
    assert table.scan().to_arrow().to_pylist() == [{"id": "a", "at": moment}]
    assert FileSystemView(table.context, load_timeline(table.context)).partitions() == ["2013/03/10/07"]


def test_composite_keys_are_written_as_hudi_writes_them(spark, tmp_path):
    path = str(tmp_path / "t")
    schema = pa.schema([("a", pa.string()), ("b", pa.int32()), ("v", pa.int64())])
    table = create_table(path, schema, record_key=["a", "b"], index={"type": "Bucket", "buckets": 4})
    rows = [("x", 1, 1), (None, 2, 2), ("", 3, 3)]
    hudi_spark.write(frame(spark, *rows, schema="a string, b int, v long"), path, "upsert")
    keys = table.scan(["_hoodie_record_key"]).to_arrow().column(0).to_pylist()
    assert sorted(keys) == ["a:__empty__,b:3", "a:__null__,b:2", "a:x,b:1"]


def test_null_keys_are_refused_with_their_count_before_anything_is_written(spark, tmp_path):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", index="Simple")
    with pytest.raises(InvalidDataError, match=r"'id'.*2 rows"):
        hudi_spark.write(frame(spark, (None, "x", 1), (None, "x", 2), ("a", "x", 3)), path, "upsert")
    assert load_timeline(table.context).instants == ()


def test_a_missing_key_column_is_refused_by_name(spark, tmp_path):
    path = str(tmp_path / "t")
    create_table(path, SCHEMA, record_key="id", index="Simple")
    with pytest.raises(InvalidSchemaError, match="id"):
        hudi_spark.write(frame(spark, ("x", 1), schema="city string, ts long"), path, "upsert")


def test_a_batch_that_was_committed_changes_nothing_when_it_comes_again(spark, tmp_path):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", index="Simple")
    first = hudi_spark.write(frame(spark, ("a", "x", 1)), path, "insert", batch="feed/1")
    again = hudi_spark.write(frame(spark, ("a", "x", 1)), path, "insert", batch="feed/1")
    assert again.replayed
    assert again.instant == first.instant
    assert rows_of(table) == {("a", "x", 1)}


def test_a_task_that_fails_after_its_file_and_is_retried_leaves_one_file(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", index={"type": "Bucket", "buckets": 1})
    flag = tmp_path / "failed-once"
    monkeypatch.setattr("hudi_spark.writer._write_group", _FailsOnce(str(flag)))
    hudi_spark.write(frame(spark, ("a", "x", 1)), path, "upsert")
    assert flag.exists(), "the first attempt did not fail"
    assert rows_of(table) == {("a", "x", 1)}
    assert len(list(Path(path).glob("*.parquet"))) == 1


class _FailsOnce:
    """Writes the file group, then fails if nobody has before: the retry writes it again under
    another token."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def __call__(self, batches: Any, **more: Any) -> Any:
        from hudi_spark.writer import _write_group

        results = list(_write_group(batches, **more))
        if not Path(self.flag).exists():
            Path(self.flag).touch()
            raise RuntimeError("the executor died")
        return iter(results)


def test_overwrites_and_dropped_partitions(spark, tmp_path):
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"])
    hudi_spark.write(frame(spark, ("a", "x", 1), ("b", "y", 1), ("c", "z", 1)), path, "bulk_insert")
    hudi_spark.write(frame(spark, ("d", "x", 2)), path, "insert_overwrite")
    assert rows_of(table) == {("d", "x", 2), ("b", "y", 1), ("c", "z", 1)}
    hudi_spark.write(None, path, "delete_partition", partitions=["y"])
    assert rows_of(table) == {("d", "x", 2), ("c", "z", 1)}
    hudi_spark.write(frame(spark, ("e", "w", 3)), path, "insert_overwrite_table")
    assert rows_of(table) == {("e", "w", 3)}


@pytest.mark.s3
def test_a_table_on_s3_is_written_and_read_without_a_hadoop_file_system(spark):
    with running_s3() as server:
        check_s3(spark, server.new_uri(), server.options)


def check_s3(spark: SparkSession, uri: str, options: dict[str, str]) -> None:
    table = create_table(uri, SCHEMA, record_key="id", index=INDEXES["bucket"], storage_options=options)
    hudi_spark.write(frame(spark, ("a", "x", 1), ("b", "x", 2)), table, "upsert")
    read = hudi_spark.read(spark, uri, storage_options=options)
    assert {tuple(row) for row in read.collect()} == {("a", "x", 1), ("b", "x", 2)}
    loaded = spark.read.format("hudi").options(**{f"storage.{k}": v for k, v in options.items()}).load(uri)
    assert loaded.where(sf.col("ts") > 1).count() == 1
