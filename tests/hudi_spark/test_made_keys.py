"""Tables that store no meta columns, written by tasks: each index finds rows by the keys that their
fields make, in base files and in logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_spark import in_driver
from hudi_table.api import create_table
from tests.hudi_spark.test_write import INDEXES, SCHEMA, frame, rows_of

pytestmark = pytest.mark.spark

KINDS = [
    (6, "CopyOnWrite", "simple"),
    (9, "CopyOnWrite", "bloom"),
    (6, "MergeOnRead", "simple"),
    (8, "MergeOnRead", "bloom"),
    (9, "MergeOnRead", "global"),
    (9, "MergeOnRead", "bucket"),
]


@pytest.mark.thinned("values")
@pytest.mark.parametrize(("version", "kind", "index"), KINDS)
def test_rows_are_found_by_keys_that_are_not_stored(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: Any, kind: Any, index: str
) -> None:
    monkeypatch.setattr(in_driver, "ESTIMATE_MAX", 0)
    path = str(tmp_path / "t")
    table = create_table(
        path, SCHEMA, record_key="id", partition_by="city", index=INDEXES[index], type=kind, version=version,
        options={"hoodie.populate.meta.fields": "false"},
    )  # fmt: skip
    model = {f"k{n:02d}": (f"k{n:02d}", f"c{n % 3}", n) for n in range(30)}
    hudi_spark.write(frame(spark, *model.values()), path, "insert")
    for step in (1, 2):
        changes = [(f"k{n:02d}", f"c{n % 3}", 100 * step) for n in range(0, 30, 7)] + [(f"new{step}", "c0", 1)]
        hudi_spark.write(frame(spark, *changes), path, "upsert")
        model |= {row[0]: row for row in changes}
        assert rows_of(table) == set(model.values())
    gone = [model.pop(key) for key in ("k00", "k07", "k10", "new1")]
    hudi_spark.write(frame(spark, *gone), path, "delete")
    assert rows_of(table) == set(model.values())
    back = ("k07", "c1", 7)
    hudi_spark.write(frame(spark, back, ("k01", "c1", 8)), path, "upsert")
    model |= {"k07": back, "k01": ("k01", "c1", 8)}
    assert rows_of(table) == set(model.values())
    read = {tuple(row) for row in spark.read.format("hudi").load(path).select(*SCHEMA.names).collect()}
    assert read == set(model.values())
    drop = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    hudi_spark.write(frame(spark, ("k01", "c1", 9), ("more", "c1", 9)), path, "insert", options=drop)
    assert rows_of(table) == {*model.values(), ("more", "c1", 9)}
