"""The fields of a schedule, of TableServices and of ingests alike."""

from __future__ import annotations

from typing import Any

from hudi_operator.api.schema import Rule, camel, prop

CRON = r"^(\S+ ){4}\S+$"


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
