"""Of a matrix `make test` runs the cases that hold all that was asked for, `make test-full` all."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.selection import STRENGTHS, covering
from tests.tidy.sources import ROOT

AXES = {"index": range(5), "kind": ("CopyOnWrite", "MergeOnRead"), "version": (6, 8, 9)}
PRODUCT = [dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values())]


@pytest.mark.parametrize(("how", "cases"), [("values", 5), ("pairs", 15)])
def test_the_fewest_cases_meet_all_that_the_product_meets(how: str, cases: int) -> None:
    kept = covering(PRODUCT, STRENGTHS[how])
    assert len(kept) == cases

    def met(numbers: set[int]) -> set[object]:
        some = list(itertools.combinations(AXES, STRENGTHS[how]))
        return {tuple((axis, PRODUCT[number][axis]) for axis in axes) for number in numbers for axes in some}

    assert met(kept) == met(set(range(len(PRODUCT))))
    assert covering(PRODUCT, STRENGTHS[how]) == kept, "another choice in each process"
    elsewhere = covering(PRODUCT, STRENGTHS[how], first=4)
    assert (elsewhere != kept, met(elsewhere)) == (True, met(kept)), "another test begins with another case"


def test_values_of_an_axis_are_chosen_about_equally_often() -> None:
    chosen = [PRODUCT[number] for number in covering(PRODUCT, STRENGTHS["values"])]
    for axis in AXES:
        found = Counter(case[axis] for case in chosen)
        assert max(found.values()) - min(found.values()) <= 1, axis


def test_pairs_that_the_cases_do_not_hold_are_not_asked_for() -> None:
    """An index that has one type of table alone."""
    cases = [case for case in PRODUCT if case["index"] != 3 or case["kind"] == "MergeOnRead"]
    assert {case["kind"] for number, case in enumerate(cases) if number in covering(cases, 2) and case["index"] == 3} \
        == {"MergeOnRead"}  # fmt: skip


@pytest.mark.parametrize("case", [{}, {"index": 1, "kind": "CopyOnWrite"}], ids=["no axis", "named alone"])
def test_there_is_nothing_to_leave_out_of_one_case(case: dict[str, object]) -> None:
    assert covering([case], STRENGTHS["values"]) == {0}


def test_a_larger_scale_runs_the_whole_product() -> None:
    name = "tests/hudi_table/test_moving_machine.py"
    test = "::test_rows_savepoints_and_the_past_survive_moves_between_versions["
    counts = []
    for scale in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", name],
            cwd=ROOT, env=os.environ | {"HUDI_TEST_SCALE": scale}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        counts.append(done.stdout.count(test))
    assert counts == [4, 8]
