"""`Sql`: the answer of one SELECT over Hudi tables, from a checkpoint on.

The statement is asked when one of its tables has another commit than at the checkpoint, of one
state of each. With a column that grows, rows are read from `lag` below the greatest value that was
read, that value itself among them: what comes twice is one row for an upsert.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidOptionError, InvalidRequestError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.services.sql_query import QueriedTable, duckdb_rows
from hudi_table.sources.jdbc.postgres_sql import quoted  # DuckDB quotes names as PostgreSQL does
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline

Options = Callable[[str], Mapping[str, str]]
"""Storage options of a location."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
TABLES_MAX = 16
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_KINDS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", *_TIMES)


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """`query`: one SELECT, in DuckDB's SQL. `tables`: location of each by its name there. `column`:
    by which rows are read, those from `lag` below the greatest value on: seconds of a time, a
    number of numbers."""

    query: str
    tables: Mapping[str, str]
    column: str = ""
    lag: int = 0

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> QuerySettings:
        """From the `source` of a JobSpec. Raises InvalidRequestError that names the field."""
        raw: Mapping[str, Any] = source.get("sql") or {}
        query, listed = str(raw.get("query") or "").rstrip().removesuffix(";"), raw.get("tables") or []
        if not query or not listed:
            raise InvalidRequestError("a source of type Sql needs sql.query and sql.tables")
        tables = {str(each.get("name")): str(each.get("location") or "") for each in listed}
        wrong = next((name for name, location in tables.items() if not _NAME.fullmatch(name) or not location), None)
        if wrong is not None or len(tables) != len(listed) or len(tables) > TABLES_MAX:
            raise InvalidRequestError(
                f"sql.tables takes 1 to {TABLES_MAX} tables, each with a location and a name of its own that SQL takes unquoted"
            )
        grows = raw.get("incremental") or {}
        return cls(query, tables, str(grows.get("column") or ""), int(grows.get("lag", 0)))

    @property
    def digest(self) -> str:
        """The same for what has the same answer."""
        told = json.dumps([self.query, dict(self.tables), self.column], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What is read, once, and the checkpoint of the commit that holds it."""

    checkpoint: QueryMark
    batches: pa.RecordBatchReader


@contextlib.contextmanager
def waiting_rows(
    settings: QuerySettings, options: Options, before: QueryMark | None, attempt: str
) -> Iterator[QueryRows | None]:
    """The rows that wait, None where nothing does; read within the context. `before`: the
    checkpoint of the newest commit; one of another statement counts as none. Raises HudiError."""
    states = _states(settings, options)
    told = {name: each.digest for name, each in states.items()}
    known = before if before is not None and before.statement == settings.digest else None
    if known is not None and known.tables == told:
        yield None
        return
    tables = {name: each.table for name, each in states.items()}
    batch = hashlib.sha256(json.dumps([settings.digest, told], sort_keys=True).encode()).hexdigest()[:20]
    mark = QueryMark(batch, attempt, settings.digest, told)
    query = f"SELECT * FROM ({settings.query}\n) AS source"  # noqa: S608 - who asks may write any SELECT
    if settings.column:
        greatest = _greatest(settings, tables, query)
        if greatest is None:
            yield None
            return
        mark = replace(mark, column=settings.column, value=greatest.value)
        query = _window(settings, query, greatest, known.value if known is not None else "")
    with duckdb_rows(query, tables) as rows:
        yield QueryRows(mark, rows)


@dataclass(frozen=True, slots=True)
class _State:
    """A table as it is now."""

    table: QueriedTable
    digest: str


def _states(settings: QuerySettings, options: Options) -> dict[str, _State]:
    tables = [QueriedTable(name, location, options(location)) for name, location in settings.tables.items()]
    storages = [open_storage(table.uri, table.storage_options) for table in tables]
    asked = [partial(_state, *each) for each in zip(tables, storages, strict=True)]
    return dict(zip(settings.tables, all_at_once(storages[0], asked), strict=True))


def _state(table: QueriedTable, storage: Storage) -> _State:
    """Raises TableNotFoundError."""
    try:
        ctx = open_context(storage)
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"there is no table at {table.uri} yet, which sql.tables names {table.name!r}"
        ) from error
    times = [instant.time for instant in load_timeline(ctx).commits]
    digest = hashlib.sha256(",".join(times).encode()).hexdigest()[:16]
    return _State(replace(table, how={"as_of": times[-1]} if times else {}), digest)


@dataclass(frozen=True, slots=True)
class _Greatest:
    """Of the column that grows: its value as a text, and DuckDB's name of its type."""

    value: str
    kind: str

    @property
    def is_time(self) -> bool:
        return self.kind in _TIMES

    def literal(self, text: str) -> str:
        doubled = text.replace("'", "''")
        return f"CAST('{doubled}' AS {self.kind})"


def _greatest(settings: QuerySettings, tables: Mapping[str, QueriedTable], query: str) -> _Greatest | None:
    """None where no row has a value. Raises InvalidRequestError for a column that is not there, or
    does not grow."""
    name = quoted(settings.column)
    with (
        _naming_the_column(settings, tables, query),
        duckdb_rows(
            f"SELECT max({name})::VARCHAR, any_value(typeof({name})) FROM ({query}) AS told WHERE {name} IS NOT NULL",  # noqa: S608 - see above
            tables,
        ) as rows,
    ):
        value, kind = (column.to_pylist()[0] for column in rows.read_all().columns)
    if value is None:
        return None
    if kind not in _KINDS:
        raise InvalidRequestError(
            f"sql.incremental.column {settings.column!r} is {kind}: give a column of whole numbers, dates or times"
        )
    return _Greatest(str(value), str(kind))


@contextlib.contextmanager
def _naming_the_column(settings: QuerySettings, tables: Mapping[str, QueriedTable], query: str) -> Iterator[None]:
    """A statement that fails, and has no such column, is told so."""
    try:
        yield
    except InvalidOptionError:
        with duckdb_rows(f"SELECT * FROM ({query}) AS told LIMIT 0", tables) as rows:  # noqa: S608 - see above
            names: Sequence[str] = rows.schema.names
        if settings.column in names:
            raise
        raise InvalidRequestError(
            f"sql.incremental.column {settings.column!r} is no column of the answer: {', '.join(names)}"
        ) from None


def _window(settings: QuerySettings, query: str, greatest: _Greatest, last: str) -> str:
    """The rows from `lag` below one value up to the greatest."""
    name = quoted(settings.column)
    wanted = [f"{name} <= {greatest.literal(greatest.value)}"]
    if last:
        less = f"INTERVAL '{settings.lag} seconds'" if greatest.is_time else str(settings.lag)
        begin = greatest.literal(last)
        if not greatest.is_time:
            begin = f"{begin}::HUGEINT"
        wanted.append(f"{name} >= {begin} - {less}")
    return f"SELECT * FROM ({query}) AS told WHERE {' AND '.join(wanted)}"  # noqa: S608 - see above
