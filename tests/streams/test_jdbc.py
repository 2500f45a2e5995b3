"""Rows of a real PostgreSQL in a table, beside what `test_jdbc_both.py` asks of each database: read
in parts from one state, types, and what is refused with which words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.sources.jdbc import source
from hudi_table.sources.jdbc.postgres_columns import columns_of
from tests.support.databases import POSTGRES, Database
from tests.support.postgres import PASSWORD, USER, Server, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as found:
        yield found


@pytest.fixture
def database(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(server, POSTGRES, tmp_path)


GROWS = {"incremental": {"column": "at"}}


def test_parts_are_read_at_once_from_one_state_and_hold_each_row_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do(
        "create table $t (id int, at timestamptz, d date)",
        "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '37 min', '2026-01-01'::date + i / 9 from generate_series(1, 2000) i",
        "insert into $t values (0, null, null), (-5, 'infinity', 'infinity')",
    )
    real = source._reading

    def meanwhile(*arguments: Any) -> Any:
        """Rows that come once the state is chosen."""
        database.do("insert into $t values (9999, '2030-01-01Z', '2030-01-01')")
        return real(*arguments)

    monkeypatch.setattr(source, "_reading", meanwhile)
    for number, column in enumerate(("id", "at", "d")):
        split = {"column": column, "parts": 5}
        database.good(split=split, infinite="AsNull", filter=f"{number} = {number} and id < 9999")
        ids = [row["id"] for row in database.rows("id")]
        assert ids == [-5, *range(2001)]
        database.do("update $t set at = at + interval '1 s' where id = 5")
    monkeypatch.setattr(source, "_reading", real)
    assert database.good(split={"column": "id", "parts": 16}, infinite="AsNull").figures["rowsRead"] >= 2003


def test_types_are_those_of_the_database(database: Database) -> None:
    database.do(
        "create table $t (id uuid, i2 smallint, f real, n numeric(12,3), b bool, t text, j jsonb, y bytea, d date, "
        "ts timestamp, tz timestamptz, tm time, a int[], ip inet, free numeric)",
        "insert into $t values ('11111111-2222-3333-4444-555555555555', 1, 1.5, 12.345, true, 'x', '{\"a\": 1}', '\\x0102', "
        "'2026-01-02', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '03:04:05', '{1,2}', '10.0.0.1', 7.5)",
    )
    without = database.run()
    assert (without.error_class, "column free is numeric without precision" in without.message) == (
        "InvalidSchema",
        True,
    )
    database.good(columns={"free": "decimal(20,4)"})
    (row,) = database.rows("id", "n", "j", "y", "d", "ts", "tz", "tm", "a", "ip", "free")
    assert row["tm"] == "03:04:05"
    assert (row["id"], str(row["n"]), json.loads(row["j"])) == (
        "11111111-2222-3333-4444-555555555555",
        "12.345",
        {"a": 1},
    )
    assert (row["y"], str(row["d"]), row["a"], row["ip"], str(row["free"])) == (b"\1\2", "2026-01-02", [1, 2], "10.0.0.1/32", "7.5000")  # fmt: skip
    assert (row["ts"].microsecond, row["tz"].isoformat()) == (678901, "2026-01-02T01:04:05+00:00")
    database.do("insert into $t (id, free) values ('11111111-2222-3333-4444-555555555556', 'NaN')")
    refused = database.run(columns={"free": "decimal(20,4)"})
    assert (refused.error_class, "column free holds a value that decimal128(20, 4) does not" in refused.message) == ("InvalidData", True)  # fmt: skip


@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_column_that_the_database_gets_is_refused_or_taken_as_the_policy_says(
    database: Database, engine: str
) -> None:
    database.engine = engine
    strict, adds, split = {"schemaPolicy": "Refuse"}, {"schemaPolicy": "AddColumns"}, {"column": "id", "parts": 2}
    database.do("create table $t (id int, n int, t text)", "insert into $t values (1, 1, 'x')")
    database.good(work=strict, split=split)
    database.do("alter table $t add column more date", "alter table $t drop column t", "insert into $t values (2, 2)")
    refused = database.run(work=strict, split=split)
    assert refused.error_class == "InvalidSchema", refused.message
    assert "added: more (date32[day]); missing: t (string)" in refused.message
    assert len(database.rows("id")) == 1
    database.good(work=adds, split=split)
    database.do("alter table $t alter column n type bigint", "update $t set n = 1::bigint << 40 where id = 2")
    refused = database.run(work=adds, split=split)
    assert (refused.error_class, "changed: n int32 -> int64" in refused.message) == ("InvalidSchema", True)
    database.good(work={"schemaPolicy": "Widen"}, split=split)
    assert [row["n"] for row in database.rows("id", "n")] == [1, 1 << 40]


def test_dates_without_an_end_are_refused_or_null(database: Database) -> None:
    database.do("create table $t (id int, d date, ts timestamp)", "insert into $t values (1, 'infinity', '-infinity')")
    refused = database.run()
    assert refused.error_class == "InvalidData"
    assert "column d holds a date that is infinite" in refused.message
    database.good(infinite="AsNull")
    assert database.rows("id", "d", "ts") == [{"id": 1, "d": None, "ts": None}]


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"table": "nope"}, "InvalidRequest", 'relation "nope" does not exist'),
        ({"filter": "bad syntax here"}, "InvalidRequest", "syntax error"),
        ({"filter": "1 / (id - id) > 0"}, "InvalidData", "division by zero"),
        ({"query": "delete from $t returning id"}, "InvalidRequest", "does not take what jdbc asks for"),
        ({"query": "select 1 as id; select 2 as id"}, "InvalidRequest", "syntax error"),
        ({"incremental": {"column": "n"}}, "InvalidRequest", "jdbc.incremental.column n is text"),
        ({"incremental": {"column": "gone"}}, "InvalidRequest", "jdbc.incremental.column 'gone' is no column"),
        ({"split": {"column": "n", "parts": 2}}, "InvalidRequest", "jdbc.split.column n is text"),
        ({"split": {"column": "id", "parts": 99}}, "InvalidRequest", "give 1 to 16"),
        ({"query": "select id, id from $t"}, "InvalidSchema", "column 'id' twice"),
        ({"columns": {"n": "int"}}, "InvalidData", "column n holds a value that int32 does not"),
        ({"columns": {"gone": "int"}}, "InvalidSchema", "source.columns names 'gone'"),
        ({"url": "oracle://db/shop"}, "InvalidRequest", "no postgresql://, mysql:// or mariadb://host[:port]/database"),
        ({"url": "postgresql://user:secret@db/shop"}, "InvalidRequest", "without user and options"),
        ({"url": "postgresql://127.0.0.1:1/shop"}, "Unavailable", "the database at 127.0.0.1:1/shop does not answer"),
        ({"tls": "Require"}, "Unavailable", "does not support SSL"),
        ({"tls": "VerifyFull"}, "InvalidRequest", "needs DATABASE_CA"),
        ({**GROWS, "work": {"operation": "Insert"}}, "InvalidRequest", "only operation Upsert"),
    ],
)
def test_what_cannot_be_read_is_told(database: Database, how: dict[str, Any], error: str, words: str) -> None:
    database.do("create table $t (id int, n text, at timestamp)", "insert into $t values (1, 'a', '2026-01-01')")
    failed = database.run(**how)
    assert (failed.error_class, words in failed.message) == (error, True), failed.message
    assert PASSWORD not in failed.message


def test_a_column_of_whatever_name_does_not_hide_that_others_have_changed(database: Database) -> None:
    database.do("create table $t (id int, told text, n int)", "insert into $t values (1, 'same', 1)")
    database.good()
    database.do("update $t set n = 2")
    database.good()
    assert [row["n"] for row in database.rows("id", "n")] == [2]


def test_a_driver_that_tells_no_types_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="needs adbc-driver-postgresql"):
        columns_of(pa.schema([("id", pa.int32())]), pa.schema([]))
