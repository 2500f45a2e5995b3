"""Columns whose types decide that a statement means otherwise without Spark: told with the first
rows, by the types of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from hudi_table.errors import InvalidRequestError
from hudi_table.model.digits import is_digits

MIXING = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between,
    exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.If, exp.Case,
)  # fmt: skip
"""What puts values beside others, so that the types of these decide."""
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_DIGITS_MAX = 38
_WHOLE = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Digits that Spark reckons with."""


@dataclass(frozen=True, slots=True)
class Operands:
    """`mixed`: names that stand beside other values without a cast. `beside_texts`: columns in
    whose place a text may come. `arithmetic`: expressions of numbers."""

    mixed: frozenset[str]
    beside_texts: frozenset[str]
    arithmetic: tuple[exp.Expr, ...]

    @classmethod
    def of(cls, statement: exp.Expr) -> Operands:
        """Of a statement as it was parsed."""
        texts = {name for node in statement.walk() for name in _beside_texts(node)}
        outer = [
            node.copy() for node in statement.find_all(*_ARITHMETIC) if not isinstance(_outside(node), _ARITHMETIC)
        ]
        return cls(_mixed(statement), frozenset(texts), tuple(outer))

    def check(self, schema: pa.Schema) -> None:
        """Raise InvalidRequestError that names a column of the source which is to be cast."""
        types = {field.name.lower(): field.type for field in schema}
        for name, kind in types.items():
            if name in self.mixed and _has_float(kind):
                raise _otherwise(f"column {name} ({kind}) beside other values", f"CAST({name} AS DOUBLE)")
            if name in self.beside_texts and not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_null(kind)):
                raise _otherwise(f"column {name} ({kind}) beside a text", f"CAST({name} AS STRING)")
        for node in self.arithmetic:
            whole, fraction, decimal = _digits(node, types)
            if decimal and whole + fraction > _DIGITS_MAX:
                words = node.sql(dialect="spark")
                raise _otherwise(
                    f"{words}, a decimal of up to {whole + fraction} digits",
                    "a CAST of what it is made of to fewer digits",
                )


def _otherwise(what: str, instead: str) -> InvalidRequestError:
    return InvalidRequestError(f"the transform has {what}, which is done otherwise without Spark: give {instead}")


def is_mixed(node: exp.Expr) -> bool:
    """Whether its value stands beside others, of which the types decide."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Cast | exp.Query):
        if isinstance(above, MIXING):
            return True
        above = above.parent
    return False


def _mixed(statement: exp.Expr) -> frozenset[str]:
    found = set[str]()
    aliases = [(alias.alias.lower(), alias) for alias in statement.find_all(exp.Alias)]
    more = {part for column in statement.find_all(exp.Column) if is_mixed(column) for part in _parts(column)}
    while more - found:
        found |= more
        inner = [column for name, alias in aliases if name in found for column in alias.find_all(exp.Column)]
        more = {part for column in inner if column.find_ancestor(exp.Cast) is None for part in _parts(column)}
    return frozenset(found)


def _parts(column: exp.Column) -> set[str]:
    return {part.name.lower() for part in column.parts}


def _beside_texts(node: exp.Expr) -> Iterator[str]:
    values = [_unwrapped(each) for each in _results(node)]
    if any(isinstance(each, exp.Literal) and each.is_string for each in values):
        yield from (each.name.lower() for each in values if isinstance(each, exp.Column) and not each.table)


def _results(node: exp.Expr) -> list[exp.Expr | None]:
    """Of which one is the value of the node, or all are summed up in it."""
    if isinstance(node, exp.Case):
        return [*(each.args.get("true") for each in node.args["ifs"]), node.args.get("default")]
    if isinstance(node, exp.If):
        return [node.args.get("true"), node.args.get("false")]
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return [node.this, *node.expressions]
    return [node.this, node.expression] if isinstance(node, (*_ARITHMETIC, exp.Div)) else []


def _unwrapped(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def _outside(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    while isinstance(above, exp.Paren | exp.Neg):
        above = above.parent
    return above


def _has_float(kind: pa.DataType) -> bool:
    if kind.num_fields:
        return any(_has_float(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pt.is_float32(kind))


def _digits(node: exp.Expr | None, types: Mapping[str, pa.DataType]) -> tuple[int, int, bool]:
    """(digits before the point, behind it, whether it is a decimal), as Spark reckons."""
    if isinstance(node, exp.Paren | exp.Neg):
        return _digits(node.this, types)
    if isinstance(node, _ARITHMETIC):
        one, other = _digits(node.this, types), _digits(node.expression, types)
        whole, fraction = max(one[0], other[0]) + 1, max(one[1], other[1])
        if isinstance(node, exp.Mul):
            whole, fraction = one[0] + other[0] + 1, one[1] + other[1]
        return whole, fraction, one[2] or other[2]
    if isinstance(node, exp.Literal) and not node.is_string:
        before, _, behind = node.name.partition(".")
        return len(before), len(behind), is_digits(before + behind) and bool(behind)
    if isinstance(node, exp.Column) and node.name.lower() in types:
        kind = types[node.name.lower()]
        if pt.is_decimal(kind):
            return kind.precision - kind.scale, kind.scale, True
        return _WHOLE.get(kind, 0), 0, False
    if isinstance(node, exp.Cast) and node.args["to"].this is exp.DType.DECIMAL:
        sizes = [int(each.name) for each in node.args["to"].expressions] or [10]
        scale = sizes[1] if len(sizes) > 1 else 0
        return sizes[0] - scale, scale, True
    return _WHOLE[pa.int64()], 0, False
