"""A cluster in a folder: resources with uid, generation, status and events, for the local runtime.

`resources/<kind>.<namespace>.<name>.json` is a resource as an API server would hold it;
`events.jsonl` is what was reported. Secrets come from manifests and the environment and are never
written.
"""

from __future__ import annotations

import fcntl
import json
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from hudi_operator.api.resources import KINDS, Key, key_of, table_of, with_defaults
from hudi_operator.plan.effects import Emit
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.runtime.places import Places
from hudi_table.errors import CorruptTableError, WriteConflictError
from hudi_table.table.store.ports import Clock

EVENTS_BYTES_MAX = 1 << 20


class FolderCluster:
    """The `Cluster` port on a folder. One process at a time works on it: `acquire` says so to the
    others. Its threads may apply and report at once."""

    def __init__(self, folder: Path, clock: Clock, report: Callable[[Key, Emit], None]) -> None:
        self._folder = folder
        self._clock = clock
        self._report = report
        self._secrets: dict[tuple[str, str], Mapping[str, str]] = {}
        self._lock: TextIO | None = None
        self._changes = threading.Lock()

    def acquire(self) -> None:
        """Take the folder for this process until it ends. Raises WriteConflictError if another one
        has it."""
        (self._folder / "resources").mkdir(parents=True, exist_ok=True)
        self._lock = (self._folder / "lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise WriteConflictError(
                f"another hudictl local works on {self._folder}; wait for it, or give --state another folder"
            ) from error

    def release(self) -> None:
        """Let others have the folder."""
        if self._lock is not None:
            self._lock.close()

    def apply(self, document: Mapping[str, Any]) -> Key:
        """Store a manifest: defaults filled in, a new one with a uid, a changed spec as the next
        generation.

        As an API server does it, but that a spec with errors is stored as it is, for the status to
        tell them.
        """
        with self._changes:
            return self._apply(document)

    def _apply(self, document: Mapping[str, Any]) -> Key:
        metadata = document["metadata"]
        key = key_of(document)
        stored = self.get(key)
        spec = with_defaults(key.kind, document.get("spec"))
        kept = ("uid", "generation", "creationTimestamp")
        identity: dict[str, Any] = {
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": rfc3339(self._clock.now()),
        }
        if stored is not None:
            identity = {name: stored["metadata"][name] for name in kept}
            identity["generation"] += stored.get("spec") != spec
        self._write(
            key,
            {
                "apiVersion": document["apiVersion"],
                "kind": document["kind"],
                "metadata": {**metadata, "namespace": key.namespace, **identity},
                "spec": spec,
                **({"status": stored["status"]} if stored is not None and "status" in stored else {}),
            },
        )
        return key

    def add_secrets(self, secrets: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        """Keep Secrets in memory."""
        self._secrets |= secrets

    def keys(self) -> list[Key]:
        """Every stored resource, sorted."""
        found = []
        for path in (self._folder / "resources").glob("*.json"):
            metadata = self._read(path)["metadata"]
            found.append(Key(path.name.partition(".")[0], metadata["namespace"], metadata["name"]))
        return sorted(key for key in found if key.kind in KINDS)

    def about(self, namespace: str, table: str) -> list[Key]:
        """The resources of one table, sorted."""
        return [key for key in self.keys() if table_of(self._read(self._path(key))) == (namespace, table)]

    def sharing(self, key: Key) -> list[Key]:
        """The HudiTables at the place of another, or above or below it."""
        return self._places().sharing(key)

    def followers(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace that take in what changes in another."""
        return self._places().followers(key)

    def upstreams(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace of which one takes in what changes."""
        return self._places().upstreams(key)

    def _places(self) -> Places:
        found = Places()
        for each in self.keys():
            found.add(each, self._read(self._path(each)))
        return found

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The stored document, or None."""
        try:
            return self._read(self._path(key))
        except FileNotFoundError:
            return None

    def set_status(self, key: Key, status: Mapping[str, Any]) -> None:
        """Write the status unless it is the same."""
        with self._changes:
            stored = self.get(key)
            if stored is not None and stored.get("status") != status:
                self._write(key, {**stored, "status": status})

    def hold(self, key: Key, *, held: bool) -> None:
        """Nothing: no resource of a folder is deleted."""

    def may_let_go(self) -> bool:
        """Nothing is held here."""
        return True

    def emit(self, key: Key, event: Emit) -> None:
        """Append to `events.jsonl`, and report to whoever watches. The file starts anew past its
        bound."""
        path = self._folder / "events.jsonl"
        if path.exists() and path.stat().st_size > EVENTS_BYTES_MAX:
            path.replace(path.with_suffix(".old.jsonl"))
        line = {
            "time": rfc3339(self._clock.now()),
            "object": str(key),
            "type": event.type.value,
            "reason": event.reason,
            "message": event.message,
        }
        with path.open("a", encoding="utf-8") as events:
            events.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._report(key, event)

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """A Secret of the manifests."""
        return self._secrets.get((namespace, name))

    def _path(self, key: Key) -> Path:
        return self._folder / "resources" / f"{key.kind}.{key.namespace}.{key.name}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CorruptTableError(f"{path} is damaged: {error}; remove it and apply the manifest again") from error
        if not isinstance(document, dict):
            raise CorruptTableError(f"{path} is no resource; remove it and apply the manifest again")
        return document

    def _write(self, key: Key, document: Mapping[str, Any]) -> None:
        path = self._path(key)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(document, indent=2, ensure_ascii=False), encoding="utf-8")
        part.replace(path)
