"""The museum as it stands: every mutant can still be made, names a test that is there, and stands
on the page."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.museum.__main__ import REPORT
from tests.museum.all import MUTANTS
from tests.museum.mutant import ROOT, Mutant

LEAST = 95


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_a_change_of_what_is_there_and_names_a_test_that_is(mutant: Mutant) -> None:
    code = (ROOT / mutant.path).read_text()
    assert mutant.changed(code) != code
    name = mutant.test_id.partition("::")[2].partition("[")[0]
    assert re.search(rf"^def {name}\(" if name else "^def test_", (ROOT / mutant.test_file).read_text(), re.MULTILINE)


def test_a_text_that_is_not_there_exactly_once_makes_no_mutant() -> None:
    mutant = Mutant("n", "#1", "errors.py", "a", "b", "t.py::test_x")
    for code in ("", "aa"):
        with pytest.raises(ValueError, match=f"stands {len(code)} times"):
            mutant.changed(code)


def test_what_is_linked_as_an_issue_of_hudi_is_none_of_another_project() -> None:
    mutant = Mutant("n", "#1, iceberg #2, HUDI-3", "errors.py", "a", "b", "t.py::test_x")
    hudi = "https://github.com/apache/hudi/issues"
    assert mutant.sources == f"[#1]({hudi}/1), iceberg #2, [HUDI-3](https://issues.apache.org/jira/browse/HUDI-3)"


def test_there_are_as_many_as_the_museum_is_to_have_and_no_two_are_the_same() -> None:
    assert len(MUTANTS) >= LEAST
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert max(Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS).values()) == 1


def test_the_page_tells_of_every_mutant_and_of_no_other() -> None:
    told = re.findall(r"^\| (.*?) \|.*?\| `(.*?)` \| `(.*?)` \|", REPORT.read_text(), re.MULTILINE)
    assert told == [(mutant.name, mutant.file, mutant.test_id) for mutant in MUTANTS]
