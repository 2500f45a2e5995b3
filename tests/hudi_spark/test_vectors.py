"""Columns of vectors on Spark: arrays there, vectors in the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_table import InvalidDataError, create_table, open_table
from hudi_table.codec.logical_types.vectors import vector_of

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("id", pa.string()), ("v", pa.list_(pa.float32(), 3)), ("b", pa.list_(pa.int8(), 2))])


def _frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id string, v array<float>, b array<tinyint>")


def _all(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.collect())


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_arrays_become_vectors_and_come_back_by_every_way(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    table = create_table(
        tmp_path / "t", SCHEMA, record_key="id", type=kind, version=9, index={"type": "Bucket", "buckets": 2}
    )
    hudi_spark.write(_frame(spark, ("a", [1.0, 2.0, 3.0], [1, -2]), ("b", None, None)), table, "upsert")
    hudi_spark.write(_frame(spark, ("b", [4.0, 5.0, 6.0], None), ("c", [7.0, 8.0, 9.0], [3, 4])), table, "upsert")
    expected = [("a", [1.0, 2.0, 3.0], [1, -2]), ("b", [4.0, 5.0, 6.0], None), ("c", [7.0, 8.0, 9.0], [3, 4])]
    assert open_table(tmp_path / "t").schema().field("v").type == vector_of(pa.float32(), 3)
    assert _all(hudi_spark.read(spark, tmp_path / "t")) == expected
    hudi_spark.register(spark)
    assert _all(spark.read.format("hudi").load(str(tmp_path / "t")).select("id", "v", "b")) == expected


def test_an_array_of_another_length_is_refused_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", version=9, index={"type": "Bucket", "buckets": 1})
    with pytest.raises(InvalidDataError, match=r"a list of 2 elements is no VECTOR\(3\)"):
        hudi_spark.write(_frame(spark, ("a", [1.0, 2.0], None)), table, "upsert")
    assert open_table(tmp_path / "t").scan().count() == 0
