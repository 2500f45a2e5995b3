"""`df.write.format("hudi")`: Hudi's options make the table, its operations and Spark's modes do
what they say, in one commit.

Aspects: equality with `hudi_spark.write`; every operation and mode; volume; what dies leaves
nothing; what is refused before a row is staged; both names of the format. Most of it drives the
writer as Spark does, without Spark.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import hudi_spark
from hudi_spark.datasource.format_options import format_options
from hudi_spark.datasource.writes import RowsWriter, Staged, staged
from hudi_table.api import create_table, open_table
from hudi_table.errors import HudiError, InvariantError, UnsupportedTableError
from hudi_table.model.names import META_COLUMNS
from hudi_table.model.table.config import TableType
from tests.support import golden
from tests.support.scale import scaled

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
KEYS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
OPERATION = "hoodie.datasource.write.operation"
TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
Row = tuple[Any, ...]
Options = dict[str, str]
NONE: Options = {}


def held(path: Path | str) -> set[Row]:
    return {(row["id"], row["city"], row["ts"]) for row in open_table(str(path)).scan().to_arrow().to_pylist()}


def operations(path: Path | str) -> list[str]:
    """Those of the table's commits, oldest first, without the empty one that every table begins
    with."""
    return [row["operation"] for row in reversed(open_table(str(path)).history().to_pylist())][1:]


def leftover(path: Path) -> list[str]:
    return [found.name for found in path.rglob("*") if found.is_file() and found.parent.name == ".staged"]


def writer(
    path: Path, operation: str = "upsert", given: Options = NONE, *, overwrite: bool = False, **more: str
) -> RowsWriter:
    options = format_options(KEYS | {"path": str(path), OPERATION: operation} | given | more)
    return RowsWriter(options, from_arrow_schema(SCHEMA), overwrite)


def batch(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def write(
    path: Path, *rows: Row, operation: str = "upsert", given: Options = NONE, overwrite: bool = False, **more: str
) -> None:
    """As Spark does it: two tasks stage, one process commits."""
    made = writer(path, operation, given, overwrite=overwrite, **more)
    half = len(rows) // 2
    made.commit([made.write(iter([batch(*part)])) for part in (rows[:half], rows[half:])])


class TestWriter:
    """The writer as Spark calls it."""

    def test_every_operation_does_what_write_hudi_does(self, tmp_path: Path) -> None:
        ours, theirs = tmp_path / "format", tmp_path / "write"
        steps: list[tuple[Any, list[Row]]] = [
            ("insert", [(f"k{n:02d}", f"c{n % 3}", n) for n in range(20)]),
            ("upsert", [("k03", "c0", 100), ("k04", "c1", -5), ("n1", "c0", 1), ("n1", "c0", 3)]),
            ("delete", [("k00", "c0", 0), ("unknown", "c1", 0)]),
            ("bulk_insert", [("more", "c3", 1)]),
            ("insert_overwrite", [("only", "c2", 1)]),
            ("delete_partition", [("any", "c1", 0)]),
            ("insert_overwrite_table", [("last", "c9", 7), ("last2", "c8", 7)]),
        ]
        table = create_table(
            theirs,
            SCHEMA,
            record_key="id",
            partition_by="city",
            ordering_fields="ts",
            index={"type": "Bucket", "buckets": 2},
        )
        for operation, rows in steps:
            write(ours, *rows, operation=operation, given=BUCKETS)
            if operation == "delete_partition":
                table.write(None, operation=operation, partitions=["c1"])
            else:
                table.write(pa.Table.from_batches([batch(*rows)]), operation=operation)
            assert held(ours) == held(theirs), operation
            assert leftover(ours) == []
        assert operations(ours) == operations(theirs) == [operation.upper() for operation, _ in steps]

    def test_an_insert_that_drops_duplicates_needs_no_operation(self, tmp_path: Path) -> None:
        path, drop = tmp_path / "t", {"hoodie.datasource.write.insert.drop.duplicates": "true"}
        for rows in ([("a", "x", 1), ("b", "y", 1)], [("a", "x", 2), ("c", "y", 2)]):
            options = format_options(KEYS | BUCKETS | drop | {"path": str(path)})
            made = RowsWriter(options, from_arrow_schema(SCHEMA), False)
            made.commit([made.write(iter([batch(*rows)]))])
        assert held(path) == {("a", "x", 1), ("b", "y", 1), ("c", "y", 2)}
        assert operations(path) == ["INSERT", "INSERT"]

    @pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
    @pytest.mark.parametrize("version", ["8", "9"])
    def test_an_option_makes_a_table_of_a_later_version(self, version: str, kind: str, tmp_path: Path) -> None:
        path = tmp_path / "t"
        given = BUCKETS | {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
        write(path, ("a", "x", 1), ("b", "y", 1), operation="insert", given=given)
        write(path, ("a", "x", 2), ("c", "y", 2), given=given)
        write(path, ("b", "y", 3), operation="delete", given=given)
        assert held(path) == {("a", "x", 2), ("c", "y", 2)}
        assert open_table(path).context.config.version == int(version)
        logs = list(path.rglob(".*.log.1_*"))
        assert bool(logs) is (kind == "MERGE_ON_READ")

    def test_a_table_that_merges_in_a_way_that_is_not_written_is_refused_before_a_row_is_staged(
        self, tmp_path: Path
    ) -> None:
        path = golden.unpack("v9_multi_order", tmp_path).base
        properties = path / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("=EVENT_TIME_ORDERING", "=CUSTOM"))
        before = sorted(str(found) for found in path.rglob("*"))
        with pytest.raises(UnsupportedTableError, match="merges rows in table version 9 by a class of its own"):
            write(path, ("k000", "sf", 1), given={"hoodie.table.name": "multi_order"})
        assert sorted(str(found) for found in path.rglob("*")) == before

    def test_the_four_modes(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        write(path, ("a", "x", 1), ("b", "y", 1), saveMode="errorifexists")
        with pytest.raises(HudiError, match=r"there is a table 'rides' at .* already"):
            writer(path, saveMode="error")
        write(path, ("a", "x", 9), saveMode="ignore")
        assert held(path) == {("a", "x", 1), ("b", "y", 1)}
        write(path, ("a", "x", 5), ("a", "x", 6), ("c", "z", 2), saveMode="append")
        assert held(path) == {("a", "x", 6), ("b", "y", 1), ("c", "z", 2)}
        write(path, ("d", "x", 1), ("d", "x", 2), overwrite=True)
        assert held(path) == {("d", "x", 2)}
        assert operations(path) == ["UPSERT", "UPSERT", "INSERT_OVERWRITE_TABLE"]
        write(path, ("e", "x", 1), ("e", "x", 2), operation="insert", overwrite=True)
        assert held(path) == {("e", "x", 1), ("e", "x", 2)}
        write(tmp_path / "new", ("a", "x", 1), saveMode="ignore")
        assert held(tmp_path / "new") == {("a", "x", 1)}

    def test_a_table_that_appears_meanwhile_counts_as_there(self, tmp_path: Path) -> None:
        late = {mode: writer(tmp_path / mode, saveMode=mode) for mode in ("append", "errorifexists", "ignore")}
        for mode, made in late.items():
            messages: list[Any] = [made.write(iter([batch(("b", "x", 1))]))]
            write(tmp_path / mode, ("a", "x", 1))
            if mode == "errorifexists":
                with pytest.raises(HudiError, match="already, and the mode is errorifexists"):
                    made.commit(messages)
            else:
                made.commit(messages)
            assert {row[0] for row in held(tmp_path / mode)} == ({"a", "b"} if mode == "append" else {"a"})
        assert leftover(tmp_path) == []

    def test_an_overwrite_may_keep_the_other_partitions(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        write(path, ("a", "x", 1), ("b", "y", 1))
        write(path, ("c", "x", 1), operation="insert_overwrite", overwrite=True)
        assert held(path) == {("c", "x", 1), ("b", "y", 1)}

    def test_partitions_are_dropped_by_name_pattern_or_row(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        rows = [("a", "x1", 1), ("b", "x2", 1), ("c", "y", 1), ("d", "z", 1), ("e", "w", 1)]
        write(path, *rows)
        write(path, operation="delete_partition", given={TO_DELETE: "y"})
        write(path, operation="delete_partition", given={TO_DELETE: "x*,nothing*"})
        write(path, ("f", "w", 0), operation="delete_partition")
        assert held(path) == {("d", "z", 1)}
        for wrong, told in (("q*", "matches no partition; there are z$"), ("q", "there is no partition 'q'")):
            with pytest.raises(HudiError, match=told):
                writer(path, "delete_partition", given={TO_DELETE: wrong})

    def test_a_batch_name_is_written_once(self, tmp_path: Path) -> None:
        for _ in range(2):
            write(tmp_path / "t", ("a", "x", 1), operation="insert", batch="one")
        assert open_table(str(tmp_path / "t")).scan().count() == 1

    def test_rows_of_a_killed_write_go_with_the_next_one_when_they_are_old(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        killed = writer(path)
        killed.write(iter([batch(("a", "x", 1))]))
        [young] = leftover(path)
        folder = path / ".hoodie" / ".staged"
        folder.joinpath("old.arrow").touch()
        moment = datetime.now(UTC).timestamp() - 90_000
        os.utime(folder / "old.arrow", times=(moment, moment))
        assert not (path / ".hoodie" / "hoodie.properties").exists()
        write(path, ("b", "x", 1))
        assert leftover(path) == [young]
        assert held(path) == {("b", "x", 1)}
        killed.abort([])
        assert leftover(path) == []

    @pytest.mark.parametrize(
        ("told", "given"),
        [
            ("'upset' is none of upsert", {OPERATION: "upset"}),
            ("is of operation delete_partition, and this is upsert", {TO_DELETE: "x"}),
            ("the option columns makes this a view of a part", {"columns": "id"}),
            ("the option asof makes this a view of a part", {"asOf": "20260101"}),
            ("unknown option 'mergeschema'", {"mergeSchema": "true"}),
            ("did you mean 'hoodie.upsert.shuffle.parallelism'", {"hoodie.upsert.shufle.parallelism": "2"}),
            ("the operation is given twice: insert, upsert", {"Operation": "insert"}),
            ("'upsert' is none of append", {"saveMode": "upsert"}),
            ("'hoodie.datasource.query.type' is refused", {"hoodie.datasource.query.type": "read_optimized"}),
            ("=drop (or ", {"hoodie.datasource.insert.dup.policy": "drop", OPERATION: "upsert"}),
            ("recordkey.field=city contradicts the table", {"hoodie.datasource.write.recordkey.field": "city"}),
        ],
    )
    def test_what_cannot_be_written_so_is_refused_before_a_row_is_staged(
        self, told: str, given: dict[str, str], tmp_path: Path
    ) -> None:
        create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", ordering_fields="ts", name="rides")
        with pytest.raises(HudiError) as raised:
            writer(tmp_path / "t", given=given)
        assert told in raised.value.message

    @pytest.mark.parametrize(
        ("told", "operation", "given"),
        [
            ("there is no Hudi table at", "delete", {}),
            ("needs a record key", "upsert", {"hoodie.datasource.write.recordkey.field": ""}),
            ("record_key names 'nope'", "upsert", {"hoodie.datasource.write.recordkey.field": "nope"}),
            ("is none of zstd", "upsert", {"hoodie.parquet.compression.codec": "zip"}),
            ("1 to 22", "upsert", {"hoodie.lakeops.parquet.compression.level": "99"}),
            ("exclude each other", "upsert", {"hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"}),
            ("days.retain: for how many days", "upsert", {"hoodie.partition.ttl.inline": "true"}),
        ],
    )  # fmt: skip
    def test_a_table_that_cannot_be_made_is_refused_before_a_row_is_staged(
        self, told: str, operation: str, given: dict[str, str], tmp_path: Path
    ) -> None:
        with pytest.raises(HudiError, match=told.replace("is none of zstd", r"is none of .*zstd")):
            writer(tmp_path / "t", operation, given)
        assert not (tmp_path / "t").exists()

    def test_a_delete_does_not_go_with_overwrite_nor_a_table_with_other_files(self, tmp_path: Path) -> None:
        with pytest.raises(HudiError, match="operation delete goes with mode append alone"):
            writer(tmp_path / "t", "delete", overwrite=True)
        (tmp_path / "data.csv").touch()
        with pytest.raises(HudiError, match=r"holds something else than a Hudi table \(data.csv\)"):
            writer(tmp_path)

    def test_a_commit_without_the_rows_of_a_task_is_refused(self) -> None:
        with pytest.raises(InvariantError, match="1 of 2 tasks have staged nothing"):
            staged([Staged("a"), None])


def frame(spark: SparkSession, *rows: Row) -> DataFrame:
    return spark.createDataFrame(list(rows), "id string, city string, ts long").repartition(2)


def saving(data: DataFrame, **options: str) -> DataFrameWriter:
    return data.write.format("hudi").options(**KEYS, **options)


@pytest.mark.spark
def test_hudis_options_make_the_table_that_they_describe_under_both_names(spark, tmp_path):
    path = str(tmp_path / "t")
    asked = BUCKETS | {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    saving(frame(spark, ("a", "x", 1), ("a", "x", 0), ("b", "y", 1)), **asked).mode("append").save(path)
    config = open_table(path).context.config
    assert (config.name, config.record_key, config.partition_fields, config.ordering_fields) == (
        "rides", ("id",), ("city",), ("ts",),
    )  # fmt: skip
    assert (config.type, config.hive_style) == (TableType.MERGE_ON_READ, True)
    assert config.index is not None
    assert config.index.buckets == 2
    read = spark.read.format("org.apache.hudi").load(path)
    assert read.columns == [*META_COLUMNS, "id", "city", "ts"]
    # A row that was read comes back with Hudi's columns; they are made anew.
    later = read.withColumn("ts", read.ts + 1)
    later.where("id = 'a'").write.format("org.apache.hudi").mode("append").save(path)
    hudi_spark.write(later.where("id = 'b'"), path)
    assert open_table(path).schema().names == ["id", "city", "ts"]
    assert held(path) == {("a", "x", 2), ("b", "y", 2)}


@pytest.mark.spark
def test_a_registered_session_has_every_mode_of_spark(spark, tmp_path):
    hudi_spark.register(spark)
    hudi_spark.register(spark)
    path = str(tmp_path / "t")
    one, two = frame(spark, ("a", "x", 1)), frame(spark, ("a", "x", 2))
    saving(one).save(path)  # Spark's default mode, errorifexists
    with pytest.raises(Exception, match=r"there is a table 'rides' at .* already"):
        saving(two).save(path)
    used = saving(two).mode("ignore")
    used.save(path)
    assert held(path) == {("a", "x", 1)}
    used.mode("append").save(path)
    assert held(path) == {("a", "x", 2)}
    two.write.mode("ignore").parquet(str(tmp_path / "parquet"))


@pytest.mark.spark
def test_any_volume_is_one_commit(spark, tmp_path):
    path, count = tmp_path / "t", scaled(600_000)
    wide = spark.range(count).selectExpr("concat('k', id) id", "'x' city", "id ts", "repeat(uuid(), 3) note")
    saving(wide, **{OPERATION: "bulk_insert"}).mode("append").save(str(path))
    assert (open_table(str(path)).scan().count(), operations(path)) == (count, ["BULK_INSERT"])
    assert leftover(path) == []


@pytest.mark.spark
def test_a_job_that_fails_leaves_nothing(spark, tmp_path):
    broken = frame(spark, ("a", "x", 1), ("b", "y", 2)).selectExpr(
        "id", "city", "if(ts > 1, cast(raise_error('no such luck') as long), ts) ts"
    )
    with pytest.raises(Exception, match="no such luck"):
        saving(broken).mode("append").save(str(tmp_path / "t"))
    assert not [found for found in tmp_path.rglob("*") if found.is_file()]
