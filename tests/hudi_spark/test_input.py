"""Rows as Spark hands them over: stored right, or refused by name with nothing written. Both ways:
`hudi_spark.write`, whose tasks write, and `df.write.format("hudi")`, which stages rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import hudi_spark
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.names import META_COLUMNS

pytestmark = pytest.mark.spark

Way = Callable[[DataFrame, HudiTable], None]
KEY = ["id", "b"]


def by_tasks(df: DataFrame, table: HudiTable) -> None:
    hudi_spark.write(df, table, "upsert")


def by_staging(df: DataFrame, table: HudiTable) -> None:
    df.write.format("hudi").mode("append").save(table.base_path)


WAYS: dict[str, Way] = {"tasks": by_tasks, "staging": by_staging}


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    hudi_spark.register(spark)


def new_table(path: Path, schema: str | pa.Schema, key: Any = "id", index: Any = "Simple", **more: Any) -> HudiTable:
    kinds = {"string": pa.string(), "long": pa.int64(), "boolean": pa.bool_()}
    if isinstance(schema, str):
        schema = pa.schema([(name, kinds[kind]) for name, kind in (part.split() for part in schema.split(", "))])
    return create_table(f"{path}/t", schema, record_key=key, index=index, **more)


def refused(way: str, df: DataFrame, table: HudiTable, message: str) -> None:
    with pytest.raises(Exception, match=message):
        WAYS[way](df, table)
    assert not open_table(table.base_path).scan().to_arrow().num_rows


@pytest.mark.parametrize("way", WAYS)
def test_a_mark_of_deletes_that_is_no_boolean_is_refused(spark, tmp_path, way):
    table = new_table(tmp_path, "id string, v long")
    df = spark.createDataFrame([("a", 1, "true")], "id string, v long, _hoodie_is_deleted string")
    refused(way, df, table, "'_hoodie_is_deleted' is string: .* has to be bool")


RESERVED = (META_COLUMNS[0], "_HOODIE_RECORD_KEY", "_hoodie_operation", "_lakeops_delete")


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *(("tasks", name) for name in RESERVED),
        ("staging", RESERVED[1]),
        *(pytest.param("staging", name, marks=pytest.mark.at_scale(2)) for name in (RESERVED[0], *RESERVED[2:])),
    ],
)
def test_columns_with_reserved_names_are_refused(spark, tmp_path, way, name):
    table = new_table(tmp_path, "id string, v long")
    df = spark.createDataFrame([("a", 1, "x")], f"id string, v long, {name} string")
    refused(way, df, table, f"column '{name}'.* has (the|a) name")


@pytest.mark.parametrize("way", WAYS)
def test_rows_read_with_hudis_columns_are_written_back(spark, tmp_path, way):
    table = new_table(tmp_path, "id string, v long")
    table.insert(pa.table({"id": ["a", "b"], "v": [1, 2]}))
    read = spark.read.format("hudi").load(table.base_path)
    assert set(META_COLUMNS) < set(read.columns)
    WAYS[way](read.withColumn("v", sf.col("v") + 10), table)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [11, 12]
    assert table.schema().names == ["id", "v"]


@pytest.mark.parametrize(("way", "column"), [("tasks", "v"), ("tasks", "s"), ("staging", "v")])
def test_a_null_where_a_value_is_required_is_refused(spark, tmp_path, way, column):
    inner = pa.struct([pa.field("x", pa.int64(), nullable=column != "s")])
    schema = pa.schema([("id", pa.string()), pa.field("v", pa.int64(), nullable=column != "v"), ("s", inner)])
    table = new_table(tmp_path, schema)
    missing = {"v": ("null", "named_struct('x', 1L)"), "s": ("1L", "named_struct('x', cast(null as bigint))")}[column]
    df = spark.range(3).selectExpr("cast(id as string) id", f"cast({missing[0]} as bigint) v", f"{missing[1]} s")
    refused(way, df, table, "'(v|x)' is required and ")


@pytest.mark.parametrize(("way", "column"), [("tasks", "id"), ("tasks", "city"), ("tasks", "v"), ("staging", "v")])
def test_text_that_is_no_utf8_is_refused(spark, tmp_path, way, column):
    table = new_table(tmp_path, "id string, city string, v string", partition_by=["city"])
    # A lone surrogate as Java's own encoding has it, and a byte that begins nothing: Spark casts bytes to text unseen.
    bad = "cast(concat(unhex('EDA080'), unhex('FF')) as string)"
    values = [f"{bad} {name}" if name == column else f"'x' {name}" for name in ("id", "city", "v")]
    refused(way, spark.range(1).selectExpr(*values), table, "not UTF-8|is not valid UTF-8|UTF8|utf-8")


@pytest.mark.parametrize(("way", "index"), [("tasks", "Simple"), ("tasks", "GlobalSimple"), ("staging", "Simple")])
def test_composite_keys_whose_text_is_one_are_refused(spark, tmp_path, way, index):
    table = new_table(tmp_path, "id string, b string, v long", KEY, index)
    df = spark.createDataFrame([("x,b:y", "z", 1), ("x", "y,b:z", 2), ("p", "q", 3)], "id string, b string, v long")
    refused(way, df, table, "rows with different values have one record key, 'id:x,b:y,b:z'")


@pytest.mark.parametrize("word", ["__null__", "__empty__"])
def test_the_words_for_null_and_empty_are_no_keys(spark, tmp_path, word):
    table = new_table(tmp_path, "id string, b string, v long", KEY, "GlobalSimple")
    df = spark.createDataFrame([("x", word, 1), ("x", "y", 2)], "id string, b string, v long")
    refused("tasks", df, table, f"'b' holds the text '{word}'")


def test_composite_keys_that_only_look_alike_are_written(spark, tmp_path):
    table = new_table(tmp_path, "id string, b string, v long", KEY, partition_by=["v"])
    rows = [("x,b:y", "z", 1), ("x,b:y", "z", 1), ("x", "y,b:z", 2), ("x", "y", 2)]
    by_tasks(spark.createDataFrame(rows, "id string, b string, v long"), table)
    found = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["b"], row["v"]) for row in found) == sorted(set(rows))


def test_a_key_of_megabytes_is_stored_and_found_again(spark, tmp_path):
    table = new_table(tmp_path, "id string, v long", index="Bloom")
    # Four hashes of each key, not thirty.
    small = {"hoodie.index.bloom.num_entries": "20", "hoodie.index.bloom.fpp": "0.1"}
    df = spark.range(2).selectExpr("concat(repeat('k', 3000000), id) id", "id v")
    hudi_spark.write(df, table, "upsert", options=small)
    changed = df.withColumn("v", sf.col("v") + 5)
    changed.write.format("hudi").options(**small).mode("append").save(table.base_path)
    assert sorted(table.scan(["v"]).to_arrow()["v"].to_pylist()) == [5, 6]
