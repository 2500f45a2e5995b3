"""Small writes to logs: one Spark job brings the rows to the driver, which writes what tasks would
have written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_spark import in_driver, writer
from hudi_table.api import create_table, open_table
from hudi_table.errors import InvalidDataError
from hudi_table.table.timeline.active import load_timeline

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
Rows = list[tuple[Any, ...]]
Frames = Callable[[Rows], DataFrame]


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> Frames:
    """Frames of Parquet files, whose size Spark knows."""
    numbers = itertools.count()

    def made(rows: Rows) -> DataFrame:
        path = str(tmp_path / f"rows-{next(numbers)}")
        spark.createDataFrame(rows, "id string, city string, ts long").coalesce(1).write.parquet(path)
        return spark.read.parquet(path)

    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who made each write."""
    ways: list[str] = []
    asked = in_driver.small_rows

    def noted(*given: Any) -> pa.Table | None:
        found = asked(*given)
        ways.append("tasks" if found is None else "driver")
        return found

    monkeypatch.setattr(writer, "small_rows", noted)
    return ways


def created(path: Path, **more: Any) -> str:
    given = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}, "merge_mode": "EventTime", **more}
    create_table(str(path), SCHEMA, record_key="id", partition_by="city", ordering_fields="ts", **given)
    return str(path)


def held(path: str) -> list[dict[str, Any]]:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]
    return sorted(open_table(path).scan(columns).to_arrow().to_pylist(), key=lambda row: row["id"])


def test_the_driver_writes_what_tasks_write(frames, told, tmp_path, monkeypatch):
    steps: list[tuple[Any, Rows]] = [
        ("insert", [(f"k{n:03d}", f"c{n % 3}", n) for n in range(60)]),
        ("upsert", [("k003", "c0", 1000), ("k004", "c1", -5), ("n1", "c0", 1), ("n1", "c0", 3)]),
        ("delete", [("k000", "c0", 0), ("unknown", "c1", 0)]),
        ("upsert", [("k000", "c0", 5), ("n2", "c9", 1)]),
        ("insert_overwrite", [("only", "c2", 1)]),
        ("bulk_insert", [("more", "c3", 1)]),
    ]
    results: dict[str, Any] = {}
    for way, limit in (("driver", in_driver.ESTIMATE_MAX), ("tasks", 0)):
        monkeypatch.setattr(in_driver, "ESTIMATE_MAX", limit)
        path = created(tmp_path / way)
        done = [hudi_spark.write(frames(rows), path, operation) for operation, rows in steps]
        logs = [row["log_files"] for row in open_table(path).files().to_pylist()]
        results[way] = [replace(one, instant="", moment="", bytes_written=0) for one in done], held(path), sum(logs)
    assert told == ["driver"] * len(steps) + ["tasks"] * len(steps)
    assert results["driver"] == results["tasks"]


def test_a_replay_changes_nothing_and_options_of_the_write_hold(frames, told, tmp_path):
    path = created(tmp_path / "t")
    first = hudi_spark.write(frames([("a", "x", 1)]), path, batch="feed/1", extra_metadata={"from": "here"})
    assert hudi_spark.write(frames([("a", "x", 1)]), path, batch="feed/1").instant == first.instant
    asked = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    hudi_spark.write(frames([("a", "x", 2)]), path, options=asked)
    assert not any(row["log_files"] for row in open_table(path).files().to_pylist() if row["latest"])
    assert [row["ts"] for row in held(path)] == [2]
    assert told == ["driver", "driver"]


@pytest.mark.parametrize("limit", [in_driver.ESTIMATE_MAX, 0], ids=["driver", "tasks"])
def test_null_keys_are_refused_before_anything_is_written(frames, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(in_driver, "ESTIMATE_MAX", limit)
    path = created(tmp_path / "t")
    with pytest.raises(InvalidDataError, match=r"2 rows.*'id'|'id'.*2 rows"):
        hudi_spark.write(frames([(None, "x", 1), (None, "x", 2), ("a", "x", 3)]), path)
    assert load_timeline(open_table(path).context).instants == ()


def test_tasks_write_what_may_be_much_work(spark, frames, told, tmp_path, monkeypatch):
    path = created(tmp_path / "t")
    small = frames([("a", "x", 1), ("b", "y", 1)])
    hudi_spark.write(small.mapInArrow(lambda batches: batches, small.schema), path)
    hudi_spark.write(spark.createDataFrame([("c", "x", 1)], small.schema), path)
    hudi_spark.write(small.where("false"), path)
    monkeypatch.setattr(in_driver, "FILES_MAX", 3)
    hudi_spark.write(small, path)
    monkeypatch.setattr(in_driver, "FILES_MAX", 4)
    hudi_spark.write(small, created(tmp_path / "cow", type="CopyOnWrite"))
    hudi_spark.write(small, created(tmp_path / "simple", index="Simple"))
    assert set(told) == {"tasks"}
    hudi_spark.write(small, path)
    assert told[-1] == "driver"
    assert [row["id"] for row in held(path)] == ["a", "b", "c"]


def test_what_fails_on_the_way_to_the_driver_is_told_by_tasks(frames, told, tmp_path):
    path = created(tmp_path / "t")
    broken = frames([("a", "x", 1)]).selectExpr("id", "city", "cast(raise_error('no such luck') as long) as ts")
    with pytest.raises(PySparkException, match="no such luck"):
        hudi_spark.write(broken, path)
    assert told == ["tasks"]
    assert held(path) == []
