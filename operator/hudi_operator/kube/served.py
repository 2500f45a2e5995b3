"""Which kinds an API server serves, and what we may do with them, asked anew after a while: both
change while an operator runs."""

from __future__ import annotations

import threading

from hudi_operator.kube.rest import Rest
from hudi_table.errors import ObjectNotFoundError
from hudi_table.table.store.ports import Clock

FRESH_SECONDS = 30.0


class Served:
    """Remembers for a while what is served. For several threads at once. Every account may ask."""

    def __init__(self, rest: Rest, clock: Clock, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._rest = rest
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, frozenset[str]]] = {}
        self._rights: dict[tuple[str, str, str, str], tuple[float, bool]] = {}

    def serves(self, version: str, plural: str) -> bool:
        """Whether there are `plural` of a version such as `batch/v1`. Raises AccessDeniedError and
        UnavailableError."""
        with self._lock:
            fetched_at, plurals = self._known.get(version, (float("-inf"), frozenset()))
        if self._clock.boot_seconds() - fetched_at > self._fresh_seconds:
            plurals = self._fetch(version)
            with self._lock:
                self._known[version] = (self._clock.boot_seconds(), plurals)
        return plural in plurals

    def may(self, verb: str, version: str, plural: str, namespace: str) -> bool:
        """Whether we may, in a namespace, or in all of them for "". Raises AccessDeniedError and
        UnavailableError."""
        key = (verb, version, plural, namespace)
        with self._lock:
            fetched_at, allowed = self._rights.get(key, (float("-inf"), False))
        if self._clock.boot_seconds() - fetched_at > self._fresh_seconds:
            allowed = self._review(*key)
            with self._lock:
                self._rights[key] = (self._clock.boot_seconds(), allowed)
        return allowed

    def _review(self, verb: str, version: str, plural: str, namespace: str) -> bool:
        wanted = {"verb": verb, "group": version.partition("/")[0], "resource": plural, "namespace": namespace}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        answer = self._rest.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        return bool(answer["status"]["allowed"])

    def _fetch(self, version: str) -> frozenset[str]:
        try:
            return frozenset(each["name"] for each in self._rest.get(f"/apis/{version}")["resources"])
        except ObjectNotFoundError:
            return frozenset()
