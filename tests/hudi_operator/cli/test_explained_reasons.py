"""`hudictl explain` explains every condition of a resource and every reason that the operator
gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hudi_operator.plan.schedule.attempts import QUEUED
from hudi_operator.plan.status import conditions
from hudi_table.cli.queries.explain import names, terms

ROOT = Path(conditions.__file__).parents[2]


def literals(node: ast.AST) -> Iterator[str]:
    """The texts that an argument may be: one text, or either of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*literals(node.body), *literals(node.orelse))
    elif isinstance(node, ast.Name) and node.id.isupper():
        yield getattr(conditions, node.id)


def test_every_condition_and_reason_is_explained() -> None:
    found: set[str] = {QUEUED, "Running", "Ingesting", "Retrying", "Waiting", "TableMissing", "TableNotReady"}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding" and len(node.args) > 2:
                found |= {*literals(node.args[0]), *literals(node.args[2])}
    assert len(found) > 50
    assert found - set(terms()) - set(names()) == set()
