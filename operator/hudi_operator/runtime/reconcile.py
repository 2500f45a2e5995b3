"""The reconcile loop's body: observe, validate, plan, execute. Level-based: it may run at any time, any number of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import DesiredTable, Key, desired_service, desired_table
from hudi_operator.launchers.base import Launcher
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES
from hudi_operator.plan.effects import Effect, Emit, Launch, RequeueAfter, SetStatus
from hudi_operator.plan.observed import Observed, Problem, SourceObservation
from hudi_operator.plan.runs import RetryPolicy
from hudi_operator.plan.service import plan_service
from hudi_operator.plan.table import plan_table
from hudi_operator.runtime.observe import Observer
from hudi_operator.runtime.ports import Cluster
from hudi_table.table.ports import Clock

SECRET_LENGTH_MIN = 4
"""Shorter values are not masked in messages: they would mask ordinary words."""


@dataclass(slots=True)
class Reconciler:
    """One worker's tools. `reconcile` returns after how many seconds to look again, or None to wait for news."""

    cluster: Cluster
    launcher: Launcher
    clock: Clock
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    observer: Observer = field(init=False)
    _failures: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.observer = Observer(self.clock)

    def reconcile(self, key: Key) -> float | None:
        """Bring one resource nearer to what its manifest says."""
        document = self.cluster.get(key)
        if document is None:
            self._failures.pop(key, None)
            return None
        if key.kind == "TableService":
            return self._execute(key, "", plan_service(desired_service(document), self.clock.now()), {})
        desired = desired_table(document)
        secret, desired = self._secret(desired)
        observed = self._observe(desired, secret)
        effects = plan_table(desired, observed, self.clock.now(), policy=self.policy)
        return self._execute(key, desired.identity.uid, effects, secret)

    def _secret(self, desired: DesiredTable) -> tuple[Mapping[str, str], DesiredTable]:
        """Credentials of the resource's Secret. One that is missing, or holds none, is an error of the spec."""
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

    def _observe(self, desired: DesiredTable, secret: Mapping[str, str]) -> Observed:
        key = desired.identity.key
        runs = tuple(
            replace(run, message=masked(run.message, secret)) for run in self.launcher.runs(desired.identity.uid)
        )
        if desired.spec is None or desired.errors:
            return Observed(runs=runs)
        seen = self.observer.table(desired, secret)
        problem = masked_problem(seen, secret) if isinstance(seen, Problem) else None
        table = None if isinstance(seen, Problem) else seen
        sources: tuple[SourceObservation, ...] = ()
        if problem is None:
            sources = tuple(self.observer.source(desired.spec, ingest, secret) for ingest in desired.spec.ingest)
            sources = tuple(
                replace(s, problem=masked_problem(s.problem, secret)) if s.problem is not None else s for s in sources
            )
        bad = problem is not None or any(s.problem is not None for s in sources)
        self._failures[key] = self._failures.get(key, 0) + 1 if bad else 0
        return Observed(table, problem, sources, runs, self._failures[key])

    def _execute(self, key: Key, owner: str, effects: list[Effect], secret: Mapping[str, str]) -> float | None:
        again: float | None = None
        for effect in effects:
            match effect:
                case Launch():
                    self.launcher.launch(owner, effect.run, effect.spec, secret)
                case SetStatus():
                    self.cluster.set_status(key, effect.status)
                case Emit():
                    self.cluster.emit(key, effect)
                case RequeueAfter():
                    again = effect.seconds if again is None else min(again, effect.seconds)
        return again


def masked(message: str | None, secret: Mapping[str, str]) -> str | None:
    """A message without any value of the secret."""
    for value in secret.values():
        if message is not None and len(value) >= SECRET_LENGTH_MIN:
            message = message.replace(value, "***")
    return message


def masked_problem(problem: Problem, secret: Mapping[str, str]) -> Problem:
    """A problem whose message holds no value of the secret."""
    return replace(problem, message=masked(problem.message, secret) or "")
