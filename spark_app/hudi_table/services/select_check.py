"""Whether a statement is one harmless SELECT over known tables (a transform: over `source`), in
Spark's dialect.

A manifest is data of somebody who may change a table but not run code where jobs run. So the
statement is parsed and walked before Spark sees it: nothing but SELECT, no relation but `source`
and the statement's own names, none of Spark's ways into the JVM or a process (`reflect`,
`java_method`, `TRANSFORM … USING`), no path tables, no `IDENTIFIER`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.parser import Parser

from hudi_table.errors import InvalidRequestError

SOURCE = "source"
LENGTH_MAX = 16_384
NESTED_MAX = 8
"""Parentheses within each other behind words that name types, such as date(…): each doubles the
parser's time."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FORBIDDEN_FUNCTIONS = frozenset({"reflect", "try_reflect", "java_method", "identifier"})
_FORBIDDEN_NODES = (
    exp.QueryTransform,
    exp.Into,
    exp.DDL,
    exp.DML,
    exp.Command,
    exp.Placeholder,
    exp.Parameter,
)
_PARSER_FAULTS = (LookupError, TypeError, ValueError, AttributeError)
"""What the parser falls over where arguments are missing, as in map(a)."""
# sqlglot warns of statements that it keeps as text; they are refused here, with a message of our own.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def check_select(sql: str, relations: Sequence[str] = (SOURCE,), what: str = "the transform") -> None:
    """Raises InvalidRequestError that says what is not allowed and what is. `what` is the
    statement's name in messages."""
    known = ", ".join(relations)
    if len(sql) > LENGTH_MAX:
        raise InvalidRequestError(f"{what} has {len(sql)} characters, at most {LENGTH_MAX} are taken")
    if _CONTROLS.search(sql.replace("\r\n", "\n")):
        # A lone carriage return ends a comment for Spark and not for the parser used here.
        raise InvalidRequestError(f"{what} holds control characters; use spaces and line feeds")
    if "${" in sql:
        # Spark replaces ${env:…}, ${system:…} and ${conf} in the text before it parses it, strings included.
        raise InvalidRequestError(f"{what} holds ${{…}}, which Spark would replace before the check counts; remove it")
    try:
        nested = _nested_types(sql)
        if nested > NESTED_MAX:
            raise InvalidRequestError(
                f"{what} nests {nested} calls of functions that types are named by, at most {NESTED_MAX} are taken"
            )
        statements = [s for s in sqlglot.parse(sql, dialect="spark") if s is not None]
    except (sqlglot.errors.SqlglotError, RecursionError, *_PARSER_FAULTS) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequestError(f"{what} is no SQL that Spark reads: {first}") from error
    if len(statements) != 1:
        raise InvalidRequestError(f"{what} holds {len(statements)} statements; give one SELECT")
    statement = statements[0]
    if not isinstance(statement, exp.Query):
        raise InvalidRequestError(f"{what} is a {statement.key.upper()}, only one SELECT over {known} is taken")
    _walk(statement, relations, what)


def _nested_types(sql: str) -> int:
    """How many calls of functions that types are named by lie within each other. Raises
    SqlglotError."""
    most = nested = 0
    open_: list[bool] = []
    before: TokenType | None = None
    for token in sqlglot.tokenize(sql, dialect="spark"):
        if token.token_type is TokenType.L_PAREN:
            open_.append(before in Parser.TYPE_TOKENS)
            nested += open_[-1]
            most = max(most, nested)
        elif token.token_type is TokenType.R_PAREN and open_:
            nested -= open_.pop()
        before = token.token_type
    return most


def _walk(statement: exp.Query, relations: Sequence[str], what: str) -> None:
    own = {cte.alias_or_name.lower() for cte in statement.find_all(exp.CTE)}
    for node in statement.walk():
        if isinstance(node, _FORBIDDEN_NODES):
            raise InvalidRequestError(
                f"{what} uses {node.key.upper()}, which is not allowed in a SELECT over {', '.join(relations)}"
            )
        if isinstance(node, exp.Table):
            _relation(node, own, relations, what)
        name = _function_name(node)
        if name in _FORBIDDEN_FUNCTIONS:
            raise InvalidRequestError(f"{what} calls {name}, which reaches outside the query; remove it")


def _relation(node: exp.Table, own: set[str], relations: Sequence[str], what: str) -> None:
    plain = isinstance(node.this, exp.Identifier) and not node.args.get("db") and not node.args.get("catalog")
    if not plain or node.name.lower() not in own | {name.lower() for name in relations}:
        raise InvalidRequestError(f"{what} reads {node.sql(dialect='spark')}; it may read only {', '.join(relations)}")


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""
