"""How far a TableService is: its runs, its schedule and its plans, from the last status and what
has become of the runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime
from itertools import takewhile

from hudi_operator.api.status import ActualStatus, PlanStatus, RunStatus, ScheduleStatus, TableServiceStatus
from hudi_operator.plan.schedule import moments
from hudi_operator.plan.schedule.cron import Cron
from hudi_operator.plan.schedule.runs import DONE, rfc3339
from hudi_operator.plan.status import predict
from hudi_table.errors import InvalidRequestError, WriteConflictError
from hudi_table.model.service.services import ServiceType

_APPROVAL = "approve-"
_AGAIN = "again-"
_STALE = frozenset({WriteConflictError.name(), InvalidRequestError.name()})
"""Why the run of an approved plan failed, where another plan may do: its files moved, or it is not
kept any more."""


def approval(digest: str) -> str:
    """The batch of the run of an approved plan."""
    return f"{_APPROVAL}{digest}"


def again(digest: str, failures: int) -> str:
    """The batch of the dry run that follows so many vain runs of an approved plan."""
    return f"{_AGAIN}{digest}-{failures}"


def moment(text: str | None, default: datetime) -> datetime:
    """A moment of a status."""
    return datetime.fromisoformat(text) if text else default


@dataclass(slots=True)
class Progress:
    """`runs` newest first. `attempts`: how many were ever started, so that no name is given twice.
    `failures`: how many of those that have ended failed in a row, up to the newest; counted as they
    end, since the status may keep fewer of them than an alert waits for."""

    runs: tuple[RunStatus, ...] = ()
    attempts: int = 0
    failures: int = 0
    done: str | None = None
    plan: PlanStatus | None = None
    last_plan: PlanStatus | None = None
    actual: ActualStatus | None = None
    schedule: ScheduleStatus | None = None

    @property
    def running(self) -> RunStatus | None:
        """The run that is at work."""
        return next((run for run in self.runs if run.phase == "Running"), None)

    def ended_well(self, batch: str) -> bool:
        """Whether a run did all that there was to do for a batch."""
        return self.done == batch or any(run.batch == batch and run.phase in DONE for run in self.runs)

    def unfinished(self, generation: int) -> str | None:
        """The newest moment of the schedule, if its run failed."""
        last = self.schedule.last if self.schedule is not None else None
        found = moments.unfinished(last, self.runs, generation)
        return found if found != self.done else None

    def started(self, run: RunStatus) -> None:
        """A run begins. One for a moment of the schedule takes that moment."""
        self.runs = (run, *self.runs)
        self.attempts = max(self.attempts, run.attempt)
        if self.schedule is not None:
            self.schedule = moments.behind(self.schedule, [run.batch])

    def stopped(self, run: RunStatus) -> None:
        """A run that was at work was ended, and is this one now."""
        self.runs = tuple(run if known.name == run.name else known for known in self.runs)
        self.failures += 1

    def follow(self, cron: Cron | None, created: str, now: datetime) -> None:
        """Take the schedule of the manifest. Of a new one, moments from the resource's creation on
        count; of a changed one, from now."""
        if cron is None:
            self.schedule = None
            return
        known = self.schedule
        followed = moments.followed(cron, known, now if known is not None else moment(created, now))
        self.schedule = moments.behind(followed, [self.done, *(run.batch for run in self.runs)])

    def due_moment(self, cron: Cron, now: datetime) -> datetime | None:
        """The newest moment that has come and was neither run nor left out."""
        return moments.due_moment(cron, self.schedule, now) if self.schedule is not None else None

    def handled(self, at: datetime) -> None:
        """A moment is run, or left out."""
        if self.schedule is not None:
            self.schedule = changed(self.schedule, last=rfc3339(at))

    def appoint(self, cron: Cron | None) -> None:
        """Say what the next moment of the schedule is."""
        if cron is not None and self.schedule is not None:
            self.schedule = moments.appointed(cron, self.schedule)


def advanced(before: TableServiceStatus, runs: tuple[RunStatus, ...], others: Iterable[RunStatus]) -> Progress:
    """The last status, with what has ended since. `others`: runs of the table itself, which tell
    how fast a service is."""
    known = {run.name: run.phase for run in before.runs}
    # A run that the status left out long ago is not news, though its launcher may remember it.
    kept = tuple(run for run in runs if run.name in known or run.attempt > before.attempts)
    progress = Progress(
        runs=tuple(changed(run, plan=None, index=None) for run in kept),
        attempts=max([before.attempts, *(run.attempt for run in kept)]),
        failures=before.failures if before.failures is not None else _failures_of(before.runs),
        done=before.done,
        plan=before.plan,
        last_plan=before.last_plan,
        actual=before.actual,
        schedule=before.schedule,
    )
    measured = [*kept, *others]
    for run in reversed(kept):
        if run.phase == "Running":
            continue
        is_news = known.get(run.name, "Running") == "Running"
        if is_news:
            _take(progress, run, measured)
        if run.phase not in DONE:
            progress.failures += is_news
        elif known.get(run.name) not in DONE:
            # Of one that counted as failed, its commit may have come to light.
            progress.failures = 0
    return progress


def _failures_of(runs: Iterable[RunStatus]) -> int:
    """How many of these, newest first, failed in a row: of a status that does not say it."""
    ended = (run for run in runs if run.phase != "Running")
    return sum(1 for _ in takewhile(lambda run: run.phase not in DONE, ended))


def _take(progress: Progress, run: RunStatus, measured: list[RunStatus]) -> None:
    """What the end of a run changes."""
    kind, _, planned = run.work.partition("/")
    if run.phase in DONE and not (run.batch or "").startswith((_APPROVAL, _AGAIN)):
        # An approval, and a plan made for want of one, are parts of the work that was asked for, and do not end it anew.
        progress.done = run.batch
    if planned and run.phase in DONE:
        speed = predict.throughput(ServiceType(kind), measured)
        progress.plan = predict.predicted(run.plan, speed, run.finished) if run.plan is not None else None
        return
    plan = progress.plan
    if plan is None or run.batch != approval(plan.digest):
        return
    if run.phase in DONE:
        progress.last_plan, progress.actual, progress.plan = plan, predict.actual(plan.digest, run), None
    elif run.reason in _STALE:
        progress.plan = changed(plan, stale=run.message or run.reason)
