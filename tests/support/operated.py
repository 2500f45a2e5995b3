"""A manifest with an ingest from Kafka that `hudictl local` keeps, and what has become of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
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


class OverError(Exception):
    """The test has seen enough."""


@dataclass
class Place:
    """A folder with a manifest, and its state."""

    folder: Path
    broker: Broker
    topic: str
    lines: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "orders"

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

        runtime = LocalRuntime([path], self.folder / "state", Clock(), self.lines.append, QUICK, watch=watch)
        try:
            return runtime.run()[0]
        except OverError:
            self.over.clear()
            return self.stored()

    def stored(self) -> dict[str, Any]:
        path = self.folder / "state" / "resources" / "HudiTable.default.orders.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def table(self) -> HudiTable:
        return open_table(f"file://{self.location}")

    def count(self) -> int:
        try:
            return self.table().scan(columns=["id"]).to_arrow().num_rows
        except HudiError:
            return 0


def condition(document: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [c for c in document["status"]["conditions"] if c["type"] == kind]
    return found[0] if found else {}
