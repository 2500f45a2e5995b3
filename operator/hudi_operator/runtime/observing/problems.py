"""Errors of the library as findings."""

from __future__ import annotations

from hudi_operator.plan.observed import Problem
from hudi_table.errors import HudiError


def problem_of(error: HudiError) -> Problem:
    """An error of the library as a finding."""
    return Problem(error.name(), str(error), error.retryable)
