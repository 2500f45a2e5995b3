"""docs/explanation/security.md is no promise: every row of its table names tests that exist, or
says why there is none."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.sources import ROOT

PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)
]
TEST = re.compile(r"`((?:tests|e2e)/[\w/.]+?\.py)((?:::\w+)*)`")


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_point_has_a_row_of_its_own_in_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 30))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_tests_that_exist_or_says_why_there_is_none(row: list[str]) -> None:
    named = TEST.findall(row[2])
    assert named or row[2].startswith("no test:"), row[2]
    for path, parts in named:
        assert (ROOT / path).is_file(), path
        assert set(filter(None, parts.split("::"))) <= functions(path), f"{path}{parts}"
    assert not re.findall(r"`(?!(?:tests|e2e)/)[^`]*test_\w+[^`]*`", row[2]), "name the file, too"
