"""What differs from one index to another is asked of the index: nobody outside `hudi_table/index`
looks at its class or compares its type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from hudi_table.model.table.config import IndexType
from tests.tidy.sources import production_sources

HOME = "spark_app/hudi_table/index/"
FACTS = "spark_app/hudi_table/model/table/config.py"
"""`IndexType` itself says there what its members are: layers below the index ask it."""
TYPES = frozenset(kind.value for kind in IndexType)
CHECKS = ("isinstance", "issubclass")


def index_classes() -> frozenset[str]:
    """`Index` and every class behind it."""
    found = {"Index"}
    classes = [
        node
        for source in production_sources()
        if source.path.startswith(HOME)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    ]
    while True:
        more = {node.name for node in classes if {*map(name_of, node.bases)} & found} | found
        if more == found:
            return frozenset(found)
        found = more


def name_of(node: ast.expr) -> str:
    """The last part of a name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def told_apart(tree: ast.AST, classes: frozenset[str]) -> Iterator[int]:
    """The lines that tell indexes apart by their class, by a member of `IndexType` or by its
    text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in CHECKS:
            asked = {name_of(each) for each in ast.walk(node.args[-1]) if isinstance(each, ast.expr)}
        elif isinstance(node, ast.MatchClass):
            asked = {name_of(node.cls)}
        elif isinstance(node, ast.Compare | ast.MatchValue):
            parts = [each for each in ast.walk(node) if isinstance(each, ast.expr)]
            asked = {name_of(each) for each in parts}
            kinds = any(isinstance(each, ast.Attribute) and name_of(each.value) == "IndexType" for each in parts)
            texts = any(isinstance(each, ast.Constant) and each.value in TYPES for each in parts)
            if kinds or texts:
                yield node.lineno
                continue
        else:
            continue
        if asked & classes:
            yield node.lineno


def test_nobody_tells_indexes_apart_but_they_themselves() -> None:
    classes = index_classes()
    assert len(classes) > 5
    found = [
        f"{source.path}:{line}"
        for source in production_sources()
        if not source.path.startswith(HOME) and source.path != FACTS
        for line in told_apart(source.tree, classes)
    ]
    assert not found, f"ask the index (hudi_table/index/base.py), or a fact of IndexType: {found}"


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(index, BloomIndex)",
        "isinstance(index, (str, bucket.BucketIndex))",
        "issubclass(kind, SimpleIndex | BloomIndex)",
        "type(prepared.index) is CustomIndex",
        "spec.type is IndexType.BUCKET",
        "spec.type in (config.IndexType.SIMPLE, config.IndexType.BLOOM)",
        "document['type'] == 'ConsistentBucket'",
        "match index:\n    case BucketIndex():\n        pass",
        "match spec.type:\n    case IndexType.BUCKET:\n        pass",
    ],
)
def test_a_line_that_tells_them_apart_is_seen(line: str) -> None:
    assert list(told_apart(ast.parse(line), index_classes()))


@pytest.mark.parametrize(
    "line", ["IndexSpec(IndexType.SIMPLE)", "index.reads_snapshot", "isinstance(index, str)", "kind.has_rings"]
)
def test_a_line_that_asks_is_not(line: str) -> None:
    assert not list(told_apart(ast.parse(line), index_classes()))
