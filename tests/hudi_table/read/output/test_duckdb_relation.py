"""`to_duckdb`: DuckDB reads base files itself where that comes to the rows of the scan, and asks
the scan for the rest."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from hudi_table import HudiTable, create_table, open_table
from hudi_table.read.output import engine_files
from tests.support.arrow_types import tables
from tests.support.scale import scaled

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int32()), ("ratio", pa.float32())])
ROWS = pa.table(
    {
        "id": [f"k{i}" for i in range(60)],
        "city": [("sf", "ny", "rome")[i % 3] for i in range(60)],
        "n": [None if i % 7 == 3 else i for i in range(60)],
        "ratio": [float("nan") if i % 5 == 0 else i / 4 for i in range(60)],
    },
    schema=SCHEMA,
)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute("set TimeZone = 'UTC'")
        yield opened


def made(base: Path, rows: pa.Table = ROWS, **more: Any) -> HudiTable:
    table = create_table(str(base), rows.schema, **({"record_key": "id", "partition_by": "city"} | more))
    table.upsert(rows)
    return table


def read_by_duckdb(relation: duckdb.DuckDBPyRelation) -> int:
    """How many lists of files DuckDB reads by itself."""
    return str(relation.explain()).count("READ_PARQUET")


def streamed(relation: duckdb.DuckDBPyRelation) -> int:
    """How many streams of ours it takes rows from."""
    return str(relation.explain()).count("ARROW_SCAN")


def check_rows(table: HudiTable, connection: duckdb.DuckDBPyConnection, **scan: Any) -> duckdb.DuckDBPyRelation:
    """The relation, whose rows and types are those of the scan in memory."""
    relation = table.scan(**scan).to_duckdb(connection)
    wanted = connection.from_arrow(table.scan(**scan).to_arrow())
    assert relation.columns == wanted.columns
    assert relation.types == wanted.types
    assert sorted(map(str, relation.fetchall())) == sorted(map(str, wanted.fetchall()))
    return relation


@settings(max_examples=scaled(30), deadline=None)
@given(tables())
def test_every_type_comes_as_the_scan_gives_it(rows: pa.Table) -> None:
    rows = rows.append_column("id", pa.array([f"k{i}" for i in range(len(rows))], pa.string()))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        table = made(Path(folder) / "t", rows, partition_by=None)
        relation = check_rows(table, connection)
        if len(rows):
            assert read_by_duckdb(relation) == 1


@pytest.mark.parametrize("meta", [False, True])
def test_files_without_logs_are_read_by_duckdb(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, meta: bool
) -> None:
    relation = check_rows(made(tmp_path / "t"), connection, meta=meta)
    assert (read_by_duckdb(relation), streamed(relation)) == (1, 0)


def test_columns_come_in_the_wanted_order(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    relation = check_rows(made(tmp_path / "t"), connection, columns=["ratio", "_hoodie_record_key", "id"])
    assert read_by_duckdb(relation) == 1


def test_slices_with_logs_are_merged_beside_files_that_duckdb_reads(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    table.upsert(ROWS.filter(pa.compute.field("city") == "ny").set_column(2, "n", pa.array([-1] * 20, pa.int32())))
    relation = check_rows(table, connection)
    assert (read_by_duckdb(relation), streamed(relation)) == (1, 1)
    assert relation.filter("n = -1").aggregate("count(*), min(city)").fetchall() == [(20, "ny")]
    assert relation.filter("city = 'sf'").aggregate("count(*)").fetchall() == [(20,)]


def test_columns_and_conditions_reach_the_files_and_the_merge(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    query = "explain select sum(n) from relation where id = 'k1' and ratio < 3"
    conditions = ["id = 'k1'", "ratio < 3.0"], ["\"id\" = 'k1'", '"ratio" < 3.0']
    for readers in (["READ_PARQUET"], ["READ_PARQUET", "ARROW_SCAN"]):
        explained = table.scan().to_duckdb(connection).query("relation", query)
        assert explained is not None
        plan = str(explained.fetchall()[0][1])
        for reader, wanted in zip(readers, conditions, strict=False):
            assert plan.count(reader) == 1
            assert all(condition in plan for condition in wanted), plan
        # The columns of the conditions are read for them alone.
        assert plan.count("Projections: n") == 1 + len(readers)
        table.upsert(ROWS.slice(0, 1))


def test_files_of_an_older_schema_have_the_columns_of_today(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    table = made(tmp_path / "t", index={"type": "Simple"})
    wide = pa.table(
        {
            "id": ["k1", "new"],
            "city": ["ny", "paris"],
            "n": [5_000_000_000, None],
            "ratio": [0.1, 1e300],
            "tag": ["a", None],
        },
        schema=pa.schema(
            [
                ("id", pa.string()),
                ("city", pa.string()),
                ("n", pa.int64()),
                ("ratio", pa.float64()),
                ("tag", pa.string()),
            ]
        ),
    )
    table.upsert(wide)
    relation = check_rows(open_table(str(tmp_path / "t")), connection)
    assert (read_by_duckdb(relation), streamed(relation)) == (2, 0)
    assert relation.filter("tag = 'a'").fetchall() == [("k1", "ny", 5_000_000_000, 0.1, "a")]
    relation.create_view("rows_of_two")
    assert connection.sql("select count(*) from rows_of_two one join rows_of_two other using (id)").fetchall() == [
        (61,)
    ]


@pytest.mark.parametrize("name", ["a*b", "a[x]b", "q?%20'q\"", "{a,b}", "**", "back\\slash", "new\nline", "é #;--"])
def test_a_folder_may_have_any_name(tmp_path: Path, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    made(tmp_path / "axb", ROWS.slice(0, 3))
    relation = check_rows(made(tmp_path / name, name="t"), connection)
    assert read_by_duckdb(relation) == 1


@pytest.mark.parametrize(
    "scan",
    [{"filter": "n > 3"}, {"query": "incremental", "since": "earliest"}, {"limit": 7}],
    ids=["filter", "incremental", "limit"],
)
def test_what_chooses_rows_is_left_to_the_scan(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, scan: dict[str, Any]
) -> None:
    assert read_by_duckdb(check_rows(made(tmp_path / "t"), connection, **scan)) == 0


def test_a_past_snapshot_is_read_from_its_own_files(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    table = made(tmp_path / "t")
    before = table.history()["instant"][0].as_py()
    table.delete(ROWS.slice(0, 30))
    relation = check_rows(table, connection, as_of=before)
    assert read_by_duckdb(relation) == 1
    assert len(relation) == 60


def test_a_relation_keeps_to_the_snapshot_of_its_call(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    table.upsert(ROWS.slice(0, 1))
    relation = table.scan().to_duckdb(connection)
    table.delete(ROWS.slice(0, 30))
    assert len(relation.fetchall()) == 60
    assert len(table.scan().to_duckdb(connection).fetchall()) == 30


def test_a_file_that_goes_before_the_relation_is_run_is_named(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    table = made(tmp_path / "t")
    relation = table.scan().to_duckdb(connection)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    path.unlink()
    with pytest.raises(duckdb.IOException, match=path.name[:36]):
        relation.fetchall()


def test_a_scan_that_handed_over_files_makes_no_newer_plan(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    table = made(tmp_path / "t")
    scan = table.scan()
    scan.to_duckdb(connection)
    for number in (10, 20, 30):
        table.delete(ROWS.slice(number, 10))
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    with pytest.raises(Exception, match="cleaned"):
        scan.to_arrow()


def test_a_connection_without_files_gets_the_stream(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        assert read_by_duckdb(check_rows(table, connection)) == 0


def test_a_table_in_memory_gets_the_stream(connection: duckdb.DuckDBPyConnection) -> None:
    table = create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id")
    table.upsert(ROWS)
    assert read_by_duckdb(check_rows(table, connection)) == 0


def test_very_many_files_are_pruned_by_the_scan(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_files, "FILES_MAX", 2)
    assert read_by_duckdb(check_rows(made(tmp_path / "t"), connection)) == 0


def test_a_table_without_rows_has_its_columns(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    table = create_table(str(tmp_path / "t"), SCHEMA, record_key="id")
    check_rows(table, connection)


@pytest.mark.parametrize(
    ("change", "handed"),
    [
        (lambda rows: rows, 1),
        (lambda rows: rows.set_column(2, "n", rows["n"].cast(pa.int64())), 0),
        (lambda rows: rows.set_column(1, "city", rows["city"].cast(pa.binary())), 0),
        (lambda rows: rows.rename_columns(["id", "city", "N", "ratio"]), 0),
        (lambda rows: rows.append_column("CITY", rows["n"]), 0),
        (lambda rows: rows.append_column("old", rows["n"]), 1),
        (lambda rows: rows.drop_columns(["ratio"]), 1),
    ],
    ids=["as it is", "narrowed", "bytes for text", "another case", "two cases", "more", "lacking"],
)
def test_a_file_that_means_something_else_is_left_to_the_scan(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, change: Callable[[pa.Table], pa.Table], handed: int
) -> None:
    table = made(tmp_path / "t", partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    pq.write_table(change(ROWS), path, store_schema=False)
    assert read_by_duckdb(check_rows(table, connection)) == handed


def test_times_of_96_bits_are_left_to_the_scan(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"id": ["a"], "t": pa.array([-62135596800000000], pa.timestamp("us"))})
    table = made(tmp_path / "t", rows, partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    pq.write_table(rows, path, store_schema=False, use_deprecated_int96_timestamps=True)
    assert read_by_duckdb(check_rows(table, connection)) == 0


def test_a_link_that_leads_out_of_the_table_is_refused(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    table = made(tmp_path / "t", partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    shutil.move(path, tmp_path / "outside.parquet")
    os.symlink(tmp_path / "outside.parquet", path)
    with pytest.raises(Exception, match="symbolic link"):
        table.scan().to_duckdb(connection).fetchall()


def test_a_damaged_footer_is_our_error(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    table = made(tmp_path / "t", partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(Exception, match="check sum of its footer"):
        table.scan().to_duckdb(connection).fetchall()
