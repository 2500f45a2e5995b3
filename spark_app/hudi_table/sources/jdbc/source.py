"""`Jdbc`: the rows of a table or a query, from the checkpoint that the table's commits hold.

With a column that grows, rows are read from `lag` below the greatest value that was read, that
value itself among them: rows with one value that are committed one after the other are all taken,
and a transaction that ends late is, within the lag. What comes twice is one row for an upsert. A
run that finds there what the one before has found commits nothing.

Which SQL a database takes, `database.py` asks of it. One whose statements see no common state gives
a statement that reads all rows also what their checkpoint says: how many these are, and the sum of
their hashes. Rows by a column that grows need no common state: the greatest value is found first,
and a row that changes while others are read has grown beyond it.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidRequestError
from hudi_table.model.digits import is_digits
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.ranges import Range
from hudi_table.sources.jdbc.database import Column, Dialect, Server, State, read, schema_of
from hudi_table.sources.jdbc.mysql import MysqlServer
from hudi_table.sources.jdbc.postgres import PostgresServer
from hudi_table.sources.jdbc.settings import JdbcSettings

BATCHES_AHEAD = 2
"""Batches that each part has read before they are asked for."""
_LOOK_SECONDS = 0.2


@dataclass(slots=True)
class JdbcRows:
    """What is read: the checkpoint of the commit that holds it, how many rows there were when they
    were counted, in batches that are read once. `read`: how many have come."""

    checkpoint: Mark
    count: int
    batches: pa.RecordBatchReader = None
    read: int = 0


@dataclass(frozen=True, slots=True)
class _Grows:
    """The column by which rows are read."""

    name: str
    kind: str
    lag: int
    dialect: Dialect

    @property
    def sql(self) -> str:
        """The column."""
        return self.dialect.quoted(self.name)

    def upto(self, most: str) -> str:
        """Which rows have grown no further than this."""
        return f"{self.sql} <= {self.dialect.value(most, self.kind)}"

    def inside(self, within: Range) -> str:
        """Which rows lie in a range. Raises InvalidRequestError for a value of another type."""
        wanted = [f"{self.sql} < {self._value(within.end, 'until')}"]
        if within.begin:
            wanted.append(f"{self.sql} >= {self._value(within.begin, 'since')}")
        return " AND ".join(wanted)

    def _value(self, text: str, field: str) -> str:
        whole = self.kind in self.dialect.integers
        if not (is_digits(text.removeprefix("-")) if whole else _is_time(text)):
            said = "a whole number" if whole else "a date or time, such as 2026-01-31 12:00:00"
            raise InvalidRequestError(f"range.{field} is {text!r}, and column {self.name} is {self.kind}: give {said}")
        return self.dialect.value(text, self.kind)

    def window(self, last: str, most: str) -> str:
        """Which rows are read again behind one value, up to another one."""
        return f"{self.sql} >= {self.dialect.behind(last, self.kind, self.lag)} AND {self.upto(most)}"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The query of the rows, their columns, and the checkpoint behind them."""

    columns: tuple[Column, ...]
    base: str
    mark: Mark


@contextlib.contextmanager
def waiting_rows(
    settings: JdbcSettings, environment: Mapping[str, str], asked: pa.Schema, before: Mark | None, attempt: str
) -> Iterator[JdbcRows | None]:
    """The rows that wait, None where nothing does; read within the context. `asked`: types that the
    rows are to have. Raises HudiError."""
    server = _server(settings, environment)
    if settings.parts > 1 and not settings.column and not server.dialect.one_state:
        raise InvalidRequestError(
            "jdbc.split of MySQL and MariaDB needs jdbc.incremental: their connections see no common state, so that a row which moves meanwhile could be missed"
        )
    try:
        with server.state() as state:
            found = _found(settings, server.dialect, state, asked, before, attempt)
            if found is None:
                yield None
                return
            plan, count, queries = found
            with _reading(server, state, queries) as batches:
                mark = plan.mark
                if not settings.column and not server.dialect.one_state:
                    mark, batches = _told(mark, batches)
                    count = mark.rows
                rows = JdbcRows(mark, count)
                typed = _typed(rows, batches, plan.columns, settings.infinite_is_null)
                rows.batches = pa.RecordBatchReader.from_batches(schema_of(plan.columns), typed)
                yield rows if count else None
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class JdbcParts:
    """What waits, to be read in parts by processes of their own, while the context lasts that gave
    it: the checkpoint of the commit that holds it, how many rows there are, statements that
    together give each row once, and by which name connections see the one state."""

    checkpoint: Mark
    count: int
    columns: tuple[Column, ...]
    queries: tuple[str, ...]
    snapshot: str | None

    def batches(self, settings: JdbcSettings, environment: Mapping[str, str], query: str) -> Iterator[pa.RecordBatch]:
        """The rows of one part, in any process. Raises HudiError."""
        server = _server(settings, environment)
        try:
            with server.state(self.snapshot) as state:
                for each in state.batches(query):
                    yield read(each, self.columns, infinite_is_null=settings.infinite_is_null)
        finally:
            server.close()


@contextlib.contextmanager
def waiting_parts(
    settings: JdbcSettings, environment: Mapping[str, str], asked: pa.Schema, before: Mark | None, attempt: str
) -> Iterator[JdbcParts | None]:
    """The same as `waiting_rows`, read elsewhere. Raises InvalidRequestError for a database whose
    connections cannot see one state."""
    server = _server(settings, environment)
    try:
        if not server.dialect.one_state:
            raise InvalidRequestError(
                "MySQL and MariaDB are not read in tasks of Spark, for their connections see no common state: let the engine be Local"
            )
        with server.state() as state:
            found = _found(settings, server.dialect, state, asked, before, attempt)
            if found is None:
                yield None
                return
            plan, count, queries = found
            yield JdbcParts(plan.mark, count, plan.columns, tuple(queries), state.snapshot())
    finally:
        server.close()


def _server(settings: JdbcSettings, environment: Mapping[str, str]) -> Server:
    if settings.scheme == "postgresql":
        return PostgresServer(settings, environment)
    return MysqlServer(settings, environment)


def _found(
    settings: JdbcSettings, dialect: Dialect, state: State, asked: pa.Schema, before: Mark | None, attempt: str
) -> tuple[_Plan, int, list[str]] | None:
    """What waits: its plan, how many rows, the statements that give them. None where nothing
    does."""
    plan = _planned(settings, dialect, state, asked, before, attempt)
    count = state.count(plan.columns, plan.base) if plan is not None else 0
    return None if plan is None or not count else (plan, count, _queries(settings, dialect, state, plan))


def _planned(
    settings: JdbcSettings, dialect: Dialect, state: State, asked: pa.Schema, before: Mark | None, attempt: str
) -> _Plan | None:
    """None where nothing waits."""
    if before is not None and before.column != settings.column:
        before = None  # another column: what it has passed says nothing
    if before is not None and settings.column:
        _check_statement(settings, before)
    base = settings.base(dialect.quoted)
    columns = state.columns(base, asked)
    batch = hashlib.sha256((before.to_text() if before is not None else "begin").encode()).hexdigest()[:20]
    if not settings.column:
        rows, digest = _digest(state, dialect.digest(columns, base))
        if before is not None and (rows, digest) == (before.rows, before.digest):
            return None
        return _Plan(columns, base, Mark(batch, attempt, rows=rows, digest=digest))
    grows = _grows(settings, dialect, columns)
    if settings.within is not None:
        base = f"SELECT * FROM ({base}) AS ranged WHERE {grows.inside(settings.within)}"
    (most,) = state.one(f"SELECT {dialect.greatest(grows.name, grows.kind)} AS most FROM ({base}) AS grown")
    if most is None:
        return None
    value = str(most)

    def again(last: str) -> tuple[int, str]:
        window = grows.window(last, value)
        return _digest(state, dialect.digest(columns, f"SELECT * FROM ({base}) AS again WHERE {window}"))

    if before is not None and value == before.value and again(value) == (before.rows, before.digest):
        return None
    rows, digest = again(value)
    bounds = grows.window(before.value, value) if before is not None else grows.upto(value)
    mark = Mark(batch, attempt, settings.column, value, rows, digest, settings.statement)
    return _Plan(columns, f"SELECT * FROM ({base}) AS grown WHERE {bounds}", mark)


def _check_statement(settings: JdbcSettings, before: Mark) -> None:
    """Raises InvalidRequestError where other rows are meant than at a checkpoint: those of them
    that lie below its value would never be read."""
    known, now = before.statement, settings.statement
    changed = sorted(f"jdbc.{name}" for name in known.keys() | now.keys() if known.get(name) != now.get(name))
    if not known or not changed:
        return
    several = len(changed) > 1
    names = f"{', '.join(changed[:-1])} and {changed[-1]} have" if several else f"{changed[0]} has"
    raise InvalidRequestError(
        f"{names} changed, and the checkpoint of before has passed all rows below {before.column} {before.value}. To go on from there: "
        f"hudictl checkpoint set BASE INGEST '{before.column} {before.value}'; to read rows below it, too, set an earlier value"
    )


def _grows(settings: JdbcSettings, dialect: Dialect, columns: Sequence[Column]) -> _Grows:
    kind = _kind(dialect, columns, settings.column, "incremental.column")
    return _Grows(settings.column, kind, settings.lag, dialect)


def _kind(dialect: Dialect, columns: Sequence[Column], name: str, field: str) -> str:
    """The type of a column by which rows are read in ranges."""
    found = next((each for each in columns if each.name == name), None)
    if found is None:
        raise InvalidRequestError(f"jdbc.{field} {name!r} is no column that the database gives")
    if found.kind not in (*dialect.integers, *dialect.times):
        raise InvalidRequestError(
            f"jdbc.{field} {name} is {found.kind or 'of a type of its own'}: take one of {', '.join((*dialect.integers, *dialect.times))}"
        )
    return found.kind


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _digest(state: State, query: str) -> tuple[int, str]:
    rows, digest = state.one(query)
    return int(str(rows)), str(digest)


def _queries(settings: JdbcSettings, dialect: Dialect, state: State, plan: _Plan) -> list[str]:
    """Statements that together give each row once."""
    select = ", ".join(each.select for each in plan.columns)
    if settings.column or dialect.one_state:
        parts = _parts(settings, dialect, state, plan)
        return [f"SELECT {select} FROM ({plan.base}) AS part WHERE {part}" for part in parts]
    told = dialect.digest(plan.columns, plan.base)
    return [
        f"SELECT rows_.*, told.* FROM (SELECT {select} FROM ({plan.base}) AS part) AS rows_ CROSS JOIN ({told}) AS told"
    ]


def _parts(settings: JdbcSettings, dialect: Dialect, state: State, plan: _Plan) -> list[str]:
    """Conditions of which each row fulfils one."""
    if settings.parts == 1 or not settings.split:
        return ["true"]
    kind, name = _kind(dialect, plan.columns, settings.split, "split.column"), dialect.quoted(settings.split)
    least, most = state.one(dialect.ends(settings.split, kind, plan.base))
    if least is None:
        return ["true"]
    begin = int(str(least))
    step = (int(str(most)) - begin) // settings.parts + 1
    cuts = [dialect.cut(begin + step * number, kind) for number in range(1, settings.parts)]
    ends = [f"{name} < {cut}" for cut in cuts]
    inner = [f"{name} >= {begin} AND {end}" for begin, end in zip(cuts, ends[1:], strict=False)]
    return [f"({ends[0]} OR {name} IS NULL)", *inner, f"{name} >= {cuts[-1]}"]


def _told(mark: Mark, batches: Iterator[pa.RecordBatch]) -> tuple[Mark, Iterator[pa.RecordBatch]]:
    """The checkpoint of the state that a statement has read, which stands beside its rows."""
    first = next((each for each in batches if each.num_rows), None)
    if first is None:
        return replace(mark, rows=0), batches
    rows, digest = (str(first.column(first.num_columns - place)[0]) for place in (2, 1))
    return replace(mark, rows=int(rows), digest=digest), chain([first], batches)


def _typed(
    rows: JdbcRows, batches: Iterator[pa.RecordBatch], columns: Sequence[Column], infinite_is_null: bool
) -> Iterator[pa.RecordBatch]:
    for each in batches:
        rows.read += each.num_rows
        yield read(each, columns, infinite_is_null=infinite_is_null)


@contextlib.contextmanager
def _reading(server: Server, state: State, queries: Sequence[str]) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows of queries, of one state: one in this connection, more in one each, at once."""
    if len(queries) == 1:
        yield state.batches(queries[0])
        return
    snapshot, ended = state.snapshot(), threading.Event()
    found: queue.Queue[Any] = queue.Queue(BATCHES_AHEAD * len(queries))

    def give(what: Any) -> None:
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                found.put(what, timeout=_LOOK_SECONDS)
                return

    def work(query: str) -> None:
        with server.state(snapshot) as own:
            for batch in own.batches(query):
                give(batch)
                if ended.is_set():
                    return

    with ThreadPoolExecutor(len(queries), "jdbc") as pool:
        try:
            for query in queries:
                pool.submit(work, query).add_done_callback(give)
            yield _given(found, len(queries))
        finally:
            ended.set()


def _given(found: queue.Queue[Any], count: int) -> Iterator[pa.RecordBatch]:
    """What the threads give, until all have ended; what one of them has raised is raised."""
    while count:
        what = found.get()
        if isinstance(what, Future):
            count -= 1
            what.result()
        else:
            yield what
