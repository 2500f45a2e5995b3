"""docs/reference/compatibility.md: each case where the engines differ has a number of its own, and
a test that is there."""

from __future__ import annotations

import re

from tests.tidy.sources import ROOT

_PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text()
SECTION = _PAGE.partition("## Where the engines differ")[2].partition("\n## ")[0]
CASES = dict(re.findall(r"^\| (\d+) \|(.*)$", SECTION, re.MULTILINE))
BELOW = SECTION.rpartition("|\n")[2]
"""What is said of the cases behind the table: which file pins which."""


def test_each_case_has_a_number_of_its_own_in_order() -> None:
    numbers = re.findall(r"^\| (\d+) \|", SECTION, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert len(numbers) > 40


def test_each_case_names_the_test_that_holds_it() -> None:
    spoken = re.sub(r"`[^`]*`", "", BELOW)
    told = {
        str(number)
        for first, last in re.findall(r"\b(\d+)(?: to (\d+))?\b", spoken)
        for number in range(int(first), int(last or first) + 1)
    }
    assert told <= set(CASES)
    assert [number for number, row in CASES.items() if number not in told and "`tests/" not in row] == []


def test_the_tests_that_hold_the_cases_are_there() -> None:
    named = re.findall(r"`([\w/.]*test_\w+\.py)`", SECTION)
    paths = [name if "/" in name else f"tests/interop/{name}" for name in named]
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).is_file()] == []
