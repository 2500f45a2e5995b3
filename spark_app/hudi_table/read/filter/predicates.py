"""Filters: SQL-like text, DNF tuples or a pyarrow expression → one pyarrow expression bound to a
schema.

The text form knows columns, literals, ``= == != <> < <= > >=``, ``in``, ``between``, ``like``, ``is
null``, ``and``, ``or``, ``not`` and parentheses; a comparison with null is neither true nor false,
as in SQL. Literals take the type of the column beside them, so ``day >= '2024-01-01'`` compares
dates and ``price = 1.10`` decimals.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.read.filter.literals import COMPARE, compared, is_member, like
from hudi_table.read.filter.text import COMPARISONS, Column, Literal, Logic, Operand, Parser, Predicate, Test, negate

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Bound:
    """A filter that fits a schema: the expression, and the top-level columns that it reads."""

    expression: pc.Expression
    columns: tuple[str, ...]

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that match. Raises InvalidOptionError for an expression that Arrow cannot
        compute of them."""
        try:
            return batch.filter(self.expression)
        except pa.ArrowInvalid as error:
            raise InvalidOptionError(
                f"filter {self.expression} cannot be computed: {error}; as text, filters compare numbers of any size"
            ) from error

    def both(self, other: Bound) -> Bound:
        """What matches this filter and the other one."""
        return Bound(self.expression & other.expression, tuple(dict.fromkeys(self.columns + other.columns)))


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter in any of its three forms. `text` is what `explain` shows."""

    text: str
    form: Predicate | pc.Expression

    @classmethod
    def of(cls, value: object) -> Filter | None:
        """The filter that the caller gave; None for None. Raises InvalidOptionError for what is
        none."""
        if value is None:
            return None
        if isinstance(value, Filter):
            return value
        if isinstance(value, str):
            return cls(value.strip(), Parser(value).parse())
        if isinstance(value, pc.Expression):
            return cls(str(value), value)
        if isinstance(value, (list, tuple)) and value:
            return cls(repr(value), _from_tuples(value))
        raise InvalidOptionError(
            f"filter {value!r} is neither SQL text, a list of (column, operator, value) nor a pyarrow expression"
        )

    def bind(self, schema: pa.Schema) -> Bound:
        """Resolve columns and literals. Raises InvalidOptionError, naming the column or the value
        that does not fit."""
        form = self.form
        if isinstance(form, pc.Expression):
            return Bound(form, _referenced(form, schema))
        names = {_resolve(column.name, schema)[1][0] for column in _columns(form)}
        return Bound(_expression(form, schema), tuple(name for name in schema.names if name in names))


def _from_tuples(value: Sequence[Any]) -> Predicate:
    """A tuple; a list of tuples (and); or a list of lists of tuples (or of ands)."""
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        column, op, constant = Column(value[0]), str(value[1]).lower().strip(), value[2]
        if op in ("in", "not in") and isinstance(constant, (list, tuple, set, frozenset)):
            test = Test("in", (column, *(Literal(item) for item in constant)))
            return negate(test, "not" if op == "not in" else None)
        if op in ("is", "is not") and constant is None:
            return negate(Test("null", (column,)), "not" if op == "is not" else None)
        if op == "like":
            return Test("like", (column, Literal(constant)))
        if op in COMPARISONS and constant is not None:
            return Test(COMPARISONS[op], (column, Literal(constant)))
        raise InvalidOptionError(
            f"filter {value!r}: use =, !=, <, <=, >, >=, like with a value, in, not in with a list, is, is not with None"
        )
    if not value or not all(isinstance(item, (list, tuple)) for item in value):
        raise InvalidOptionError(f"filter {value!r} is not (column, operator, value), nor a list of these")
    parts = tuple(_from_tuples(item) for item in value)
    return parts[0] if len(parts) == 1 else Logic("or" if isinstance(value[0], list) else "and", parts)


def _columns(predicate: Predicate) -> Iterator[Column]:
    if isinstance(predicate, Logic):
        for part in predicate.parts:
            yield from _columns(part)
    else:
        yield from (operand for operand in predicate.operands if isinstance(operand, Column))


def _resolve(name: str, schema: pa.Schema) -> tuple[pa.DataType, tuple[str, ...]]:
    """(type, path) of a column name. Raises InvalidOptionError with the names there are."""
    if name in schema.names:
        return schema.field(name).type, (name,)
    path = tuple(name.split("."))
    kind: pa.DataType = pa.struct(list(schema))
    for step in path:
        index = kind.get_field_index(step) if pt.is_struct(kind) else -1
        if index < 0:
            known = ", ".join(name for name in schema.names if name not in ALL_META_COLUMNS)
            near = difflib.get_close_matches(name, schema.names, n=1)
            hint = "" if near else f"; a text stands in single quotes, column = '{name}'"
            raise InvalidOptionError(f"filter: no column {name!r}; the table has {known}{hint}")
        kind = kind.field(index).type
    return kind, path


def _expression(predicate: Predicate, schema: pa.Schema, negated: bool = False) -> pc.Expression:
    """Negations sink to the tests: there a null, which is neither true nor false, can be read as
    false."""
    if isinstance(predicate, Logic):
        if predicate.op == "not":
            return _expression(predicate.parts[0], schema, not negated)
        parts = [_expression(part, schema, negated) for part in predicate.parts]
        both = (predicate.op == "and") is not negated
        return reduce(operator.and_ if both else operator.or_, parts)
    if not any(isinstance(operand, Column) for operand in predicate.operands):
        raise InvalidOptionError("filter: a comparison needs a column on at least one side")
    if predicate.op not in COMPARE:
        return _of_column(predicate, schema, negated)
    left, right = predicate.operands
    if isinstance(left, Column) and isinstance(right, Column):
        test = _columns_compared(left, predicate.op, right, schema)
    elif isinstance(left, Column):
        test = _compared(left, predicate.op, right, schema)
    else:
        test = _compared(right, _MIRRORED[predicate.op], left, schema)
    return ~test if negated else test


def _columns_compared(left: Column, op: str, right: Column, schema: pa.Schema) -> pc.Expression:
    sides = [_resolve(column.name, schema) for column in (left, right)]
    fields = [pc.field(*path) for _, path in sides]
    if sum(pt.is_floating(kind) for kind, _ in sides) == 1:
        # By itself Arrow refuses whole numbers that a float does not hold.
        fields = [
            each.cast(pa.float64(), safe=False) if pt.is_integer(kind) else each
            for each, (kind, _) in zip(fields, sides, strict=True)
        ]
    test = COMPARE[op](*fields)
    _try(test, schema.empty_table())
    return test


def _compared(column: Operand, op: str, value: Operand, schema: pa.Schema) -> pc.Expression:
    assert isinstance(column, Column)
    assert isinstance(value, Literal)
    kind, path = _resolve(column.name, schema)
    return compared(pc.field(*path), op, value.value, kind)


def _of_column(predicate: Test, schema: pa.Schema, negated: bool) -> pc.Expression:
    """A test of one column that is no comparison."""
    first, *others = predicate.operands
    values = [operand.value for operand in others if isinstance(operand, Literal)]
    if not isinstance(first, Column) or len(values) < len(others):
        takes = "one column and values" if predicate.op == "in" else "a column and a pattern in quotes"
        raise InvalidOptionError(f"filter: {predicate.op} takes {takes}")
    kind, path = _resolve(first.name, schema)
    column = pc.field(*path)
    if predicate.op == "null":
        return column.is_valid() if negated else column.is_null()
    if predicate.op == "in":
        found = is_member(column, values, kind)
        return ~found & column.is_valid() if negated else found
    test = like(column, values[0], kind)
    return ~test if negated else test


def _referenced(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """Columns that an opaque expression reads: those without which it cannot be bound."""
    empty = schema.empty_table()
    _try(expression, empty)
    return tuple(name for name in schema.names if not _binds(expression, empty.drop_columns([name])))


def _try(expression: pc.Expression, table: pa.Table) -> None:
    try:
        table.filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        raise InvalidOptionError(f"filter {expression} does not fit the table: {error}") from error


def _binds(expression: pc.Expression, table: pa.Table) -> bool:
    try:
        table.filter(expression)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return False
    return True
