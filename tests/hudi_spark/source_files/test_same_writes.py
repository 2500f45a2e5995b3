"""A write whose tasks read files leaves what a write of the same rows through the JVM leaves:
tables, results and refusals; and which writes go which way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_spark import in_driver, writer
from hudi_spark.source_files import packing
from hudi_table.api import create_table, open_table
from hudi_table.errors import HudiError, InvalidDataError
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write.result import CommitResult
from tests.hudi_spark.source_files.files import flat_rows, written
from tests.support.scale import scale

pytestmark = pytest.mark.spark
BUCKET: dict[str, Any] = {"type": "Bucket", "buckets": 2}
Frames = Callable[..., DataFrame]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who read the rows of each attempt: tasks of ours, `files`, or Spark."""
    told: list[str] = []
    run, packed = writer._run, packing.FileRows.packed

    def running(*given: Any) -> Any:
        told.append("Spark")
        return run(*given)

    def packing_rows(*given: Any) -> DataFrame:
        told[-1] = "files"
        return packed(*given)

    monkeypatch.setattr(writer, "_run", running)
    monkeypatch.setattr(packing.FileRows, "packed", packing_rows)
    monkeypatch.setattr(in_driver, "ESTIMATE_MAX", 0)
    return told


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> Frames:
    """Frames of files."""
    names = iter(range(1000))

    def made(*tables: pa.Table) -> DataFrame:
        return spark.read.parquet(written(tmp_path / f"files-{next(names)}", *tables, row_group_size=40))

    return made


def held(path: str) -> list[tuple[Any, ...]]:
    """All rows and what places them, but what differs from write to write."""
    table = open_table(path)
    own = table.scan().to_arrow().schema.names
    names = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name", *own]
    rows = table.scan(names).to_arrow()
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in rows.itercolumns()
    ]
    found = zip(*(map(repr, column.to_pylist()) for column in columns), strict=True)
    # The digits of a bucket; other groups have names by chance.
    return sorted(
        (key, place, file[1:9] * file[1:8].startswith("0000000"), *values) for key, place, file, *values in found
    )


def both(monkeypatch: pytest.MonkeyPatch, ways: list[str], write: Callable[[str], Any]) -> Iterator[Any]:
    """What a write gives, first by files and then through the JVM."""
    for way in ("files", "Spark"):
        ways.clear()
        if way == "Spark":
            monkeypatch.setattr(writer, "file_scan", lambda df: None)
        yield write(way)
        assert set(ways) <= {way}


LAYOUTS: dict[str, dict[str, Any]] = {
    "buckets": {"record_key": "id", "partition_by": "city", "index": BUCKET},
    "no partitions": {"record_key": "id", "index": BUCKET},
    "rings": {"record_key": "id", "partition_by": "city", "index": {**BUCKET, "type": "ConsistentBucket"}, "type": "MergeOnRead"},
    "logs": {"record_key": "id", "partition_by": "city", "index": BUCKET, "type": "MergeOnRead"},
    "keys of several fields": {"record_key": ["id", "whole", "name"], "partition_by": ["city", "tiny"], "index": BUCKET},
    "keys of instants": {"record_key": ["id", "moment"], "partition_by": "day", "index": BUCKET},
    "times as folders": {"record_key": "id", "partition_by": [{"field": "moment", "type": "Timestamp", "format": "yyyy/MM"}], "index": BUCKET},
}  # fmt: skip


WHOLE = ("buckets", "rings")
"""The layouts of which `make test` tries every operation: of the others where rows come to lie."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_ways_leave_the_same_table(spark, frames, ways, tmp_path, monkeypatch, layout):
    load = [frames(flat_rows(rows=150), flat_rows(150, seed=5))]
    load.append(frames(flat_rows(100, 120, seed=6), flat_rows(100, 30, seed=7)).where("whole > -2 or whole is null"))

    def write(way: str) -> Any:
        path = str(tmp_path / f"table-{way}")
        schema = flat_rows().schema
        create_table(path, schema, ordering_fields="ts", merge_mode="EventTime", **LAYOUTS[layout])
        steps: list[tuple[Any, DataFrame]] = [
            ("bulk_insert", load[0]),
            ("upsert", load[1]),
            ("insert", load[1].select("id", *schema.names[1:])),
        ]
        steps += [("insert_overwrite", load[1].drop("raw", "wide"))]
        if scale() == 1 and layout not in WHOLE:
            steps = steps[:2]
        lenient = {"hoodie.write.set.null.for.missing.columns": "true"}
        results = [hudi_spark.write(df, path, operation, options=lenient) for operation, df in steps]
        return [without_files(result) for result in results], held(path)

    by_files, by_spark = both(monkeypatch, ways, write)
    assert by_files == by_spark


def without_files(result: CommitResult) -> CommitResult:
    """A result without what differs from write to write."""
    return replace(result, instant="", moment="", bytes_written=0)


@pytest.mark.parametrize("index", ["Simple", "GlobalBloom"])
def test_inserts_that_look_nothing_up_share_the_rows_of_a_partition_out(
    spark, frames, ways, tmp_path, monkeypatch, index
):
    options = {"hoodie.parquet.max.file.size": "6000", "hoodie.parquet.small.file.limit": "0"}
    df = frames(flat_rows(rows=600), flat_rows(600, 600, seed=5), flat_rows(0, 30, seed=8))

    def write(way: str) -> Any:
        path = str(tmp_path / f"table-{way}")
        create_table(path, flat_rows().schema, record_key="id", partition_by="city", ordering_fields="ts", index=index)
        loaded = hudi_spark.write(df, path, "bulk_insert", options=options)
        assert len(list(Path(path).glob("c0/*.parquet"))) > 1
        again = hudi_spark.write(df.where("ts < 20"), path, "insert", options=options)
        after = hudi_spark.write(df.where("city = 'c1'"), path, "insert_overwrite", options=options)
        return [(one.rows_written, one.operation) for one in (loaded, again, after)], held(path)

    by_files, by_spark = both(monkeypatch, ways, write)
    assert by_files == by_spark


def test_renames_and_columns_that_files_lack(spark, frames, ways, tmp_path, monkeypatch):
    df = frames(flat_rows(), flat_rows(60).drop_columns(["name"]))
    kinds = frames(flat_rows()).schema
    df = spark.read.schema(kinds).parquet(*df.inputFiles()).select("id", "city", "ts", "name")
    df = df.withColumnRenamed("name", "called").where("called is null or called != 'a'")

    def write(way: str) -> Any:
        path = str(tmp_path / f"table-{way}")
        schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("called", pa.string())])
        create_table(path, schema, record_key="id", partition_by="city", index=BUCKET)
        return without_files(hudi_spark.write(df, path, "upsert")), held(path)

    by_files, by_spark = both(monkeypatch, ways, write)
    assert by_files == by_spark
    assert 60 < by_files[0].rows_written < 120


REFUSED: dict[str, pa.Table] = {
    "null key": pa.table({"id": ["a", None], "city": ["x", "y"], "ts": [1, 2]}),
    "no order": pa.table({"id": ["a", "b"], "city": ["x", "y"], "ts": [1, None]}),
    "no folder": pa.table({"id": ["a", "b"], "city": ["x", "../y"], "ts": [1, 2]}),
    "no text": pa.table(
        {"id": ["a"], "city": ["x"], "ts": [1], "text": pa.array([b"\xff"], pa.binary()).view(pa.string())}
    ),
    "no text in a key": pa.table({"id": pa.array([b"\xff"], pa.binary()).view(pa.string()), "city": ["x"], "ts": [1]}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals_are_the_same(frames, ways, tmp_path, monkeypatch, reason):
    df = frames(REFUSED[reason])

    def write(way: str) -> str:
        path = str(tmp_path / f"table-{way}")
        given: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering_fields": "ts", "index": BUCKET}
        create_table(path, REFUSED[reason].schema, merge_mode="EventTime", **given)
        with pytest.raises(HudiError) as caught:
            hudi_spark.write(df, path, "upsert")
        assert held(path) == []
        instants = [(one.action, one.state) for one in load_timeline(open_table(path).context).instants]
        return f"{type(caught.value).__name__}: {caught.value} {instants}".replace(f"table-{way}", "table")

    by_files, by_spark = both(monkeypatch, ways, write)
    assert by_files == by_spark


def test_a_reading_task_that_fails_and_one_that_writes_are_made_again(frames, ways, tmp_path, monkeypatch):
    path = str(tmp_path / "table")
    create_table(path, flat_rows().schema, record_key="id", partition_by="city", index=BUCKET)
    monkeypatch.setattr(packing, "pack", _FailsOnce(str(tmp_path / "read"), packing.pack.__name__))
    monkeypatch.setattr(writer, "_write_group", _FailsOnce(str(tmp_path / "wrote"), "_write_group"))
    result = hudi_spark.write(frames(flat_rows(), flat_rows(60)), path, "bulk_insert")
    assert Path(tmp_path, "read").exists()
    assert Path(tmp_path, "wrote").exists()
    assert ways == ["files"]
    assert result.rows_written == 120
    assert [row[0] for row in held(path)] == [repr(f"k{number:04d}") for number in range(120)]
    assert len(list(Path(path).rglob("*.parquet"))) == 6


class _FailsOnce:
    """Does all of a task's work, then fails if none has before."""

    def __init__(self, flag: str, name: str) -> None:
        self.flag, self.name = flag, name

    def __call__(self, batches: Any, **more: Any) -> Any:
        from hudi_spark import writer
        from hudi_spark.source_files import packing

        results = list(getattr(packing if self.name == "pack" else writer, self.name)(batches, **more))
        if not Path(self.flag).exists():
            Path(self.flag).touch()
            raise RuntimeError("the executor died")
        return iter(results)


def test_a_file_that_changes_after_it_was_counted_ends_the_write(frames, ways, tmp_path, monkeypatch):
    path = str(tmp_path / "table")
    create_table(path, flat_rows().schema, record_key="id", index=BUCKET)
    df = frames(flat_rows())
    run = writer._run

    def changing(*given: Any) -> Any:
        os.utime(next(tmp_path.glob("files-*/0.parquet")), (1, 1))
        return run(*given)

    monkeypatch.setattr(writer, "_run", changing)
    with pytest.raises(InvalidDataError, match=r"0\.parquet was changed after the frame was made of it"):
        hudi_spark.write(df, path, "upsert")
    assert held(path) == []


def test_what_has_to_know_the_rows_first_is_read_by_spark(frames, ways, tmp_path, monkeypatch):
    df = frames(flat_rows())

    def write(operation: Any, *, to: str = "", **given: Any) -> None:
        path = str(tmp_path / (to or f"table-{len(ways)}"))
        if not to:
            create_table(
                path, flat_rows().schema, **{"record_key": "id", "partition_by": "city", "index": BUCKET, **given}
            )
        options = {"hoodie.datasource.insert.dup.policy": "drop"} if operation == "insert" else {}
        hudi_spark.write(df, path, operation, options=options)

    write("upsert")
    write("delete", to="table-0")
    write("insert", to="table-0")
    write("upsert", index="Simple")
    write("bulk_insert", index="GlobalBloom")
    write("insert", to=f"table-{len(ways) - 1}")
    monkeypatch.setattr(writer, "TASKS_MAX", 4)
    write("upsert")
    assert ways == ["files", *["Spark"] * 3, "files", "Spark", "Spark"]


def test_few_rows_to_logs_are_still_the_drivers(frames, ways, tmp_path, monkeypatch):
    monkeypatch.setattr(in_driver, "ESTIMATE_MAX", 32 << 20)
    path = str(tmp_path / "table")
    create_table(path, flat_rows().schema, record_key="id", type="MergeOnRead", index=BUCKET)
    hudi_spark.write(frames(flat_rows()), path, "upsert")
    assert ways == []
    assert len(held(path)) == 60
