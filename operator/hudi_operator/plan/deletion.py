"""`plan_deletion(desired, observed, now)`: what is to be done about a HudiTable that is being
deleted and held back by us. Pure.

Whoever deletes a table with `deletionPolicy: Purge` waits for its files to go. That wait is
bounded, so that no namespace is held up for ever: a Warning names what could not be deleted, and it
is left. Another policy, set meanwhile, lets go at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import HudiTableStatus, RunStatus
from hudi_operator.api.table import DeletionPolicy
from hudi_operator.manifests.jobs import purge_job
from hudi_operator.plan.effects import Effect, Emit, EventType, Hold, Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.attempts import Stalled, Unlaunchable, Waits, Wanted, next_attempt
from hudi_operator.plan.schedule.runs import DONE, RetryPolicy, merged, run_line
from hudi_operator.plan.status import conditions, events, report
from hudi_operator.plan.status.conditions import Finding
from hudi_table.model.job.jobspec import JobSpec

WORK, BATCH = "Purge", "purge"
DELETION_SECONDS_MAX = 6 * 3600.0
UNSEEN_SECONDS_MAX = 60.0
"""Where attempts cannot be seen, since the rights are gone with the namespace, their end is waited
for so long."""
OTHERS_SECONDS = 10.0
NOT_PURGED = "NotPurged"


@dataclass(frozen=True, slots=True)
class ObservedDeletion:
    """`runs` of the table, `others`: attempts of its services that are at work. `sharer`: another
    resource whose table lies at the same location, above or below it. `unseen`: why attempts cannot
    be seen now, so that `runs` are those known last. `unlaunchable`: why none can be started, by
    work."""

    runs: tuple[RunStatus, ...] = ()
    others: tuple[RunStatus, ...] = ()
    sharer: str | None = None
    unseen: Problem | None = None
    unlaunchable: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(slots=True)
class _Course:
    """What is done, and what is said meanwhile: nothing if the table is let go."""

    effects: list[Effect] = field(default_factory=list)
    said: str | None = None
    launched: tuple[RunStatus, ...] = ()


def plan_deletion(
    desired: DesiredTable, observed: ObservedDeletion, now: datetime, *, policy: RetryPolicy
) -> list[Effect]:
    """Effects in order: launches and stops, events, the status, and at the end letting go."""
    runs = merged(observed.runs, desired.status.runs, None)
    course = _course(desired, observed, runs, now, policy)
    status = _status(desired, course, runs, now)
    phases = {run.name: run.phase for run in desired.status.runs}
    news = events.changes(phases, reversed(status.runs), (), ())
    first: list[Effect] = [effect for effect in course.effects if isinstance(effect, Launch | Stop)]
    last = [effect for effect in course.effects if not isinstance(effect, Launch | Stop)]
    # Letting go comes before the status: in a namespace that is going nothing else may be possible any more.
    return [*first, *last, *news, SetStatus(to_document(status))]


def _course(
    desired: DesiredTable, observed: ObservedDeletion, runs: tuple[RunStatus, ...], now: datetime, policy: RetryPolicy
) -> _Course:
    spec, identity = desired.spec, desired.identity
    purges = [run for run in runs if run.work == WORK]
    if spec is None or spec.deletion_policy is not DeletionPolicy.PURGE:
        return _Course([Hold(False)])
    if any(run.phase in DONE for run in purges):
        return _Course([Hold(False)])
    if observed.sharer is not None:
        return _left(desired, f"{observed.sharer} has a table there, too")
    waited = (now - datetime.fromisoformat(identity.deleted)).total_seconds()
    if waited > DELETION_SECONDS_MAX:
        return _left(desired, f"they are not gone after {DELETION_SECONDS_MAX / 3600:.0f} h")
    running = next((run for run in runs if run.phase == "Running"), None)
    if running is not None and observed.unseen is not None:
        if waited > UNSEEN_SECONDS_MAX:
            return _left(desired, f"whether {running.name} has ended cannot be seen: {observed.unseen.message}")
        return _Course(
            [RequeueAfter(OTHERS_SECONDS, "Running")], f"waits for the end of {running.name}, which is not seen"
        )
    if running is not None:
        stops: list[Effect] = [Stop(running.name)] if running.work != WORK else []
        return _Course(stops, run_line(running) if running.work == WORK else f"waits for the end of {running.name}")
    if observed.others:
        again: list[Effect] = [RequeueAfter(OTHERS_SECONDS, "Running")]
        return _Course(again, f"waits for the end of {observed.others[0].name}")
    return _next(desired, observed, runs, now, policy)


def _next(
    desired: DesiredTable, observed: ObservedDeletion, runs: tuple[RunStatus, ...], now: datetime, policy: RetryPolicy
) -> _Course:
    """The attempt that is due, or the wait for it, or the end of all attempts."""
    spec = desired.spec
    assert spec is not None

    def job(attempt: str) -> JobSpec:
        return purge_job(desired.identity.key.name, spec, attempt)

    wanted = Wanted(desired.identity, spec, WORK, BATCH, job)
    match next_attempt(wanted, runs, observed.unlaunchable, policy=policy, now=now):
        case Launch() as launch:
            return _Course([launch], f"deletes what lies at {spec.location}", (launch.run,))
        case Waits(seconds, message, _):
            return _Course([RequeueAfter(seconds, WORK)], message)
        case Stalled(problem=problem) | Unlaunchable(problem=problem):
            return _left(desired, problem.message)


def _left(desired: DesiredTable, why: str) -> _Course:
    """The files stay, and the table is let go."""
    where = desired.spec.location if desired.spec is not None else "its location"
    message = f"the files at {where} are not deleted: {why}"
    return _Course([Emit(EventType.WARNING, NOT_PURGED, message), Hold(False)])


def _status(desired: DesiredTable, course: _Course, runs: tuple[RunStatus, ...], now: datetime) -> HudiTableStatus:
    message = course.said or "the table is let go"
    findings = [Finding("Ready", "False", "Deleting", message), Finding("Reconciling", "True", "Deleting", message)]
    return replace(
        desired.status,
        observed_generation=desired.identity.generation,
        conditions=conditions.conditions_of(findings, desired.status.conditions, desired.identity.generation, now),
        runs=tuple(replace(run, plan=None, index=None) for run in (*course.launched, *runs)[: report.RUNS_MAX]),
    )
