"""Status of a TableService: its phase, its conditions, and the runs that it remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hudi_operator.api.options import ignored
from hudi_operator.api.resources import DesiredService
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.status import SERVICE_RUNS_MAX, PlanStatus, RunStatus, TableServiceStatus
from hudi_operator.manifests.quantities import human_bytes
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import DONE
from hudi_operator.plan.status import events
from hudi_operator.plan.status.conditions import Finding, conditions_of
from hudi_operator.plan.status.progress import Progress, approval
from hudi_table.model.counts import counted


@dataclass(slots=True)
class Outcome:
    """What a judgement has come to: (reason, message) pairs. `stale`: why the approved plan is not
    run; `quiet`: why nothing is due; `suspended`: something is, and is not started; `failed`: what
    went wrong with a run after which another one comes; `bytes_to_clean`: as measured, where
    somebody asks."""

    stalled: tuple[str, str] | None = None
    unseen: Problem | None = None
    busy: tuple[str, str] | None = None
    failed: tuple[str, str] | None = None
    stale: str | None = None
    quiet: str | None = None
    suspended: str | None = None
    bytes_to_clean: int | None = None


def status_of(desired: DesiredService, progress: Progress, outcome: Outcome, now: datetime) -> TableServiceStatus:
    """The whole status."""
    generation, before = desired.identity.generation, desired.status
    phase, ready = _ready(desired.spec, progress, outcome)
    findings = [ready]
    if outcome.busy is not None:
        findings.append(Finding("Reconciling", "True", *outcome.busy))
    if outcome.stalled is not None:
        findings.append(Finding("Stalled", "True", *outcome.stalled))
    if outcome.stale is not None:
        findings.append(Finding("PlanStale", "True", "TableMoved", outcome.stale))
    ignored_line = ignored(desired.spec.options) if desired.spec is not None else ""
    if ignored_line:
        findings.append(Finding("OptionsIgnored", "True", "IgnoredOptions", ignored_line))
    ends = [run.finished for run in progress.runs if run.finished is not None]
    return TableServiceStatus(
        observed_generation=generation,
        phase=phase,
        conditions=conditions_of(findings, before.conditions, generation, now),
        schedule=progress.schedule,
        last_run_time=max([*ends, *([before.last_run_time] if before.last_run_time else [])], default=None),
        plan=progress.plan,
        last_plan=progress.last_plan,
        actual=progress.actual,
        done=progress.done,
        attempts=progress.attempts,
        failures=progress.failures,
        bytes_to_clean=outcome.bytes_to_clean,
        runs=kept(desired.spec, progress),
    )


def kept(spec: TableServiceSpec | None, progress: Progress) -> tuple[RunStatus, ...]:
    """Runs within the history limits, newest first. Failures of what is tried now are kept all: by
    them it is told when and whether it is tried again."""
    runs = progress.runs
    tried = {run.batch for run in runs[:1]} | ({approval(progress.plan.digest)} if progress.plan is not None else set())
    left = {True: 3, False: 3}
    if spec is not None:
        left = {True: spec.successful_runs_history_limit, False: spec.failed_runs_history_limit}
    found = []
    for run in runs:
        well = run.phase in DONE
        current = run.phase == "Running" or (not well and run.batch in tried)
        if not current:
            left[well] -= 1
        if current or left[well] >= 0:
            found.append(run)
    return tuple(found[:SERVICE_RUNS_MAX])


def events_of(before: TableServiceStatus, after: TableServiceStatus, progress: Progress) -> list[Emit]:
    """What changed since the last status: runs, a standstill, a plan to approve, and one that is
    stale."""
    phases = {run.name: run.phase for run in before.runs}
    news = [run for run in reversed(progress.runs) if run.name in phases or run.attempt > before.attempts]
    found = events.changes(phases, news, before.conditions, after.conditions)
    plan, old = after.plan, before.plan
    if plan is not None and plan.stale is None and (old is None or old.digest != plan.digest):
        found.append(Emit(EventType.NORMAL, "Planned", f"{_line(plan)}; set approve: {plan.digest} to run it"))
    known = {c.message for c in before.conditions if c.type == "PlanStale"}
    stale = [c for c in after.conditions if c.type == "PlanStale" and c.message not in known]
    return [*found, *(Emit(EventType.WARNING, "PlanStale", c.message) for c in stale)]


def _ready(spec: TableServiceSpec | None, progress: Progress, outcome: Outcome) -> tuple[str, Finding]:
    """(phase, the condition Ready)."""
    if outcome.stalled is not None:
        return "Failed", Finding("Ready", "False", *outcome.stalled)
    if outcome.unseen is not None:
        return "Due", Finding("Ready", "Unknown", outcome.unseen.reason, outcome.unseen.message)
    if outcome.busy is not None and progress.running is None:
        ready = "False" if outcome.busy[0] in ("NoTable", "Retrying") else "True"
        return "Due", Finding("Ready", ready, *outcome.busy)
    if outcome.busy is not None:
        return "Running", Finding("Ready", "True", *outcome.busy)
    if outcome.failed is not None:
        return "Failed", Finding("Ready", "False", *outcome.failed)
    if outcome.suspended is not None:
        return "Suspended", Finding("Ready", "True", "Suspended", outcome.suspended)
    if spec is not None and spec.suspend:
        return "Suspended", Finding("Ready", "True", "Suspended", "no new run is started")
    if progress.plan is not None:
        return "Planned", Finding("Ready", "True", "Planned", f"{_line(progress.plan)}; waits for approve")
    newest = next((run for run in progress.runs if run.phase in DONE), None)
    said = (newest.message or newest.name) if newest is not None else outcome.quiet or "nothing was due yet"
    if progress.schedule is not None and progress.schedule.next is not None:
        return "Idle", Finding("Ready", "True", "Scheduled", f"next run at {progress.schedule.next}; {said}")
    if spec is not None and spec.when is not None:
        return "Idle", Finding("Ready", "True", "NotNeeded", outcome.quiet or said)
    return "Succeeded", Finding("Ready", "True", newest.phase if newest is not None else "Idle", said)


def _line(plan: PlanStatus) -> str:
    """A plan in one line."""
    moved = f"reads {human_bytes(plan.bytes_read)}, writes {human_bytes(plan.bytes_written)}"
    freed = f", frees {human_bytes(plan.bytes_freed)}" if plan.bytes_freed else ""
    files = (
        f"{counted(plan.files_before, 'file')} into {plan.files_after}"
        if plan.files_before
        else counted(plan.file_groups, "file group")
    )
    time = f", about {plan.predicted_seconds:g} s" if plan.predicted_seconds is not None else ""
    return f"plan {plan.digest}: {files}, {moved}{freed}{time}"
