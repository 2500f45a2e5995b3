"""Tables as DataFrames: `hudi_spark.read` and `format("hudi")` without a jar.

Aspects: rows equal the scan's; columns, filters and moments; pruning seen in the plan; evolved
schemas; empty tables; what Spark cannot do is refused with advice; the source is found by its
module's name.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import CaseInsensitiveDict

import hudi_spark
from hudi_spark.datasource.source import HudiDataSource, as_condition
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.names import META_COLUMNS
from tests.support import golden

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int32())])


def rows(*items):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


@pytest.fixture
def table(tmp_path) -> HudiTable:
    made = create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city", index="Simple")
    made.write(rows(("a", "x", 1), ("b", "y", 2), ("c", "y", 3)), operation="upsert")
    return made


def test_read_and_the_format_give_the_rows_of_a_scan(spark, table):
    wanted = {("a", "x", 1), ("b", "y", 2), ("c", "y", 3)}
    assert {tuple(row) for row in hudi_spark.read(spark, table.base_path).collect()} == wanted
    plain = spark.read.format("hudi").option("meta", "false").load(table.base_path)
    assert {tuple(row) for row in plain.collect()} == wanted
    frame = spark.read.format("hudi").load(table.base_path)
    assert frame.columns == [*META_COLUMNS, *SCHEMA.names]
    assert {tuple(row)[5:] for row in frame.collect()} == wanted
    assert {row["_hoodie_record_key"] for row in frame.collect()} == {"a", "b", "c"}


def test_a_query_whose_file_was_cleaned_since_its_plan_ends_in_expired_and_a_new_load_reads_on(spark, table):
    frame = spark.read.format("hudi").option("meta", "false").load(table.base_path)
    assert len(frame.collect()) == 3
    for ts in (10, 11):
        table.upsert(rows(("b", "y", ts)))
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    with pytest.raises(PySparkException, match=r"was cleaned by the clean \d+ while it was read: begin the read anew"):
        frame.collect()
    again = spark.read.format("hudi").option("meta", "false").load(table.base_path)
    assert {tuple(row) for row in again.collect()} == {("a", "x", 1), ("b", "y", 11), ("c", "y", 3)}


def test_columns_filter_and_moment_are_options(spark, table):
    first = table.history().column("instant")[0].as_py()
    table.write(rows(("d", "y", 4)), operation="upsert")
    load = spark.read.format("hudi")
    assert load.option("columns", "id").load(table.base_path).columns == ["id"]
    assert {row.id for row in load.option("filter", "ts >= 3").load(table.base_path).collect()} == {"c", "d"}
    for name in ("asOf", "as.of.instant", "timestampAsOf"):
        past = spark.read.format("hudi").option(name, first).load(table.base_path)
        assert {row.id for row in past.collect()} == {"a", "b", "c"}
    assert hudi_spark.read(spark, table.base_path, filter="city = 'x'", columns=["id"]).collect()[0].id == "a"


def test_the_format_answers_incremental_queries(spark, table):
    first = table.history(1)["moment"][0].as_py()
    second = table.write(rows(("a", "x", 5)), operation="upsert").moment
    table.write(rows(("b", "y", 6)), operation="upsert")
    since = spark.read.format("hudi").option("query", "incremental").option("since", first)
    assert {(row.id, row.ts) for row in since.load(table.base_path).collect()} == {("a", 5), ("b", 6)}
    assert {row.id for row in since.option("until", second).load(table.base_path).collect()} == {"a"}
    as_hudi = spark.read.format("hudi").options(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": first,
            "hoodie.datasource.read.end.instanttime": second,
        }
    )
    assert [(row.id, row.ts) for row in as_hudi.load(table.base_path).collect()] == [("a", 5)]
    changes = as_hudi.option("hoodie.datasource.query.incremental.format", "cdc").load(table.base_path)
    assert [(row.op, row.before.ts, row.after.ts) for row in changes.collect()] == [("u", 1, 5)]


def test_a_filter_on_the_partition_reads_the_files_of_that_partition_only(spark, table):
    every = hudi_spark.read(spark, table.base_path).rdd.getNumPartitions()
    assert every >= 1
    frame = spark.read.format("hudi").option("filter", "city = 'x'").load(table.base_path)
    assert frame.rdd.getNumPartitions() == 1


def test_filters_of_spark_are_pushed_where_both_sides_switch_it_on(spark, table):
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("hudi").option("pushFilters", "true").load(table.base_path).where("city = 'y'")
        assert {row.id for row in frame.collect()} == {"b", "c"}
        assert frame.rdd.getNumPartitions() == 1
        first = table.history()["instant"][-1].as_py()
        past = spark.read.format("hudi").option("pushFilters", "true").option("asOf", first).load(table.base_path)
        assert past.where("city = 'y'").collect() == []  # what pushes filters reads as of the same moment
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert as_condition(object(), SCHEMA) is None  # type: ignore[arg-type] # a filter that a later Spark may send


def test_filters_of_spark_that_are_pushed_find_the_rows_that_spark_finds(spark, tmp_path):
    numbers = pa.table(
        {
            "id": ["one", "nan", "negative zero", "zero", "null"],
            "d": [1.0, float("nan"), -0.0, 0.0, None],
            "f": pa.array([1.0, float("nan"), -0.0, 0.0, None], pa.float32()),
            "i": pa.array([1, 2, 3, 4, None], pa.int32()),
        }
    )
    made = create_table(str(tmp_path / "n"), numbers.schema, record_key="id", index="Simple")
    made.insert(numbers)
    conditions = [
        "d > 0.5",
        "d = double('nan')",
        "d in (0.0D, 7.0D)",
        "d = 0.0D",
        "f >= float('nan')",
        "f in (float(0))",
    ]
    conditions += ["i in (1, null)", "i in (1, 2, null)", "i = null", "i > 2.5", "i in (cast(null as int), 9)"]
    plain = spark.read.format("hudi").load(made.base_path)
    wanted = [{row.id for row in plain.where(condition).collect()} for condition in conditions]
    assert wanted[:3] == [{"one", "nan"}, {"nan"}, {"negative zero", "zero"}]
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushing = spark.read.format("hudi").option("pushFilters", "true").load(made.base_path)
        found = [{row.id for row in pushing.where(condition).collect()} for condition in conditions]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert found == wanted


def test_files_that_statistics_of_the_metadata_table_rule_out_are_not_opened(spark, tmp_path):
    made = create_table(str(tmp_path / "s"), SCHEMA, record_key="id", index="Simple")
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    [ruled_out] = (tmp_path / "s").glob("*.parquet")
    made.insert(rows(("c", "x", 11), ("d", "y", 12)), options={"hoodie.parquet.small.file.limit": "0"})
    made.build_metadata(["column_stats"])
    ruled_out.write_bytes(b"damaged")
    load = spark.read.format("hudi")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frames = (
            hudi_spark.read(spark, made.base_path, filter="ts > 5"),
            load.option("filter", "ts > 5").load(made.base_path),
            spark.read.format("hudi").option("pushFilters", "true").load(made.base_path).where("ts > 5"),
        )
        for frame in frames:
            assert {(row.id, row.ts) for row in frame.collect()} == {("c", 11), ("d", 12)}
            assert frame.rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    with pytest.raises(Exception, match=r"(?i)parquet"):
        hudi_spark.read(spark, made.base_path, filter="ts > 0").collect()


def test_files_from_before_a_schema_change_read_with_todays_schema(spark, table):
    wider = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
    more = pa.Table.from_pylist([{"id": "z", "city": "x", "ts": 1 << 40, "note": "new"}], schema=wider)
    table.write(more, operation="upsert")
    for frame in (hudi_spark.read(spark, table.base_path), spark.read.format("hudi").load(table.base_path)):
        found = {row.id: (row.ts, row.note) for row in frame.collect()}
        assert found == {"a": (1, None), "b": (2, None), "c": (3, None), "z": (1 << 40, "new")}


def test_an_empty_table_is_an_empty_frame_with_its_schema(spark, tmp_path):
    made = create_table(str(tmp_path / "e"), SCHEMA, record_key="id", index="Simple")
    for frame in (hudi_spark.read(spark, made.base_path), spark.read.format("hudi").load(made.base_path)):
        assert frame.drop(*META_COLUMNS).columns == SCHEMA.names
        assert frame.count() == 0


def test_columns_of_spark_are_those_of_the_table_or_refused(spark, table):
    few = spark.read.format("hudi").schema("ts int, id string").load(table.base_path)
    assert {tuple(row) for row in few.collect()} == {(1, "a"), (2, "b"), (3, "c")}
    with pytest.raises(Exception, match="has no column 'note'"):
        spark.read.format("hudi").schema("id string, note string").load(table.base_path).collect()


def test_a_table_without_hudis_columns_is_read_without_them(tmp_path):
    base = golden.unpack("nometa", tmp_path).base
    names = HudiDataSource(CaseInsensitiveDict({"path": str(base)})).schema().names
    assert names
    assert not set(META_COLUMNS) & set(names)


@pytest.mark.parametrize("name", ["v8_mor_partial", "v9_mor_isdel"])
def test_tables_of_later_versions_are_read(name, spark, tmp_path):
    base = golden.unpack(name, tmp_path).base
    expected = sorted(open_table(str(base)).scan(["id"]).to_arrow()["id"].to_pylist())
    found = spark.read.format("hudi").load(str(base)).select("id").collect()
    assert sorted(row["id"] for row in found) == expected


def test_a_missing_path_and_a_write_to_no_table_are_refused(spark, table, tmp_path):
    with pytest.raises(Exception, match="no path"):
        spark.read.format("hudi").load().collect()
    with pytest.raises(Exception, match="needs a record key"):
        hudi_spark.read(spark, table.base_path).write.format("hudi").mode("append").save(str(tmp_path / "out"))
    assert not Path(tmp_path / "out").exists()


def test_a_hudi_source_can_be_registered_by_hand(spark):
    assert "this library" in hudi_spark.register(spark)
    assert HudiDataSource.name() == "hudi"
