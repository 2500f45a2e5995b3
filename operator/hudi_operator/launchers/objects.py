"""Launching by making one object, whose name is the attempt's: launching again finds it.

An object of that name that works for another resource is never adopted, and never ended. What kinds
of objects there are stands in the modules beside this one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_operator.api.resources import Identity
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.kube.rest import Document, Rest
from hudi_operator.launchers.base import PHASE_OF_OUTCOME
from hudi_operator.launchers.seen import Verdict, run_as_seen
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.pods import OWNER, Attempt, PodSettings
from hudi_operator.manifests.refusals import refused_in_cluster
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem
from hudi_table.errors import InvalidRequestError, ObjectExistsError, ObjectNotFoundError

OWNERS_MAX = 10_000
"""Resources whose results are remembered; more than that, and all are looked up once more."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that carries an attempt: `version` and `plural` are its path.

    `stop`: the merge patch that ends one; None where it has to be deleted.
    """

    name: str
    version: str
    plural: str
    manifest: Callable[[Attempt, PodSettings], Document]
    verdict: Callable[[Mapping[str, Any]], Verdict]
    stop: Mapping[str, Any] | None = None

    def path(self, namespace: str) -> str:
        """The collection of a namespace."""
        return f"/apis/{self.version}/namespaces/{namespace}/{self.plural}"


class ObjectLauncher:
    """Attempts as objects of one kind. Raises AccessDeniedError and UnavailableError for what the
    API server says."""

    def __init__(self, rest: Rest, settings: PodSettings, kind: Kind) -> None:
        self._rest = rest
        self._settings = settings
        self._run_reader = RunReader(rest)
        self.kind = kind

    def launch(self, owner: Identity, wanted: Launch, secret: Mapping[str, str]) -> bool:
        """Create the object, or return False if the attempt has one already. Raises
        InvalidRequestError if another's has its name."""
        del secret  # the pod refers to it
        attempt = Attempt(owner, wanted.run, wanted.spec, wanted.secret or "", wanted.spark)
        try:
            self._rest.create(self.kind.path(owner.key.namespace), self.kind.manifest(attempt, self._settings))
        except ObjectExistsError:
            if self.holds(owner, wanted.run.name):
                return False
            raise InvalidRequestError(
                f"a {self.kind.plural[:-1]} {wanted.run.name} that is not ours lies in namespace {owner.key.namespace}; "
                "delete it or rename the resource"
            ) from None
        return True

    def objection(self, owner: Identity, spec: HudiTableSpec) -> Problem | None:
        """What the policy of its namespace does not allow, and what no pod could do."""
        errors = refused_in_cluster(spec, self._settings.policies.of(owner.key.namespace))
        return Problem(InvalidSpecError.name(), "; ".join(map(str, errors))) if errors else None

    def holds(self, owner: Identity, name: str) -> bool:
        """Whether an attempt of this name and resource has an object of this kind."""
        return self._own(owner, name) is not None

    def cancel(self, owner: Identity, name: str) -> None:
        """End the attempt: its pod is asked to stop, and killed after its grace period."""
        found = self._own(owner, name)
        if found is None:
            return
        path = f"{self.kind.path(owner.key.namespace)}/{name}"
        with contextlib.suppress(ObjectNotFoundError, ObjectExistsError):
            if self.kind.stop is not None:
                self._rest.merge(path, self.kind.stop)
            else:
                self._rest.delete(path, uid=found["metadata"]["uid"], wait=True)

    def heard(self, uid: str) -> None:
        """Nothing: it asks each time."""

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """The attempts that still have an object, newest first."""
        return self._run_reader.runs(owner, [(self.kind, found) for found in self.objects(owner)])

    def objects(self, owner: Identity) -> list[Document]:
        """The objects that work for a resource."""
        path = self.kind.path(owner.key.namespace)
        found = self._rest.get(path, labelSelector=f"{OWNER}={owner.uid}")
        return [{"kind": found["kind"].removesuffix("List"), **item} for item in found["items"]]

    def _own(self, owner: Identity, name: str) -> Document | None:
        try:
            found = self._rest.get(f"{self.kind.path(owner.key.namespace)}/{name}")
        except ObjectNotFoundError:
            return None
        return found if found["metadata"].get("labels", {}).get(OWNER) == owner.uid else None


class RunReader:
    """Reads what has become of objects. Results are remembered, so that pods are read only while
    something is open."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._results: dict[str, dict[str, RunStatus]] = {}

    def runs(self, owner: Identity, objects: Iterable[tuple[Kind, Document]]) -> tuple[RunStatus, ...]:
        """The attempts of a resource's objects, newest first, as they and their drivers' pods
        say."""
        by_uid = {each["metadata"]["uid"]: (kind, each) for kind, each in objects}
        known = {uid: run for uid, run in self._results.get(owner.uid, {}).items() if uid in by_uid}
        open_ones = {uid: pair for uid, pair in by_uid.items() if uid not in known}
        drivers = self._drivers(owner) if open_ones else {}
        seen = {
            uid: run_as_seen(each, _verdict(kind, each), drivers.get(each["metadata"]["name"]))
            for uid, (kind, each) in open_ones.items()
        }
        results = known | {uid: run for uid, run in seen.items() if run.phase in PHASE_OF_OUTCOME.values()}
        if len(self._results) >= OWNERS_MAX:
            self._results.clear()
        self._results[owner.uid] = results
        return tuple(sorted((known | seen).values(), key=lambda r: (r.started or "", r.attempt), reverse=True))

    def forget(self, uids: Collection[str]) -> None:
        """Their resources are gone."""
        for uid in uids:
            self._results.pop(uid, None)

    def _drivers(self, owner: Identity) -> dict[str, Document]:
        pods = f"/api/v1/namespaces/{owner.key.namespace}/pods"
        found = self._rest.get(pods, labelSelector=f"{OWNER}={owner.uid}")["items"]
        return {pod["metadata"]["labels"].get(ATTEMPT, ""): pod for pod in found}


def _verdict(kind: Kind, document: Document) -> Verdict:
    """One that is being deleted has ended as soon as its driver has: its operator may not be there
    to let it go."""
    if "deletionTimestamp" in document["metadata"]:
        return Verdict(True, f"the {document['kind']} was deleted", document["metadata"]["deletionTimestamp"])
    return kind.verdict(document)
