"""Rows of a real MariaDB in a table, beside what `test_jdbc_both.py` asks of each database: what is
read of a table that changes meanwhile, TLS, and what is refused with which words."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
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
from tests.support.scale import scale

GROWS: dict[str, Any] = {"incremental": {"column": "at"}}
SQL = MysqlSql()


@pytest.fixture
def database(mariadb_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(mariadb_server, MARIADB, tmp_path)


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
    sizes: list[int] = []
    real = source._typed

    def sized(rows: Any, batches: Any, *others: Any) -> Any:
        def seen() -> Any:
            for each in batches:
                sizes.append(each.num_rows)
                yield each

        return real(rows, seen(), *others)

    monkeypatch.setattr(source, "_typed", sized)
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
        yield next(batches).slice(0, 0).select(["id"])
        raise InvalidDataError("a value that has no place")

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
def encrypted() -> Iterator[tuple[Server, str]]:
    """A server with TLS, and who trusts this text trusts it by the name 127.0.0.1."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = certificate_of(key)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    with tempfile.TemporaryDirectory(prefix="tls-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server is another user
        (folder / "cert.pem").write_bytes(certificate)
        (folder / "key.pem").write_bytes(secret)
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


@pytest.mark.parametrize("wrong", ["of nobody who is trusted", "of another host"][: None if scale() > 1 else 1])
def test_a_certificate_that_is_wrong_is_refused(
    private: tuple[Database, str], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """The driver tries for half a minute."""
    database, certificate = private
    database.do("create table $t (id int)", "insert into $t values (1)")
    another = certificate_of(rsa.generate_private_key(public_exponent=65537, key_size=2048)).decode()
    trusted, host = (certificate, "localhost") if wrong == "of another host" else (another, "127.0.0.1")
    monkeypatch.setenv("DATABASE_CA", trusted)
    failed = database.run(tls="VerifyFull", url=database.url.replace("127.0.0.1", host))
    assert (failed.error_class, "certificate verify failed" in failed.message) == ("Unavailable", True), failed.message
    monkeypatch.delenv("DATABASE_CA")
    assert "needs DATABASE_CA" in database.run(tls="VerifyFull").message


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
