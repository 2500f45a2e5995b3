"""A SELECT in Spark's dialect as one of DuckDB's that means the same, or a refusal that names what
has no counterpart.

What is taken is a list, and each entry was compared with Spark on the same rows
(`tests/hudi_spark/jobs/test_transforms_alike.py`): the parser knows many more functions, and gives
some of them another meaning without a word. Where the two differ by the kind of a value, which only
the rows tell, a macro decides (`duckdb.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from hudi_table.errors import InvalidRequestError
from hudi_table.model.digits import is_digits
from hudi_table.services.select_check import SOURCE, check_select
from hudi_table.services.transforming.operands import Operands, is_mixed
from hudi_table.services.transforming.shape import Shape, shape_of_parsed

_STRUCTURE = (
    exp.Select, exp.From, exp.Where, exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Star, exp.Paren, exp.Dot, exp.Table,
    exp.TableAlias, exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Qualify, exp.Distinct,
    exp.Window, exp.WindowSpec, exp.DataType, exp.DataTypeParam, exp.Null, exp.Boolean, exp.PropertyEQ,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.DPipe,
)  # fmt: skip
_FUNCTIONS = (
    exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Cast, exp.TryCast, exp.Concat, exp.ConcatWs, exp.Upper,
    exp.Lower, exp.Length, exp.Replace, exp.Substring, exp.MD5, exp.SHA2, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate, exp.Year, exp.Month, exp.Day,
    exp.Abs, exp.Trim, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Hour, exp.Minute, exp.Second, exp.Quarter, exp.DayOfWeek, exp.ArraySize, exp.Struct, exp.Explode, exp.Count, exp.Min, exp.Max, exp.RowNumber, exp.CurrentTimestamp,
)  # fmt: skip
TAKEN = frozenset({*_STRUCTURE, *_OPERATORS, *_FUNCTIONS})
"""What is translated; each is compared with Spark."""
_MOMENTS = {
    "timestamp_millis": "spark_millis",
    "timestamp_micros": "spark_micros",
    "timestamp_seconds": "spark_seconds",
}
_CASTS = {
    **{
        kind: f"spark_{kind.value.lower()}"
        for kind in (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
    },
    exp.DType.TEXT: "spark_text",
    exp.DType.VARCHAR: "spark_text",
}
_CHECKED_CASTS = {
    exp.DType.DOUBLE: ("spark_number", "DOUBLE"),
    exp.DType.FLOAT: ("spark_number", "REAL"),
    exp.DType.BOOLEAN: ("spark_truth", "BOOLEAN"),
    exp.DType.DATE: ("spark_date", "DATE"),
    exp.DType.TIMESTAMPTZ: ("spark_timestamp", "TIMESTAMPTZ"),
    exp.DType.TIMESTAMPLTZ: ("spark_timestamp", "TIMESTAMPTZ"),
    # So the parser calls what to_timestamp gives, which has a zone in Spark.
    exp.DType.TIMESTAMP: ("spark_timestamp", "TIMESTAMPTZ"),
    exp.DType.TIMESTAMPNTZ: ("spark_clock", "TIMESTAMP"),
}
"""The macro that refuses texts which DuckDB reads otherwise, and DuckDB's name of the type."""
_PATTERN = re.compile(r"(?:%[YmdHMS](?:strict)?|[^%A-Za-z'])*")
"""Of `date_format`, as the parser gives it: years, months, days, hours, minutes and seconds with
all their digits, and what is no letter."""


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT that DuckDB runs. `text`: DuckDB's. `scans`: how often it reads `source`.
    `is_one_expression`: it gives one value for each row, and asks nothing else."""

    text: str
    shape: Shape
    scans: int
    is_one_expression: bool
    operands: Operands


def to_duckdb(sql: str) -> Select:
    """Raises InvalidRequestError for what is no harmless SELECT over `source`, and for what DuckDB
    would not do as Spark does, by name."""
    check_select(sql)
    _refuse_texts_in_a_row(sql)
    statement = sqlglot.parse_one(sql, dialect="spark")
    for node in statement.walk():
        _refuse(node, sql)
    shape = shape_of_parsed(statement)
    scans = sum(table.name.lower() == SOURCE for table in statement.find_all(exp.Table))
    one = (
        shape.keeps_deletes
        and len(statement.expressions) == 1
        and {key for key, value in statement.args.items() if value} == {"expressions", "from_"}
    )
    operands = Operands.of(statement)
    _name_columns(statement)
    # From the leaves on: what replaces a node holds its children, which are replaced by then.
    for node in reversed(list(statement.walk())):
        other = _rewritten(node)
        if other is not node:
            node.replace(other)
    return Select(statement.sql(dialect="duckdb"), shape, scans, one, operands)


def _refuse_texts_in_a_row(sql: str) -> None:
    """`'it''s'` is one text with a quote or two texts, by Spark's version and settings; the parser
    takes two."""
    kinds = [token.token_type for token in sqlglot.tokenize(sql, dialect="spark")]
    if any(one is other is sqlglot.TokenType.STRING for one, other in itertools.pairwise(kinds)):
        raise _unlike("a text right behind another, or a quote written twice within one")


def _name_columns(statement: exp.Expr) -> None:
    """Spark calls a column as the statement writes it, DuckDB as its table does."""
    while isinstance(statement, exp.Union):
        statement = statement.left.unnest()
    for each in statement.expressions:
        if isinstance(each, exp.Column) and not isinstance(each.this, exp.Star):
            each.replace(exp.alias_(each.copy(), each.name, quoted=True))


def _refuse(node: exp.Expr, sql: str) -> None:
    if isinstance(node, exp.Anonymous) and str(node.name).lower() in _MOMENTS and len(node.expressions) == 1:
        return
    if type(node) not in TAKEN:
        raise _unlike(_written(node, sql))
    check = _CHECKS.get(type(node))
    why = check(node) if check is not None else ""
    if why:
        raise _unlike(f"{_written(node, sql)} {why}")


def _unlike(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the transform uses {what}, which is not done without Spark: write it otherwise, or give engine Spark"
    )


def _written(node: exp.Expr, sql: str) -> str:
    """What the statement says there: the parser has names of its own for what it knows."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if isinstance(node, exp.Func) and start is not None and end is not None:
        return sql[start : end + 1].upper()
    if isinstance(node, exp.Cast):
        return "TRY_CAST" if node.args.get("safe") else "CAST"
    if type(node) not in TAKEN and isinstance(node, exp.Condition):
        return node.sql(dialect="spark")
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _of_literal(node: exp.Expr) -> str:
    return "with a quote in it, which Spark reads otherwise" if node.is_string and "'" in node.name else ""


def _of_cast(node: exp.Expr) -> str:
    kind = node.args["to"].this
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return "which gives null where CAST fails: give CAST"
    if kind is exp.DType.FLOAT and is_mixed(node):
        return "to FLOAT beside other values, which Spark makes a DOUBLE: give DOUBLE"
    return (
        ""
        if kind in _CASTS or kind in _CHECKED_CASTS or kind is exp.DType.DECIMAL
        else f"to {node.args['to'].sql(dialect='spark')}"
    )


def _of_substring(node: exp.Expr) -> str:
    start = node.args.get("start")
    if not isinstance(start, exp.Literal) or start.is_string or not is_digits(str(start.this)):
        return "with a start that is no number of 0 or more"
    return ""


def _of_like(node: exp.Expr) -> str:
    pattern = node.expression
    return (
        "" if _is_text(pattern) and "\\" not in pattern.name else "with a pattern that is no text without backslashes"
    )


def _of_date_format(node: exp.Expr) -> str:
    form = node.args.get("format")
    if form is not None and _is_text(form) and _PATTERN.fullmatch(form.name):
        return ""
    return "with a pattern of other letters than yyyy, MM, dd, HH, mm and ss"


def _of_trim(node: exp.Expr) -> str:
    return "of other letters than spaces" if node.args.get("expression") is not None else ""


def _of_sha2(node: exp.Expr) -> str:
    length = node.args.get("length")
    return "" if length is not None and length.name == "256" else "of another length than 256"


def _of_to_date(node: exp.Expr) -> str:
    return "with a format" if node.args.get("format") is not None else ""


def _of_explode(node: exp.Expr) -> str:
    parent = node.parent
    return "" if isinstance(parent, exp.Select | exp.Alias) else "within another expression"


_CHECKS: dict[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Literal: _of_literal,
    exp.Cast: _of_cast,
    exp.TryCast: _of_cast,
    exp.Substring: _of_substring,
    exp.Like: _of_like,
    exp.TimeToStr: _of_date_format,
    exp.SHA2: _of_sha2,
    exp.Trim: _of_trim,
    exp.TsOrDsToDate: _of_to_date,
    exp.Explode: _of_explode,
}


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Where the two mean otherwise by the same words."""
    if isinstance(node, exp.Cast):  # of which TryCast is one: so the parser reads Spark's CAST
        kind = node.args["to"].this
        if kind in _CASTS:
            return _call(_CASTS[kind], node.this)
        if kind is exp.DType.DECIMAL:
            return exp.Cast(this=_call("spark_digits", node.this), to=node.args["to"])
        return _checked_cast(node.this, kind)
    if isinstance(node, exp.Concat | exp.ConcatWs):
        return exp.Anonymous(
            this="concat_ws" if isinstance(node, exp.ConcatWs) else "spark_concat",
            expressions=[_call("spark_text", each) for each in node.expressions]
            if isinstance(node, exp.ConcatWs)
            else [exp.Array(expressions=[_call("spark_text", each) for each in node.expressions])],
        )
    if isinstance(node, exp.DPipe):
        return exp.DPipe(this=_call("spark_text", node.this), expression=_call("spark_text", node.expression))
    if isinstance(node, exp.Div | exp.Mod):
        return _call("spark_div" if isinstance(node, exp.Div) else "spark_mod", node.this, node.expression)
    if isinstance(node, exp.Substring) and node.args["start"].name == "0":
        return exp.Substring(this=node.this, start=exp.Literal.number(1), length=node.args.get("length"))
    if isinstance(node, exp.TimeStrToTime):
        return _checked_cast(node.this, exp.DType.TIMESTAMPTZ)
    if isinstance(node, exp.Upper | exp.Lower):
        return _call(f"spark_{node.key}", node.this)
    if isinstance(node, exp.TsOrDsToDate):
        return _checked_cast(node.this, exp.DType.DATE)
    if isinstance(node, exp.Year | exp.Month | exp.Day):
        return exp.cast(_call(node.key, _checked_cast(node.this, exp.DType.DATE)), "int")
    if isinstance(node, exp.Hour | exp.Minute | exp.Second):
        return exp.cast(_call(node.key, exp.cast(_checked_cast(node.this, exp.DType.TIMESTAMPTZ), "timestamp")), "int")
    if isinstance(node, exp.Quarter):
        return exp.cast(_call("quarter", _checked_cast(node.this, exp.DType.DATE)), "int")
    if isinstance(node, exp.DayOfWeek):
        return exp.cast(exp.Add(this=_call("dayofweek", node.this), expression=exp.Literal.number(1)), "int")
    if isinstance(node, exp.ArraySize):
        return exp.cast(_call("array_length", node.this), "int")
    if isinstance(node, exp.Trim):
        return _call(
            {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim"),
            node.this,
            exp.Literal.string(" "),
        )
    if isinstance(node, exp.StartsWith | exp.EndsWith | exp.Contains):
        return _call(f"spark_{node.key}", node.this, node.expression)
    if isinstance(node, exp.Length) or (isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber)):
        return exp.cast(node.copy(), "int")
    if _is_operand(node):
        return exp.cast(node.copy(), "int" if abs(int(node.name)) < 2**31 else "bigint")
    if isinstance(node, exp.Anonymous) and str(node.name).lower() in _MOMENTS:
        return _call(_MOMENTS[str(node.name).lower()], *node.expressions)
    return node


def _is_operand(node: exp.Expr) -> bool:
    """Whether it is a whole number beside other values. DuckDB gives it their type, Spark the
    smallest from `int` on."""
    if not isinstance(node, exp.Literal) or node.is_string or not is_digits(node.name) or int(node.name) >= 2**63:
        return False
    return isinstance(
        node.parent, (exp.Neg, *_OPERATORS, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.If, exp.Case)
    )


def _checked_cast(value: exp.Expr, kind: exp.DType) -> exp.Expr:
    check, name = _CHECKED_CASTS[kind]
    return exp.Cast(this=_call(check, value), to=exp.DataType.build(name, dialect="duckdb"))


def _call(name: str, *values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[value.copy() for value in values])
