"""What one SELECT does to rows, whoever runs it: which columns it hands on as they are, whether
rows keep their order, and whether those that delete others come out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from hudi_table.model.names import IS_DELETED
from hudi_table.services.select_check import SOURCE, check_select

_UNORDERED = (exp.AggFunc, exp.Window, exp.Query, exp.Exists, exp.TableSample)
"""What stands in no SELECT that gives rows in the order in which it takes them."""
_ORDERED_PARTS = frozenset({"expressions", "from_", "where", "laterals"})
_GENERATORS = frozenset({"inline", "stack", "json_tuple", "variant_explode", "posexplode_outer", "inline_outer"})
"""Functions that give no row of some rows; the parser knows the others as such."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one SELECT does to rows, whoever runs it. `keeps_order`: rows come out in the order in
    which they went in. `keeps_deletes`: no row is left out but by a condition that names the
    column of deletes."""

    keeps_order: bool
    keeps_deletes: bool
    _outputs: tuple[str, ...]
    _all_but: frozenset[str] | None

    def keeps(self, names: Iterable[str]) -> set[str]:
        """Which of these columns are of the source and come out as they are, under their own
        names."""
        found = {name for name in names if name.lower() in self._outputs}
        if self._all_but is not None:
            found |= {name for name in names if name.lower() not in self._all_but}
        return found


def shape_of(sql: str) -> Shape:
    """Raises InvalidRequestError for what is no harmless SELECT over `source`."""
    check_select(sql)
    return shape_of_parsed(sqlglot.parse_one(sql, dialect="spark"))


def shape_of_parsed(statement: exp.Expr) -> Shape:
    """Of a statement that was checked."""
    parts = {key for key, value in statement.args.items() if value}
    inner = itertools.islice(statement.walk(), 1, None)
    ordered = isinstance(statement, exp.Select) and parts <= _ORDERED_PARTS
    ordered = ordered and not any(isinstance(node, _UNORDERED) for node in inner)
    all_rows = "laterals" not in parts and not any(map(_generates, statement.walk()))
    return Shape(ordered, ordered and all_rows and _keeps_deletes(statement), *_outputs(statement))


def _generates(node: exp.Expr) -> bool:
    """Whether it gives no row of some rows, or many."""
    anonymous = isinstance(node, exp.Anonymous) and str(node.name).lower() in _GENERATORS
    return anonymous or isinstance(node, exp.Explode | exp.Posexplode | exp.Inline | exp.UDTF)


def _keeps_deletes(statement: exp.Expr) -> bool:
    where = statement.args.get("where")
    return where is None or any(column.name.lower() == IS_DELETED for column in where.find_all(exp.Column))


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
