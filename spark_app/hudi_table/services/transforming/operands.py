"""What of a statement means otherwise without Spark, or not, by the types of columns: told from its
words, see `column_types.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

MIXING = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between,
    exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.If, exp.Case,
)  # fmt: skip
"""What puts values beside others, so that the types of these decide."""
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)


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
        outer = [node.copy() for node in statement.find_all(*ARITHMETIC) if not isinstance(_outside(node), ARITHMETIC)]
        return cls(_mixed(statement), frozenset(texts), tuple(outer))


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
    return [node.this, node.expression] if isinstance(node, (*ARITHMETIC, exp.Div)) else []


def _unwrapped(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def _outside(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    while isinstance(above, exp.Paren | exp.Neg):
        above = above.parent
    return above
