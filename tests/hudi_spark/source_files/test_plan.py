"""Which frames tasks read as files, and that they read of them what Spark reads; which are left to
Spark, each for its reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from hudi_spark.source_files import plan
from hudi_spark.source_files.plan import file_scan
from tests.hudi_spark.source_files.files import COLUMNS, flat_rows, read, written

pytestmark = pytest.mark.spark
Change = Callable[[DataFrame], DataFrame]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files of flat columns, in row groups of 25 rows."""
    return written(tmp_path_factory.mktemp("flat") / "files", flat_rows(), flat_rows(60, seed=4), row_group_size=25)


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Settings of the session, for one test."""
    changed: dict[str, str | None] = {}

    def changing(name: str, value: str) -> None:
        changed[name] = spark.conf.get(name, None)
        spark.conf.set(name, value)

    yield changing
    for name, value in changed.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def as_spark_reads(df: DataFrame) -> list[tuple[Any, ...]]:
    return texts(df.toArrow())


def texts(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in a fixed order; NaN is itself, and a zero shows its sign."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.itercolumns()
    ]
    return sorted(zip(*(map(repr, column.to_pylist()) for column in columns), strict=True))


def check(df: DataFrame) -> None:
    scan = file_scan(df)
    assert scan is not None
    found = read(scan)
    assert found.schema.names == df.columns
    assert texts(found) == as_spark_reads(df)


CHOSEN: dict[str, Change] = {
    "all": lambda df: df,
    "some in another order": lambda df: df.select("ts", "name", "id"),
    "renamed": lambda df: df.withColumnRenamed("name", "called").select(
        "id", sf.col("whole").alias("number"), "called"
    ),
    "twice": lambda df: df.select("id", sf.col("id").alias("again")),
    "names that change places": lambda df: df.select(sf.col("id").alias("name"), sf.col("name").alias("id")),
    "dropped": lambda df: df.drop("raw", "money"),
    "filter of what is not taken": lambda df: df.where("whole > 0").select("id"),
    "filters between projections": lambda df: df.where("whole > 0").select("id", "name").where("name != 'a'"),
    "none left": lambda df: df.where("id = 'no such key'"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_projections_that_choose_and_rename_are_taken(spark, folder, name):
    check(CHOSEN[name](spark.read.parquet(folder)))


def test_types_are_those_that_spark_gives_to_python(spark, folder):
    def kinds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"kinds": [str(batch.schema.types)]})

    df = spark.read.parquet(folder)
    scan = file_scan(df)
    assert scan is not None
    found = {row["kinds"] for row in df.mapInArrow(kinds, "kinds string").collect()}
    assert found == {str(read(scan).schema.types)} == {str(scan.columns.types)}


FILTERS = (
    "flag", "not flag", "flag = true", "flag is null", "flag is not null or name = 'a'",
    "tiny > 0Y", "small <= 5S", "0 < whole", "whole >= 0", "whole = 1", "whole != 1", "not (whole < 1)",
    "large < 7L", "large = 9223372036854775807", "money > 0.00BD", "money = -1.50BD", "wide < 0",
    "name = 'Ä'", "name > 'Z'", "name <= 'a'", "name != ''", "name in ('a', 'zzz')", "name not in ('a', 'zzz')",
    "whole in (1, 2)", "whole > 0 and name = 'a'", "whole > 0 or name = 'a'", "not (whole > 0 or name = 'a')",
    "not (whole > 0 and name is null)", "day < date'1970-01-01'", "day >= date'1582-10-15'", "day = date'2022-01-08'",
    "moment > timestamp'2023-11-14 22:00:00 UTC'", "moment = timestamp'1970-01-01 00:00:00 UTC'",
    "clock >= timestamp_ntz'1970-01-01 00:00:00'", "single is null", "double is not null and raw is null",
)  # fmt: skip


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_mean_what_they_mean_to_spark(spark, folder, condition):
    df = spark.read.parquet(folder).where(condition).select("id")
    check(df)
    assert 0 < df.count() < 120


LEFT: dict[str, Change] = {
    "a value is computed": lambda df: df.withColumn("whole", sf.col("whole") + 1),
    "a cast": lambda df: df.withColumn("whole", sf.col("whole").cast("long")),
    "a constant": lambda df: df.withColumn("more", sf.lit(1)),
    "the name of the file": lambda df: df.withColumn("file", sf.input_file_name()),
    "metadata of the file": lambda df: df.select("id", "_metadata.file_name"),
    "a limit": lambda df: df.limit(5),
    "a sort": lambda df: df.orderBy("id"),
    "distinct rows": lambda df: df.distinct(),
    "a union": lambda df: df.union(df),
    "a join": lambda df: df.join(df.select("id"), "id"),
    "a sample": lambda df: df.sample(fraction=0.5, seed=1),
    "an aggregate": lambda df: df.groupBy("id").agg(sf.max("ts").alias("ts")),
    "python": lambda df: df.mapInArrow(lambda batches: batches, df.schema),
    "a filter of fractions": lambda df: df.where("double > 0"),
    "a filter of bytes": lambda df: df.where("raw = X'61'"),
    "a filter of two columns": lambda df: df.where("whole = tiny"),
    "a filter of another type": lambda df: df.where("cast(whole as string) = '1'"),
    "a pattern": lambda df: df.where("name like 'a%'"),
    "a function": lambda df: df.where("length(name) = 1"),
    "a long list": lambda df: df.where(sf.col("ts").isin(list(range(50)))),
    "chance": lambda df: df.where(sf.rand(1) < 0.5),
}


@pytest.mark.parametrize("reason", LEFT)
def test_what_arrow_does_not_say_the_same_way_is_left_to_spark(spark, folder, reason):
    assert file_scan(LEFT[reason](spark.read.parquet(folder))) is None


def test_frames_of_no_files_are_left_to_spark(spark, folder, tmp_path):
    df = spark.read.parquet(folder).select("id", "ts")
    df.write.json(str(tmp_path / "json"))
    assert file_scan(spark.read.json(str(tmp_path / "json"))) is None
    assert file_scan(spark.createDataFrame([("a", 1)], "id string, ts long")) is None
    cached = df.where("ts > 3").persist()
    try:
        assert file_scan(spark.read.parquet(folder).select("id", "ts").where("ts > 3")) is None
    finally:
        cached.unpersist()
    remote: Any = object()
    assert file_scan(remote) is None, "of Spark Connect there is no plan to see"


def test_folders_that_hold_values_and_tables_of_a_catalog_are_left_to_spark(spark, folder, tmp_path):
    df = spark.read.parquet(folder).select("id", "city", "ts")
    df.write.partitionBy("city").parquet(str(tmp_path / "folders"))
    assert file_scan(spark.read.parquet(str(tmp_path / "folders"))) is None
    df.write.bucketBy(2, "id").option("path", str(tmp_path / "buckets")).saveAsTable("bucketed_files")
    try:
        assert file_scan(spark.table("bucketed_files")) is None
    finally:
        spark.sql("drop table bucketed_files")


@pytest.mark.parametrize("option", ["mergeSchema", "ignoreCorruptFiles", "ignoreMissingFiles", "datetimeRebaseMode"])
def test_options_that_change_what_is_read_are_left_to_spark(spark, folder, option):
    value = "CORRECTED" if option == "datetimeRebaseMode" else "true"
    assert file_scan(spark.read.option(option, value).parquet(folder)) is None
    assert file_scan(spark.read.option("recursiveFileLookup", "true").parquet(folder)) is not None


@pytest.mark.parametrize("name", [name for name in plan._SETTINGS if "archive" not in name])
def test_settings_that_change_what_is_read_are_left_to_spark(spark, folder, settings, name):
    settings(name, "true")
    assert file_scan(spark.read.parquet(folder)) is None


def test_dates_of_files_that_do_not_say_whose_calendar_they_follow(spark, folder, tmp_path, settings):
    spark.read.parquet(folder).drop("moment").write.parquet(str(tmp_path / "by-spark"))
    settings(plan._REBASE, "LEGACY")
    assert file_scan(spark.read.parquet(folder)) is None
    assert file_scan(spark.read.parquet(folder).select("id", "ts")) is not None
    check(spark.read.parquet(str(tmp_path / "by-spark")))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("org.apache.spark.legacyDateTime", ""),
        ("org.apache.spark.legacyINT96", ""),
        ("org.apache.spark.version", "2.4.8"),
        ("org.apache.spark.version", "?"),
    ],
)
def test_files_of_an_old_calendar_are_left_to_spark(spark, tmp_path, key, value):
    known = {key: value} if key.endswith("version") else {key: value, "org.apache.spark.version": "3.5.0"}
    path = written(tmp_path / "old", flat_rows().replace_schema_metadata(known))
    assert file_scan(spark.read.parquet(path)) is None


KINDS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "INT96": (pa.array([1, None], pa.timestamp("us", "UTC")), {"use_deprecated_int96_timestamps": True}),
    "milliseconds": (pa.array([1, None], pa.timestamp("ms", "UTC")), {}),
    "large text": (pa.array(["a", None], pa.large_string()), {}),
    "a dictionary": (pa.array(["a", None]).dictionary_encode(), {}),
    "unsigned": (pa.array([1, None], pa.uint32()), {}),
    "a list": (pa.array([[1], None], pa.list_(pa.int32())), {}),
    "a struct": (pa.array([{"a": 1}, None]), {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_types_that_are_not_sparks_own_are_left_to_spark(spark, tmp_path, kind):
    values, options = KINDS[kind]
    path = written(tmp_path / "odd", pa.table({"id": ["a", "b"], "odd": values}), **options)
    df = spark.read.parquet(path)
    assert file_scan(df) is None
    check(df.select("id"))


def test_a_schema_that_a_caller_gives_fits_exactly_or_is_left_to_spark(spark, tmp_path):
    table = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32()), "Case": ["x", "y"]})
    path = written(tmp_path / "files", table)
    check(spark.read.schema("id string, n int, missing double").parquet(path))
    for schema in ("id string, n long", "id string, case string"):
        assert file_scan(spark.read.schema(schema).parquet(path)) is None, schema
    default = {"CURRENT_DEFAULT": "3", "EXISTS_DEFAULT": "3"}
    more = st.StructType(
        [st.StructField("id", st.StringType()), st.StructField("m", st.IntegerType(), metadata=default)]
    )
    assert file_scan(spark.read.schema(more).parquet(path)) is None
    collated = spark.read.schema("id string collate unicode_ci, n int").parquet(path)
    assert file_scan(collated.where("id = 'A'").select("n")) is None


def test_a_column_that_some_files_lack_is_null_in_them_also_for_filters(spark, tmp_path):
    whole = flat_rows()
    path = written(tmp_path / "files", whole, flat_rows(60).drop_columns(["name", "whole"]))
    kinds = spark.read.parquet(f"{path}/0.parquet").schema
    check(spark.read.schema(kinds).parquet(path))
    check(spark.read.schema(kinds).parquet(path).where("whole > 0 or name is null").select("id", "name"))
    other = written(
        tmp_path / "other", whole, whole.rename_columns([n.replace("name", "NAME") for n in whole.column_names])
    )
    assert file_scan(spark.read.schema(kinds).parquet(other)) is None


def test_row_groups_are_shared_out_as_spark_does(spark, tmp_path, settings):
    table = flat_rows(rows=2000)
    path = written(tmp_path / "files", table, row_group_size=100)
    settings("spark.sql.files.maxPartitionBytes", str(Path(path, "0.parquet").stat().st_size // 3))
    df = spark.read.parquet(path)
    scan = file_scan(df)
    assert scan is not None
    shares = [[part.row_groups for part in split] for split in scan.splits]
    assert sorted(group for split in shares for groups in split for group in groups) == list(range(20))
    held = df.select("id", sf.spark_partition_id().alias("split")).toArrow()
    for number, split in enumerate(scan.splits):
        rows = sum(100 for part in split for _ in part.row_groups)
        assert rows == held.filter(pa.compute.equal(held["split"], number)).num_rows
    check(df)


def test_files_that_changed_since_they_were_listed_are_left_to_spark(spark, tmp_path):
    path = written(tmp_path / "files", flat_rows())
    df = spark.read.parquet(path)
    assert file_scan(df) is not None
    os.utime(f"{path}/0.parquet", (1, 1))
    assert file_scan(df) is None
    Path(path, "0.parquet").unlink()
    assert file_scan(df) is None


def test_too_many_files_and_files_that_arrow_cannot_open_are_left_to_spark(spark, folder, tmp_path, monkeypatch):
    df = spark.read.parquet(folder)
    monkeypatch.setattr(plan, "FILES_MAX", 1)
    assert file_scan(df) is None
    monkeypatch.undo()
    monkeypatch.setattr(pq, "ParquetFile", None)
    with pytest.raises(TypeError):
        file_scan(df)


def test_every_flat_type_of_spark_is_in_these_tests():
    assert len(COLUMNS) == len(plan._FLAT) + 1  # decimals of two widths
