"""Types of a real MariaDB in a table, each to its last digit; and values that are of none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.sources.jdbc.mysql_sql import MysqlSql
from tests.support.databases import MARIADB, Database
from tests.support.mariadb import PASSWORD, USER, Server

GROWS: dict[str, Any] = {"incremental": {"column": "at"}}
SQL = MysqlSql()


@pytest.fixture
def database(mariadb_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(mariadb_server, MARIADB, tmp_path)


COLUMNS = {
    "ti": ("tinyint", "-128", -128), "tu": ("tinyint unsigned", "255", 255), "tb": ("tinyint(1)", "true", 1),
    "si": ("smallint", "-32768", -32768), "su": ("smallint unsigned", "65535", 65535),
    "mi": ("mediumint", "-8388608", -8388608), "mu": ("mediumint unsigned", "16777215", 16777215),
    "ii": ("int", "-2147483648", -2147483648), "iu": ("int unsigned", "4294967295", 4294967295),
    "bi": ("bigint", "-9223372036854775808", -9223372036854775808),
    "bu": ("bigint unsigned", "18446744073709551615", Decimal(18446744073709551615)),
    "dm": ("decimal(38,10)", "9999999999999999999999999999.9999999999", Decimal("9999999999999999999999999999.9999999999")),
    "dn": ("decimal(38,10)", "-0.0000000001", Decimal("-0.0000000001")), "d0": ("decimal(5)", "-12345", Decimal(-12345)),
    "fl": ("float", "16777217.0", 16777216.0), "db": ("double", "0.1", 0.1),
    "b1": ("bit(1)", "b'1'", True), "b9": ("bit(9)", "b'100000001'", 257),
    "bx": ("bit(64)", "0xFFFFFFFFFFFFFFFF", Decimal(18446744073709551615)),
    "ch": ("char(4)", "'ab'", "ab"), "vc": ("varchar(50)", "'😀 é \\\\ \\' \"'", "😀 é \\ ' \""),
    "vb": ("varchar(50) collate utf8mb4_bin", "'Zß'", "Zß"), "la": ("varchar(9) character set latin1", "'é'", "é"),
    "tx": ("longtext", "repeat('😀', 70000)", "😀" * 70000), "bn": ("binary(3)", "0x8000", b"\x80\0\0"),
    "bl": ("longblob", "0xff00fe", b"\xff\0\xfe"), "em": ("varbinary(4)", "''", b""),
    "da": ("date", "'9999-12-31'", dt.date(9999, 12, 31)),
    "dd": ("datetime", "'2026-01-02 03:04:05'", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    "d6": ("datetime(6)", "'0001-01-01 00:00:00.000001'", dt.datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)),
    "ts": ("timestamp(6) null", "'2026-01-02 03:04:05.678901'", dt.datetime(2026, 1, 2, 6, 4, 5, 678901, tzinfo=dt.UTC)),
    "t1": ("timestamp(1) null", "'2026-01-02 03:04:05.5'", dt.datetime(2026, 1, 2, 6, 4, 5, 500000, tzinfo=dt.UTC)),
    "tm": ("time(6)", "'-838:59:59.000001'", "-838:59:59.000001"), "ye": ("year", "2155", 2155),
    "en": ("enum('a','b')", "'b'", "b"), "st": ("set('x','y')", "'x,y'", "x,y"),
    "js": ("json", "'{\"b\": 1.10, \"a\": 12345678901234567890123}'", '{"b": 1.10, "a": 12345678901234567890123}'),
    "uu": ("uuid", "'11111111-2222-3333-4444-555555555555'", "11111111-2222-3333-4444-555555555555"),
    "ip": ("inet4", "'10.0.0.1'", "10.0.0.1"), "select": ("int", "5", 5),
}  # fmt: skip
"""Name → type, value in SQL, value in the table. The server thinks three hours behind UTC."""


def made(*rows: str) -> list[str]:
    names = ", ".join(f"{SQL.quoted(name)} {kind}" for name, (kind, _, _) in COLUMNS.items())
    return [f"create table $t (id int primary key, {names}, hidden int invisible default 7)", *rows]


def test_every_value_of_every_type_is_exact(database: Database) -> None:
    values = ", ".join(value for _, value, _ in COLUMNS.values())
    names = ", ".join(SQL.quoted(name) for name in COLUMNS)
    database.do(*made(f"insert into $t (id, {names}) values (1, {values})", "insert into $t (id) values (2)"))
    database.good()
    full, empty = database.rows()
    assert {name: full[name] for name in COLUMNS} == {name: expected for name, (_, _, expected) in COLUMNS.items()}
    assert {empty[name] for name in COLUMNS} == {None}
    assert "hidden" not in full
    assert database.run().outcome == "NothingToDo"


def test_a_change_of_any_value_is_seen(database: Database) -> None:
    database.do(*made("insert into $t (id) values (1)"))
    database.good()
    for name in ("tu", "bu", "dn", "b9", "vc", "tx", "bl", "em", "d6", "ts", "tm", "ye", "en", "js"):
        database.do(f"update $t set {name} = {COLUMNS[name][1]}")
        database.good()
    (row,) = database.rows()
    assert (row["em"], row["js"], database.run().outcome) == (b"", COLUMNS["js"][2], "NothingToDo")


def test_the_last_bit_of_a_float_counts_as_a_change(database: Database) -> None:
    database.do("create table $t (id int, f float)", "insert into $t values (1, 16777214)")
    database.good()
    database.do("update $t set f = 16777215")
    database.good()
    assert database.rows("id", "f") == [{"id": 1, "f": 16777215.0}]


def test_a_query_has_types_too_and_a_decimal_of_it_needs_one(database: Database) -> None:
    database.do(
        "create table $t (id int, n decimal(20,4), ts timestamp(6) null, b bigint unsigned)",
        "insert into $t values (1, 1.5, '2026-01-02 03:04:05', 18446744073709551615)",
    )
    refused = database.run(query="select id, n from $t")
    assert (refused.error_class, "column n of the query is a decimal" in refused.message) == ("InvalidSchema", True)
    query: dict[str, Any] = {
        "query": "select id, n * 2 as n, ts, b, 'x' as x from $t",
        "incremental": {"column": "ts", "lag": 5},
    }
    database.good(columns={"n": "decimal(20,4)"}, **query)
    (row,) = database.rows()
    assert (row["n"], row["x"], row["b"]) == (Decimal("3.0000"), "x", Decimal(18446744073709551615))
    assert row["ts"] == dt.datetime(2026, 1, 2, 6, 4, 5, tzinfo=dt.UTC)
    assert database.run(columns={"n": "decimal(20,4)"}, **query).outcome == "NothingToDo"


def test_a_boolean_is_what_source_columns_says(database: Database) -> None:
    database.do("create table $t (id int, b boolean)", "insert into $t values (1, true), (2, false), (3, null)")
    database.good(columns={"b": "boolean"})
    assert [row["b"] for row in database.rows("id", "b")] == [True, False, None]
    database.do("insert into $t values (4, 2)")
    failed = database.run(columns={"b": "boolean"})
    assert (failed.error_class, "column b holds a number that is neither 0 nor 1" in failed.message) == (
        "InvalidData",
        True,
    )


@pytest.mark.parametrize("zero", ["0000-00-00", "2026-00-01", "2026-01-00"])
def test_dates_of_no_day_are_refused_or_null(database: Database, zero: str) -> None:
    database.do(
        "create table $t (id int, d date, at datetime)",
        f"insert into $t values (1, '{zero}', '{zero} 00:00:00'), (2, null, '2026-01-01')",
    )
    refused = database.run()
    assert (refused.error_class, "column d holds a date whose year, month or day is zero" in refused.message) == (
        "InvalidData",
        True,
    )
    hows: tuple[dict[str, Any], ...] = ({}, GROWS)
    for how in hows:
        database.run(infinite="AsNull", **how)
        assert [row["d"] for row in database.rows("id", "d")] == [None, None]
        assert database.run(infinite="AsNull", **how).outcome == "NothingToDo"


def test_a_day_that_no_calendar_has_is_refused(database: Database) -> None:
    database.do(
        "create table $t (id int, d date)",
        "set sql_mode = 'ALLOW_INVALID_DATES'; insert into $t values (1, '2026-02-31')",
    )
    refused = database.run(infinite="AsNull")
    assert (refused.error_class, "column d holds a value that date32[day] does not" in refused.message) == (
        "InvalidData",
        True,
    )


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        ("g geometry", "InvalidSchema", "column g is geometry, which the driver does not read"),
        ("d decimal(65,30)", "InvalidSchema", "column d is decimal(65,30), which no decimal holds"),
    ],
)
def test_a_column_that_no_table_holds_is_named(database: Database, column: str, error: str, words: str) -> None:
    database.do(f"create table $t (id int, {column})", "insert into $t (id) values (1)")
    failed = database.run()
    assert (failed.error_class, words in failed.message) == (error, True), failed.message


def test_a_decimal_of_more_digits_is_read_as_source_columns_says_or_refused(database: Database) -> None:
    database.do("create table $t (id int, d decimal(65,30))", "insert into $t values (1, 1.5)")
    database.good(columns={"d": "decimal(38,9)"})
    assert database.rows("id", "d") == [{"id": 1, "d": Decimal("1.500000000")}]
    database.do("insert into $t values (2, 0.0000000001)")
    assert (
        "column d holds a value that decimal128(38, 9) does not" in database.run(columns={"d": "decimal(38,9)"}).message
    )


def test_a_checkpoint_of_no_day_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="no day of the calendar"):
        SQL.value("2026-02-31", "date")
