"""The operator's reconcile with its couriers on a folder instead of an API server: in this process,
or in one that a test kills.

python -m tests.support.courier_bench STATE MANIFEST
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.api.resources import Key
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.effects import Emit
from hudi_operator.runtime.callbacks import courier
from hudi_operator.runtime.callbacks.pool import CourierPool
from hudi_operator.runtime.local.folder import FolderCluster
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table import create_table
from hudi_table.api import HudiTable
from hudi_table.callbacks.receivers import Allowed
from hudi_table.table.store.clock import SystemClock

SECRET = {"signingKey": "s1gn1ng-k3y-0001", "bearerToken": "b34r3r-t0k3n-0001"}
KEY = Key("HudiTable", "default", "flights")

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Couriers look for commits, and try again, within a moment."""
    for name, value in {"POLL_SECONDS": 0.2, "CONFIRM_SECONDS": 0.1, "BACKOFF_FIRST_SECONDS": 0.1}.items():
        monkeypatch.setattr(courier, name, value)


def table_in(folder: Path) -> HudiTable:
    """The table of the callbacks."""
    return create_table(
        str(folder / "flights"), SCHEMA, record_key="id", ordering_fields="ts", index={"type": "Bucket", "buckets": 1}
    )


@dataclass
class CourierBench:
    """One operator. `news`: tables that a courier wants reconciled."""

    state: Path
    allowed: Sequence[str] = ("127.0.0.1",)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"hook": SECRET})
    threads: int = 4
    events: list[Emit] = field(default_factory=list)
    news: queue.Queue[Key] = field(default_factory=queue.Queue)
    removed: queue.Queue[Key] = field(default_factory=queue.Queue)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        clock = SystemClock()
        self.cluster = FolderCluster(self.state, clock, lambda _, event: self.events.append(event))
        (self.state / "resources").mkdir(parents=True, exist_ok=True)
        self.cluster.add_secrets({("default", name): held for name, held in self.secrets.items()})
        self.pool = CourierPool(self.cluster, clock, Allowed.of(self.allowed), self.news.put, self.threads)
        self.reconciler = Reconciler(self.cluster, LocalLauncher(self.state / "attempts"), clock, couriers=self.pool)
        self.thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> CourierBench:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.stop()
        self.stopped.set()
        self.thread.join()
        self.reconciler.launcher.stop()  # type: ignore[attr-defined] # the local launcher has it

    def apply(self, *documents: Mapping[str, Any]) -> None:
        for document in documents:
            self.news.put(self.cluster.apply(document))

    def remove(self, key: Key = KEY) -> None:
        """Between two reconciles: a folder, unlike an API server, lets a status make the file
        anew."""
        self.removed.put(key)
        self.news.put(key)

    def status(self, key: Key = KEY) -> dict[str, Any]:
        return dict((self.cluster.get(key) or {}).get("status") or {})

    def callback(self, name: str = "hook", key: Key = KEY) -> dict[str, Any]:
        return next((each for each in self.status(key).get("callbacks", ()) if each["name"] == name), {})

    def condition(self, key: Key = KEY) -> tuple[str, str, str]:
        found = next((c for c in self.status(key).get("conditions", ()) if c["type"] == "CallbacksDelivered"), None)
        return (found["status"], found["reason"], found["message"]) if found else ("", "", "")

    def _work(self) -> None:
        while not self.stopped.is_set():
            try:
                key = self.news.get(timeout=0.05)
            except queue.Empty:
                continue
            while not self.removed.empty():
                gone = self.removed.get()
                (self.state / "resources" / f"{gone.kind}.{gone.namespace}.{gone.name}.json").unlink()
            self.reconciler.reconcile(key)


def waits_for(so: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Until something is so."""
    clock = SystemClock()
    ends = clock.boot_seconds() + seconds
    while not so():
        assert clock.boot_seconds() < ends, what
        clock.sleep(0.05)


if __name__ == "__main__":
    with CourierBench(Path(sys.argv[1])) as bench:
        bench.apply(json.loads(Path(sys.argv[2]).read_text()))
        threading.Event().wait()
