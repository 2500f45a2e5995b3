"""What is said of a bootstrap."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_operator.api.status import Condition, RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import TableObservation
from hudi_operator.plan.schedule.bootstraps import gone, is_due, was_made
from hudi_operator.plan.status.conditions import Finding

WAS_THERE = "TableWasThere"


def finding(
    spec: HudiTableSpec,
    table: TableObservation | None,
    runs: tuple[RunStatus, ...],
    before: tuple[Condition, ...],
) -> tuple[Finding, ...]:
    """Whether the files that `bootstrap` names have become the table; nothing without that
    field."""
    if spec.bootstrap is None:
        return ()
    path = spec.bootstrap.path
    if was_made(table, runs, before):
        if is_due(spec, table):
            return (Finding("Bootstrapped", "True", "TableGone", gone(spec.location).message),)
        return (
            Finding("Bootstrapped", "True", "TableMade", "the table was made by a bootstrap, which is not made again"),
        )
    if is_due(spec, table):
        message = f"the files at {path} are still to become the table; nothing else writes before"
        return (Finding("Bootstrapped", "False", "NotYet", message),)
    message = f"a table was there already, so nothing is done about the files at {path}: leave bootstrap out, or name another location"
    return (Finding("Bootstrapped", "False", "TableWasThere", message),)


def news(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """An event where it comes out that there is nothing to bootstrap into."""
    return [Emit(EventType.WARNING, WAS_THERE, each.message) for each in _was_there(after) if not _was_there(before)]


def _was_there(conditions: Iterable[Condition]) -> list[Condition]:
    return [each for each in conditions if each.reason == WAS_THERE]
