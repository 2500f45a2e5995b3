"""The local runtime: manifests from files, state in a folder, jobs as processes, and the very same
reconcile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_operator.api.resources import Key
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.effects import Emit, EventType, RequeueAfter
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.documents import load
from hudi_operator.runtime.local.folder import FolderCluster
from hudi_operator.runtime.local.printing import value_at
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.errors import HudiError
from hudi_table.table.store.ports import Clock

POLL_SECONDS = 0.1
WATCH_SECONDS = 2.0
RUN_RECHECK_SECONDS = 60.0
"""How often a resource is reconciled while a job of it runs; the end of the job is seen at once."""
LOCAL_POLICY = RetryPolicy(attempts_max=3, backoff_first_seconds=1.0, backoff_max_seconds=30.0, denied_max_seconds=60.0)


@dataclass(slots=True)
class LocalRuntime:
    """Runs manifests until nothing is left to do, or for ever with `watch`. `say` gets lines for a
    person."""

    paths: Sequence[Path]
    state: Path
    clock: Clock
    say: Callable[[str], None]
    policy: RetryPolicy = LOCAL_POLICY
    watch: bool = False
    cluster: FolderCluster = field(init=False)
    launcher: LocalLauncher = field(init=False)
    _due: dict[Key, float] = field(default_factory=dict)
    _awaited: dict[Key, list[str]] = field(default_factory=dict)
    _turns: dict[Key, float] = field(default_factory=dict)
    _errors: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = FolderCluster(self.state, self.clock, self._print_event)
        self.launcher = LocalLauncher(self.state / "attempts")

    def run(self) -> list[Mapping[str, Any]]:
        """Reconcile to the end and return the resources of the manifests, with their status.

        Raises InvalidSpecError for files that are no manifests, WriteConflictError if the state
        folder is in use.
        """
        first = load(self.paths)
        self.cluster.acquire()
        try:
            self.cluster.add_secrets(first.secrets)
            keys = [self.cluster.apply(document) for document in first.resources]
            for name in first.skipped:
                self.say(f"left alone: {name}")
            self._work(keys)
            return [document for key in keys if (document := self.cluster.get(key)) is not None]
        finally:
            self.launcher.stop()
            self.cluster.release()

    def _work(self, keys: list[Key]) -> None:
        # Whose manifests these are, and whose environment, is one person.
        reconciler = Reconciler(self.cluster, self.launcher, self.clock, self.policy, environment=os.environ)
        self._due = dict.fromkeys(keys, 0.0)
        while self._due:
            now = self.clock.boot_seconds()
            due = [key for key, moment in self._due.items() if moment <= now]
            # Whoever had the table last comes last, so that an ingest that never rests leaves its services their turn.
            for key in sorted(due, key=lambda key: (self._turns.get(key, 0.0), key)):
                self._reconcile(reconciler, key)
            self._wait(keys)

    def _reconcile(self, reconciler: Reconciler, key: Key) -> None:
        try:
            again = reconciler.reconcile(key)
            self._errors.pop(key, None)
        except HudiError as error:
            # Not the table's fault, for that would be a condition: a launcher or the state folder fails.
            failures = self._errors[key] = self._errors.get(key, 0) + 1
            self.say(f"{key}: {error.name()}: {error}")
            if failures >= self.policy.attempts_max and not self.watch:
                raise
            again = RequeueAfter(self.policy.wait_seconds(failures), error.name())
        wait = self._wait_of(key, again)
        if wait is None:
            self._due.pop(key, None)
        else:
            self._due[key] = self.clock.boot_seconds() + wait

    def _wait_of(self, key: Key, again: RequeueAfter | None) -> float | None:
        """Seconds until a resource is reconciled again; None if nothing is left to do, or only at
        an appointment."""
        awaited = self._running(key)
        if awaited:
            self._awaited[key] = awaited
            return min(RUN_RECHECK_SECONDS, again.seconds if again is not None else RUN_RECHECK_SECONDS)
        if self.watch:
            if again is None:
                return WATCH_SECONDS
            return min(WATCH_SECONDS, again.seconds) if again.appointment else again.seconds
        return again.seconds if again is not None and not again.appointment and not self._is_given_up(key) else None

    def _running(self, key: Key) -> list[str]:
        runs = (self.cluster.get(key) or {}).get("status", {}).get("runs", [])
        return [run["name"] for run in runs if run["phase"] == "Running"]

    def _is_given_up(self, key: Key) -> bool:
        """Whether the plan would go on although it counts as stalled: a person waits, so we
        stop."""
        status = (self.cluster.get(key) or {}).get("status", {})
        return not self.watch and value_at(status, '.conditions[?(@.type=="Stalled")].status') == "True"

    def _wait(self, keys: list[Key]) -> None:
        """Until something is due. Meanwhile the progress of jobs is reported, and the end of one
        makes all resources of its table due, and the tables that follow it."""
        while self._due:
            for key, names in list(self._awaited.items()):
                for line in self.launcher.progress(names):
                    self.say(f"{key.name}: {line}")
                if not any(self.launcher.is_running(name) for name in names):
                    del self._awaited[key]
                    self._turns[key] = self.clock.boot_seconds()
                    table = self._table_of(key)
                    self._due |= {
                        other: 0.0 for other in keys if self._table_of(other) == table or self._follows(other, key)
                    }
            pause = min(self._due.values()) - self.clock.boot_seconds()
            if pause <= 0:
                return
            self.clock.sleep(min(pause, POLL_SECONDS if self._awaited else WATCH_SECONDS))

    def _table_of(self, key: Key) -> tuple[str, str]:
        """(namespace, name) of the HudiTable that a resource is about."""
        if key.kind == "HudiTable":
            return key.namespace, key.name
        return key.namespace, str(value_at(self.cluster.get(key), ".spec.tableRef.name"))

    def _follows(self, key: Key, other: Key) -> bool:
        """Whether a HudiTable takes in what changes in that of another resource."""
        above = value_at(self.cluster.get(Key("HudiTable", *self._table_of(other))), ".spec.location")
        ingests = value_at(self.cluster.get(key), ".spec.ingest") or [] if key.kind == "HudiTable" else []
        return any(value_at(each, ".source.hudi.location") == above for each in ingests)

    def _print_event(self, key: Key, event: Emit) -> None:
        mark = "" if event.type is EventType.NORMAL else "warning: "
        self.say(f"{mark}{key.name}: {event.reason}: {event.message}")
