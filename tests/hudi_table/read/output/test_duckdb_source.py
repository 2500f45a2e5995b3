"""The DuckDB bridge: DuckDB's answers over a scan are those over the same rows in memory, and what
it hands down is not read.

Every type that DuckDB hands conditions of down, nulls, NaN, structs; joins of a table with itself;
errors; limits; early ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hudi_table import HudiTable, create_table
from hudi_table.read.files import stream
from hudi_table.read.output import duckdb_source
from hudi_table.read.plan import ScanPlan

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("big", pa.int64()),
        ("ratio", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("wall", pa.timestamp("us")),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("place", pa.struct([("gate", pa.string()), ("row", pa.int32())])),
    ]
)


def row(i: int) -> dict[str, Any]:
    empty = i % 7 == 3
    return {
        "id": f"k{i}",
        "city": ("sf", "ny", "rome")[i % 3],
        "n": None if empty else i % 11 - 5,
        "big": i * 10**12,
        "ratio": float("nan") if i % 5 == 0 else i / 4,
        "price": None if empty else Decimal(i) / 4,
        "day": None if empty else date(2013, 1, 1 + i % 28),
        "moment": datetime(2013, 1, 1 + i % 28, i % 24, tzinfo=UTC),
        "wall": datetime(2013, 1, 1 + i % 28, i % 24),  # noqa: DTZ001 - a wall clock
        "ok": None if empty else i % 2 == 0,
        "raw": None if empty else bytes([i % 4]),
        "place": None if empty else {"gate": "AB"[i % 2], "row": i % 3},
    }


ROWS = pa.Table.from_pylist([row(i) for i in range(200)], schema=SCHEMA)
CONDITIONS = [
    "n = 3", "n <> 3", "n > 2 and n < 5", "n between -1 and 1", "n in (1, 2, 3)", "n not in (1, 2)", "not (n = 1)", "n is null",
    "n is not null", "n = 1 or n is null", "n is distinct from 1", "n::varchar = '1'", "n + 1 = 2", "big = 5000000000000",
    "big > 9e13", "ratio > 30", "ratio = 'nan'", "ratio <> 2.5", "ratio < 3", "ratio >= 'nan'", "price = 2.25",
    "price in (0.25, 1)", "price > 2.255", "day = '2013-01-05'", "day >= date '2013-01-20'",
    "moment = timestamptz '2013-01-05 04:00:00Z'", "moment > timestamptz '2013-01-20 00:00:00+02'", "wall < timestamp '2013-01-03'", "ok",
    "not ok", "ok is null", "raw = '\\x01'::blob", "place.gate = 'A'", "place.row in (1, 2) and place.gate = 'B'",
    "place is null", "city = 'sf'", "city in ('sf', 'rome') and n > 0", "city like 's%'", "city > 'ny'", "id = 'k7'",
    "id in ('k7', 'k8', 'k150', 'none')", "id = 'k7' or id = 'k9'", "id in (select max(id) from t)", "false", "true",
    "n = (select max(n) from t where city = 'ny')",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    made = create_table(
        str(tmp_path_factory.mktemp("bridge") / "t"), SCHEMA, record_key="id", partition_by="city",
        index={"type": "Bucket", "buckets": 8},
    )  # fmt: skip
    made.upsert(ROWS)
    return made


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute("set TimeZone = 'UTC'")
        yield opened


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """What was read."""
    found: list[ScanPlan] = []

    def noted(context: Any, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        found.append(plan)
        return stream(context, plan)

    monkeypatch.setattr(duckdb_source, "stream", noted)
    return found


@pytest.mark.parametrize("by", ["source", "relation"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_answer_is_that_over_the_rows_in_memory(
    table: HudiTable, connection: duckdb.DuckDBPyConnection, condition: str, by: str
) -> None:
    query = f"select id, n, day, place from t where {condition} order by id"
    with duckdb.connect() as memory:
        memory.execute("set TimeZone = 'UTC'")
        memory.register("rows", ROWS)
        memory.execute("create table t as from rows")
        wanted = memory.sql(query).fetchall()
    if by == "source":
        connection.register("t", table.scan().duckdb_source())
    else:
        table.scan().to_duckdb(connection).create_view("t")
    assert connection.sql(query).fetchall() == wanted


@pytest.mark.parametrize(
    ("condition", "files"),
    [("true", 24), ("city = 'sf'", 8), ("city in ('sf', 'ny')", 16), ("id = 'k7'", 3), ("id in ('k6') and city = 'sf'", 1)],
)  # fmt: skip
def test_columns_and_conditions_are_handed_down(
    table: HudiTable, connection: duckdb.DuckDBPyConnection, plans: list[ScanPlan], condition: str, files: int
) -> None:
    connection.register("t", table.scan().duckdb_source())
    connection.sql(f"select sum(n) from t where {condition}").fetchall()
    (plan,) = plans
    assert len(plan.slices) == files
    assert set(plan.reads.names) <= {"n", "id", "city"}


@pytest.mark.parametrize("condition", ["ratio = 0", "ratio in (0.0, 7.0)", "near = 0", "near in (0.0, 7.0)"])
def test_both_zeros_of_a_column_with_logs_are_found(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection, condition: str
) -> None:
    rows = pa.table(
        {"id": ["a", "b", "c"], "ratio": [-0.0, 0.0, 1.0], "near": pa.array([-0.0, 0.0, 1.0], pa.float32())}
    )
    made = create_table(str(tmp_path / "t"), rows.schema, record_key="id", type="MergeOnRead")
    made.upsert(rows)
    made.upsert(rows.slice(2))
    made.upsert(rows.slice(2))
    found = made.scan().to_duckdb(connection).filter(condition).project("id").order("id").fetchall()
    assert found == [("a",), ("b",)]


def test_a_join_with_itself_reads_one_snapshot(table: HudiTable, connection: duckdb.DuckDBPyConnection) -> None:
    connection.register("t", table.scan(filter="n > 0").duckdb_source())
    (found,) = connection.sql("select count(*) from t a join t b using (id) where b.n > 0").fetchall()
    assert found == (table.scan(filter="n > 0").count(),)


def test_a_limit_counts_before_conditions(table: HudiTable, connection: duckdb.DuckDBPyConnection) -> None:
    scan = table.scan(limit=10)
    wanted = scan.to_arrow().filter(pa.compute.field("n") > 0).num_rows
    assert scan.to_duckdb(connection).filter("n > 0").aggregate("count(*)").fetchall() == [(wanted,)]


def test_what_ends_early_stops_the_reading_threads(table: HudiTable, connection: duckdb.DuckDBPyConnection) -> None:
    before = threading.active_count()
    reader = table.scan().to_duckdb(connection).to_arrow_reader(1)
    assert reader.read_next_batch().num_rows == 1
    del reader
    connection.close()
    assert threading.active_count() <= before


def test_an_error_of_a_scan_is_kept(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    made = create_table(str(tmp_path / "t"), SCHEMA, record_key="id")
    made.upsert(ROWS)
    source = made.scan().duckdb_source()
    (path,) = made.scan().plan_files()["path"].to_pylist()
    Path(path).write_bytes(b"PAR1")
    connection.register("t", source)
    with pytest.raises((duckdb.Error, pa.ArrowException, OSError)):
        connection.sql("select count(n) from t").fetchall()
    assert Path(path).name in str(source.failure)
