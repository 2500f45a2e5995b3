"""PostgreSQL over ADBC: one state of the database, read by one connection or by several.

Facts (adbc-driver-postgresql 1.13, PostgreSQL 18; tried): fields carry the name of their type
(`POSTGRESQL:type`) and its modifier; numeric comes as text, `nan` among it, with precision and
scale in the modifier where the column has them; what the driver has no type for comes as its bytes,
unless it is cast to text; a date without an end comes as a number out of range. A snapshot that one
transaction exports others take over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from hudi_table.errors import AccessDeniedError, HudiError, InvalidDataError, InvalidRequestError, UnavailableError
from hudi_table.model.job.variables import DATABASE_USERNAME
from hudi_table.sources.jdbc.database import Column, TrustedFile, user_of
from hudi_table.sources.jdbc.postgres_columns import columns_of
from hudi_table.sources.jdbc.postgres_sql import PostgresSql, literal
from hudi_table.sources.jdbc.settings import JdbcSettings

CONNECT_SECONDS, SILENCE_SECONDS = 10, 60
_WORDS_MAX = 300
_BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SETTINGS = ("SET LOCAL TIME ZONE 'UTC'", "SET LOCAL DateStyle = 'ISO'", "SET LOCAL standard_conforming_strings = on")


def load_driver() -> Any:
    """The module of the driver. Raises InvalidRequestError where it is not installed."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise InvalidRequestError(
            "type Jdbc needs adbc-driver-postgresql, not installed here: pip install 'hudi-table[postgres]'"
        ) from error
    return dbapi


@dataclass(slots=True)
class PostgresServer:
    """A server with the credentials of the environment. Ended by `close`."""

    settings: JdbcSettings
    environment: Mapping[str, str] = field(repr=False)
    dialect: PostgresSql = field(default_factory=PostgresSql)
    _trusted: TrustedFile = field(default_factory=TrustedFile, repr=False)

    @contextlib.contextmanager
    def state(self, snapshot: str | None = None) -> Iterator[State]:
        """A transaction that reads one state: that of now, or that of an exported snapshot. Raises
        HudiError."""
        driver = load_driver()
        connection: Any = None
        try:
            with self.told():
                connection = driver.connect(self._uri(), autocommit=False)
                found = State(self, connection.cursor())
                found.do(_BEGIN)
                if snapshot is not None:
                    found.do(f"SET TRANSACTION SNAPSHOT {literal(snapshot)}")
                for each in _SETTINGS:
                    found.do(each)
            yield found
        finally:
            if connection is not None:
                with contextlib.suppress(driver.Error):
                    connection.close()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """The driver's errors as ours."""
        driver = load_driver()
        try:
            yield
        except (driver.Error, pa.ArrowException, OSError) as error:
            raise self.as_hudi(error) from None

    def close(self) -> None:
        """Remove what was written for the driver."""
        self._trusted.close()

    def _uri(self) -> str:
        user, password = user_of(self.environment)
        settings = self.settings
        options = {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": SILENCE_SECONDS * 1000,
            "application_name": "hudi-table",
            "sslmode": settings.tls,
        }
        if settings.tls == "verify-full":
            options["sslrootcert"] = self._trusted.path(self.environment)
        said = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items())
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{who}@{settings.host}:{settings.port}/{quote(settings.database, safe='')}?{said}"

    def as_hudi(self, error: Exception) -> HudiError:
        """An error of the driver. Its words are quoted without the statement, and never the
        connection's."""
        state = str(getattr(error, "sqlstate", None) or "")
        said = " ".join(str(error).partition("Query was:")[0].split())
        place = f"the database at {self.settings.place}"
        if state.startswith("28") or state == "42501" or "authentication failed" in said:
            return AccessDeniedError(f"{place} refuses the user of {DATABASE_USERNAME}: {_words(said)}")
        if state.startswith("22"):
            return InvalidDataError(f"{place} cannot give what is asked of it: {_words(said)}")
        if state.startswith("42") or state in ("0A000", "25006"):
            return InvalidRequestError(f"{place} does not take what jdbc asks for: {_words(said)}")
        return UnavailableError(f"{place} does not answer: {_words(said)}")


@dataclass(slots=True)
class State:
    """One state of the database."""

    server: PostgresServer
    cursor: Any

    def do(self, statement: str) -> None:
        """A statement without an answer."""
        with self.server.told():
            self.cursor.execute(statement)

    def one(self, query: str) -> tuple[Any, ...]:
        """The one row of an answer. Raises HudiError."""
        with self.server.told():
            self.cursor.execute(query)
            found = self.cursor.fetch_arrow_table()
        return tuple(column[0].as_py() for column in found.columns)

    def columns(self, base: str, asked: pa.Schema) -> tuple[Column, ...]:
        """One for each column of a query. Raises HudiError."""
        return columns_of(self.schema(base), asked)

    def count(self, columns: Sequence[Column], base: str) -> int:  # noqa: ARG002 (others ask how wide they are)
        """How many rows a query gives. Raises HudiError."""
        return int(self.one(f"SELECT count(*) FROM ({base}) AS counted")[0])

    def schema(self, query: str) -> pa.Schema:
        """What an answer would look like."""
        self.do(f"SELECT * FROM ({query}) AS probe LIMIT 0")
        with self.server.told():
            reader = self.cursor.fetch_record_batch()
            found = reader.schema
            for _ in reader:
                pass
        return found

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of an answer as they come."""
        with self.server.told():
            self.cursor.execute(query)
            reader = self.cursor.fetch_record_batch()
        while True:
            with self.server.told():
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def snapshot(self) -> str:
        """By which others read the same state, while this transaction lasts."""
        return str(self.one("SELECT pg_export_snapshot()")[0])


def _words(said: str) -> str:
    _, found, rest = said.partition("ERROR:")
    return (rest if found else said).strip()[:_WORDS_MAX]
