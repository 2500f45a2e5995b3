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
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from hudi_table.errors import InvalidRequestError
from hudi_table.model.digits import is_digits
from hudi_table.model.names import IS_DELETED
from hudi_table.services.select_check import SOURCE, check_select

_STRUCTURE = (
    exp.Select, exp.From, exp.Where, exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Star, exp.Paren, exp.Dot, exp.Table,
    exp.TableAlias, exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Qualify, exp.Distinct,
    exp.Window, exp.WindowSpec, exp.DataType, exp.DataTypeParam, exp.ColumnDef, exp.Null, exp.Boolean, exp.PropertyEQ,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.DPipe,
)  # fmt: skip
_FUNCTIONS = (
    exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Cast, exp.TryCast, exp.Concat, exp.ConcatWs, exp.Upper,
    exp.Lower, exp.Length, exp.Replace, exp.Substring, exp.MD5, exp.SHA2, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate, exp.Year, exp.Month, exp.Day,
    exp.Abs, exp.Struct, exp.Explode, exp.Count, exp.Min, exp.Max, exp.RowNumber, exp.CurrentTimestamp,
)  # fmt: skip
_TAKEN = frozenset({*_STRUCTURE, *_OPERATORS, *_FUNCTIONS})
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
_PLAIN_CASTS = frozenset(
    {
        exp.DType.DOUBLE,
        exp.DType.FLOAT,
        exp.DType.DECIMAL,
        exp.DType.BOOLEAN,
        exp.DType.DATE,
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPNTZ,
        exp.DType.TIMESTAMPLTZ,
    }
)
_PATTERN = re.compile(r"(?:%[YmdHMS](?:strict)?|[^%A-Za-z'])*")
"""Of `date_format`, as the parser gives it: years, months, days, hours, minutes and seconds with
all their digits, and what is no letter."""
_UNORDERED = (
    exp.Group, exp.Order, exp.Distinct, exp.Window, exp.Union, exp.Subquery, exp.CTE, exp.Exists, exp.Count, exp.Min, exp.Max,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT. `text`: DuckDB's. `keeps_order`: rows come out in the order in which they went
    in. `keeps_deletes`: no row is left out but by a condition that names the column of deletes.
    `scans`: how often it reads `source`. `is_one_expression`: it gives one value for each row, and
    asks nothing else."""

    text: str
    keeps_order: bool
    keeps_deletes: bool
    scans: int
    is_one_expression: bool
    _outputs: tuple[str, ...]
    _all_but: frozenset[str] | None

    def keeps(self, names: Iterable[str]) -> set[str]:
        """Which of these columns are of the source and come out as they are, under their own
        names."""
        found = {name for name in names if name.lower() in self._outputs}
        if self._all_but is not None:
            found |= {name for name in names if name.lower() not in self._all_but}
        return found


def to_duckdb(sql: str) -> Select:
    """Raises InvalidRequestError for what is no harmless SELECT over `source`, and for what DuckDB
    would not do as Spark does, by name."""
    check_select(sql)
    _refuse_texts_in_a_row(sql)
    statement = sqlglot.parse_one(sql, dialect="spark")
    for node in statement.walk():
        _refuse(node)
    keeps = isinstance(statement, exp.Select) and statement.find(*_UNORDERED) is None
    outputs, all_but = _outputs(statement)
    kept = keeps and statement.find(exp.Explode) is None and _keeps_deletes(statement)
    scans = sum(table.name.lower() == SOURCE for table in statement.find_all(exp.Table))
    one = (
        kept
        and len(statement.expressions) == 1
        and {key for key, value in statement.args.items() if value} == {"expressions", "from_"}
    )
    _name_columns(statement)
    # From the leaves on: what replaces a node holds its children, which are replaced by then.
    for node in reversed(list(statement.walk())):
        other = _rewritten(node)
        if other is not node:
            node.replace(other)
    return Select(statement.sql(dialect="duckdb"), keeps, kept, scans, one, outputs, all_but)


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


def _keeps_deletes(statement: exp.Expr) -> bool:
    where = statement.args.get("where")
    return where is None or any(column.name.lower() == IS_DELETED for column in where.find_all(exp.Column))


def _refuse(node: exp.Expr) -> None:
    if isinstance(node, exp.Anonymous) and str(node.name).lower() in _MOMENTS and len(node.expressions) == 1:
        return
    if type(node) not in _TAKEN:
        raise _unlike(_name_of(node))
    check = _CHECKS.get(type(node))
    why = check(node) if check is not None else ""
    if why:
        raise _unlike(f"{_name_of(node)} {why}")


def _unlike(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the transform uses {what}, which is not done without Spark: write it otherwise (a source of type Files may also be read by Spark)"
    )


def _name_of(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    if isinstance(node, exp.TimeToStr):
        return "DATE_FORMAT"
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _of_literal(node: exp.Expr) -> str:
    return "with a quote in it, which Spark reads otherwise" if node.is_string and "'" in node.name else ""


def _of_cast(node: exp.Expr) -> str:
    kind = node.args["to"].this
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return "TRY_CAST: give CAST"
    return "" if kind in _CASTS or kind in _PLAIN_CASTS else f"to {node.args['to'].sql(dialect='spark')}"


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
    exp.TsOrDsToDate: _of_to_date,
    exp.Explode: _of_explode,
}


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Where the two mean otherwise by the same words."""
    if isinstance(node, exp.Cast):  # of which TryCast is one: so the parser reads Spark's CAST
        kind = node.args["to"].this
        if kind in _CASTS:
            return _call(_CASTS[kind], node.this)
        return exp.Cast(this=node.this, to=node.args["to"])
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
    if isinstance(node, exp.TsOrDsToDate):
        return exp.Cast(this=node.this, to=exp.DataType.build("date"))
    if isinstance(node, exp.Year | exp.Month | exp.Day):
        return exp.Cast(this=_call(node.key, node.this), to=exp.DataType.build("int"))
    if isinstance(node, exp.Anonymous) and str(node.name).lower() in _MOMENTS:
        return _call(_MOMENTS[str(node.name).lower()], *node.expressions)
    return node


def _call(name: str, *values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[value.copy() for value in values])


def _outputs(statement: exp.Expr) -> tuple[tuple[str, ...], frozenset[str] | None]:
    """(the columns that come out as they are, those that do not where all others do; None where a
    star is missing)."""
    source = statement.args.get("from_") if isinstance(statement, exp.Select) else None
    if source is None or not isinstance(source.this, exp.Table) or source.this.name.lower() != SOURCE:
        return (), None
    plain, other, star = set[str](), set[str](), False
    for each in statement.expressions:
        inner = each.this if isinstance(each, exp.Alias) else each
        is_star = isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star))
        if is_star:
            star = True
            marks = inner if isinstance(inner, exp.Star) else inner.this
            other |= {column.name.lower() for column in marks.args.get("except_") or ()}
        elif (
            isinstance(inner, exp.Column)
            and inner.name.lower() == each.alias_or_name.lower()
            and not _is_inner(inner, source.this)
        ):
            plain.add(inner.name.lower())
        else:
            other.add(each.alias_or_name.lower())
    return tuple(sorted(plain - other)), frozenset(other) if star else None


def _is_inner(column: exp.Column, source: exp.Table) -> bool:
    """Whether it is a field of a struct."""
    return bool(column.table) and column.table.lower() != source.alias_or_name.lower()
