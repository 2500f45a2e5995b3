"""What a dry run found, how long it is likely to take, and what came of it: predicted and actual in
the same units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_operator.api.status import ActualStatus, PlanStatus, RunStatus
from hudi_table.model.service.services import ServiceType

BYTES_PER_SECOND_DEFAULT = 20 << 20
"""Bytes read and written in a second, until a run of the type has been measured."""


def throughput(kind: ServiceType, runs: Iterable[RunStatus]) -> float:
    """Bytes read and written in a second by the runs of a type that did well, taken together; the
    default without any."""
    moved = seconds = 0.0
    for run in runs:
        if run.phase != "Succeeded" or run.work != kind.value:
            continue
        size = run.figures.get("bytesRead", 0.0) + run.figures.get("bytesWritten", 0.0)
        if size and run.figures.get("seconds"):
            moved += size
            seconds += run.figures["seconds"]
    return moved / seconds if seconds else float(BYTES_PER_SECOND_DEFAULT)


def seconds_for(size: int, bytes_per_second: float) -> float:
    """How long it takes to read and write so many bytes."""
    return round(size / bytes_per_second, 1)


def predicted(plan: PlanStatus, bytes_per_second: float, made: str | None) -> PlanStatus:
    """A plan with the time that it is likely to take."""
    seconds = seconds_for(plan.bytes_read + plan.bytes_written, bytes_per_second)
    return replace(plan, predicted_seconds=seconds, made=made)


def actual(digest: str, run: RunStatus) -> ActualStatus:
    """What a run came to; figures that it did not tell are absent."""

    def figure(name: str) -> int | None:
        value = run.figures.get(name)
        return None if value is None else int(value)

    return ActualStatus(
        digest=digest,
        run=run.name,
        file_groups=figure("fileGroups") or 0,
        files_before=figure("filesBefore"),
        files_after=figure("filesAfter"),
        bytes_read=figure("bytesRead"),
        bytes_written=figure("bytesWritten"),
        seconds=run.figures.get("seconds"),
    )
