"""The page of what sources stand: each test that it names is there, and runs for the sources of
which it says so."""

from __future__ import annotations

import ast
import functools
from importlib import import_module

import pytest

from tests.streams.conformance.__main__ import PAGE, page
from tests.streams.conformance.matrix import ALSO, CASES, ELSEWHERE, LACKS, PARTS, SUITE, cells
from tests.tidy.sources import ROOT


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def sources_of(test: str) -> list[str]:
    """For which sources the suite runs a test, as pytest is told."""
    function = getattr(import_module(SUITE.removesuffix(".py").replace("/", ".")), test)
    (given,) = [mark.args[1] for mark in function.pytestmark if mark.name == "parametrize" and mark.args[0] == "part"]
    return [each.values[0] for each in given]


def test_the_page_is_made_of_the_matrix() -> None:
    assert PAGE.read_text() == page(), "make reference"


def test_every_source_has_a_test_or_a_reason_for_every_case() -> None:
    found = list(cells())
    assert len(found) == len(PARTS) * len(CASES) > 90
    assert not [each for each in found if bool(each[2]) == bool(each[3])]


def test_every_test_that_is_named_is_there() -> None:
    named = {test for _, _, test, _ in cells() if test} | set(ALSO.values())
    missing = [each for each in named if each.partition("::")[2] not in functions_of(each.partition("::")[0])]
    assert not missing
    assert len(named) > 20


@pytest.mark.parametrize("case", CASES)
def test_the_suite_runs_a_case_for_the_sources_of_which_the_page_says_so(case: str) -> None:
    said = [part.label for part, of, test, _ in cells() if of == case and test == f"{SUITE}::{CASES[case].test}"]
    assert sources_of(CASES[case].test) == said
    assert len(said) > 3


def test_what_is_said_of_a_cell_is_said_of_one_that_there_is() -> None:
    there = {(part.label, case) for part in PARTS for case in CASES}
    assert {*LACKS, *ELSEWHERE, *ALSO} <= there
    assert not LACKS.keys() & (ELSEWHERE.keys() | ALSO.keys())
