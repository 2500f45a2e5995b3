"""`plan_service(desired, observed, now)`: what is to be done about one TableService. Pure.

Order of judgement: the manifest, its table, the run that is at work, then what is due: an approved
plan, a moment of the schedule, a need, or the one run. A run waits while another attempt works on
the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import DesiredService, DesiredTable
from hudi_operator.api.schema import to_document
from hudi_operator.api.service import ConcurrencyPolicy, RunMode, TableServiceSpec
from hudi_operator.api.status import RunStatus
from hudi_operator.errors import DeadlineExceededError, InvalidSpecError
from hudi_operator.manifests.jobs import options_of, service_job
from hudi_operator.manifests.quantities import human_bytes, seconds_of
from hudi_operator.manifests.services import ServiceWork, work_of
from hudi_operator.plan import checks, index, versions
from hudi_operator.plan.effects import Effect, Emit, EventType, Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.observed import ObservedService, Problem, TableObservation
from hudi_operator.plan.schedule import holds, moments
from hudi_operator.plan.schedule.attempts import Stalled, Unlaunchable, Waits, Wanted, next_attempt
from hudi_operator.plan.schedule.cron import Cron, parse_cron
from hudi_operator.plan.schedule.due import Due, due_now, extent
from hudi_operator.plan.schedule.runs import DENIED, RetryPolicy, merged, rfc3339, run_line
from hudi_operator.plan.status import progress, service_status
from hudi_operator.plan.status.progress import Progress
from hudi_operator.plan.status.service_status import Outcome
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.service.services import ServiceType

DEFAULT_POLICY = RetryPolicy()
RECHECK_SECONDS = 30.0
"""How often something is checked whose coming nobody reports: a table, the end of another's run, a
Secret that is corrected."""


def plan_service(
    desired: DesiredService, observed: ObservedService, now: datetime, *, policy: RetryPolicy = DEFAULT_POLICY
) -> list[Effect]:
    """Effects in order: what is stopped and started, events, the status, and when to reconcile
    again."""
    judgement = _Judgement(desired, observed, now, policy)
    judgement.judge()
    status = service_status.status_of(desired, judgement.progress, judgement.outcome, now)
    events = service_status.events_of(desired.status, status, judgement.progress)
    return [*judgement.effects, *events, SetStatus(to_document(status)), *judgement.requeues]


@dataclass(slots=True)
class _Judgement:
    """What was seen, and what the judgement has come to so far."""

    desired: DesiredService
    observed: ObservedService
    now: datetime
    policy: RetryPolicy
    outcome: Outcome = field(default_factory=Outcome)
    effects: list[Effect] = field(default_factory=list)
    requeues: list[RequeueAfter] = field(default_factory=list)
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        runs = merged(self.observed.runs, self.desired.status.runs, self.observed.table)
        owner = self.observed.owner
        self.progress = progress.advanced(self.desired.status, runs, owner.status.runs if owner else ())

    def judge(self) -> None:
        """Fill in the outcome."""
        spec = self.desired.spec
        cron = self._cron(spec) if spec is not None else None
        errors = self.desired.errors + ((cron,) if isinstance(cron, FieldError) else ())
        if errors or spec is None:
            self.outcome.stalled = (InvalidSpecError.name(), "; ".join(str(error) for error in errors))
            return
        schedule = cron if isinstance(cron, Cron) else None
        self.progress.follow(schedule, self.desired.identity.created, self.now)
        self._judge_run(spec, schedule)
        self.progress.appoint(schedule)

    def _judge_run(self, spec: TableServiceSpec, schedule: Cron | None) -> None:
        owner = self._owner(spec)
        if self._at_work(spec, schedule) or owner is None:
            return
        if self.observed.problem is not None:
            self._unseen(self.observed.problem)
        elif self.observed.table is None:
            self._wait("NoTable", f"{owner.identity.key} has no table yet; its first rows make it", appointment=True)
        else:
            self.outcome.bytes_to_clean = self.observed.table.bytes_to_clean
            self._due(spec, schedule, owner, self.observed.table)
        self._appointment(schedule)

    def _cron(self, spec: TableServiceSpec) -> Cron | FieldError | None:
        return parse_cron(spec.schedule, spec.time_zone or "UTC") if spec.schedule is not None else None

    def _owner(self, spec: TableServiceSpec) -> DesiredTable | None:
        """The HudiTable that can be worked on."""
        owner = self.observed.owner
        if owner is None:
            message = (
                f"there is no HudiTable {spec.table_ref.name!r} in namespace {self.desired.identity.key.namespace}"
            )
            self.outcome.stalled = ("TableMissing", f"{message}; create it")
            self.requeues.append(RequeueAfter(RECHECK_SECONDS, "TableMissing"))
            return None
        problem = checks.problem_of(owner, self.observed.table) or self.observed.refused
        if problem is not None:
            self.outcome.stalled = ("TableNotReady", f"{owner.identity.key}: {problem.message}")
            self.requeues.append(RequeueAfter(RECHECK_SECONDS, "TableNotReady"))
            return None
        there = self.observed.table
        contradictions = checks.service_contradictions(spec, owner.spec, there) if owner.spec is not None else ()
        if contradictions:
            self.outcome.stalled = (InvalidSpecError.name(), "; ".join(str(error) for error in contradictions))
            return None
        return owner

    def _at_work(self, spec: TableServiceSpec, schedule: Cron | None) -> bool:
        """Whether a run of this service is at work and stays so."""
        running = self.progress.running
        if running is None:
            return False
        if spec.active_deadline is not None:
            limit = seconds_of(spec.active_deadline)
            left = limit - (self.now - progress.moment(running.started, self.now)).total_seconds()
            if left <= 0:
                message = f"{running.work}: stopped after {spec.active_deadline}"
                self._stop(running, DeadlineExceededError.name(), message)
                return False
            self.requeues.append(RequeueAfter(left, "activeDeadline"))
        if schedule is not None and spec.concurrency_policy is ConcurrencyPolicy.REPLACE and not spec.suspend:
            moment = self._moment(spec, schedule)
            if moment is not None:
                self._stop(running, "Replaced", f"{running.work}: stopped for the run of {rfc3339(moment)}")
                return False
        self.outcome.busy = ("Running", run_line(running))
        return True

    def _stop(self, running: RunStatus, reason: str, message: str) -> None:
        self.effects.append(Stop(running.name))
        ended = replace(running, phase="Failed", reason=reason, message=message, finished=rfc3339(self.now))
        self.progress.stopped(ended)

    def _unseen(self, problem: Problem) -> None:
        failures = self.observed.failures
        self.outcome.unseen = problem
        if problem.reason == DENIED and not problem.retryable:
            self.requeues.append(RequeueAfter(RECHECK_SECONDS, problem.reason, appointment=True))
        if not problem.retryable or failures >= self.policy.attempts_max:
            self.outcome.stalled = (problem.reason, problem.message)
        if problem.retryable:
            wait = self.policy.wait_seconds(max(1, failures))
            self.outcome.busy = ("Retrying", f"{problem.message}; next try in {wait:.0f} s")
            self.requeues.append(RequeueAfter(wait, problem.reason))

    def _wait(self, reason: str, message: str, *, appointment: bool) -> None:
        self.outcome.busy = (reason, message)
        self.requeues.append(RequeueAfter(RECHECK_SECONDS, reason, appointment))

    def _due(self, spec: TableServiceSpec, cron: Cron | None, owner: DesiredTable, table: TableObservation) -> None:
        if owner.spec is None:
            return
        work = work_of(spec, owner.spec)
        upgrades = spec.type is ServiceType.UPGRADE
        if table.changing is not None and not upgrades:
            said = "the table is being brought from version {} to {}".format(*table.changing)
            self._wait("Upgrading", f"{said}: nothing else is started until that has ended", appointment=True)
            return
        due = self._approved(spec, work, table)
        if due is None:
            due = self._triggered(spec, cron, work, table, options_of(owner.spec))
        if due is None or self.progress.ended_well(due.batch):
            return
        if spec.suspend or owner.spec.suspend:
            which = "this service" if spec.suspend else str(owner.identity.key)
            self.outcome.suspended = f"{due.why}, but {which} is suspended: no new run is started"
            return
        approved = upgrades and bool(due.work.plan)
        refusal = versions.upgrade_refused(spec, owner.spec, table) if approved else ""
        if refusal:
            self.outcome.stalled = (InvalidSpecError.name(), refusal)
            return
        beside = (*self.observed.others, *(self.observed.streams if approved else ()))
        if beside:
            other = beside[0]
            self._wait("Waiting", f"{due.why}; {other.work} runs on the table as {other.name}", appointment=False)
            return
        hold, options = holds.hold_of(work.type, table, self.observed.followers, self.now), options_of(owner.spec)
        if holds.holds_back(due.work, hold, options):
            self._wait("HeldBack", f"{due.why}; {hold}", appointment=True)
            return
        self._start(replace(due, work=holds.keeping(due.work, hold, options, self.now)), owner, table)

    def _approved(self, spec: TableServiceSpec, work: ServiceWork, table: TableObservation) -> Due | None:
        """The run of the plan that was approved, if it can still be run."""
        if spec.mode is not RunMode.PLAN or spec.approve is None:
            return None
        plan, last = self.progress.plan, self.progress.last_plan
        if last is not None and last.digest == spec.approve:
            return None
        if plan is not None and plan.digest == spec.approve:
            if plan.stale is None:
                groups = plan.file_groups
                why = f"the plan {plan.digest} is approved"
                return Due(why, progress.approval(plan.digest), work.approved(plan.digest), groups, plan.bytes_read)
            self.outcome.stale = plan.stale
            failed = sum(run.batch == progress.approval(plan.digest) for run in self.progress.runs)
            batch = progress.again(plan.digest, failed)
            return Due(f"the plan is stale: {plan.stale}", batch, work, *extent(work, table))
        if plan is not None:
            self.outcome.stale = f"{spec.approve} was approved, the plan now is {plan.digest}; approve that one"
        return None

    def _triggered(
        self,
        spec: TableServiceSpec,
        cron: Cron | None,
        work: ServiceWork,
        table: TableObservation,
        options: dict[str, str],
    ) -> Due | None:
        if cron is not None:
            moment = self._moment(spec, cron)
            batch = (
                rfc3339(moment) if moment is not None else self.progress.unfinished(self.desired.identity.generation)
            )
            return Due(f"the schedule says {batch}", batch, work, *extent(work, table)) if batch else None
        plan = self.progress.plan
        if work.when is not None and spec.mode is RunMode.PLAN and plan is not None and plan.stale is None:
            return None  # Whoever is about to approve it must not find another one.
        if work.when is not None:
            found = due_now(work, table, options)
            self.outcome.quiet = "no figure asks for a run" if found is None else None
            return found
        batch = f"once-{work.digest()}"
        if spec.type is ServiceType.UPGRADE:
            if not versions.is_wanted(spec, table):
                self.outcome.quiet = f"the table has version {table.config.version}"
                return None
            batch = versions.batch_of(work.digest(), table)
        return Due("it is asked for once", batch, work, *extent(work, table))

    def _moment(self, spec: TableServiceSpec, cron: Cron) -> datetime | None:
        """The moment of the schedule that is due; one that was missed by too much is left out."""
        moment = self.progress.due_moment(cron, self.now)
        said = moments.left_out(moment, spec.starting_deadline_seconds, self.now) if moment is not None else ""
        if moment is None or not said:
            return moment
        self.effects.append(Emit(EventType.WARNING, moments.MISSED, said))
        self.progress.handled(moment)
        return None

    def _start(self, due: Due, owner: DesiredTable, table: TableObservation) -> None:
        """Launch an attempt, unless it has to wait or cannot succeed."""
        identity, spec = self.desired.identity, owner.spec
        if spec is None:
            return
        name = due.work.type.value if due.work.mode is not RunMode.PLAN else f"{due.work.type.value}/Plan"

        def job(attempt: str) -> JobSpec:
            launch = service_job(owner.identity.key.name, spec, due.work, attempt, due.bytes_read, table.config)
            return index.measuring(launch, owner.status.index, table, self.now)

        wanted = Wanted(identity, spec, name, due.batch, job, self.progress.attempts + 1)
        launch = next_attempt(wanted, self.progress.runs, self.observed.unlaunchable, policy=self.policy, now=self.now)
        match launch:
            case Stalled(problem, again):
                # A schedule goes on; whatever else asked for the run would ask for the same again.
                if self.progress.schedule is not None:
                    self.outcome.failed = (problem.reason, problem.message)
                else:
                    self.outcome.stalled = (problem.reason, problem.message)
                if again is not None:
                    self.requeues.append(RequeueAfter(again, name, appointment=True))
            case Waits(seconds, message, reason):
                self.outcome.busy = (reason, message)
                self.requeues.append(RequeueAfter(seconds, name))
            case Unlaunchable(problem):
                self.outcome.stalled = (problem.reason, problem.message)
                self.requeues.append(RequeueAfter(RECHECK_SECONDS, problem.reason))
            case Launch():
                self._started(launch, due)

    def _started(self, launch: Launch, due: Due) -> None:
        self.effects.append(launch)
        self.progress.started(launch.run)
        wanted = self.desired.spec
        if wanted is not None and wanted.active_deadline is not None:
            self.requeues.append(RequeueAfter(seconds_of(wanted.active_deadline), "activeDeadline"))
        size = f": {counted(due.file_groups, 'file group')}, {human_bytes(due.bytes_read)}" if due.bytes_read else ""
        self.outcome.busy = ("Running", f"{launch.run.work} is started, {due.why}{size}")

    def _appointment(self, cron: Cron | None) -> None:
        moment = cron.next(self.now) if cron is not None else None
        if moment is not None:
            wait = (moment - self.now).total_seconds()
            self.requeues.append(RequeueAfter(max(1.0, wait), "schedule", appointment=True))
