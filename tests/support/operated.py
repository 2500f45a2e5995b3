"""Manifests that `hudictl local` keeps, those with an ingest from Kafka among them, and what has
become of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import HudiTable, open_table
from hudi_table.errors import HudiError
from hudi_table.table.store.clock import SystemClock
from tests.support.kafka import Broker
from tests.support.manifests import manifest

QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.2, backoff_max_seconds=0.2)


WAIT_SECONDS_MAX = 120.0


class OverError(Exception):
    """The test has seen enough."""


@dataclass
class Kept:
    """A folder with a manifest of a HudiTable `orders`, and its state."""

    folder: Path
    lines: list[str] = field(init=False, default_factory=list)
    over: threading.Event = field(init=False, default_factory=threading.Event)
    runtime: LocalRuntime | None = field(init=False, default=None)

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "orders"

    def apply(self, *documents: dict[str, Any], watch: bool = False) -> Mapping[str, Any]:
        """The HudiTable after `hudictl local`, whose clock ends it once the test has said so."""
        path = self.folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        place = self

        class Clock(SystemClock):
            def sleep(self, seconds: float) -> None:
                if place.over.is_set():
                    raise OverError
                super().sleep(min(seconds, 0.1))

        self.runtime = LocalRuntime([path], self.folder / "state", Clock(), self.lines.append, QUICK, watch=watch)
        try:
            return self.runtime.run()[0]
        except OverError:
            self.over.clear()
            return self.stored()

    def keep(self, life: Callable[[], None], *documents: dict[str, Any]) -> None:
        """Keep manifests while something happens to them."""
        failed: list[BaseException] = []

        def lived() -> None:
            try:
                life()
            except BaseException as error:  # noqa: BLE001 - what fails in a thread is the test's failure
                failed.append(error)
            self.over.set()

        other = threading.Thread(target=lived)
        other.start()
        try:
            self.apply(*documents, watch=True)
        finally:
            other.join()
        if failed:
            raise AssertionError("\n".join(self.lines)) from failed[0]

    def wait_for(self, found: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_SECONDS_MAX
        while not found():
            assert time.monotonic() < until, self.lines
            time.sleep(0.1)

    def change_secret(self, name: str, **values: str) -> None:
        """Of the manifests that are being kept, as somebody does in a cluster."""
        assert self.runtime is not None
        self.runtime.cluster.add_secrets({("default", name): values})

    def stored(self) -> dict[str, Any]:
        path = self.folder / "state" / "resources" / "HudiTable.default.orders.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def stalled(self) -> Mapping[str, Any]:
        """The condition as it is now; nothing where there is none, or no status yet."""
        try:
            return condition(self.stored(), "Stalled")
        except (FileNotFoundError, KeyError):
            return {}

    def attempts(self, ingest: str = "feed") -> list[dict[str, Any]]:
        """The attempts at an ingest, in their order."""
        runs = [json.loads(path.read_text())["run"] for path in (self.folder / "state").glob("attempts/*/run.json")]
        return sorted((run for run in runs if run["work"] == f"Ingest/{ingest}"), key=lambda run: run["started"])

    def runs(self, ingest: str = "feed") -> list[dict[str, Any]]:
        """What the status says of them, newest first."""
        return [run for run in self.stored()["status"]["runs"] if run["work"] == f"Ingest/{ingest}"]

    def table(self) -> HudiTable:
        return open_table(f"file://{self.location}")

    def count(self) -> int:
        try:
            return self.table().scan(columns=["id"]).to_arrow().num_rows
        except HudiError:
            return 0


@dataclass
class Place(Kept):
    """One whose ingest is from Kafka."""

    broker: Broker
    topic: str

    def document(
        self, mode: dict[str, Any] | None = None, of: dict[str, Any] | None = None, **kafka: Any
    ) -> dict[str, Any]:
        source = {"brokers": self.broker.address, "topics": [self.topic], **kafka}
        asked = {"name": "feed", "source": {"type": "Kafka", "format": "json", "kafka": source}, **(mode or {})}
        spec = {
            "location": f"file://{self.location}",
            "recordKey": ["id"],
            "type": "MergeOnRead",
            "index": {"type": "Bucket", "buckets": 2},
            "ingest": [asked],
            **(of or {}),
        }
        return manifest("orders", **spec)


def condition(document: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [c for c in document["status"]["conditions"] if c["type"] == kind]
    return found[0] if found else {}
