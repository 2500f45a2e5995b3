"""Tables that were bootstrapped in place, on Spark: each task opens the files outside the table
itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table import open_table
from hudi_table.bootstrapping import bootstrap_table
from hudi_table.model.names import is_skeleton

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_spark_reads_and_writes_rows_whose_columns_lie_outside(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    for city, first in (("x", 0), ("y", 3)):
        (tmp_path / "in" / f"city={city}").mkdir(parents=True)
        rows = pa.table({"id": [f"k{first + i}" for i in range(3)], "n": [first + i for i in range(3)]})
        pq.write_table(rows, tmp_path / "in" / f"city={city}" / "a.parquet")
    base = str(tmp_path / "t")
    bootstrap_table(base, tmp_path / "in", record_key="id", type=kind)
    before = {(f"k{i}", i, "x" if i < 3 else "y") for i in range(6)}

    def read() -> set[tuple[Any, ...]]:
        found = spark.read.format("hudi").load(base).select("id", "n", "city").collect()
        return {tuple(row) for row in found}

    assert read() == before
    assert {tuple(row) for row in hudi_spark.read(spark, base).where("n > 3").select("id").collect()} == {
        ("k4",),
        ("k5",),
    }
    changes = spark.createDataFrame([("k1", 10, "x"), ("k9", 9, "y")], "id string, n long, city string")
    hudi_spark.write(changes, base, operation="upsert")
    after = {row for row in before if row[0] != "k1"} | {("k1", 10, "x"), ("k9", 9, "y")}
    assert read() == after
    table = open_table(base)
    assert {tuple(row.values()) for row in table.scan(["id", "n", "city"]).to_arrow().to_pylist()} == after
    newest = [row["base_file"] for row in table.files().to_pylist() if row["latest"]]
    assert sum(is_skeleton(path) for path in newest if path) == (1 if kind == "CopyOnWrite" else 2)
