"""Mergers and key generators of one's own reach Spark's tasks; partial updates merge there as they
do here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_spark
from hudi_table import create_table, open_table, register_key_generator, register_merger
from hudi_table.errors import InvalidRequestError
from hudi_table.write import functions

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
INDEXES: dict[str, Any] = {"bucket": {"type": "Bucket", "buckets": 2}, "simple": "Simple"}


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), "id string, ts long, note string")


def rows_of(path):
    return {tuple(row.values()) for row in open_table(path).scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("index", INDEXES)
def test_functions_of_ones_own_reach_the_tasks(spark, tmp_path, index):
    bonus = 100

    def added(stored: pa.Table, incoming: pa.Table) -> pa.Table:
        return incoming.set_column(1, "ts", pc.add(pc.add(stored["ts"], incoming["ts"]), bonus))

    path = str(tmp_path / "t")
    register_merger("added", added)
    register_key_generator("lower", lambda rows: pc.utf8_lower(rows["id"]))
    create_table(path, SCHEMA, record_key="id", index=INDEXES[index], merger="added", key_generator="lower")
    hudi_spark.write(frame(spark, ("A", 1, "a"), ("b", 1, "b")), path, "insert")
    hudi_spark.write(frame(spark, ("a", 2, "c"), ("C", 2, "c")), path, "upsert")
    hudi_spark.write(frame(spark, ("B", 0, "")).select("id"), path, "delete")
    assert rows_of(path) == {("a", 103, "c"), ("C", 2, "c")}
    functions._mergers.clear()
    with pytest.raises(InvalidRequestError, match="register_merger"):
        hudi_spark.write(frame(spark, ("a", 2, "c")), path, "upsert")


@pytest.mark.parametrize("index", INDEXES)
def test_partial_updates_of_one_batch_are_put_together_in_the_tasks(spark, tmp_path, index):
    path = str(tmp_path / "t")
    create_table(
        path, SCHEMA, record_key="id", index=INDEXES[index], ordering_fields="ts", partial_updates="IgnoreDefaults"
    )
    hudi_spark.write(frame(spark, ("a", 1, "a"), ("b", 5, None)), path, "insert")
    hudi_spark.write(frame(spark, ("a", 2, None), ("b", 4, "old"), ("c", 1, "c"), ("c", 2, None)), path, "upsert")
    assert rows_of(path) == {("a", 2, "a"), ("b", 5, "old"), ("c", 2, "c")}
