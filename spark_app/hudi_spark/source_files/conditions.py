"""Filters of Spark that Arrow computes with the same meaning: comparisons of a column with a value
of its own type, tests for null, and what joins them.

Spark keeps the rows where a filter is true, neither false nor null, and joins by three-valued
logic; so does Arrow's Kleene logic. Text is compared byte by byte by both. Fractions in floating
point are left to Spark: there NaN equals itself and is larger than everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_COMPARISONS: Mapping[str, Callable[[Any, Any], pa.Array]] = {
    "EqualTo": pc.equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
}
_MIRRORED = {
    "EqualTo": "EqualTo",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
_JOINS: Mapping[str, Callable[[Any, Any], pa.Array]] = {"And": pc.and_kleene, "Or": pc.or_kleene}


@dataclass(frozen=True, slots=True)
class Condition:
    """One node of a filter, named as Spark's: `column` and `value` belong to tests of a column."""

    kind: str
    column: str = ""
    value: pa.Scalar | None = None
    inner: tuple[Condition, ...] = ()

    def columns(self) -> set[str]:
        """The columns that it needs."""
        own = {self.column} if self.column else set()
        return own.union(*(item.columns() for item in self.inner))

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """True, false or null for each row."""
        if self.kind in _JOINS:
            return _JOINS[self.kind](*(item.of(batch) for item in self.inner))
        if self.kind == "Not":
            return pc.invert(self.inner[0].of(batch))
        values = batch.column(self.column)
        if self.kind == "IsNotNull":
            return values.is_valid()
        if self.kind == "IsNull":
            return values.is_null()
        return values if self.kind == "Column" else _COMPARISONS[self.kind](values, self.value)


def condition_of(expression: Any, names: Mapping[int, str], types: Mapping[str, pa.DataType]) -> Condition | None:
    """What a node of Spark's plan tests; None if Arrow cannot say the same.

    `names`: the files' name of each attribute by its id, `types` their Arrow types.
    """
    kind = _kind(expression)
    children = [expression.children().apply(number) for number in range(expression.children().size())]
    if kind in _JOINS or kind == "Not":
        inner = [condition_of(child, names, types) for child in children]
        return None if None in inner else Condition(kind, inner=tuple(item for item in inner if item is not None))
    if kind in _COMPARISONS:
        return _comparison(kind, children, names, types)
    if kind == "In":
        items = [_comparison("EqualTo", [children[0], item], names, types) for item in children[1:]]
        return None if None in items else _joined([item for item in items if item is not None])
    if kind in ("IsNull", "IsNotNull"):
        name = _column(children[0], names)
        return None if name is None else Condition(kind, name)
    name = _column(expression, names)
    return Condition("Column", name) if name is not None and types[name] == pa.bool_() else None


def _joined(items: list[Condition]) -> Condition:
    whole = items[0]
    for item in items[1:]:
        whole = Condition("Or", inner=(whole, item))
    return whole


def _comparison(
    kind: str, children: list[Any], names: Mapping[int, str], types: Mapping[str, pa.DataType]
) -> Condition | None:
    left, right = children
    if _kind(left) == "Literal":
        kind, left, right = _MIRRORED[kind], right, left
    name = _column(left, names)
    if name is None or _kind(right) != "Literal" or left.dataType().json() != right.dataType().json():
        return None
    value = _scalar(right.value(), types[name])
    return None if value is None else Condition(kind, name, value)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A literal as Spark holds it: days for dates, microseconds for timestamps, its own classes for
    text and decimals."""
    if isinstance(value, bool) != pt.is_boolean(kind):
        return None
    if isinstance(value, int):
        if pt.is_date32(kind):
            return pa.scalar(value, pa.int32()).cast(kind)
        return pa.scalar(value, kind) if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_timestamp(kind) else None
    if value is None or not (pt.is_string(kind) or pt.is_decimal(kind)):
        return None
    text = value.toString()
    return pa.scalar(text if pt.is_string(kind) else Decimal(text), kind)


def _column(expression: Any, names: Mapping[int, str]) -> str | None:
    return names.get(expression.exprId().id()) if _kind(expression) == "AttributeReference" else None


def _kind(expression: Any) -> str:
    name: str = expression.getClass().getSimpleName()
    return name
