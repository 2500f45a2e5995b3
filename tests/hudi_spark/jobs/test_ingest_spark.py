"""The ingest job on Spark: a transform makes the key, tasks read the files, and what is refused
leaves nothing.

One session serves all tests; the job is called in this process, as `python -m hudi_spark.jobs`
would.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.jobs import ingest
from hudi_spark.jobs.__main__ import main
from hudi_spark.jobs.batch import next_batch
from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.arguments import TableTypeName
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support.s3 import ACCESS, running_s3

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session_as_it_was")]

AT = [datetime(2013, month, 1, 23, 30, tzinfo=UTC) for month in (1, 1, 2, 3)]
ROWS = pa.table(
    {
        "carrier": ["UA", "AA", "UA", None],
        "flight": pa.array([1, 2, 1, 4], pa.int32()),
        "at": pa.array(AT, pa.timestamp("us", "UTC")),
        "ts": pa.array([1, 1, 1, 1], pa.int64()),
        "tags": pa.array([["a"], [], None, ["b", "c"]], pa.list_(pa.string())),
    }
)
SELECT = "select concat_ws('-', carrier, flight, date_format(at, 'yyyyMMddHH')) id, * from source"


def spec(folder: Path, sql: str | None = SELECT, **changes: Any) -> JobSpec:
    table = {
        "name": "flights",
        "location": f"file://{folder}/lake",
        "recordKey": ["id"],
        "partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy/MM"}],
        "orderingFields": ["ts"],
        "index": {"type": "Bucket", "buckets": 2},
        **changes.pop("table", {}),
    }
    source = {"type": "Files", "path": f"file://{folder}/in", "format": "parquet"} | changes.pop("source", {})
    transform = [{"sql": sql}] if sql is not None else []
    work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": transform}
    progress = str(folder / "progress.jsonl")
    return JobSpec(changes.pop("attempt", "one"), table, work, engine="Spark", progress=progress, **changes)


def run(folder: Path, job: JobSpec) -> tuple[int, JobResult]:
    (folder / "spec.json").write_text(job.to_json())
    code = main([str(folder / "spec.json"), str(folder / "result.json")])
    return code, JobResult.from_json((folder / "result.json").read_text())


def land(folder: Path, name: str, rows: pa.Table = ROWS) -> None:
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(rows, folder / "in" / name)


def test_a_transform_makes_the_key_and_files_become_one_commit(tmp_path: Path) -> None:
    land(tmp_path, "1.parquet", ROWS.slice(0, 2))
    land(tmp_path, "2.parquet", ROWS.slice(2))
    code, result = run(tmp_path, spec(tmp_path))
    assert code == 0, result.message
    found = open_table(str(tmp_path / "lake")).scan().to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == ["4-2013030123", "AA-2-2013010123", "UA-1-2013010123", "UA-1-2013020123"]
    assert found.column("tags").to_pylist() == [["b", "c"], [], ["a"], None]
    assert found.column("at").to_pylist()[0] == AT[3]
    assert sorted(path.name for path in (tmp_path / "lake" / "2013").iterdir()) == ["01", "02", "03"]
    assert "starting Spark" in (tmp_path / "progress.jsonl").read_text()

    code, result = run(tmp_path, spec(tmp_path, attempt="two"))
    assert (code, result.outcome) == (0, "NothingToDo")

    land(tmp_path, "3.parquet", ROWS.slice(0, 1).set_column(3, "ts", pa.array([5], pa.int64())))
    code, result = run(tmp_path, spec(tmp_path, attempt="three"))
    assert (result.figures["filesConsumed"], result.figures["recordsUpdated"]) == (1, 1)


def test_text_files_are_read_by_spark_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,ts\na,1\nb,2\n")
    sql = "select k id, ts, cast('2013-01-01' as timestamp) at from source where ts > 1"
    code, result = run(tmp_path, spec(tmp_path, sql, source={"format": "csv"}))
    assert code == 0, result.message
    assert open_table(str(tmp_path / "lake")).scan().to_arrow().column("id").to_pylist() == ["b"]


def test_text_files_have_the_types_that_are_said_on_spark_too(tmp_path: Path) -> None:
    """By the source's columns, and then by the table; and those of all rows where one comes
    late."""
    (tmp_path / "in").mkdir()
    sql = "select id, zip, price, ts, cast('2013-01-01' as timestamp) at from source"
    (tmp_path / "in" / "1.json").write_text('{"id":"a","zip":"01","price":1.10,"ts":1}\n')
    columns = {"zip": "string", "price": "decimal(20,2)"}
    code, result = run(tmp_path, spec(tmp_path, sql, source={"format": "json", "columns": columns}))
    assert code == 0, result.message
    rows = "".join(f'{{"id":"{number}","price":12345678901234567.89,"ts":1}}\n' for number in range(100_000))
    (tmp_path / "in" / "2.json").write_text(rows + '{"id":"late","zip":"02","price":1,"ts":2,"gate":"A1"}\n')
    code, result = run(tmp_path, spec(tmp_path, sql, attempt="two", source={"format": "json"}))
    assert code == 0, result.message
    found = open_table(str(tmp_path / "lake")).scan().to_arrow().sort_by("ts").select(["zip", "price"]).to_pylist()
    assert found[-1] == {"zip": "02", "price": 1}
    assert {str(row["price"]) for row in found[:-1]} == {"1.10", "12345678901234567.89"}


@pytest.mark.parametrize(
    ("sql", "name", "words"),
    [
        ("select colour from source", "InvalidRequest", "colour"),
        ("select * from source where", "InvalidRequest", "transform"),
        ("select 'x' other, at, ts from source", "InvalidSchema", "id"),
        ("select carrier id, at, ts from source", "InvalidData", "id"),
        ("select cast(carrier as int) id, at, ts from source", "InvalidData", "CAST_INVALID_INPUT"),
    ],
)
def test_a_transform_that_does_not_fit_leaves_nothing(tmp_path: Path, sql: str, name: str, words: str) -> None:
    land(tmp_path, "1.parquet")
    code, result = run(tmp_path, spec(tmp_path, sql))
    assert (code, result.error_class) == (64, name), result.message
    assert words in result.message
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


def test_a_file_that_is_damaged_inside_is_named(tmp_path: Path) -> None:
    land(tmp_path, "1.parquet")
    path = tmp_path / "in" / "1.parquet"
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    code, result = run(tmp_path, spec(tmp_path))
    assert (code, result.error_class) == (64, "InvalidData"), result.message
    assert "1.parquet" in result.message
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


@pytest.mark.s3
def test_sources_and_tables_on_s3_need_no_hadoop_filesystem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ACCESS["secret_access_key"])
    with running_s3() as server:
        sink = pa.BufferOutputStream()
        pq.write_table(ROWS, sink)
        server.client().put_object(Bucket=server.bucket, Key="in/1.parquet", Body=sink.getvalue().to_pybytes())
        location = f"s3://{server.bucket}/lake"
        storage = {
            "endpoint": server.endpoint,
            "region": "us-east-1",
            "credentials": ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
        }
        job = spec(tmp_path, source={"path": f"s3://{server.bucket}/in"}, table={"location": location}, storage=storage)
        code, result = run(tmp_path, job)
        assert code == 0, result.message
        assert open_table(location, storage_options=server.options).scan().count() == 4


def test_a_compaction_on_spark_makes_the_commit_that_was_planned_and_finds_nothing_more_to_do(spark, tmp_path) -> None:
    """Planned beside the job, executed by Spark's tasks."""
    (tmp_path / "in").mkdir()
    pq.write_table(ROWS, tmp_path / "in" / "1.parquet")
    asked = spec(tmp_path, table={"type": "MergeOnRead"})
    assert run(tmp_path, asked)[0] == 0
    table = open_table(f"file://{tmp_path}/lake")
    before = table.scan().to_arrow()
    table.upsert(before.slice(0, 2))
    job = JobSpec(
        "two",
        asked.table,
        {"type": "Compaction", "mode": "ScheduleAndExecute", "force": True},
        engine="Spark",
        progress=asked.progress,
    )
    code, result = run(tmp_path, job)
    assert (code, result.outcome) == (0, "Succeeded"), result.message
    assert result.figures["fileGroups"] >= 1
    assert not any(row["log_files"] for row in table.files().to_pylist() if row["latest"])
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == sorted(map(str, before.to_pylist()))
    code, result = run(tmp_path, job)
    assert (code, result.outcome) == (0, "NothingToDo")


def test_an_attempt_that_looked_before_another_committed_takes_no_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(tmp_path, "1.parquet", ROWS.slice(0, 2))

    def job() -> JobSpec:
        found = spec(tmp_path)
        found.work["operation"] = "Insert"
        return found

    def slept(asked: JobSpec, table: Any, *_: Any) -> Any:
        found = next_batch(asked, table)
        monkeypatch.setattr(ingest, "next_batch", next_batch)
        land(tmp_path, "2.parquet", ROWS.slice(2))
        run(tmp_path, job())
        return found

    monkeypatch.setattr(ingest, "next_batch", slept)
    late = run(tmp_path, job())[1]
    assert late.error_class == "WriteConflict", late.message
    assert open_table(str(tmp_path / "lake")).scan().count() == 4


def upstream_spec(folder: Path, attempt: str, **table: Any) -> JobSpec:
    source = {"type": "Hudi", "hudi": {"location": f"file://{folder}/above", "deletes": "Delete"}}
    sql = "select id, city, n * 2 n, _hoodie_is_deleted from source"
    work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": [{"sql": sql}]}
    told = {
        "name": "below",
        "location": f"file://{folder}/below",
        "recordKey": ["id"],
        "index": {"type": "Simple"},
        **table,
    }
    return JobSpec(attempt, told, work, engine="Spark", progress=str(folder / "progress.jsonl"))


@pytest.mark.thinned("values")
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("by", [[{"field": "city", "type": "Simple"}], []], ids=["partitioned", "flat"])
def test_another_table_is_followed_with_its_deletes_and_its_moves(
    tmp_path: Path, kind: TableTypeName, by: list[dict[str, str]]
) -> None:
    def rows(*found: tuple[str, str, int]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(("id", "city", "n"), each, strict=True)) for each in found])

    above = create_table(
        str(tmp_path / "above"), rows(("a", "x", 1)).schema, record_key="id", partition_by="city", type=kind,
        index={"type": "GlobalSimple"},
    )  # fmt: skip
    write_hudi(above, rows(("a", "x", 1), ("b", "x", 2), ("c", "y", 3), ("d", "y", 4)))
    run(tmp_path, upstream_spec(tmp_path, "one", partitionBy=by))
    write_hudi(above, rows(("a", "y", 5)))
    above.delete(rows(("b", "x", 0), ("c", "y", 0)))
    write_hudi(above, rows(("c", "y", 6), ("e", "x", 7)))
    code, result = run(tmp_path, upstream_spec(tmp_path, "two", partitionBy=by))
    assert (code, result.figures["instantsTaken"], result.figures["commits"]) == (0, 3, 1), result.message
    found = open_table(str(tmp_path / "below")).scan(["id", "city", "n"]).to_arrow().to_pylist()
    wanted = [("a", "y", 10), ("c", "y", 12), ("d", "y", 8), ("e", "x", 14)]
    assert sorted((row["id"], row["city"], row["n"]) for row in found) == wanted
