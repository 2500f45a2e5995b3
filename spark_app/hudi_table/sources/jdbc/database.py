"""What both databases have in common, and what `source.py` asks of each: the SQL in which they
differ, one state that is read, and columns.

`postgres.py` and `mysql.py` answer.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hudi_table.errors import InvalidRequestError, InvalidSchemaError
from hudi_table.model.job.variables import DATABASE_CA, DATABASE_PASSWORD, DATABASE_USERNAME


class Column(Protocol):
    """A column of an answer, as one of the table."""

    @property
    def name(self) -> str:
        """Of the column."""
        ...

    @property
    def kind(self) -> str:
        """The database's name of its type."""
        ...

    @property
    def select(self) -> str:
        """The expression that is selected."""
        ...

    @property
    def type(self) -> pa.DataType:
        """In the table."""
        ...

    def read(self, values: pa.Array, *, infinite_is_null: bool) -> pa.Array:
        """Values in the column's type. Raises InvalidDataError."""
        ...


class Dialect(Protocol):
    """SQL in which databases differ."""

    @property
    def integers(self) -> tuple[str, ...]:
        """Types of numbers by which rows can be read in ranges."""
        ...

    @property
    def times(self) -> tuple[str, ...]:
        """Types of times by which rows can be read in ranges."""
        ...

    @property
    def one_state(self) -> bool:
        """Whether several statements, and several connections, can see one state."""
        ...

    def quoted(self, name: str) -> str:
        """A name, whatever is in it."""
        ...

    def value(self, text: str, kind: str) -> str:
        """A value of a type by which rows can be read in ranges, as `greatest` wrote it."""
        ...

    def behind(self, text: str, kind: str, lag: int) -> str:
        """The value that lies `lag` below this one."""
        ...

    def greatest(self, name: str, kind: str) -> str:
        """The greatest value that counts, as a text."""
        ...

    def digest(self, columns: Sequence[Column], query: str) -> str:
        """A query of one row: how many rows another one gives, and the sum of their hashes as a
        text, which is the same in whatever order."""
        ...

    def ends(self, name: str, kind: str, query: str) -> str:
        """A query of one row: the least and the greatest value as whole numbers, seconds of a time,
        both as texts."""
        ...

    def cut(self, number: int, kind: str) -> str:
        """The value of such a number."""
        ...


class State(Protocol):
    """A connection that reads."""

    def columns(self, base: str, asked: pa.Schema) -> tuple[Column, ...]:
        """One for each column of a query; types that are `asked` for go before those of the
        database. Raises HudiError."""
        ...

    def count(self, columns: Sequence[Column], base: str) -> int:
        """How many rows a query gives. Raises HudiError."""
        ...

    def one(self, query: str) -> tuple[object, ...]:
        """The one row of an answer. Raises HudiError."""
        ...

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of an answer as they come. Raises HudiError."""
        ...

    def snapshot(self) -> str | None:
        """By which other connections read the same state, if they can."""
        ...


class Server(Protocol):
    """A database with the credentials of the environment. Ended by `close`."""

    @property
    def dialect(self) -> Dialect:
        """Its SQL."""
        ...

    def state(self, snapshot: str | None = None) -> AbstractContextManager[State]:
        """A connection, of the state of a snapshot if one is given. Raises HudiError."""
        ...

    def close(self) -> None:
        """Remove what was written for the driver."""
        ...


@dataclass(slots=True)
class TrustedFile:
    """The file of the certificates that are trusted: no driver takes a text. Ended by `close`."""

    _path: str = ""

    def path(self, environment: Mapping[str, str]) -> str:
        """Of the PEM text of the environment. Raises InvalidRequestError where there is none."""
        text = environment.get(DATABASE_CA)
        if not text:
            raise InvalidRequestError(f"jdbc.tls VerifyFull needs {DATABASE_CA}, a PEM text, in the Secret")
        if not self._path:
            with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
                file.write(text)
                self._path = file.name
        return self._path

    def close(self) -> None:
        """Remove it."""
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._path = ""


def user_of(environment: Mapping[str, str]) -> tuple[str, str]:
    """User and password of the environment. Raises InvalidRequestError."""
    user = environment.get(DATABASE_USERNAME)
    if not user:
        raise InvalidRequestError(
            f"a source of type Jdbc needs {DATABASE_USERNAME} in the Secret of storage.credentialsSecretRef"
        )
    return user, environment.get(DATABASE_PASSWORD) or ""


def refuse_names(found: Sequence[str], asked: pa.Schema) -> None:
    """Raises InvalidSchemaError for a type that is asked for and belongs to no column, and for a
    column that is there twice."""
    unknown = [name for name in asked.names if name not in found]
    if unknown:
        raise InvalidSchemaError(f"source.columns names {unknown[0]!r}, which the database does not give")
    doubled = [name for name in found if found.count(name) > 1]
    if doubled:
        raise InvalidSchemaError(f"the query gives column {doubled[0]!r} twice: name it otherwise")


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Of the rows."""
    return pa.schema([pa.field(each.name, each.type) for each in columns])


def read(batch: pa.RecordBatch, columns: Sequence[Column], *, infinite_is_null: bool) -> pa.RecordBatch:
    """A batch in the types of the table; what stands behind the columns is no part of it."""
    arrays = [each.read(batch.column(number), infinite_is_null=infinite_is_null) for number, each in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(columns))
