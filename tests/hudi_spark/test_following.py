"""What `hudi_spark.write` says while it writes and when it ends, as the library does."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table import create_table
from hudi_table.errors import InvalidDataError
from hudi_table.model.progress import Progress

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


def test_a_write_by_tasks_tells_its_steps_and_ends_in_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city")
    rows = spark.createDataFrame([("a", "x", 1), ("b", "y", 1)], "id string, city string, ts long")
    heard: list[Progress] = []
    with caplog.at_level(logging.INFO, "hudi_table"):
        result = hudi_spark.write(rows, table, "upsert", batch="one", progress=heard.append)
        assert hudi_spark.write(rows, table, "upsert", batch="one").replayed
        with pytest.raises(InvalidDataError):
            hudi_spark.write(rows.selectExpr("'' id", "city", "ts"), table, "upsert")
    assert heard == [Progress("upsert", 0, None), Progress("upsert", 0, 2), Progress("upsert", 2, 2)]
    first, again, refused = (line.getMessage() for line in caplog.records if line.name == "hudi_table.write")
    start = f"write of {re.escape(table.base_path)}"
    assert re.fullmatch(rf"{start}: {result.instant}, rows_inserted=2, rows_written=2, .* in [0-9.]+ s", first)
    assert re.fullmatch(rf"{start}: {result.instant}, done before in [0-9.]+ s", again)
    assert re.fullmatch(rf"{start} ended in InvalidData after [0-9.]+ s", refused)


def test_a_write_that_the_driver_makes_alone_tells_its_tasks_and_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = {"type": "Bucket", "buckets": 2}
    table = create_table(str(tmp_path / "t"), SCHEMA, record_key="id", type="MergeOnRead", index=index)
    rows = spark.sql("select 'a' id, 'x' city, 1L ts union all select 'b', 'y', 1L")
    heard: list[Progress] = []
    with caplog.at_level(logging.INFO, "hudi_table"):
        hudi_spark.write(rows, table, "upsert", progress=heard.append)
    assert (heard[-1].operation, heard[-1].done) == ("upsert", heard[-1].total)
    assert len([line for line in caplog.records if line.name == "hudi_table.write"]) == 1
