"""`plan_table(desired, observed, now)`: what is to be done about one HudiTable. Pure.

Order of judgement: the manifest, then whether the table could be seen, then each ingest, then what
`maintenance` asks for. At most one attempt works on a table, a TableService's or one of ours, so
our own jobs never contend with each other.

What fails for good stalls itself: an ingest whose source or checkpoint cannot be read, whose job is
refused or fails, keeps neither another ingest nor a service of the table from its work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_operator.api.fields.bootstrap import BootstrapSpec
from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import HudiTableStatus, IngestStatus, RunStatus
from hudi_operator.api.table import DeletionPolicy, HudiTableSpec
from hudi_operator.errors import DeadlineExceededError
from hudi_operator.manifests.jobs import bootstrap_job, ingest_job, options_of, service_job
from hudi_operator.manifests.quantities import human_bytes, seconds_of
from hudi_operator.manifests.services import maintenance_of
from hudi_operator.plan import checks, index
from hudi_operator.plan.effects import Effect, Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.observed import Observed, Problem
from hudi_operator.plan.schedule import bootstraps, holds, scheduled, streams
from hudi_operator.plan.schedule.attempts import (
    Stalled,
    Unlaunchable,
    Waits,
    Wanted,
    next_attempt,
    still_refused,
    to_correct,
)
from hudi_operator.plan.schedule.due import Due, due_now
from hudi_operator.plan.schedule.ingests import Asked, Look, asked
from hudi_operator.plan.schedule.runs import DENIED, DONE, RetryPolicy, is_continuous, merged, rfc3339, run_line
from hudi_operator.plan.schedule.scheduled import Followed
from hudi_operator.plan.status import bootstrapped, callbacks, conditions, debts, events, report, versions
from hudi_operator.plan.status.conditions import Finding, empty_sources
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.service.services import ServiceType

DEFAULT_POLICY = RetryPolicy()
OTHERS_SECONDS = 30.0
"""How often the end of another resource's run is looked for."""
HELD_SECONDS = 2.0
"""How often it is asked whether the upgrade has ended for which all else waits."""
SOURCE_SECONDS = 60.0
"""How often a source is listed: files that land there send no word, nor does a Secret that is
corrected."""
LAUNCH_SECONDS = 60.0
"""How soon an attempt is tried again that could not be started."""


def plan_table(
    desired: DesiredTable, observed: Observed, now: datetime, *, policy: RetryPolicy = DEFAULT_POLICY
) -> list[Effect]:
    """Effects in order: launches, events, the status, and when to reconcile again."""
    judgement = _Judgement(desired, observed, merged(observed.runs, desired.status.runs, observed.table), now, policy)
    judgement.judge()
    status = _status(judgement)
    return [
        *checks.held(desired, observed),
        *judgement.stops,
        *judgement.launches,
        *scheduled.news(judgement.schedules),
        *events.of_table(desired.status, status),
        SetStatus(to_document(status)),
        *judgement.requeues,
    ]


@dataclass(slots=True)
class _Judgement:
    """What was seen, and what the judgement has come to so far. `stalled`: why nothing is done
    about the table; `halted`: why parts of the work, by name, are not."""

    desired: DesiredTable
    observed: Observed
    runs: tuple[RunStatus, ...]
    now: datetime
    policy: RetryPolicy
    held: str = ""
    stalled: Problem | None = None
    halted: dict[str, Problem] = field(default_factory=dict)
    running: RunStatus | None = None
    busy: tuple[str, str] | None = None
    stops: list[Stop] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    schedules: dict[str, Followed | Problem] = field(default_factory=dict)
    requeues: list[RequeueAfter] = field(default_factory=list)

    def judge(self) -> None:
        """Fill in the outcome."""
        holding = versions.held(self.observed)
        self.held = holding[1] if holding is not None else ""
        self._end_overdue()
        self._end_outdated()
        at_work = (run for run in (*self.runs, *self.observed.others) if run.phase == "Running")
        running = next((run for run in at_work if not is_continuous(run)), None)
        self.running = running
        if running is not None:
            self.busy = ("Running", run_line(running))
            if running not in self.runs:
                self.requeues.append(RequeueAfter(OTHERS_SECONDS, "Running"))
        spec = self.desired.spec
        self.stalled = checks.problem_of(self.desired, self.observed.table) or self.observed.refused
        if self.stalled is not None and self.stalled is self.observed.refused:
            self.requeues.append(RequeueAfter(LAUNCH_SECONDS, self.stalled.reason))
        if self.stalled is not None or spec is None:
            return
        if self.observed.problem is None:
            # Else no status would keep where a schedule is.
            self.schedules = scheduled.schedules_of(self.desired, self.runs, self.now)
        if spec.deletion_policy is DeletionPolicy.PURGE and not self.observed.holdable:
            self.halted["Purge"] = Problem(DENIED, checks.NOT_HOLDABLE)
        if self.observed.problem is not None:
            self.stalled = self._unseen(self.observed.problem)
        elif self.held:
            if self.observed.upgrade:
                self.busy = self.busy or (conditions.UPGRADING, self.held)
                self.requeues.append(RequeueAfter(HELD_SECONDS, conditions.UPGRADING))
            else:
                self.halted[ServiceType.UPGRADE.value] = Problem(versions.HALF_WAY, self.held)
                self.requeues.append(RequeueAfter(OTHERS_SECONDS, conditions.UPGRADING, appointment=True))
        elif not spec.suspend:
            if spec.bootstrap is not None and bootstraps.is_due(spec, self.observed.table):
                self._bootstrap(spec, spec.bootstrap)
                return
            for ingest in spec.ingest:
                self._ingest(spec, ingest)
            self._maintenance(spec)
            runs = (*(launch.run for launch in self.launches), *self.runs)
            committed = self.observed.table.attempts if self.observed.table is not None else {}
            for work, problem, seconds in still_refused(spec, runs, committed, self.now):
                self.halted[work] = problem
                self.requeues.append(RequeueAfter(seconds, work, appointment=True))
            self.requeues += scheduled.appointments(self.schedules)
            if spec.ingest and running is None and not self.launches:
                self.requeues.append(RequeueAfter(SOURCE_SECONDS, "Source", appointment=True))

    def _end_overdue(self) -> None:
        """Stop the ingest that takes longer than its manifest allows; else reconcile again when it
        would."""
        spec = self.desired.spec
        limits = {f"Ingest/{each.name}": each.active_deadline for each in spec.ingest} if spec is not None else {}
        for run in self.runs:
            limit = limits.get(run.work)
            if run.phase != "Running" or limit is None or run.started is None:
                continue
            left = seconds_of(limit) - (self.now - datetime.fromisoformat(run.started)).total_seconds()
            if left > 0:
                self.requeues.append(RequeueAfter(left, "activeDeadline"))
                continue
            self.stops.append(Stop(run.name))
            message = f"{run.work}: stopped after {limit}"
            ended = replace(
                run, phase="Failed", reason=DeadlineExceededError.name(), message=message, finished=rfc3339(self.now)
            )
            self.runs = tuple(ended if each.name == run.name else each for each in self.runs)

    def _end_outdated(self) -> None:
        """End the continuous drivers that do not do what the manifest says now."""
        spec, generation = self.desired.spec, self.desired.identity.generation
        if spec is None or self.desired.errors:
            # A manifest that is wrong takes nothing away from the one before.
            return
        for run in self.runs:
            at_work = run.phase == "Running" and is_continuous(run)
            why = self.held or streams.outdated(run, spec, generation) if at_work else ""
            if why:
                self.stops.append(Stop(run.name))
                told = streams.ended(run, why, self.now)
                self.runs = tuple(told if each.name == run.name else each for each in self.runs)

    @property
    def standstill(self) -> Problem | None:
        """What somebody has to mend: of the table, else of all parts that are halted."""
        if self.stalled is not None or not self.halted:
            return self.stalled
        first = next(iter(self.halted.values()))
        return Problem(first.reason, "; ".join(f"{work}: {each.message}" for work, each in self.halted.items()))

    def _unseen(self, problem: Problem) -> Problem | None:
        """The store did not answer, or refuses. Reconciling goes on; after some failures that
        counts as stalled."""
        failures = self.observed.failures
        if problem.retryable:
            wait = self.policy.wait_seconds(max(1, failures))
            self.busy = self.busy or ("Retrying", f"{problem.message}; next try in {wait:.0f} s")
            self.requeues.append(RequeueAfter(wait, problem.reason))
        elif problem.reason == DENIED and self.desired.spec is not None:
            self.requeues.append(RequeueAfter(SOURCE_SECONDS, problem.reason, appointment=True))
            again = f"{to_correct(self.desired.spec)}: it is asked again by itself, each minute"
            return replace(problem, message=f"{problem.message}; {again}")
        return problem if not problem.retryable or failures >= self.policy.attempts_max else None

    def _bootstrap(self, spec: HudiTableSpec, bootstrap: BootstrapSpec) -> None:
        if bootstraps.was_made(self.observed.table, (), self.desired.status.conditions):
            self.halted[bootstraps.WORK] = bootstraps.gone(spec.location)
            return

        def job(attempt: str) -> JobSpec:
            return bootstrap_job(self.desired.identity.key.name, spec, bootstrap, attempt)

        doing = ("Bootstrapping", f"makes the table of the files at {bootstrap.path}")
        self._start(spec, bootstraps.WORK, bootstraps.batch_of(bootstrap), doing, job)

    def _ingest(self, spec: HudiTableSpec, ingest: IngestSpec) -> None:
        source, work = self.observed.source(ingest.name), f"Ingest/{ingest.name}"
        if source is None:
            return
        if source.problem is not None:
            halted = self._unseen(source.problem)
            if halted is not None:
                self.halted[work] = halted
            return
        look = Look(
            source,
            self.observed.table,
            self.runs,
            self.desired.identity.generation,
            self.policy,
            self.now,
            self.schedules.get(ingest.name),
        )
        match asked(ingest, look):
            case Problem() as problem:
                self.halted[work] = problem
            case RequeueAfter() as again:
                self.requeues.append(again)
            case Asked() as found:
                self._attempt(spec, ingest, work, found)

    def _attempt(self, spec: HudiTableSpec, ingest: IngestSpec, work: str, asked: Asked) -> None:
        table = self.observed.table

        def job(attempt: str) -> JobSpec:
            config = table.config if table is not None else None
            found = ingest_job(self.desired.identity.key.name, spec, ingest, attempt, asked.size, config)
            return self._measuring(found) if asked.measures else found

        self._start(spec, work, asked.batch, ("Ingesting", f"{work} {asked.doing}"), job, asked.policy)

    def _maintenance(self, spec: HudiTableSpec) -> None:
        """The first service that is due, has not yet done what it could about the table as it is,
        and can be started."""
        table = self.observed.table
        if table is None:
            return
        options = options_of(spec)
        for work in maintenance_of(spec):
            # A TableService of the type takes its place: what that one keeps, this one must not clean away.
            if work.type in self.observed.keepers:
                continue
            due = due_now(work, table, options)
            if due is None or self._is_done(due):
                continue
            hold = holds.hold_of(work.type, table, self.observed.followers, self.now)
            if not holds.holds_back(due.work, hold, options):
                self._service(spec, replace(due, work=holds.keeping(due.work, hold, options, self.now)))

    def _is_done(self, due: Due) -> bool:
        """Whether a run found all that there was to do. One that was to execute a plan which still
        waits did not."""
        table = self.observed.table
        waits = table is not None and due.batch in table.trace(due.work.type).pending
        return not waits and any(
            run.work == due.work.type.value and run.batch == due.batch and run.phase in DONE for run in self.runs
        )

    def _service(self, spec: HudiTableSpec, due: Due) -> None:
        config = self.observed.table.config if self.observed.table is not None else None

        def job(attempt: str) -> JobSpec:
            name = self.desired.identity.key.name
            return self._measuring(service_job(name, spec, due.work, attempt, due.bytes_read, config))

        kind = due.work.type.value
        size = f": {counted(due.file_groups, 'file group')}, {human_bytes(due.bytes_read)}" if due.bytes_read else ""
        verb = due.why if due.why.startswith("executes") else f"is due, {due.why}"
        self._start(spec, kind, due.batch, (debts.DOING[due.work.type], f"{kind} {verb}{size}"), job)

    def _measuring(self, job: JobSpec) -> JobSpec:
        return index.measuring(job, self.desired.status.index, self.observed.table, self.now)

    def _start(
        self,
        spec: HudiTableSpec,
        work: str,
        batch: str,
        doing: tuple[str, str],
        job: Callable[[str], JobSpec],
        policy: RetryPolicy | None = None,
    ) -> None:
        """Launch an attempt at `batch`, unless it has to wait for its turn or its repeat, or cannot
        succeed."""
        if self.running is not None and self.running.work == work:
            return
        wanted = Wanted(self.desired.identity, spec, work, batch, job)
        launch = next_attempt(wanted, self.runs, self.observed.unlaunchable, policy=policy or self.policy, now=self.now)
        match launch:
            case Launch() if not self.launches and (self.running is None or is_continuous(launch.run)):
                self.launches.append(launch)
                self.busy = doing
            case Stalled():
                self.halted[work] = launch.problem
                if launch.again_seconds is not None:
                    self.requeues.append(RequeueAfter(launch.again_seconds, work, appointment=True))
            case Waits():
                self.busy = self.busy or (launch.reason, launch.message)
                self.requeues.append(RequeueAfter(launch.seconds, work))
            case Unlaunchable():
                self.halted[work] = launch.problem
                self.requeues.append(RequeueAfter(LAUNCH_SECONDS, launch.problem.reason))


def _status(judgement: _Judgement) -> HudiTableStatus:
    desired, observed, now = judgement.desired, judgement.observed, judgement.now
    spec, table, before = desired.spec, observed.table, desired.status
    begun = [launch.run for launch in judgement.launches]
    runs = (*begun, *judgement.runs)
    findings = [_ready(judgement)]
    if judgement.busy is not None:
        findings.append(Finding("Reconciling", "True", *judgement.busy))
    if (standstill := judgement.standstill) is not None:
        findings.append(Finding("Stalled", "True", standstill.reason, standstill.message))
    # What cannot be seen now is not forgotten: the last figures stay, the conditions say how old they are.
    unseen = table is None and (observed.problem is not None or observed.refused is not None)
    ingests = before.ingest if unseen or spec is None else _ingests(judgement, spec, begun)
    if spec is not None and not unseen:
        coming = scheduled.coming(judgement.schedules, begun)
        findings.append(conditions.fresh(spec, table, observed.sources, now, coming))
        stalled = judgement.stalled.reason if judgement.stalled is not None else None
        findings += debts.findings(spec, observed, debts.Hindrance(stalled, judgement.busy), runs, judgement.now)
        findings += conditions.at_risk(spec, table, observed.sources, now)
        findings += conditions.metadata_table(table)
        findings += conditions.foreign_writers(spec, table)
        findings += conditions.memory_short(spec, runs, desired.identity.generation, now)
        findings += versions.findings(spec, observed)
        findings += bootstrapped.finding(spec, table, runs, before.conditions)
    else:
        # Else it would be told again as soon as the table is seen again.
        kept = (
            conditions.AT_RISK,
            conditions.METADATA_TABLE,
            conditions.FOREIGN_WRITERS,
            conditions.PROPERTIES_LOST,
            bootstraps.BOOTSTRAPPED,
        )
        for kind in (*kept, *versions.CONDITIONS):
            findings += conditions.as_before(before.conditions, kind)
    findings += conditions.shared(observed.sharers)
    findings += callbacks.findings(spec, observed)
    return HudiTableStatus(
        observed_generation=desired.identity.generation,
        conditions=conditions.conditions_of(findings, before.conditions, desired.identity.generation, now),
        table_version=before.table_version if unseen else table.config.version if table is not None else None,
        table_location=report.seen_at(desired, table, unseen=unseen),
        timeline=before.timeline if unseen else report.timeline(table, before.timeline),
        data=before.data if unseen else report.data(spec, table),
        index=before.index if unseen or desired.errors else index.known(before.index, observed.measured, table),
        ingest=ingests,
        lag=before.lag if ingests is before.ingest else report.worst_lag(ingests),
        callbacks=callbacks.statuses(desired, observed, now),
        services=before.services if unseen else report.services(table),
        runs=tuple(replace(run, plan=None, index=None) for run in runs[: report.RUNS_MAX]),
        notes=report.notes(spec, table),
    )


def _ingests(judgement: _Judgement, spec: HudiTableSpec, begun: list[RunStatus]) -> tuple[IngestStatus, ...]:
    before = judgement.desired.status.ingest
    found = report.ingests(spec, judgement.observed, judgement.now, before)
    return scheduled.told(spec, found, judgement.schedules, before, begun)


def _ready(judgement: _Judgement) -> Finding:
    desired, observed = judgement.desired, judgement.observed
    if judgement.standstill is not None:
        return Finding("Ready", "False", judgement.standstill.reason, judgement.standstill.message)
    if observed.problem is not None:
        return Finding("Ready", "Unknown", observed.problem.reason, observed.problem.message)
    table, spec = observed.table, desired.spec
    if table is not None and table.commits:
        message = report.summary(table)
        return Finding("Ready", "True", "Suspended" if spec is not None and spec.suspend else "TableReadable", message)
    where = spec.location if spec is not None else "this location"
    if judgement.busy is not None:
        return Finding("Ready", "False", *judgement.busy)
    empty = empty_sources(spec, table, observed.sources) if spec is not None else ()
    but = f", and there are no files at {', '.join(empty)}" if empty else ""
    return Finding("Ready", "False", "NoTable", f"no table at {where} yet; the first rows make it{but}")
