"""Runs: what launcher and status know of attempts, read against the timeline, and whether the next
one is due."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile

from hudi_operator.api.documents import CONTINUOUS
from hudi_operator.api.status import RunStatus
from hudi_operator.errors import JobLostError
from hudi_operator.plan.observed import TableObservation
from hudi_table.errors import (
    AccessDeniedError,
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
DENIED = AccessDeniedError.name()
DENIED_FACTOR = 6.0
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
    """Attempts for one batch of one generation, and the wait before each repeat, in seconds.
    `denied_max_seconds`: the longest wait where credentials are refused."""

    attempts_max: int = 5
    backoff_first_seconds: float = 10.0
    backoff_max_seconds: float = 300.0
    denied_max_seconds: float = 600.0

    def wait_seconds(self, failures: int) -> float:
        """The wait after so many failures in a row."""
        doublings = min(failures - 1, DOUBLINGS_MAX)
        return min(self.backoff_first_seconds * 2.0**doublings, self.backoff_max_seconds)

    def denied_seconds(self, refusals: int) -> float:
        """The wait after so many refusals of credentials in a row. The first repeat comes as soon
        as any: the Secret may have followed since the process began that was refused. Then it is
        slow, for a password that stays wrong may lock its user out."""
        steps = min(refusals - 1, DOUBLINGS_MAX)
        return min(self.backoff_first_seconds * DENIED_FACTOR**steps, self.denied_max_seconds)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to start now (`wait_seconds` 0), later, or never (`stalled`: reason and message).
    `again`: the moment at which it is tried again though it is stalled."""

    number: int
    wait_seconds: float = 0.0
    failures: int = 0
    stalled: tuple[str, str] | None = None
    again: datetime | None = None


def is_continuous(run: RunStatus) -> bool:
    """Whether a run is a continuous driver's."""
    return (run.batch or "").startswith(CONTINUOUS)


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
    """A run that ended without saying so well may still have committed: then it succeeded. A driver
    commits many times before it fails, and why it did is its own word."""
    if run.phase not in ("Lost", "Failed") or (run.phase == "Failed" and is_continuous(run)):
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
    """Whether an attempt for `batch` is due, given the ended runs of the same work and generation,
    newest first."""
    same = [run for run in runs if run.work == work and run.generation == generation]
    number = 1 + max((run.attempt for run in same), default=0)
    denied = list(takewhile(lambda run: run.phase not in DONE and run.reason == DENIED, same))
    if denied:
        return _refused(number, denied, policy, now)
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


def _refused(number: int, denied: list[RunStatus], policy: RetryPolicy, now: datetime) -> Verdict:
    """The credentials of so many runs in a row were refused, whatever each was for: somebody has to
    correct them, and nobody has to say that it was done."""
    last, refusals = denied[0], len(denied)
    due = _moment(last.finished or last.started, now) + timedelta(seconds=policy.denied_seconds(refusals))
    if due <= now:
        return Verdict(number, failures=refusals)
    left = (due - now).total_seconds()
    return Verdict(number, left, refusals, (DENIED, last.message or "the credentials were refused"), due)


def _moment(text: str | None, default: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else default
