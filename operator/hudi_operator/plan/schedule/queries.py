"""Ingests from a database, or from a source of a package: when it is asked again. The operator
itself asks none: a job finds out whether there is anything new."""

from __future__ import annotations

from datetime import datetime

from hudi_operator.api.status import RunStatus
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.schedule.runs import DONE


def last_of(work: str, generation: int, runs: tuple[RunStatus, ...]) -> RunStatus | None:
    """The newest run that has ended well, of the manifest as it is; runs come newest first."""
    same = (run for run in runs if run.work == work and run.generation == generation and run.phase in DONE)
    return next(same, None)


def wait_of(every: str, last: RunStatus | None, now: datetime) -> float:
    """Seconds until it is asked again."""
    ended = (last.finished or last.started) if last is not None else None
    if ended is None:
        return 0.0
    return max(0.0, seconds_of(every) - (now - datetime.fromisoformat(ended)).total_seconds())


def batch_of(last: RunStatus | None) -> str:
    """Of the run that comes behind this one; those that fail are attempts at the same."""
    return f"behind:{last.name if last is not None else 'begin'}"
