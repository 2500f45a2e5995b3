"""MySQL and MariaDB over ConnectorX: each statement in a connection and a transaction of its own.

Facts (connectorx 0.4.6, MariaDB 11.4; tried): its stream holds back a server that is read slowly,
and ends with an error where the connection breaks. It takes a Unix socket where the server names
one and the host is 127.0.0.1, without TLS, unless `prefer_socket` is false. `ssl-mode` is one of
preferred and required, which both refuse a server without TLS, verify_ca, verify_identity. It goes
on trying for 30 seconds to connect, also after a wrong password. What is asked before the statement
is asked in the same connection. Errors are texts with the server's code; none holds the password.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from hudi_table.errors import (
    AccessDeniedError,
    HudiError,
    InvalidDataError,
    InvalidRequestError,
    InvalidSchemaError,
    UnavailableError,
)
from hudi_table.model.job.variables import DATABASE_PASSWORD, DATABASE_USERNAME
from hudi_table.sources.jdbc.database import Column, TrustedFile, user_of
from hudi_table.sources.jdbc.mysql_columns import columns_of, refuse_shapes
from hudi_table.sources.jdbc.mysql_greeting import offers_tls
from hudi_table.sources.jdbc.mysql_process import DriverError, Reader
from hudi_table.sources.jdbc.mysql_sql import LONG, MysqlSql, literal, quoted
from hudi_table.sources.jdbc.settings import JdbcSettings

CONNECT_SECONDS, SILENCE_SECONDS = 10, 60
BATCH_ROWS, BATCH_BYTES = 10_000, 8 << 20
_WORDS_MAX = 300
_TLS = {"prefer": "required", "require": "required", "verify-full": "verify_identity"}
_BEFORE = (
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00'",
    "SET SESSION sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION READ ONLY",
)
_SAID = re.compile(r"ERROR (?P<code>\d+) \((?P<state>\w{5})\): (?P<words>.*?)(?: \}|$)", re.DOTALL)
_DENIED = frozenset({1044, 1045, 1130, 1142, 1143, 1227, 1370, 1698, 1820, 1862, 3118, 4151})
_DOUBLED = 1060
_NOT_ASKABLE = frozenset({1105, 1267, 1270, 1271, 1295, 1356, 1792})
_FAR = ("timed out waiting for connection", "DriverError", "IoError", "CodecError", "TlsError", "EOFError")


@dataclass(slots=True)
class MysqlServer:
    """A server with the credentials of the environment. Ended by `close`."""

    settings: JdbcSettings
    environment: Mapping[str, str] = field(repr=False)
    dialect: MysqlSql = field(default_factory=MysqlSql)
    batch_rows: int = BATCH_ROWS
    _trusted: TrustedFile = field(default_factory=TrustedFile, repr=False)
    _mode: str = ""

    @contextlib.contextmanager
    def state(self, snapshot: str | None = None) -> Iterator[MysqlState]:  # noqa: ARG002 (no server has one)
        """A process that reads. No statement sees the state of another one. Raises HudiError."""
        if find_spec("connectorx") is None:
            raise InvalidRequestError(
                f"type Jdbc needs connectorx for {self.settings.scheme}, not installed here: pip install 'hudi-table[mysql]'"
            )
        with contextlib.closing(Reader(self._url(), _BEFORE)) as reader:
            yield MysqlState(self, reader)

    def close(self) -> None:
        """Remove what was written for the driver."""
        self._trusted.close()

    def _url(self) -> str:
        user, password = user_of(self.environment)
        settings = self.settings
        options = {
            "prefer_socket": "false",
            "tcp_connect_timeout_ms": CONNECT_SECONDS * 1000,
            "tcp_keepalive_time_ms": SILENCE_SECONDS * 1000,
            "tcp_user_timeout_ms": SILENCE_SECONDS * 1000,
            "ssl-mode": self._ssl_mode(),
        }
        if settings.tls == "verify-full":
            options["ssl-ca"] = self._trusted.path(self.environment)
        said = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items())
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"mysql://{who}@{settings.host}:{settings.port}/{quote(settings.database, safe='')}?{said}"

    def _ssl_mode(self) -> str:
        if not self._mode:
            place, tls = f"the database at {self.settings.place}", self.settings.tls
            try:
                encrypts = offers_tls(self.settings.host, self.settings.port, CONNECT_SECONDS)
            except (OSError, ValueError) as error:
                raise UnavailableError(f"{place} does not answer: {error}") from error
            if not encrypts and tls != "prefer":
                raise UnavailableError(f"{place} does not support TLS, which jdbc.tls asks for")
            self._mode = _TLS[tls] if encrypts else "disabled"
        return self._mode

    def as_hudi(self, error: DriverError) -> HudiError:
        """An error of the driver, which tells its kind by its text alone."""
        text = " ".join(self._masked(str(error)).split())
        place = f"the database at {self.settings.place}"
        found = _SAID.search(text)
        if found is None:
            return _of_driver(error.name, text, place)
        code, state, words = int(found["code"]), found["state"], found["words"][:_WORDS_MAX]
        if code in _DENIED or state.startswith("28"):
            return AccessDeniedError(f"{place} refuses the user of {DATABASE_USERNAME}: {words}")
        if code == _DOUBLED:
            return InvalidSchemaError(f"{place} gives a column twice: {words}; name it otherwise")
        if state.startswith("22"):
            return InvalidDataError(f"{place} cannot give what is asked of it: {words}")
        if state.startswith("42") or code in _NOT_ASKABLE:
            return InvalidRequestError(f"{place} does not take what jdbc asks for: {words}")
        return UnavailableError(f"{place} does not answer: {words}")

    def _masked(self, text: str) -> str:
        password = self.environment.get(DATABASE_PASSWORD)
        for each in (password, quote(password, safe="")) if password else ():
            text = text.replace(each, "***")
        return text


@dataclass(slots=True)
class MysqlState:
    """What is asked of one process."""

    server: MysqlServer
    reader: Reader

    def columns(self, base: str, asked: pa.Schema) -> tuple[Column, ...]:
        """One for each column of a query. Raises HudiError."""
        declared = self._declared()
        refuse_shapes(declared)
        (found,) = self._answer(
            f"SELECT * FROM ({base}) AS probe LIMIT 0", 1
        )  # to its end: else the process would be ended
        return columns_of(found, declared, asked)

    def count(self, columns: Sequence[Column], base: str) -> int:
        """How many rows a query gives. How wide they are decides how many a batch has: the driver
        knows rows alone."""
        wide = [f"COALESCE(OCTET_LENGTH({quoted(each.name)}), 0)" for each in columns if each.kind in LONG]
        width = f"COALESCE(AVG({' + '.join(wide)}), 0)" if wide else "0"
        count, average = self.one(
            f"SELECT CAST(COUNT(*) AS CHAR) AS n, CAST(CEIL({width}) AS CHAR) AS width FROM ({base}) AS counted"
        )
        self.server.batch_rows = max(1, min(BATCH_ROWS, BATCH_BYTES // (int(average) + 8 * len(columns))))
        return int(count)

    def one(self, query: str) -> tuple[Any, ...]:
        """The one row of an answer, texts. Raises HudiError."""
        (row,) = [tuple(column[0].as_py() for column in batch.columns) for batch in self._rows(query, 1)]
        return row

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of an answer as they come. Raises HudiError."""
        return self._rows(query, self.server.batch_rows)

    def snapshot(self) -> str | None:
        """None: no connection sees the state of another one."""
        return None

    def _declared(self) -> dict[str, str]:
        """The types of a table's columns, as they are declared. A query has none."""
        *schema, table = self.server.settings.table.split(".")
        if not table:
            return {}
        where = literal(schema[-1]) if schema else literal(self.server.settings.database)
        # Where the case of names counts, a table of another case comes first, and so counts for nothing.
        found = self._rows(
            "SELECT CAST(column_name AS CHAR) AS a, CAST(column_type AS CHAR) AS b FROM information_schema.columns"
            f" WHERE table_schema = {where} AND table_name = {literal(table)}"
            f" ORDER BY HEX(table_name) = HEX({literal(table)}), ordinal_position",
            BATCH_ROWS,
        )
        return {
            name: said
            for batch in found
            for name, said in zip(*(each.to_pylist() for each in batch.columns), strict=True)
        }

    def _rows(self, query: str, rows: int) -> Iterator[pa.RecordBatch]:
        return (each for each in self._answer(query, rows) if isinstance(each, pa.RecordBatch))

    def _answer(self, query: str, rows: int) -> Iterator[Any]:
        try:
            yield from self.reader.ask(query, rows)
        except DriverError as error:
            raise self.server.as_hudi(error) from None


def _of_driver(name: str, text: str, place: str) -> HudiError:
    """Words of the driver itself."""
    words = text[:_WORDS_MAX]
    if any(each in (name, *text.split()) or each in text for each in _FAR):
        return UnavailableError(f"{place} does not answer: {words}")
    if "Could not retrieve" in text or "Couldn't convert" in text:
        # What follows holds the value.
        return InvalidDataError(
            f"{place} gives a value that the driver does not read: filter it, or cast it in jdbc.query"
        )
    if "not implemented" in text:
        return InvalidSchemaError(
            f"{place} gives a column that the driver does not read: leave it out, or cast it to a text, in jdbc.query ({words})"
        )
    if name == "PanicException" or "query" in text:
        return InvalidRequestError(f"{place} does not take what jdbc asks for: {words}")
    return UnavailableError(f"{place} does not answer: {words}")
