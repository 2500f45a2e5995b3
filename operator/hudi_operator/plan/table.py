"""`plan_table(desired, observed, now)`: what is to be done about one HudiTable. Pure.

Order of judgement: the manifest, then whether the table could be seen, then each ingest, then compaction. At most one run per
table is started, so our own jobs never contend with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import HudiTableStatus, RunStatus
from hudi_operator.api.table import HudiTableSpec, IngestSpec
from hudi_operator.manifests.attempts import attempt_name
from hudi_operator.manifests.jobs import compaction_job, ingest_job
from hudi_operator.plan import checks, conditions, report
from hudi_operator.plan.conditions import Finding, rfc3339, waiting_of
from hudi_operator.plan.effects import Effect, Emit, EventType, Launch, RequeueAfter, SetStatus
from hudi_operator.plan.observed import Observed, Problem
from hudi_operator.plan.runs import DONE, RetryPolicy, merged, verdict
from hudi_table.model.checkpoint import batch_id
from hudi_table.model.jobspec import JobSpec

DEFAULT_POLICY = RetryPolicy()


def plan_table(
    desired: DesiredTable, observed: Observed, now: datetime, *, policy: RetryPolicy = DEFAULT_POLICY
) -> list[Effect]:
    """Effects in order: launches, events, the status, and when to look again."""
    judgement = _Judgement(desired, observed, merged(observed.runs, desired.status.runs, observed.table), now, policy)
    judgement.judge()
    status = _status(judgement)
    events = _events(desired.status, status)
    return [*judgement.launches, *events, SetStatus(to_document(status)), *judgement.requeues]


@dataclass(slots=True)
class _Judgement:
    """What was seen, and what the judgement has come to so far."""

    desired: DesiredTable
    observed: Observed
    runs: tuple[RunStatus, ...]
    now: datetime
    policy: RetryPolicy
    stalled: Problem | None = None
    busy: tuple[str, str] | None = None
    launches: list[Launch] = field(default_factory=list)
    requeues: list[RequeueAfter] = field(default_factory=list)

    def judge(self) -> None:
        """Fill in the outcome."""
        running = next((run for run in self.runs if run.phase == "Running"), None)
        if running is not None:
            self.busy = ("Running", f"{running.work} runs as {running.name}")
        spec = self.desired.spec
        self.stalled = checks.problem_of(self.desired, self.observed.table)
        if self.stalled is not None or spec is None:
            return
        if self.observed.problem is not None:
            self._unseen(self.observed.problem)
        elif running is None and not spec.suspend:
            for ingest in spec.ingest:
                self._ingest(spec, ingest)
                if self.launches or self.stalled:
                    return
            self._compaction(spec)

    def _unseen(self, problem: Problem) -> None:
        """The store did not answer, or refuses. Looking goes on; after some failures that counts as stalled."""
        failures = self.observed.failures
        if not problem.retryable or failures >= self.policy.attempts_max:
            self.stalled = problem
        if problem.retryable:
            wait = self.policy.wait_seconds(max(1, failures))
            self.busy = ("Retrying", f"{problem.message}; looking again after {wait:.0f} s")
            self.requeues.append(RequeueAfter(wait, problem.reason))

    def _ingest(self, spec: HudiTableSpec, ingest: IngestSpec) -> None:
        source = self.observed.source(ingest.name)
        if source is None:
            return
        if source.problem is not None:
            self._unseen(source.problem)
            return
        files = waiting_of(source, self.observed.table)
        if not files:
            return
        size = sum(f.size for f in files)

        def job(attempt: str) -> JobSpec:
            return ingest_job(self.desired.identity.key.name, spec, ingest, attempt, size)

        work = f"Ingest/{ingest.name}"
        doing = ("Ingesting", f"{work} takes {len(files)} files, {conditions.human_bytes(size)}")
        self._start(spec, work, batch_id(ingest.name, files), doing, job)

    def _compaction(self, spec: HudiTableSpec) -> None:
        table = self.observed.table
        debt = table.compaction if table is not None else None
        if table is None or debt is None or not debt.due:
            return

        def job(attempt: str) -> JobSpec:
            return compaction_job(self.desired.identity.key.name, spec, attempt, debt)

        # Whatever is done about this debt adds a commit, so that the next debt is another batch.
        batch = debt.pending[0] if debt.pending else table.commits[-1].time
        why = f"executes the plan of {batch}" if debt.pending else f"is due, {debt.why}"
        doing = (
            "Compacting",
            f"Compaction {why}: {debt.file_groups} file groups, {conditions.human_bytes(debt.bytes_read)}",
        )
        self._start(spec, "Compaction", batch, doing, job)

    def _start(
        self, spec: HudiTableSpec, work: str, batch: str, doing: tuple[str, str], job: Callable[[str], JobSpec]
    ) -> None:
        """Launch an attempt at `batch`, unless it has to wait or cannot succeed."""
        identity = self.desired.identity
        found = verdict(self.runs, work, identity.generation, batch, policy=self.policy, now=self.now)
        if found.stalled is not None:
            self.stalled = Problem(*found.stalled)
        elif found.wait_seconds > 0:
            wait = f"next attempt after {self.policy.wait_seconds(found.failures):.0f} s"
            self.busy = ("Retrying", f"{work} failed {found.failures} times; {wait}")
            self.requeues.append(RequeueAfter(found.wait_seconds, work))
        else:
            name = attempt_name(identity.key.name, identity.uid, work, identity.generation, found.number)
            run = RunStatus(
                name, work, "Running", identity.generation, found.number, batch=batch, started=rfc3339(self.now)
            )  # fmt: skip
            secret = spec.storage.credentials_secret_ref
            launcher = spec.spark.launcher.value
            self.launches.append(Launch(run, job(name), secret.name if secret is not None else None, launcher))
            self.busy = doing


def _status(judgement: _Judgement) -> HudiTableStatus:
    desired, observed, now = judgement.desired, judgement.observed, judgement.now
    spec, table, before = desired.spec, observed.table, desired.status
    runs = (*(launch.run for launch in judgement.launches), *judgement.runs)
    findings = [_ready(judgement)]
    if judgement.busy is not None:
        findings.append(Finding("Reconciling", "True", *judgement.busy))
    if judgement.stalled is not None:
        findings.append(Finding("Stalled", "True", judgement.stalled.reason, judgement.stalled.message))
    # What cannot be seen now is not forgotten: the last figures stay, the conditions say how old they are.
    unseen = table is None and observed.problem is not None
    if spec is not None and not unseen:
        findings += conditions.upkeep(spec, table, observed.sources)
    return HudiTableStatus(
        observed_generation=desired.identity.generation,
        conditions=conditions.settle(findings, before.conditions, desired.identity.generation, now),
        timeline=before.timeline if unseen else report.timeline(table),
        data=before.data if unseen else report.data(spec, table),
        ingest=before.ingest if unseen or spec is None else report.ingests(spec, observed, now),
        runs=runs[: report.RUNS_MAX],
        notes=report.notes(table),
    )


def _ready(judgement: _Judgement) -> Finding:
    desired, observed = judgement.desired, judgement.observed
    if judgement.stalled is not None:
        return Finding("Ready", "False", judgement.stalled.reason, judgement.stalled.message)
    if observed.problem is not None:
        return Finding("Ready", "Unknown", observed.problem.reason, observed.problem.message)
    table, spec = observed.table, desired.spec
    if table is not None and table.commits:
        message = report.summary(table)
        return Finding("Ready", "True", "Suspended" if spec is not None and spec.suspend else "TableReadable", message)
    where = spec.location if spec is not None else "this location"
    if judgement.busy is not None:
        return Finding("Ready", "False", *judgement.busy)
    return Finding("Ready", "False", "NoTable", f"no table at {where} yet; the first rows make it")


def _events(before: HudiTableStatus, after: HudiTableStatus) -> list[Emit]:
    """What changed since the last status, told once."""
    found = []
    phases = {run.name: run.phase for run in before.runs}
    for run in reversed(after.runs):
        if phases.get(run.name) == run.phase:
            continue
        if run.phase == "Running":
            found.append(Emit(EventType.NORMAL, "Started", f"{run.work}: attempt {run.attempt} as {run.name}"))
        elif run.phase in DONE:
            found.append(Emit(EventType.NORMAL, run.phase, f"{run.work}: {run.message or run.name}"))
        else:
            found.append(Emit(EventType.WARNING, run.reason or "Failed", f"{run.work}: {run.message or run.name}"))
    told = {emit.message for emit in found}
    old = {c.type: (c.reason, c.message) for c in before.conditions}
    for condition in after.conditions:
        new = (condition.reason, condition.message)
        if condition.type == "Stalled" and old.get("Stalled") != new and not any(new[1] in m for m in told):
            found.append(Emit(EventType.WARNING, *new))
    return found
