"""An export: all rows of one moment, once, in files that other engines read; what stops it is seen,
and what comes next misses nothing."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_table import HudiTable, InvalidOptionError, InvalidRequestError, UnavailableError, create_table
from hudi_table.read.output import export as exporting
from hudi_table.read.output.export import NULL_PARTITION, export
from hudi_table.table.store.opening import open_storage
from tests.support.faults import Fault, FaultPlan, FaultyStorage

ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "city": ["são/paulo", "a=b", None] * 100,
        "fare": pa.array([Decimal("1.50"), None, Decimal("-2.25")] * 100, pa.decimal128(9, 2)),
        "day": pa.array([date(2026, 1, 1 + i % 3) for i in range(300)], pa.date32()),
        "text": ['comma, "quote"', "line\nbreak", ""] * 100,
    }
)


def new_table(tmp_path: Path, rows: pa.Table = ROWS, **more: object) -> HudiTable:
    made = create_table(str(tmp_path / "t"), rows.schema, record_key="id", **more)  # type: ignore[arg-type]
    made.upsert(rows)
    return made


def by_id(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.to_pylist(), key=lambda row: str(row["id"]))


def told(folder: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / name).read_text())
    return found


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_every_row_is_there_once(tmp_path: Path, form: str) -> None:
    target = tmp_path / "out"
    done = new_table(tmp_path).scan().export(str(target), form)
    assert (done.rows, done.files) == (300, 1)
    (path,) = target.glob(f"part-*.{form}")
    read = {
        "parquet": "read_parquet('{}')",
        "csv": "read_csv('{}', allow_quoted_nulls=false)",
        "jsonl": "read_json('{}')",
    }
    asked = "id, city, fare::decimal(9, 2) as fare, day::date as day, text"
    with duckdb.connect() as connection:
        found = pa.table(connection.query(f"select {asked} from {read[form].format(path)}"))
    assert by_id(found.cast(ROWS.schema)) == by_id(ROWS)


def test_partitions_are_folders_that_other_engines_take_for_columns(tmp_path: Path) -> None:
    target = tmp_path / "out"
    done = new_table(tmp_path).scan().export(str(target), partition_by=["city", "day"])
    assert done.files == 3
    names = {path.parent.relative_to(target).as_posix() for path in target.rglob("*.parquet")}
    assert names == {
        "city=são%2Fpaulo/day=2026-01-01",
        "city=a%3Db/day=2026-01-02",
        f"city={NULL_PARTITION}/day=2026-01-03",
    }
    assert all(pq.read_schema(path).names == ["id", "fare", "text"] for path in target.rglob("*.parquet"))
    kinds = pa.schema([("city", pa.string()), ("day", pa.date32())])
    hive = ds.dataset(target, partitioning=ds.partitioning(kinds, flavor="hive"), exclude_invalid_files=False)
    assert by_id(hive.to_table().select(ROWS.column_names)) == by_id(ROWS)


def test_files_have_bounds_in_size_and_number_and_no_row_is_lost_by_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FILE_BYTES", 2000), ("CHUNK_BYTES", 1), ("OPEN_MAX", 1)):
        monkeypatch.setattr(exporting, name, value)
    target = tmp_path / "out"
    batches = ROWS.to_batches(max_chunksize=7)
    rows = pa.RecordBatchReader.from_batches(ROWS.schema, batches)
    done = export(rows, open_storage(str(target)), "parquet", ["city"], {}, lambda: "")
    assert done.files > 60
    found = pa.concat_tables(pq.ParquetFile(path).read() for path in target.rglob("*.parquet"))
    assert sorted(found.column("id").to_pylist()) == list(range(300))


def test_a_table_without_rows_leaves_a_file_with_its_columns(tmp_path: Path) -> None:
    target = tmp_path / "out"
    done = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id").scan().export(str(target))
    assert (done.rows, done.files, done.next_since) == (0, 1, "earliest")
    assert pq.read_table(next(target.glob("*.parquet"))).schema.names == ROWS.schema.names


def test_exports_that_follow_each_other_miss_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.scan().export(str(tmp_path / "a"))
    table.upsert(ROWS.slice(0, 2).set_column(4, "text", pa.array(["new", "new"])))
    gone = table.delete(ROWS.slice(5, 1).select(["id"]))
    second = table.scan(query="incremental", since=first.next_since).export(str(tmp_path / "b"), "jsonl")
    (path,) = (tmp_path / "b").glob("*.jsonl")
    assert [json.loads(line)["text"] for line in path.read_text().splitlines()] == ["new", "new"]
    changes = table.changes(since=first.next_since).export(str(tmp_path / "c"), "jsonl")
    (path,) = (tmp_path / "c").glob("*.jsonl")
    assert sorted(json.loads(line)["op"] for line in path.read_text().splitlines()) == ["d", "u", "u"]
    assert first.next_since < second.next_since == changes.next_since == gone.moment
    assert told(tmp_path / "b", "_SUCCESS")["nextSince"] == second.next_since
    assert told(tmp_path / "b", "_export.json")["since"] == first.next_since


def test_the_next_one_begins_before_a_write_that_was_pending(tmp_path: Path) -> None:
    """Its instant is earlier than that of a write that completed: who begins after that one never
    sees its rows."""
    table = new_table(tmp_path, version=6)
    before = table.timeline().column("instant")[-1].as_py()
    pending = tmp_path / "t" / ".hoodie" / f"{int(before) + 1}.commit.requested"
    pending.write_bytes(b"")
    table = HudiTable(table.context)
    table.upsert(ROWS.slice(0, 1))
    assert table.scan().export(str(tmp_path / "out")).next_since == before


def test_changes_with_a_limit_are_refused_for_the_next_export_would_pass_over_the_rest(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.scan().export(str(tmp_path / "a"))
    table.upsert(ROWS.slice(0, 5))
    some = table.scan(query="incremental", since=first.next_since, limit=2)
    for rows in (some, table.changes(since=first.next_since, limit=2)):
        with pytest.raises(
            InvalidOptionError, match=r"limit is 2 .* the next export would pass over the other changes"
        ):
            rows.export(str(tmp_path / "b"))
    assert not (tmp_path / "b").exists()
    assert some.to_arrow().num_rows == 2


def test_behind_a_sample_the_next_export_begins_with_the_earliest(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    done = table.scan(limit=2).export(str(tmp_path / "a"))
    assert table.scan(query="incremental", since=done.next_since).export(str(tmp_path / "b")).rows == 300


@pytest.mark.parametrize("place", ["t", "t/exported", ""])
def test_a_place_inside_the_table_or_around_it_is_refused(tmp_path: Path, place: str) -> None:
    table = new_table(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidRequestError, match="lie one inside the other: name a place beside it"):
        table.scan().export(str(tmp_path / place))
    (tmp_path / "link").symlink_to(tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="lie one inside the other"):
        table.changes().export(str(tmp_path / "link" / "x"))
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "link"])
    assert table.scan().export(str(tmp_path / "t2")).rows == 300


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(InvalidRequestError, match=r"is not empty, mine\.txt is there: export into another folder"):
        table.scan().export(str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("form", "partition_by", "said"),
    [
        ("orc", [], "format 'orc' is not known: give one of parquet, csv, jsonl"),
        ("csv", [], "CSV cannot hold the nested column 'n': leave it out, or take jsonl or parquet"),
        ("csv", ["n"], "has no text: name another column"),
        ("parquet", ["nope"], "partition_by names 'nope', which is no column of the rows: id, n"),
        ("parquet", ["n"], "has no text: name another column"),
        ("parquet", ["id", "n"], "names 'n'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, form: str, partition_by: list[str], said: str
) -> None:
    table = new_table(tmp_path, pa.table({"id": [1], "n": [[1, 2]]}))
    with pytest.raises(InvalidOptionError, match=said):
        table.scan().export(str(tmp_path / "out"), form, partition_by=partition_by)
    with pytest.raises(InvalidOptionError, match="names every column"):
        table.scan(["id"]).export(str(tmp_path / "out"), partition_by=["id"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [b"\xff", b"text"])
def test_bytes_are_no_text_of_csv_whatever_they_are(tmp_path: Path, value: bytes) -> None:
    table = new_table(tmp_path, pa.table({"id": [1], "raw": pa.array([value])}))
    said = "CSV cannot hold the binary column 'raw': leave it out, or take jsonl or parquet"
    with pytest.raises(InvalidOptionError, match=said):
        table.scan().export(str(tmp_path / "out"), "csv")
    assert not (tmp_path / "out").exists()
    assert table.scan(["id"]).export(str(tmp_path / "out"), "csv").rows == 1


def test_an_export_that_fails_has_no_success_and_is_not_written_into(tmp_path: Path) -> None:
    """At each storage call that it makes: the folder never looks whole, and the next export names
    what lies there."""
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=100))
    counting = FaultPlan()
    export(reader, FaultyStorage(open_storage(str(tmp_path / "whole")), counting), "parquet", ["day"], {}, lambda: "")
    assert len(counting.calls) > 5
    for number in range(1, len(counting.calls) + 1):
        store = open_storage(str(tmp_path / f"out{number}"))
        plan = FaultPlan(at=number, fault=Fault.UNAVAILABLE)
        reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=100))
        with pytest.raises(UnavailableError):
            export(reader, FaultyStorage(store, plan), "parquet", ["day"], {}, lambda: "")
        there = {info.path for info in store.list()}
        assert "_SUCCESS" not in there
        if there:
            with pytest.raises(InvalidRequestError, match="an export that has not ended is there"):
                export(ROWS.to_reader(), store, "parquet", [], {}, lambda: "")
