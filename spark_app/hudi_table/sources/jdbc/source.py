"""`Jdbc`: the rows of a table or a query, from the checkpoint that the table's commits hold.

With a column that grows, rows are read from `lag` below the greatest value that was read, that
value itself among them: rows with one value that are committed one after the other are all taken,
and a transaction that ends late is, within the lag. What comes twice is one row for an upsert. A
run that finds there what the one before has found commits nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.marks import Mark
from hudi_table.sources.jdbc.columns import INTEGERS, TIMES, Column, columns_of, read, schema_of
from hudi_table.sources.jdbc.postgres import Server, State
from hudi_table.sources.jdbc.settings import JdbcSettings, literal, quoted

BATCHES_AHEAD = 2
"""Batches that each part has read before they are asked for."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class JdbcRows:
    """What is read: `count` rows in batches that are read once, and the checkpoint of the commit
    that holds them."""

    batches: pa.RecordBatchReader
    checkpoint: Mark
    count: int


@dataclass(frozen=True, slots=True)
class _Grows:
    """The column by which rows are read."""

    name: str
    kind: str
    lag: int

    @property
    def sql(self) -> str:
        """The column."""
        return quoted(self.name)

    def value(self, text: str) -> str:
        """A value of it."""
        return f"{literal(text)}::{self.kind}"

    def from_(self, text: str) -> str:
        """The least value that is read again behind this one."""
        if self.kind in INTEGERS:
            return f"({self.value(text)}::numeric - {self.lag})"
        return f"({self.value(text)} - interval '{self.lag} seconds')"

    @property
    def finite(self) -> str:
        """Which values count."""
        return "true" if self.kind in INTEGERS else f"isfinite({self.sql})"


@contextlib.contextmanager
def waiting_rows(
    settings: JdbcSettings, environment: Mapping[str, str], asked: pa.Schema, before: Mark | None, attempt: str
) -> Iterator[JdbcRows | None]:
    """The rows that wait, None where nothing does; read within the context. `asked`: types that the
    rows are to have. Raises HudiError."""
    server = Server(settings, environment)
    try:
        with server.state() as state:
            found = _planned(settings, state, asked, before, attempt)
            if found is None:
                yield None
                return
            columns, base, mark = found
            count = int(state.one(f"SELECT count(*) FROM ({base}) AS counted")[0])
            if not count:
                yield None
                return
            select = ", ".join(each.select for each in columns)
            queries = [
                f"SELECT {select} FROM ({base}) AS part WHERE {part}" for part in _parts(settings, state, columns, base)
            ]
            with _reading(server, state, queries) as batches:
                typed = (read(each, columns, infinite_is_null=settings.infinite_is_null) for each in batches)
                yield JdbcRows(pa.RecordBatchReader.from_batches(schema_of(columns), typed), mark, count)
    finally:
        server.close()


def _planned(
    settings: JdbcSettings, state: State, asked: pa.Schema, before: Mark | None, attempt: str
) -> tuple[tuple[Column, ...], str, Mark] | None:
    """(columns, the query of the rows, the checkpoint behind them); None where nothing waits."""
    base = f"SELECT * FROM {settings.relation}" + (f" WHERE ({settings.filter}\n)" if settings.filter else "")
    columns = columns_of(state.schema(base), asked)
    if before is not None and before.column != settings.column:
        before = None  # another column: what it has passed says nothing
    batch = hashlib.sha256((before.to_text() if before is not None else "begin").encode()).hexdigest()[:20]
    if not settings.column:
        rows, digest = _digest(state, base)
        if before is not None and (rows, digest) == (before.rows, before.digest):
            return None
        return columns, base, Mark(batch, attempt, rows=rows, digest=digest)
    grows = _grows(settings, columns)
    (most,) = state.one(f"SELECT (max({grows.sql}) FILTER (WHERE {grows.finite}))::text FROM ({base}) AS grown")
    if most is None:
        return None
    if before is not None and most == before.value:
        seen = _digest(state, f"SELECT * FROM ({base}) AS again WHERE {_window(grows, before.value, most)}")
        if seen == (before.rows, before.digest):
            return None
    rows, digest = _digest(state, f"SELECT * FROM ({base}) AS again WHERE {_window(grows, most, most)}")
    bounds = _window(grows, before.value, most) if before is not None else f"{grows.sql} <= {grows.value(most)}"
    return (
        columns,
        f"SELECT * FROM ({base}) AS grown WHERE {bounds}",
        Mark(batch, attempt, settings.column, most, rows, digest),
    )


def _window(grows: _Grows, last: str, most: str) -> str:
    return f"{grows.sql} >= {grows.from_(last)} AND {grows.sql} <= {grows.value(most)}"


def _grows(settings: JdbcSettings, columns: Sequence[Column]) -> _Grows:
    kind = _kind(columns, settings.column, "incremental.column")
    if kind not in (*INTEGERS, *TIMES):
        raise InvalidRequestError(
            f"jdbc.incremental.column {settings.column} is {kind or 'of a type of its own'}: take one of {', '.join((*INTEGERS, *TIMES))}"
        )
    return _Grows(settings.column, kind, settings.lag)


def _kind(columns: Sequence[Column], name: str, field: str) -> str:
    found = next((each for each in columns if each.name == name), None)
    if found is None:
        raise InvalidRequestError(f"jdbc.{field} {name!r} is no column that the database gives")
    return found.kind


def _digest(state: State, query: str) -> tuple[int, str]:
    """How many rows there are, and the sum of their hashes: the same in whatever order."""
    rows, digest = state.one(
        f"SELECT count(*), coalesce(sum(hashtextextended(told::text, 0)), 0)::text FROM ({query}) AS told"
    )
    return int(rows), str(digest)


def _parts(settings: JdbcSettings, state: State, columns: Sequence[Column], base: str) -> list[str]:
    """Conditions of which each row fulfils one."""
    if settings.parts == 1 or not settings.split:
        return ["true"]
    kind, name = _kind(columns, settings.split, "split.column"), quoted(settings.split)
    if kind in INTEGERS:
        number = f"{name}::numeric"
    elif kind in TIMES:
        number = f"CASE WHEN isfinite({name}) THEN extract(epoch FROM {name})::numeric END"
    else:
        raise InvalidRequestError(
            f"jdbc.split.column {settings.split} is {kind or 'of a type of its own'}: take one of {', '.join((*INTEGERS, *TIMES))}"
        )
    least, most = state.one(f"SELECT floor(min({number}))::text, ceil(max({number}))::text FROM ({base}) AS bounds")
    if least is None:
        return ["true"]
    step = (int(most) - int(least)) // settings.parts + 1
    cuts = [_cut(int(least) + step * number, kind) for number in range(1, settings.parts)]
    ends = [f"{name} < {cut}" for cut in cuts]
    inner = [f"{name} >= {begin} AND {end}" for begin, end in zip(cuts, ends[1:], strict=False)]
    return [f"({ends[0]} OR {name} IS NULL)", *inner, f"{name} >= {cuts[-1]}"]


def _cut(number: int, kind: str) -> str:
    if kind in INTEGERS:
        return str(number)
    moment = f"to_timestamp({number})"
    return {"timestamptz": moment, "timestamp": f"({moment} AT TIME ZONE 'UTC')"}.get(
        kind, f"({moment} AT TIME ZONE 'UTC')::date"
    )


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
