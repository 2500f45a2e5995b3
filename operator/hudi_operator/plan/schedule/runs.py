"""Runs: what launcher and status know of attempts, read against the timeline, and whether the next
one is due."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hudi_operator.api.status import RunStatus
from hudi_operator.errors import JobLostError
from hudi_operator.plan.observed import TableObservation
from hudi_table.errors import (
    CommitStateUnknownError,
    InvariantError,
    UnavailableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.model.counts import counted

RETRYABLE = frozenset(
    error.name() for error in (CommitStateUnknownError, UnavailableError, WriteAbortedError, WriteConflictError)
)
JOB_LOST = JobLostError.name()
DOUBLINGS_MAX = 64
"""A store may be away for days: past some thousand failures the power is no number of a computer
any more."""
DONE = frozenset({"Succeeded", "NothingToDo"})


def rfc3339(moment: datetime) -> str:
    """Seconds precision, `Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


UNSAID = "the job ended without a result and without a commit"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts for one batch of one generation, and the wait before each repeat, in seconds."""

    attempts_max: int = 5
    backoff_first_seconds: float = 10.0
    backoff_max_seconds: float = 300.0

    def wait_seconds(self, failures: int) -> float:
        """The wait after so many failures in a row."""
        doublings = min(failures - 1, DOUBLINGS_MAX)
        return min(self.backoff_first_seconds * 2.0**doublings, self.backoff_max_seconds)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to start now (`wait_seconds` 0), later, or never (`stalled`: reason and message)."""

    number: int
    wait_seconds: float = 0.0
    failures: int = 0
    stalled: tuple[str, str] | None = None


def run_line(run: RunStatus) -> str:
    """One line about a run at work, and what holds it up if that is known."""
    return f"{run.work} runs as {run.name}{f': {run.message}' if run.message else ''}"


def merged(
    launched: tuple[RunStatus, ...], recorded: tuple[RunStatus, ...], table: TableObservation | None
) -> tuple[RunStatus, ...]:
    """All known runs, newest first. The timeline has the last word on what a run achieved."""
    runs = {run.name: run for run in recorded}
    for run in launched:
        before = runs.get(run.name)
        if before is None or before.phase in ("Running", "Lost"):
            runs[run.name] = _with_hindrance(run, before)
    gone = {run.name for run in recorded if run.phase == "Running"} - {run.name for run in launched}
    for name in gone:
        runs[name] = replace(runs[name], phase="Lost")
    runs_of_table = [_by_timeline(run, table) for run in runs.values()]
    return tuple(sorted(runs_of_table, key=lambda r: (r.started or "", r.attempt, r.name), reverse=True))


def _with_hindrance(run: RunStatus, before: RunStatus | None) -> RunStatus:
    """A run that ended without a word: what held its pod up while that was still to be seen says
    more than that it is gone."""
    held = before.message if before is not None and before.phase == "Running" else None
    if run.phase != "Lost" or not held or held in (run.message or ""):
        return run
    return replace(run, message=f"{run.message or UNSAID}; before that: {held}")


def _by_timeline(run: RunStatus, table: TableObservation | None) -> RunStatus:
    """A run that ended without saying so well may still have committed: then it succeeded."""
    if run.phase not in ("Lost", "Failed"):
        return run
    instant = table.attempts.get(run.name) if table is not None else None
    if instant is not None:
        message = f"the timeline holds its commit {instant}"
        return replace(run, phase="Succeeded", reason=None, message=message, instants=(instant,))
    if run.phase == "Lost":
        message = run.message or UNSAID
        return replace(run, phase="Failed", reason=run.reason or JOB_LOST, message=message)
    return run


def verdict(
    runs: tuple[RunStatus, ...], work: str, generation: int, batch: str, *, policy: RetryPolicy, now: datetime
) -> Verdict:
    """Whether an attempt for `batch` is due, given the ended runs of the same work and
    generation."""
    same = [run for run in runs if run.work == work and run.generation == generation]
    number = 1 + max((run.attempt for run in same), default=0)
    ended = [run for run in same if run.batch == batch]
    if not ended:
        return Verdict(number)
    last, failures = ended[0], len(ended)
    if last.phase in DONE:
        # The job says that it is done, yet the table still asks for it: repeating would go round for ever.
        message = f"run {last.name} ended as {last.phase}, but the table does not show what it was to do"
        return Verdict(number, stalled=(InvariantError.name(), message), failures=failures)
    reason, message = last.reason or JOB_LOST, last.message or "no message"
    if reason not in RETRYABLE and reason != JOB_LOST:
        return Verdict(number, stalled=(reason, message), failures=failures)
    if failures >= policy.attempts_max:
        return Verdict(number, stalled=(reason, f"{message} ({counted(failures, 'attempt')})"), failures=failures)
    wait = policy.wait_seconds(failures)
    due = _moment(last.finished or last.started, now) + timedelta(seconds=wait)
    return Verdict(number, wait_seconds=max(0.0, (due - now).total_seconds()), failures=failures)


def _moment(text: str | None, default: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else default
