"""Messages without the values of a Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_operator.plan.observed import Problem

SECRET_LENGTH_MIN = 4
"""Shorter values are not masked in messages: they would mask ordinary words."""


def masked(message: str | None, secret: Mapping[str, str]) -> str | None:
    """A message without any value of the secret."""
    for value in secret.values():
        if message is not None and len(value) >= SECRET_LENGTH_MIN:
            message = message.replace(value, "***")
    return message


def masked_problem(problem: Problem, secret: Mapping[str, str]) -> Problem:
    """A problem whose message holds no value of the secret."""
    return replace(problem, message=masked(problem.message, secret) or "")
