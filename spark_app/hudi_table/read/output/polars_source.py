"""The Polars bridge: a lazy frame that hands columns, filter and number of rows down to a scan.

What we understand of Polars' predicate prunes files and rows; Polars' own predicate then decides on
each batch, so that a part which we do not understand, or a change of its serialised form, costs
time and never rows. Comparisons of floats stay with Polars, for which NaN is the greatest number.
Base files that Polars may read it reads itself, see `polars_files`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from hudi_table.errors import InvalidOptionError
from hudi_table.read.files import stream
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.filter.text import Column, Literal, Logic, Operand, Predicate, Test
from hudi_table.read.output.polars_files import frames
from hudi_table.read.plan import ScanPlan, narrow
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

_COMPARISONS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_LOGIC = {"And": "and", "LogicalAnd": "and", "Or": "or", "LogicalOr": "or"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"Milliseconds": 1_000, "Microseconds": 1}


class _UnknownError(ValueError):
    """A part of a predicate that has no counterpart here."""


def lazy_frame(context: TableContext, planned: Replanned[ScanPlan], limit: int | None) -> pl.LazyFrame:
    """A lazy frame over the rows of the plan, of which there are at most `limit`."""
    schema = planned.plan.schema
    kinds = _frame(schema.empty_table()).schema

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = schema.names if columns is None else columns
        needed = [*wanted, *(predicate.meta.root_names() if predicate is not None else ())]
        # A limit counts the rows before Polars filters them.
        more = None if limit is not None else _understood(predicate, schema)
        names = list(dict.fromkeys(needed))

        def finish(frame: pl.LazyFrame) -> pl.LazyFrame:
            kept = (frame if predicate is None else frame.filter(predicate)).select(wanted)
            return kept if rows is None else kept.head(rows)

        def streamed(plan: ScanPlan) -> Generator[pl.DataFrame, None, None]:
            for batch in stream(context, plan, limit):
                frame = _frame(batch)
                yield (frame if predicate is None else frame.filter(predicate)).select(wanted)

        def of(plan: ScanPlan) -> Generator[pl.DataFrame, None, None]:
            narrowed = narrow(context, plan, names, more)
            if limit is not None or plan.bound is not None:
                yield from streamed(narrowed)
                return
            like = pl.Schema({name: kinds[name] for name in names})
            yield from frames(context, narrowed, like, finish, streamed)

        for found in planned.batches(of):
            yield found if rows is None else found.head(rows)
            rows = None if rows is None else rows - found.height
            if rows is not None and rows <= 0:
                return

    return register_io_source(read, schema=kinds, is_pure=True)


def _frame(data: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _understood(predicate: pl.Expr | None, schema: pa.Schema) -> Filter | None:
    """The conjuncts that we can translate and that fit the schema, as a filter."""
    if predicate is None:
        return None
    try:
        form = json.loads(predicate.meta.serialize(format="json"))
    except (ValueError, TypeError, AttributeError, pl.exceptions.PolarsError):
        return None
    parts = []
    for conjunct in _conjuncts(form):
        try:
            part = _predicate(conjunct, schema)
            Filter("", part).bind(schema)
        except (_UnknownError, InvalidOptionError, KeyError, TypeError, IndexError, OverflowError, pa.ArrowInvalid):
            continue
        parts.append(part)
    return Filter(str(predicate), Logic("and", tuple(parts))) if parts else None


def _conjuncts(form: Any) -> Iterator[Any]:
    inner = form.get("BinaryExpr") if isinstance(form, dict) else None
    if inner is not None and _LOGIC.get(inner["op"]) == "and":
        yield from _conjuncts(inner["left"])
        yield from _conjuncts(inner["right"])
    else:
        yield form


def _predicate(form: Any, schema: pa.Schema) -> Predicate:
    if not isinstance(form, dict):
        raise _UnknownError
    if "BinaryExpr" in form:
        inner = form["BinaryExpr"]
        sides = (inner["left"], inner["right"])
        if inner["op"] in _LOGIC:
            return Logic(_LOGIC[inner["op"]], tuple(_predicate(side, schema) for side in sides))
        return Test(_COMPARISONS[inner["op"]], tuple(_operand(side, schema) for side in sides))
    function, inputs = form["Function"]["function"]["Boolean"], form["Function"]["input"]
    if function == "Not":
        return Logic("not", (_predicate(inputs[0], schema),))
    operands = tuple(_operand(each, schema) for each in inputs[:1])
    if function in ("IsNull", "IsNotNull"):
        test = Test("null", operands)
        return test if function == "IsNull" else Logic("not", (test,))
    if function == {"IsBetween": {"closed": "Both"}}:
        low, high = (_operand(each, schema) for each in inputs[1:])
        return Logic("and", (Test(">=", (operands[0], low)), Test("<=", (operands[0], high))))
    if function == {"IsIn": {"nulls_equal": False}}:
        return Test("in", (operands[0], *map(Literal, _items(inputs[1]))))
    raise _UnknownError


def _operand(form: Any, schema: pa.Schema) -> Operand:
    if "Column" in form:
        if pa.types.is_floating(schema.field(form["Column"]).type):
            raise _UnknownError
        return Column(form["Column"])
    literal = form["Literal"]
    ((kind, value),) = (literal.get("Dyn") or literal["Scalar"]).items()
    if kind == "Date":
        return Literal(date(1970, 1, 1) + timedelta(days=value))
    if kind == "Datetime":
        ticks, unit, zone = value
        moment = _EPOCH + timedelta(microseconds=ticks * _MICROSECONDS[unit])
        return Literal(moment if zone else moment.replace(tzinfo=None))
    if kind in ("Int", "Float", "Str", "String", "Boolean") or kind.startswith(("Int", "UInt")):
        return Literal(value)
    raise _UnknownError


def _items(form: Any) -> list[Any]:
    """The values of a list literal, which is an Arrow stream of one column."""
    with pa.ipc.open_stream(bytes(form["Literal"]["Scalar"]["List"])) as stream_of_one:
        values: list[Any] = stream_of_one.read_all().column(0).to_pylist()
    if any(value is None for value in values):
        raise _UnknownError
    return values
