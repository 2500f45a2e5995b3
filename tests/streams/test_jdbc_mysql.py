"""Rows of a real MariaDB in a table, beside what `test_jdbc_both.py` asks of each database: types to
the last digit, what is read of a table that changes meanwhile, TLS, and what is refused with which
words."""

from __future__ import annotations

import datetime as dt
import socket
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hudi_table.errors import InvalidDataError, UnavailableError
from hudi_table.sources.jdbc import mysql, source
from hudi_table.sources.jdbc.mysql_greeting import offers_tls
from hudi_table.sources.jdbc.mysql_process import DriverError
from hudi_table.sources.jdbc.mysql_sql import MysqlSql
from hudi_table.sources.jdbc.settings import JdbcSettings
from tests.support.databases import MARIADB, Database
from tests.support.https import certificate_of
from tests.support.mariadb import PASSWORD, USER, Server, running_mariadb

GROWS: dict[str, Any] = {"incremental": {"column": "at"}}
SQL = MysqlSql()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_mariadb("--default-time-zone=-03:00", "--sql-mode=", "--max-allowed-packet=64M") as found:
        yield found


@pytest.fixture
def database(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(server, MARIADB, tmp_path)


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
    query = {"query": "select id, n * 2 as n, ts, b, 'x' as x from $t", "incremental": {"column": "ts", "lag": 5}}
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
    for how in ({}, GROWS):
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


def test_all_rows_are_of_one_state_and_the_checkpoint_says_of_which(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do("create table $t (id int, n varchar(9))", "insert into $t select i, 'a' from $series(1000)")
    real = source._reading

    def meanwhile(*arguments: Any) -> Any:
        """What changes once it was found that something waits, and is undone behind the read."""
        database.do("update $t set n = 'b' where id = 1")
        return real(*arguments)

    monkeypatch.setattr(source, "_reading", meanwhile)
    database.good()
    monkeypatch.setattr(source, "_reading", real)
    assert database.rows("id", "n")[0]["n"] == "b"
    assert database.run().outcome == "NothingToDo", "the checkpoint is of what was read"
    database.do("update $t set n = 'a' where id = 1")
    database.good()
    assert database.rows("id", "n")[0]["n"] == "a"


def test_rows_that_grow_while_others_are_read_come_with_the_next_run(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do(
        "create table $t (id int, at timestamp(6) null)", "insert into $t select i, $later(i) from $series(1000)"
    )
    real = source._reading

    def meanwhile(*arguments: Any) -> Any:
        database.do(
            "update $t set at = $later(5000 + id), id = 3000 - id where id % 2 = 0",
            "insert into $t values (0, $later(5))",
        )
        return real(*arguments)

    how = {**GROWS, "split": {"column": "id", "parts": 4}}
    monkeypatch.setattr(source, "_reading", meanwhile)
    assert database.good(**how).figures["rowsRead"] == 501
    monkeypatch.setattr(source, "_reading", real)
    database.good(**how)
    assert {row["id"] for row in database.rows("id")} == {*range(1), *range(1, 1000, 2), *range(2000, 3000, 2)}


def test_wide_rows_come_in_small_batches(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.do(
        "create table $t (id int, b longblob)", "insert into $t select i, repeat(char(i), 1000000) from $series(40)"
    )
    sizes, real = [], source.read
    monkeypatch.setattr(
        source, "read", lambda batch, *rest, **more: sizes.append(batch.num_rows) or real(batch, *rest, **more)
    )
    database.good()
    assert (sum(sizes), max(sizes)) == (40, 8)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"table": "nope"}, "InvalidRequest", "doesn't exist"),
        ({"table": "nope.$t"}, "InvalidRequest", "doesn't exist"),
        ({"table": "a\\b"}, "InvalidRequest", "doesn't exist"),
        ({"filter": "bad syntax here"}, "InvalidRequest", "error in your SQL syntax"),
        ({"filter": "18446744073709551615 + id > 0"}, "InvalidData", "out of range"),
        ({"query": "delete from $t"}, "InvalidRequest", "does not take what jdbc asks for"),
        ({"query": "select 1 as id; select 2 as id"}, "InvalidRequest", "error in your SQL syntax"),
        ({"query": "select * from $t where sleep_of_nobody(1)"}, "InvalidRequest", "does not exist"),
        ({"incremental": {"column": "n"}}, "InvalidRequest", "jdbc.incremental.column n is text: take one of tinyint"),
        ({"incremental": {"column": "gone"}}, "InvalidRequest", "jdbc.incremental.column 'gone' is no column"),
        ({**GROWS, "split": {"column": "n", "parts": 2}}, "InvalidRequest", "jdbc.split.column n is text"),
        ({"split": {"column": "id", "parts": 2}}, "InvalidRequest", "needs jdbc.incremental"),
        ({"split": {"column": "id", "parts": 99}}, "InvalidRequest", "give 1 to 16"),
        ({"query": "select id, id from $t"}, "InvalidSchema", "Duplicate column name 'id'"),
        ({"query": "select id, point(1, 2) as g from $t"}, "InvalidSchema", "a column that the driver does not read"),
        ({"columns": {"gone": "int"}}, "InvalidSchema", "source.columns names 'gone'"),
        ({"columns": {"n": "int"}}, "InvalidData", "column n holds a value that int32 does not"),
        ({"url": "mysql://user:secret@db/shop"}, "InvalidRequest", "without user and options"),
        ({"url": "mysql://127.0.0.1:1/shop"}, "Unavailable", "the database at 127.0.0.1:1/shop does not answer"),
        ({"tls": "Require"}, "Unavailable", "does not support TLS"),
        ({"tls": "VerifyFull"}, "Unavailable", "does not support TLS"),
        ({**GROWS, "work": {"operation": "Insert"}}, "InvalidRequest", "only operation Upsert"),
    ],
)
def test_what_cannot_be_read_is_told(database: Database, how: dict[str, Any], error: str, words: str) -> None:
    database.do("create table $t (id int, n varchar(9), at datetime)", "insert into $t values (1, 'a', '2026-01-01')")
    failed = database.run(**how)
    assert (failed.error_class, words in failed.message) == (error, True), failed.message
    assert PASSWORD not in failed.message
    assert database.good().figures["rowsRead"] == 1


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


def test_a_user_who_may_not_read_the_table_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.do(
        "create table $t (id int)",
        "create or replace user 'poor'@'%' identified by 'x y'",
        "grant create on shop.* to 'poor'@'%'",
    )
    monkeypatch.setenv("DATABASE_USERNAME", "poor")
    monkeypatch.setenv("DATABASE_PASSWORD", "x y")
    failed = database.run()
    assert (failed.error_class, "command denied" in failed.message) == ("AccessDenied", True), failed.message
    database.do("grant select on shop.$t to 'poor'@'%'", "insert into $t values (1)")
    assert database.good().figures["rowsRead"] == 1


def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "connectorx", None)
    monkeypatch.setattr(mysql, "find_spec", lambda name: None)
    failed = database.run()
    assert (failed.error_class, "pip install 'hudi-table[mysql]'" in failed.message) == ("InvalidRequest", True)


def test_a_statement_that_nobody_wants_any_more_ends_with_its_process(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do("create table $t (id int)", "insert into $t select i from $series(300000)")

    def broken(rows: Any, batches: Any, *others: Any) -> Any:
        next(batches)
        raise InvalidDataError("a value that has no place")
        yield

    monkeypatch.setattr(source, "_typed", broken)
    assert "a value that has no place" in database.run().message
    database.do("create or replace table $t (id int)")  # waits for whoever still reads it


@pytest.mark.parametrize(
    ("name", "text", "kind", "words"),
    [
        (
            "RuntimeError",
            "MySqlError { ERROR 1040 (08004): Too many connections }",
            "UnavailableError",
            "Too many connections",
        ),
        (
            "RuntimeError",
            "MySqlError { ERROR 1267 (HY000): Illegal mix of collations }",
            "InvalidRequestError",
            "Illegal mix",
        ),
        (
            "PanicException",
            'Could not retrieve `x`: Couldn\'t convert the value `Bytes("s3cr3t")`',
            "InvalidDataError",
            "filter it",
        ),
        (
            "RuntimeError",
            "Only support single query with SELECT statement, got x",
            "InvalidRequestError",
            "Only support",
        ),
        ("RuntimeError", "what nobody has seen", "UnavailableError", "what nobody has seen"),
        ("EOFError", "the process that reads has ended", "UnavailableError", "has ended"),
        (
            "RuntimeError",
            "bad url mysql://hudi:p%40ss@db/shop, p@ss",
            "UnavailableError",
            "@db/shop, ***",
        ),
    ],
)
def test_words_of_the_driver_become_errors_of_ours_without_the_password(
    name: str, text: str, kind: str, words: str
) -> None:
    settings = JdbcSettings.of({"jdbc": {"url": "mysql://db/shop", "table": "t"}})
    found = mysql.MysqlServer(settings, {"DATABASE_PASSWORD": "p@ss"}).as_hudi(DriverError(name, text))
    assert (type(found).__name__, words in str(found)) == (kind, True), found
    assert "s3cr3t" not in str(found)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server with TLS, and who trusts this text trusts it by the name 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = certificate_of(key)
    (folder / "cert.pem").write_bytes(certificate)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    for path in (folder, *folder.iterdir(), *folder.parents[:2]):
        path.chmod(0o755)
    with running_mariadb(f"--ssl-cert={folder / 'cert.pem'}", f"--ssl-key={folder / 'key.pem'}") as found:
        yield found, certificate.decode()


@pytest.fixture
def private(encrypted: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Database, str]:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(encrypted[0], MARIADB, tmp_path), encrypted[1]


@pytest.mark.parametrize("mode", ["Prefer", "Require", "VerifyFull"])
def test_the_connection_is_encrypted_where_the_server_can(
    private: tuple[Database, str], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    database, certificate = private
    monkeypatch.setenv("DATABASE_CA", certificate)
    query = (
        "select 1 as id, variable_value as v from information_schema.session_status where variable_name = 'Ssl_cipher'"
    )
    database.good(query=query, tls=mode)
    assert database.rows("id", "v")[0]["v"].startswith("TLS")


def test_a_certificate_of_nobody_who_is_trusted_or_of_another_host_is_refused(
    private: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, certificate = private
    database.do("create table $t (id int)", "insert into $t values (1)")
    another = certificate_of(rsa.generate_private_key(public_exponent=65537, key_size=2048)).decode()
    for trusted, host in ((another, "127.0.0.1"), (certificate, "localhost")):
        monkeypatch.setenv("DATABASE_CA", trusted)
        failed = database.run(tls="VerifyFull", url=database.url.replace("127.0.0.1", host))
        assert (failed.error_class, "certificate verify failed" in failed.message) == ("Unavailable", True), (
            failed.message
        )
    monkeypatch.delenv("DATABASE_CA")
    assert "needs DATABASE_CA" in database.run(tls="VerifyFull").message


def test_a_checkpoint_of_no_day_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="no day of the calendar"):
        SQL.value("2026-02-31", "date")


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    for answer, words in (
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "neither MySQL nor MariaDB"),
        (b"\x07\0\0\0\xff\x10\x04busy", "busy"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answered(listener: socket.socket = listener, answer: bytes = answer) -> None:
                with listener.accept()[0] as connection:
                    connection.sendall(answer)

            thread = threading.Thread(target=answered)
            thread.start()
            with pytest.raises(ValueError, match=words):
                offers_tls("127.0.0.1", listener.getsockname()[1], 5)
            thread.join()


def test_a_silent_server_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.2)
        url = f"mysql://127.0.0.1:{listener.getsockname()[1]}/shop"
        settings = JdbcSettings.of({"jdbc": {"url": url, "table": "t"}})
        found = mysql.MysqlServer(settings, {"DATABASE_USERNAME": "a"})
        with pytest.raises(UnavailableError, match="does not answer: timed out"), found.state():
            pass
