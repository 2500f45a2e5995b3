"""Messages without the values of a Secret."""

from __future__ import annotations

import pytest

from hudi_operator.plan.observed import Problem
from hudi_operator.runtime.masking import masked, masked_problem

SECRET = {"AWS_SECRET_ACCESS_KEY": "hunter2-hunter2", "DATABASE_PASSWORD": "pass", "AWS_SESSION_TOKEN": "abc"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("signed with hunter2-hunter2, twice: hunter2-hunter2", "signed with ***, twice: ***"),
        ("user x with pass failed", "user x with *** failed"),
        ("abc is too short to be told from a word", "abc is too short to be told from a word"),
        ("nothing of it", "nothing of it"),
        ("", ""),
        (None, None),
    ],
)
def test_no_value_of_four_characters_or_more_stays_in_a_message(message: str | None, shown: str | None) -> None:
    assert masked(message, SECRET) == shown


def test_a_problem_keeps_all_but_the_values_in_its_message() -> None:
    found = masked_problem(Problem("AccessDenied", "the key hunter2-hunter2 is none", retryable=True), SECRET)
    assert found == Problem("AccessDenied", "the key *** is none", retryable=True)
