"""What cleaning keeps: its policies, the numbers that they go by, and the policy that a number
alone tells, as with Hudi."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hudi_table.model.options.known import CLEAN_NUMBERS, CLEAN_POLICY, told_policy

POLICY = CLEAN_POLICY
COMMITS, HOURS, VERSIONS = CLEAN_NUMBERS


class CleanPolicy(StrEnum):
    """By what a clean counts."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


def with_policy(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the policy that they leave out, if one of their numbers tells it. Raises
    InvalidOptionError."""
    told = told_policy(options)
    return dict(options) if told is None else {**options, POLICY: told}
