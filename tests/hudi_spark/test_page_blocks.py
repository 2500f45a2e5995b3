"""Single blocks of pages that need a Spark session; whole pages are run by test_spark_sql.py and
test_coming_from_hudi.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from examples.flights import generate
from hudi_table import HudiTable, create_table
from tests.support.page_blocks import every_block

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
BLOCKS = {str(block): block.text for block in every_block()}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = create_table(str(tmp_path / "flights"), SCHEMA, record_key="id", ordering_fields="ts")
    made.upsert(pa.table({"id": ["a"], "ts": [1]}, SCHEMA))
    return made


def run(name: str, lake: Path, **given: Any) -> None:
    """Execute a block whose lake is a folder."""
    text = BLOCKS[name].replace("s3://lake", str(lake))
    exec(compile(text, name, "exec"), given)


def test_reading_shows_a_stream_of_changes(spark: SparkSession, table: HudiTable, tmp_path: Path) -> None:
    hudi_spark.register(spark)
    seen: list[str] = []

    def take(rows: DataFrame, batch: int) -> None:
        seen.extend(row.id for row in rows.collect())

    run("docs/how-to/reading.md#5", tmp_path, spark=spark, take=take)
    (query,) = spark.streams.active
    try:
        query.processAllAvailable()
        table.upsert(pa.table({"id": ["b"], "ts": [2]}, SCHEMA))
        query.processAllAvailable()
    finally:
        query.stop()
    assert seen == ["b"]


def test_compatibility_shows_an_upsert_of_a_data_frame(spark: SparkSession, table: HudiTable, tmp_path: Path) -> None:
    hudi_spark.register(spark)
    rows = spark.createDataFrame([("a", 2), ("b", 2)], "id string, ts long")
    run("docs/reference/compatibility.md#1", tmp_path, df=rows, path=table.base_path)
    found = table.scan().to_arrow().to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 2, "b": 2}


def test_the_lesson_prints_what_it_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    generate.first(tmp_path / "landing")
    names: dict[str, Any] = {}
    # Spark's own folder is not the test's.
    for block in every_block():
        if block.page == "docs/tutorials/spark.md" and block.kind == "python":
            text = re.sub(r'"(landing|lake|checkpoints)/', rf'"{tmp_path}/\1/', block.text)
            capsys.readouterr()
            exec(compile(text, str(block), "exec"), names)
            block.check_output(capsys.readouterr().out)
