"""Patterns, lengths and the fields of a schedule, which several parts share."""

from __future__ import annotations

import re
from typing import Any

from hudi_operator.api.schema import Rule, camel, prop

QUANTITY = r"^[1-9][0-9]*(k|M|G|T|Ki|Mi|Gi|Ti)?$"
CPU = r"^[1-9][0-9]*m?$"
LOCATION = r"^(s3|s3a|gs|az|abfs|abfss|file|memory)://([^$?#/:]+(/[^$?#]*)?|/[^$?#]+)$"
"""No colon before the path: a URI may name a container and its account, and no key."""
ENDPOINT = r"^https?://[^/@?#]+(/[^@?#]*)?$"
"""No user, no query: credentials stand in a Secret."""
DURATION = r"^([0-9]+(ms|s|m|h|d))+$"
NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
OBJECT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""Of Kubernetes' objects: labels with dots between them."""
CRON = r"^(\S+ ){4}\S+$"
COLUMN_LENGTH_MAX = 256


def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression; whoever matches with it asks whether RE2 takes it."""
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def schedule(said: str) -> Any:
    """A schedule, which need not be there; `said`: what it is for."""
    return prop(said, None, pattern=CRON, max_length=100)


def time_zone() -> Any:
    """Its zone."""
    return prop("zone of the schedule, such as Europe/Berlin; absent: UTC", None, max_length=64)


def starting_deadline_seconds() -> Any:
    """How late one of its moments may begin."""
    return prop(
        "a moment of the schedule that was missed by more is left out; absent: it is made up for, once",
        None,
        minimum=1,
        maximum=31_536_000,
    )


def of_schedule(field: str) -> Rule:
    """That a field is given beside a schedule alone."""
    name = camel(field)
    return Rule(
        f"!has(self.{name}) || has(self.schedule)",
        f"{name} belongs to a schedule",
        name,
        lambda spec: getattr(spec, field) is None or spec.schedule is not None,
    )
