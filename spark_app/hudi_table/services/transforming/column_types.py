"""Columns whose types decide that a statement means otherwise without Spark: told with the first
rows, by the types of the source."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from hudi_table.errors import InvalidRequestError
from hudi_table.model.digits import is_digits
from hudi_table.services.transforming.operands import ARITHMETIC, Operands

_DIGITS_MAX = 38
_WHOLE = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Digits that Spark reckons with."""


def check_types(operands: Operands, schema: pa.Schema) -> None:
    """Raise InvalidRequestError that names a column of the source which is to be cast."""
    types = {field.name.lower(): field.type for field in schema}
    for name, kind in types.items():
        if name in operands.mixed and _has_float(kind):
            raise _otherwise(f"column {name} ({kind}) beside other values", f"CAST({name} AS DOUBLE)")
        if name in operands.beside_texts and not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_null(kind)):
            raise _otherwise(f"column {name} ({kind}) beside a text", f"CAST({name} AS STRING)")
    for node in operands.arithmetic:
        whole, fraction, decimal = _digits(node, types)
        if decimal and whole + fraction > _DIGITS_MAX:
            words = node.sql(dialect="spark")
            raise _otherwise(
                f"{words}, a decimal of up to {whole + fraction} digits",
                "a CAST of what it is made of to fewer digits",
            )


def _otherwise(what: str, instead: str) -> InvalidRequestError:
    return InvalidRequestError(f"the transform has {what}, which is done otherwise without Spark: give {instead}")


def _has_float(kind: pa.DataType) -> bool:
    if kind.num_fields:
        return any(_has_float(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pt.is_float32(kind))


def _digits(node: exp.Expr | None, types: Mapping[str, pa.DataType]) -> tuple[int, int, bool]:
    """(digits before the point, behind it, whether it is a decimal), as Spark reckons."""
    if isinstance(node, exp.Paren | exp.Neg):
        return _digits(node.this, types)
    if isinstance(node, ARITHMETIC):
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
