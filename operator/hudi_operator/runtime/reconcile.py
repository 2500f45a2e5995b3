"""The reconcile loop's body: observe, validate, plan, execute. Level-based: it may run at any time,
any number of times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_operator.api.fields.pods import PodPolicies
from hudi_operator.api.fields.spark import SparkSpec
from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import (
    DesiredService,
    DesiredTable,
    Identity,
    Key,
    desired_service,
    desired_table,
)
from hudi_operator.api.service import RunMode
from hudi_operator.api.status import IndexStatus, RunStatus
from hudi_operator.api.table import DeletionPolicy
from hudi_operator.launchers.base import Launcher
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES, options_of
from hudi_operator.manifests.services import work_of
from hudi_operator.plan.deletion import WORK as PURGE
from hudi_operator.plan.deletion import ObservedDeletion, plan_deletion
from hudi_operator.plan.effects import Effect, Emit, Hold, Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.index import newest
from hudi_operator.plan.observed import (
    Observed,
    ObservedService,
    Problem,
    SourceObservation,
    TableObservation,
)
from hudi_operator.plan.schedule.attempts import QUEUED
from hudi_operator.plan.schedule.runs import RetryPolicy, is_continuous
from hudi_operator.plan.service import plan_service
from hudi_operator.plan.status.failed import failed_status
from hudi_operator.plan.table import plan_table
from hudi_operator.plan.versions import holder_of
from hudi_operator.runtime.masking import masked, masked_problem, masked_source
from hudi_operator.runtime.observe import Observer
from hudi_operator.runtime.observing.chains import followers, holding
from hudi_operator.runtime.observing.claims import Claims
from hudi_operator.runtime.parse_cache import Parsed
from hudi_operator.runtime.ports import Cluster, Couriers, Meter, NoCouriers, NoMeter, NoSets, Sets
from hudi_operator.runtime.turns import Turns, unlimited
from hudi_table.errors import HudiError, InvariantError
from hudi_table.model.bounded import Bounded
from hudi_table.model.service.services import ServiceType
from hudi_table.table.store.ports import Clock

_log = logging.getLogger(__name__)
FAILURES_MAX = 20_000


@dataclass(slots=True)
class Reconciler:
    """One worker's tools. `reconcile` returns when to do it again, or None to wait for news.
    `environment`: see `Observer`."""

    cluster: Cluster
    launcher: Launcher
    clock: Clock
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    meter: Meter = field(default_factory=NoMeter)
    couriers: Couriers = field(default_factory=NoCouriers)
    policies: PodPolicies = field(default_factory=unlimited)
    sets: Sets = field(default_factory=NoSets)
    environment: Mapping[str, str] = field(default_factory=dict)
    observer: Observer = field(init=False)
    turns: Turns = field(init=False)
    claims: Claims = field(init=False)
    _tables: Parsed[DesiredTable] = field(default_factory=lambda: Parsed(desired_table))
    _services: Parsed[DesiredService] = field(default_factory=lambda: Parsed(desired_service))
    _failures: Bounded[Key, int] = field(default_factory=lambda: Bounded(FAILURES_MAX))

    def __post_init__(self) -> None:
        self.observer = Observer(self.clock, environment=self.environment)
        self.turns = Turns(self.cluster, self.clock.boot_seconds, self.policies)
        self.claims = Claims(self.cluster, self._tables, self._secret)

    def reconcile(self, key: Key) -> RequeueAfter | None:
        """Bring one resource nearer to what its manifest says."""
        document = self.cluster.get(key)
        if document is None:
            self._failures.pop(key, None)
            self.couriers.forget(key)
            self.sets.forget(key)
            return None
        if key.kind == "HudiTableSet":
            return self.sets.reconcile(document)
        return self._service(document) if key.kind == "TableService" else self._table(document)

    def report_failure(self, key: Key, problem: Problem, wait_seconds: float) -> None:
        """A reconcile has failed for a reason that is no finding of its plan: that becomes the
        resource's condition. Raises HudiError."""
        document = self.cluster.get(key)
        if document is not None:
            self.cluster.set_status(key, failed_status(document, problem, wait_seconds, self.clock.now()))

    def _table(self, document: Mapping[str, Any]) -> RequeueAfter | None:
        desired = self._tables(document)
        if desired.identity.deleted:
            self.couriers.forget(desired.identity.key)
        if desired.identity.deleted and desired.identity.held:
            return self._deletion(desired)
        secret, desired = self._secret(desired)
        siblings = self._siblings(desired.identity.key)
        attempts = self._attempts(desired.identity, desired.status.runs, [s.identity for s in siblings])
        sharers = self.claims.sharers(desired.identity.key)
        observed = replace(
            self._observe(desired, secret, attempts, sharers),
            sharers=tuple(str(each.key) for each in sharers),
            followers=followers(self.cluster, self._tables, desired),
            holding=holding(self.cluster, self._tables, desired),
            others=attempts.others,
            keepers=_keepers(siblings),
            measured=attempts.measured,
            holdable=self._holdable(desired),
            upgrade=holder_of(siblings),
            callbacks=self.couriers.attend(desired),
        )

        def plan(unlaunchable: Mapping[str, Problem]) -> list[Effect]:
            seen = replace(observed, unlaunchable=unlaunchable)
            return plan_table(desired, seen, self.clock.now(), policy=self.policy)

        return self._carry_out(desired.identity, plan, secret)

    def _deletion(self, desired: DesiredTable) -> RequeueAfter | None:
        identity = desired.identity
        others = [service.identity for service in self._siblings(identity.key)]
        attempts = self._attempts(identity, desired.status.runs, others)
        sharers = self.claims.sharers(identity.key)
        observed = ObservedDeletion(
            attempts.runs, attempts.others, str(sharers[0].key) if sharers else None, attempts.problem
        )
        # A purge is one pod without Spark: of the manifest only its places matter.
        spec = replace(desired.spec, spark=SparkSpec()) if desired.spec is not None else None
        objection = self.launcher.objection(identity, spec) if spec is not None else None

        def plan(unlaunchable: Mapping[str, Problem]) -> list[Effect]:
            seen = replace(observed, unlaunchable=unlaunchable)
            return plan_deletion(desired, seen, self.clock.now(), policy=self.policy)

        if objection is not None:
            return self._execute(identity, plan({PURGE: objection}), {})
        return self._carry_out(identity, plan, {})

    def _holdable(self, desired: DesiredTable) -> bool:
        """Asked of those alone that are to be held."""
        spec = desired.spec
        return spec is None or spec.deletion_policy is not DeletionPolicy.PURGE or self.cluster.may_let_go()

    def _refusal(self, desired: DesiredTable, sharers: Sequence[Identity]) -> Problem | None:
        """What keeps a table from being reconciled: another one at its place, or its manifest."""
        if desired.spec is None or desired.errors:
            return None
        refused = self.claims.refusal(desired, sharers, has_table=True)
        return refused or self.launcher.objection(desired.identity, desired.spec)

    def _service(self, document: Mapping[str, Any]) -> RequeueAfter | None:
        desired = self._services(document)
        identity, spec = desired.identity, desired.spec
        table_key = Key("HudiTable", identity.key.namespace, spec.table_ref.name) if spec is not None else None
        found = self.cluster.get(table_key) if table_key is not None else None
        if found is None or table_key is None or spec is None:
            runs = self._attempts(identity, desired.status.runs, []).runs
            effects = plan_service(desired, ObservedService(runs=runs), self.clock.now(), policy=self.policy)
            return self._execute(identity, effects, {})
        secret, owner = self._secret(self._tables(found))
        siblings = [s.identity for s in self._siblings(table_key) if s.identity.uid != identity.uid]
        attempts = self._attempts(identity, desired.status.runs, [owner.identity, *siblings])
        cleaning = options_of(owner.spec) | dict(work_of(spec, owner.spec).options) if owner.spec is not None else None
        wanted = cleaning if spec.when is not None and spec.when.bytes_to_clean is not None else None
        refused = self._refusal(owner, self.claims.sharers(table_key))
        seen = self.observer.table(owner, secret, wanted) if not owner.errors and refused is None else None
        if refused is not None and refused.retryable:
            seen, refused = refused, None
        problem = masked_problem(seen, secret) if isinstance(seen, Problem) else attempts.problem
        if problem is None and isinstance(seen, TableObservation) and owner.spec is not None:
            foreseen = self.observer.service(work_of(spec, owner.spec), owner.spec, seen.config, secret)
            problem = masked_problem(foreseen, secret) if foreseen is not None else None
        observed = ObservedService(
            owner=owner,
            table=None if isinstance(seen, Problem) else seen,
            problem=problem,
            runs=tuple(replace(run, message=masked(run.message, secret)) for run in attempts.runs),
            others=tuple(run for run in attempts.others if not is_continuous(run)),
            streams=tuple(run for run in attempts.others if is_continuous(run)),
            failures=self._failed(identity.key, bad=problem is not None),
            refused=refused,
            followers=followers(self.cluster, self._tables, owner),
        )

        def plan(unlaunchable: Mapping[str, Problem]) -> list[Effect]:
            known = replace(observed, unlaunchable=unlaunchable)
            return plan_service(desired, known, self.clock.now(), policy=self.policy)

        return self._carry_out(identity, plan, secret)

    def _attempts(self, owner: Identity, recorded: tuple[RunStatus, ...], others: list[Identity]) -> _Attempts:
        """What the launcher tells. Where it is refused, what was last known: nothing is taken for
        lost that cannot be seen."""
        try:
            runs = self.launcher.runs(owner)
            beside = [run for other in others for run in self.launcher.runs(other)]
            return _Attempts(runs, tuple(run for run in beside if run.phase == "Running"), newest([*runs, *beside]))
        except HudiError as error:
            if error.retryable:
                raise
            return _Attempts(recorded, (), problem=Problem(error.name(), str(error), retryable=True))

    def _siblings(self, table: Key) -> list[DesiredService]:
        """The TableServices of a table."""
        keys = [key for key in self.cluster.about(table.namespace, table.name) if key.kind == "TableService"]
        found = [self._services(document) for key in keys if (document := self.cluster.get(key)) is not None]
        return [s for s in found if s.spec is not None and s.spec.table_ref.name == table.name]

    def _secret(self, desired: DesiredTable) -> tuple[Mapping[str, str], DesiredTable]:
        """Credentials of the resource's Secret. One that is missing, or holds none, is an error of
        the spec."""
        ref = desired.spec.storage.credentials_secret_ref if desired.spec is not None else None
        if ref is None:
            return {}, desired
        path = "spec.storage.credentialsSecretRef.name"
        found = self.cluster.secret(desired.identity.key.namespace, ref.name)
        if found is None:
            message = f"there is no Secret {ref.name!r} in namespace {desired.identity.key.namespace}; create it"
            return {}, replace(desired, errors=(*desired.errors, FieldError(path, message)))
        usable = {name: value for name, value in found.items() if name in CREDENTIAL_VARIABLES}
        if not usable:
            message = f"Secret {ref.name!r} holds none of {', '.join(CREDENTIAL_VARIABLES)}"
            return {}, replace(desired, errors=(*desired.errors, FieldError(path, message)))
        return usable, desired

    def _observe(
        self, desired: DesiredTable, secret: Mapping[str, str], attempts: _Attempts, sharers: Sequence[Identity]
    ) -> Observed:
        key, refused = desired.identity.key, self._refusal(desired, sharers)
        runs = tuple(replace(run, message=masked(run.message, secret)) for run in attempts.runs)
        if desired.spec is None or desired.errors:
            return Observed(runs=runs)
        seen = self.observer.table(desired, secret) if refused is None else None
        if seen is None:
            refused = refused or self.claims.refusal(desired, sharers, has_table=False)
        if refused is not None and refused.retryable:
            seen, refused = refused, None
        if refused is not None:
            return Observed(runs=runs, refused=refused)
        problem = masked_problem(seen, secret) if isinstance(seen, Problem) else attempts.problem
        table = None if isinstance(seen, Problem) else seen
        sources: tuple[SourceObservation, ...] = ()
        if problem is None:
            sources = tuple(self.observer.source(desired.spec, ingest, secret, table) for ingest in desired.spec.ingest)
            unknown = table.unknown_checkpoints if table is not None else {}
            # What is waiting there cannot be told without the checkpoint.
            config = table.config if table is not None else None
            sources = tuple(
                replace(
                    s, problem=s.problem or unknown.get(s.ingest) or self.observer.ingest(desired, i, config, secret)
                )
                for i, s in zip(desired.spec.ingest, sources, strict=True)
            )
            sources = tuple(masked_source(each, secret) for each in sources)
        bad = problem is not None or any(s.problem is not None for s in sources)
        return Observed(table, problem, sources, runs, self._failed(key, bad=bad))

    def _failed(self, key: Key, *, bad: bool) -> int:
        """Reconciles in a row that ended in a problem, this one with them."""
        before = self._failures.pop(key, 0)
        failures = before + 1 if bad else 0
        if bad:
            self._failures[key] = failures
        return failures

    def _carry_out(
        self,
        identity: Identity,
        plan: Callable[[Mapping[str, Problem]], list[Effect]],
        secret: Mapping[str, str],
    ) -> RequeueAfter | None:
        """Execute a plan. If an attempt cannot be started, that stands in the status, by a plan
        that knows of it, and goes on with what else there is to do."""
        refused: dict[str, Problem] = {}
        while True:
            try:
                return self._execute(identity, plan(refused), secret)
            except _NotLaunchedError as failed:
                if failed.work in refused:
                    raise InvariantError(
                        f"{failed.work} was planned though it was refused: {failed.problem.message}"
                    ) from failed
                refused[failed.work] = failed.problem

    def _execute(self, identity: Identity, effects: list[Effect], secret: Mapping[str, str]) -> RequeueAfter | None:
        """Carry effects out in their order. An attempt holds its turn until the status names it."""
        with ExitStack() as turns:
            return self._executed(identity, effects, secret, turns)

    def _executed(
        self, identity: Identity, effects: list[Effect], secret: Mapping[str, str], turns: ExitStack
    ) -> RequeueAfter | None:
        again: RequeueAfter | None = None
        for effect in effects:
            match effect:
                case Launch():
                    why = turns.enter_context(self.turns.taken(identity.key, effect.run))
                    if why:
                        raise _NotLaunchedError(effect.run.work, Problem(QUEUED, why, retryable=True))
                    self._launch(identity, effect, secret)
                case Stop():
                    self.launcher.cancel(identity, effect.name)
                case SetStatus():
                    self._set_status(identity, effect)
                case Hold():
                    self.cluster.hold(identity.key, held=effect.held)
                case Emit():
                    self._emit(identity, effect)
                case RequeueAfter():
                    # What is left to do comes before an appointment, however far away.
                    order = (effect.appointment, effect.seconds)
                    again = effect if again is None or order < (again.appointment, again.seconds) else again
        return again

    def _set_status(self, identity: Identity, wanted: SetStatus) -> None:
        """A deletion goes on without a status that is refused: the rights may have gone first."""
        before = (self.cluster.get(identity.key) or {}).get("status") or {}
        try:
            self.cluster.set_status(identity.key, wanted.status)
        except HudiError as error:
            if error.retryable or not identity.deleted:
                raise
            _log.warning("%s: the status is refused: %s", identity.key, error)
        else:
            self.meter.reported(identity.key, before, wanted.status)

    def _emit(self, identity: Identity, event: Emit) -> None:
        """An event that cannot be written, as in a namespace that is being deleted, keeps nobody
        from the rest of the work."""
        try:
            self.cluster.emit(identity.key, event)
        except HudiError as error:
            if error.retryable:
                raise
            _log.warning(
                "%s: %s: %s; the event is refused: %s", identity.key, event.reason, event.message, error.name()
            )

    def _launch(self, identity: Identity, wanted: Launch, secret: Mapping[str, str]) -> None:
        try:
            self.launcher.launch(identity, wanted, secret)
        except HudiError as error:
            if error.retryable:
                raise
            raise _NotLaunchedError(
                wanted.run.work, masked_problem(Problem(error.name(), str(error)), secret)
            ) from error


@dataclass(frozen=True, slots=True)
class _Attempts:
    """What the launcher tells of a resource's runs and of others' that are at work, or why it does
    not. `measured`: what the newest of them all has found of the index."""

    runs: tuple[RunStatus, ...]
    others: tuple[RunStatus, ...]
    measured: IndexStatus | None = None
    problem: Problem | None = None


class _NotLaunchedError(Exception):
    """An attempt could not be started, and the same call would fail again."""

    def __init__(self, work: str, problem: Problem) -> None:
        super().__init__(problem.message)
        self.work = work
        self.problem = problem


def _keepers(services: list[DesiredService]) -> dict[ServiceType, str]:
    """The TableServices that keep a table all the time, by type."""
    lasting = [s for s in services if s.spec is not None and (s.spec.schedule is not None or s.spec.when is not None)]
    return {s.spec.type: s.identity.key.name for s in lasting if s.spec is not None and s.spec.mode is not RunMode.PLAN}
