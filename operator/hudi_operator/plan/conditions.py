"""Conditions of a HudiTable, computed from what was observed.

They follow kstatus: `Ready` is always there; `Reconciling` and `Stalled` are there only while they are True. The others
say how the table is kept and are never the cause of an unready table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_operator.api.status import Condition
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.observed import SourceObservation, TableObservation
from hudi_operator.plan.runs import rfc3339
from hudi_table.model.checkpoint import SourceFile, waiting


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition before it is compared with the last one."""

    type: str
    status: str
    reason: str
    message: str


def settle(
    findings: Iterable[Finding], previous: tuple[Condition, ...], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Conditions of findings; the transition time moves only with the status."""
    known = {condition.type: condition for condition in previous}
    found = []
    for finding in findings:
        condition = Condition(finding.type, finding.status, finding.reason, finding.message, rfc3339(now), generation)
        before = known.get(finding.type)
        if before is not None and before.status == condition.status:
            condition = replace(condition, last_transition_time=before.last_transition_time)
        found.append(condition)
    return tuple(found)


def fresh(spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...]) -> Finding:
    """Whether every file of the sources is in the table. What the table owes its services stands in `plan.debts`."""
    if not spec.ingest:
        return Finding("Fresh", "True", "NoIngest", "nothing is ingested here; other writers bring the rows")
    unseen = [s for s in sources if s.problem is not None]
    if unseen or len(sources) < len(spec.ingest):
        message = unseen[0].problem.message if unseen and unseen[0].problem else "the sources were not listed"
        return Finding("Fresh", "Unknown", "SourceNotSeen", message)
    left = {s.ingest: waiting_of(s, table) for s in sources}
    total = sum(len(files) for files in left.values())
    if total:
        names = ", ".join(name for name, files in left.items() if files)
        return Finding("Fresh", "False", "FilesWaiting", f"{count(total, 'file')} of {names} not in the table yet")
    return Finding("Fresh", "True", "AllConsumed", "every file of the sources is in the table")


def waiting_of(source: SourceObservation, table: TableObservation | None) -> tuple[SourceFile, ...]:
    """Files of a source that the table does not hold yet."""
    held = table.checkpoints.get(source.ingest) if table is not None else None
    return waiting(source.files, held.checkpoint if held is not None else None)


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
