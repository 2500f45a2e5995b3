"""The page on concurrency: its table is that of the cases, and every test that a case names is
there."""

from __future__ import annotations

import re

import pytest

from tests.pages.concurrency import CASES, PAGE, ROOT, with_cases
from tests.pages.concurrency_cases import Case

LEAST = 25


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.who} beside {case.beside}")
def test_the_tests_that_hold_a_case_are_there(case: Case) -> None:
    assert case.tests
    for test in case.tests:
        path, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), test


def test_the_page_has_the_table_of_the_cases() -> None:
    page = PAGE.read_text()
    assert page == with_cases(page), "python -m tests.pages.concurrency"


def test_no_case_is_told_twice() -> None:
    assert len({(case.who, case.beside) for case in CASES}) == len(CASES) >= LEAST
