"""The Cluster port on an API server. What is known of resources is what the watch has brought, and
what we wrote since."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from hudi_operator.api.names import API_VERSION, GROUP, PLURALS, VERSION
from hudi_operator.api.resources import FINALIZER, Key, key_of, table_of
from hudi_operator.api.words import one_line
from hudi_operator.kube.rest import Document, Rest
from hudi_operator.kube.served import Served
from hudi_operator.plan.effects import Emit
from hudi_operator.runtime.members import Members
from hudi_operator.runtime.places import Places
from hudi_table.errors import ObjectExistsError, ObjectNotFoundError
from hudi_table.table.store.ports import Clock

MANAGER = "hudi-operator"
"""Field manager of every status that we write, and the reporter of our events."""
NOTE_LENGTH_MAX = 1024
_EVENTS = "/apis/events.k8s.io/v1"


class ApiCluster:
    """Resources, statuses, events and Secrets of an API server. For several threads at once."""

    def __init__(self, rest: Rest, clock: Clock, instance: str) -> None:
        self._rest = rest
        self._served = Served(rest, clock)
        self._clock = clock
        self._instance = instance
        self._lock = threading.Lock()
        self._known: dict[Key, Mapping[str, Any]] = {}
        self._tables: dict[tuple[str, str], set[Key]] = {}
        self._uids: dict[str, Key] = {}
        self._places = Places()
        self._members = Members()
        self._listed: dict[Key, str] = {}
        self._heard: dict[Key, str] = {}

    def load(self, kind: str, namespace: str = "") -> None:
        """List every resource of a kind, in one namespace or in all, before a watch begins: what
        this brings is not newer than what a watch has brought. Raises HudiError."""
        where = f"/namespaces/{namespace}" if namespace else ""
        for item in self._rest.objects(f"/apis/{GROUP}/{VERSION}{where}/{PLURALS[kind]}"):
            key = self.seen({"apiVersion": API_VERSION, "kind": kind, **item})
            with self._lock:
                self._listed[key] = self._heard[key] = item["metadata"]["resourceVersion"]

    def record_version(self, key: Key, version: str) -> None:
        """The watch has brought this version: that of a write of ours, too, shows that it hears."""
        with self._lock:
            self._heard[key] = version

    def heard(self) -> dict[Key, str]:
        """The version of each known resource that the watch, or the listing before it, has brought
        last."""
        with self._lock:
            return {key: version for key, version in self._heard.items() if key in self._known}

    def is_listed(self, key: Key, version: str) -> bool:
        """Whether `load` has brought this version of a resource. The watch tells of it once, so it
        is asked once."""
        with self._lock:
            return self._listed.pop(key, None) == version

    def seen(self, document: Mapping[str, Any]) -> Key:
        """The watch has brought a resource. Who manages which field is not kept: it is larger than
        all the rest."""
        metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
        document = {**document, "metadata": metadata}
        key = key_of(document)
        with self._lock:
            self._forget(key)
            self._known[key] = document
            self._uids[metadata["uid"]] = key
            self._tables.setdefault(table_of(document), set()).add(key)
            self._places.add(key, document)
            self._members.add(key, document)
        return key

    def gone(self, key: Key) -> None:
        """The watch says that a resource was deleted."""
        with self._lock:
            self._forget(key)
            self._heard.pop(key, None)

    def vanished(self, key: Key, document: Mapping[str, Any]) -> bool:
        """A resource is not there any more that was known by this document; whether nothing was
        heard of it since."""
        with self._lock:
            same = self._known.get(key) is document
            if same:
                self._forget(key)
                self._heard.pop(key, None)
        return same

    def _forget(self, key: Key) -> None:
        before = self._known.pop(key, None)
        if before is not None:
            self._uids.pop(before["metadata"]["uid"], None)
            self._places.remove(key)
            self._members.remove(key, before)
            table = table_of(before)
            self._tables[table].discard(key)
            if not self._tables[table]:
                del self._tables[table]

    def of_uid(self, uid: str) -> Key | None:
        """The resource of this uid, if it is known."""
        with self._lock:
            return self._uids.get(uid)

    def about(self, namespace: str, table: str) -> list[Key]:
        """The resources of one table, sorted."""
        with self._lock:
            return sorted(self._tables.get((namespace, table), ()))

    def keys(self) -> list[Key]:
        """Every known resource, sorted."""
        with self._lock:
            return sorted(self._known)

    def sharing(self, key: Key) -> list[Key]:
        """The HudiTables at the place of another, or above or below it."""
        with self._lock:
            return self._places.sharing(key)

    def followers(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace that take in what changes in another."""
        with self._lock:
            return self._places.followers(key)

    def upstreams(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace of which one takes in what changes."""
        with self._lock:
            return self._places.upstreams(key)

    def members(self, key: Key) -> list[Mapping[str, Any]]:
        """The HudiTables that bear the label of a set, sorted by name."""
        with self._lock:
            return [self._known[each] for each in self._members.of(key)]

    def make(self, document: Mapping[str, Any]) -> None:
        """Make a resource. Raises ObjectExistsError if its name is taken, HudiError."""
        key = key_of(document)
        found = self._rest.create(_collection(key), document)
        self.seen({**found, "kind": key.kind})

    def change(self, document: Mapping[str, Any]) -> None:
        """Replace a resource, if it is as its `resourceVersion` says. Raises ObjectExistsError if
        it is not, ObjectNotFoundError, HudiError."""
        key = key_of(document)
        found = self._rest.replace(_path(key), document)
        self.seen({**found, "kind": key.kind})

    def remove(self, key: Key, uid: str) -> None:
        """Delete the resource of this uid; nothing happens if it is gone. Raises HudiError."""
        with contextlib.suppress(ObjectNotFoundError, ObjectExistsError):
            self._rest.delete(_path(key), uid=uid)

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The document as it was last seen, or None."""
        with self._lock:
            return self._known.get(key)

    def set_status(self, key: Key, status: Mapping[str, Any]) -> None:
        """Apply the status unless it is the same. Of a resource that was deleted, or made anew
        under its name, nothing is written. Raises ObjectExistsError if others keep changing it."""
        stored = self.get(key)
        if stored is None or stored.get("status") == status:
            return

        def apply_to(there: Mapping[str, Any]) -> Document:
            version = there["metadata"]["resourceVersion"]
            identity = {"name": key.name, "namespace": key.namespace, "resourceVersion": version}
            body = {"apiVersion": API_VERSION, "kind": key.kind, "metadata": identity, "status": status}
            return self._rest.apply(f"{_path(key)}/status", body, MANAGER)

        self._write(key, stored, apply_to)

    def hold(self, key: Key, *, held: bool) -> None:
        """Set or remove our finalizer; others' stay. Raises ObjectExistsError if somebody keeps
        changing the resource."""

        def set_on(there: Mapping[str, Any]) -> Document | None:
            finalizers = list(there["metadata"].get("finalizers", ()))
            if (FINALIZER in finalizers) == held:
                return None
            wanted = [*finalizers, FINALIZER] if held else [each for each in finalizers if each != FINALIZER]
            version = there["metadata"]["resourceVersion"]
            # The version guards the list, which a merge replaces whole.
            return self._rest.merge(_path(key), {"metadata": {"finalizers": wanted, "resourceVersion": version}})

        stored = self.get(key)
        if stored is not None:
            self._write(key, stored, set_on)

    def may_let_go(self) -> bool:
        """A right of one namespace goes with it, before the resources there or after: only one to
        all of them is sure to stay. Raises HudiError."""
        return self._served.may("patch", API_VERSION, PLURALS["HudiTable"], "")

    def _write(
        self, key: Key, stored: Mapping[str, Any], write: Callable[[Mapping[str, Any]], Document | None]
    ) -> None:
        """Write to a resource as it is known, and once more as it is there, if others changed it
        meanwhile and it is still the same one.

        What others changed is not taken as known: the watch brings it, and nobody would look at
        what is known already.
        """
        with contextlib.suppress(ObjectNotFoundError):
            try:
                found = write(stored)
            except ObjectExistsError:
                # Only the version tells whether it is still the same resource: a status has no other precondition (measured).
                now = self._rest.get(_path(key))
                if now["metadata"]["uid"] == stored["metadata"]["uid"]:
                    write(now)
            else:
                if found is not None:
                    self.seen(found)

    def emit(self, key: Key, event: Emit) -> None:
        """Record an event; the same one again is counted, not repeated."""
        stored = self.get(key)
        uid = stored["metadata"]["uid"] if stored is not None else ""
        note = one_line(event.message, NOTE_LENGTH_MAX)
        digest = hashlib.sha256(f"{uid}\n{event.type.value}\n{event.reason}\n{note}".encode()).hexdigest()[:16]
        name = f"{key.name[:200]}.{digest}"
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        events = f"{_EVENTS}/namespaces/{key.namespace}/events"
        regarding = {
            "apiVersion": API_VERSION,
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "uid": uid,
        }
        try:
            self._rest.create(
                events,
                {
                    "apiVersion": "events.k8s.io/v1",
                    "kind": "Event",
                    "metadata": {"name": name, "namespace": key.namespace},
                    "eventTime": now,
                    "type": event.type.value,
                    "reason": event.reason,
                    "note": note,
                    "action": "Reconcile",
                    "regarding": regarding,
                    "reportingController": MANAGER,
                    "reportingInstance": self._instance,
                },
            )
        except ObjectExistsError:
            with contextlib.suppress(ObjectNotFoundError, ObjectExistsError):
                found = self._rest.get(f"{events}/{name}")
                count = 1 + int((found.get("series") or {}).get("count", 1))
                self._rest.merge(f"{events}/{name}", {"series": {"count": count, "lastObservedTime": now}})

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Values of a Secret, read anew each time."""
        try:
            found = self._rest.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except ObjectNotFoundError:
            return None
        return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in found.get("data", {}).items()}


def _path(key: Key) -> str:
    return f"{_collection(key)}/{key.name}"


def _collection(key: Key) -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{key.namespace}/{PLURALS[key.kind]}"
