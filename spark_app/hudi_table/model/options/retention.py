"""What cleaning keeps: its policies, the numbers that they go by, and the policy that a number alone tells, as with Hudi."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hudi_table.model.options.known import CLEAN_NUMBERS, CLEAN_POLICY, explicit_option

POLICY = CLEAN_POLICY
COMMITS, HOURS, VERSIONS = CLEAN_NUMBERS


class CleanPolicy(StrEnum):
    """By what a clean counts."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


def with_policy(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the policy that they leave out: one number of what is kept, if no other is given, tells it (Hudi 0.15.0 to 1.2.1, the
    inference of its policy). Raises InvalidOptionError."""
    given = [key for key in CLEAN_NUMBERS if explicit_option(options, key) is not None]
    if explicit_option(options, POLICY) is not None or len(given) != 1:
        return dict(options)
    return {**options, POLICY: CLEAN_NUMBERS[given[0]]}
