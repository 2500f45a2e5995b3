"""Validators of a write: asked of no rows before anything is written, and run when its files are
written and nothing is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import sqlglot
from sqlglot import exp

from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.read.files import stream
from hudi_table.read.plan import ScanPlan
from hudi_table.read.schema import NAMED_FIELDS
from hudi_table.services.transforming.duckdb import Database
from hudi_table.services.validating.queries import Kind, Query
from hudi_table.services.validating.states import before_and_after
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.attempt import Attempt

ROWS_MAX = 10_000
"""Rows of an answer. They are compared in memory."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Validators:
    """The queries that a write has to pass."""

    queries: tuple[Query, ...]

    def check(self, ctx: TableContext, schema: pa.Schema) -> None:
        """Ask every query of no rows. Raises InvalidRequestError for a column that is not there and
        the like."""
        everything = pa.schema([*NAMED_FIELDS, *schema]) if ctx.config.populate_meta_fields else schema
        for query in self.queries:
            _answer(query, everything.empty_table().to_reader())

    def run(self, attempt: Attempt, stats: Sequence[WriteStat]) -> None:
        """Raises InvalidDataError that names the first query which does not hold, and what came of
        it."""
        before, after = before_and_after(attempt, stats)
        ask = partial(_asked, attempt.ctx)
        for query in self.queries:
            if query.kind is Kind.SINGLE_VALUE:
                _check_value(attempt, query, ask(query, after))
            else:
                _check_states(attempt, query, ask(query, before), ask(query, after))


def _check_value(attempt: Attempt, query: Query, answer: pa.Table) -> None:
    if answer.num_rows != 1 or answer.num_columns != 1:
        raise _failed(
            attempt,
            query,
            f"gives {counted(answer.num_rows, 'row')} of {counted(answer.num_columns, 'column')}, not one value",
        )
    value = answer.column(0)[0].as_py()
    if value is None or _text(value) != query.expected:
        raise _failed(attempt, query, f"gives {value!r} after the write")


def _check_states(attempt: Attempt, query: Query, before: pa.Table, after: pa.Table) -> None:
    old, new = (Counter(map(repr, answer.to_pylist())) for answer in (before, after))
    if (old == new) is (query.kind is Kind.EQUALITY):
        return
    wanted = "the same" if query.kind is Kind.EQUALITY else "something else"
    raise _failed(attempt, query, f"is to give {wanted} after the write: before {_some(before)}, after {_some(after)}")


def _failed(attempt: Attempt, query: Query, what: str) -> InvalidDataError:
    return InvalidDataError(
        f"the write did not pass {query.kind.value}: {query.text!r} {what}; nothing of it is visible, correct the rows or the query",
        base_path=attempt.ctx.base_path,
    )


def _asked(ctx: TableContext, query: Query, plan: ScanPlan) -> pa.Table:
    """The answer of one state, of which no other columns are read than the query names."""
    names = _columns(query, plan.schema)
    columns = pa.schema([plan.schema.field(name) for name in names])
    narrow = replace(plan, schema=columns, reads=columns)
    return _answer(query, pa.RecordBatchReader.from_batches(columns, stream(ctx, narrow)))


def _columns(query: Query, schema: pa.Schema) -> list[str]:
    statement = sqlglot.parse_one(query.select.text, dialect="duckdb")
    if any(not isinstance(star.parent, exp.Count) for star in statement.find_all(exp.Star)):
        return list(schema.names)
    named = {column.name.lower() for column in statement.find_all(exp.Column)}
    return [name for name in schema.names if name.lower() in named] or schema.names[:1]


def _answer(query: Query, rows: pa.RecordBatchReader) -> pa.Table:
    try:
        with closing(Database()) as database:
            answer = database.rows(query.select, rows)
            found: list[pa.RecordBatch] = []
            for batch in answer:
                found.append(batch)
                if sum(map(len, found)) > ROWS_MAX:
                    raise InvalidRequestError(
                        f"it gives more than {counted(ROWS_MAX, 'row')}: let it count or group them"
                    )
            return pa.Table.from_batches(found, answer.schema)
    except (InvalidRequestError, InvalidDataError) as error:
        raise type(error)(f"{query.kind.option}, {query.text!r}: {error.message}") from error


def _text(value: object) -> str:
    """As Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some(answer: pa.Table) -> str:
    text = ", ".join(" ".join(map(str, row.values())) for row in answer.slice(0, 5).to_pylist()) or "nothing"
    more = f" and {counted(answer.num_rows - 5, 'row')} more" if answer.num_rows > 5 else ""
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") + more
