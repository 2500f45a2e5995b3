"""The life of a HudiTableSet beside a table's: it makes HudiTables of topics, changes them, and
removes the one whose topic is gone, so that each right that it needs is used."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from hudi_operator.api.names import API_VERSION, PLURALS
from tests.support import kubelet
from tests.support.kafka import Broker
from tests.support.manifests import manifest
from tests.support.set_manifests import SOURCE, set_spec
from tests.support.table_life import TableLife, eventually

NAME = "sets"


@dataclass
class SetLife:
    """Set `sets` of a table's namespace, and two topics."""

    life: TableLife
    broker: Broker

    def follows_topics(self) -> None:
        """Two topics have tables, which follow the template; one goes with its topic."""
        kept, goes = (self.broker.topic(f"{self.life.namespace}-{name}", 1) for name in ("kept", "goes"))
        self._applies()
        eventually(lambda: self._sizes().keys() == {kept, goes}, "topics have no tables")
        self._applies(files={"targetSize": "60Mi"})
        eventually(lambda: set(self._sizes().values()) == {"60Mi"}, "tables do not follow the template")
        self.broker.delete(goes)
        eventually(self._has_lost(goes), f"{goes} has its table for ever")
        assert kept in self._sizes()

    def ends(self) -> None:
        """It takes its tables with it."""
        done = self.life.server.kubectl("delete", "hts", NAME, "-n", self.life.namespace)
        assert done.returncode == 0, done.stderr
        eventually(lambda: not self._sizes(), "tables stay behind")

    def _has_lost(self, name: str) -> Any:
        def lost() -> bool:
            # A set looks at its topics when it is told of a change, and else each minute.
            self._annotates(f"{time.monotonic():.0f}")
            return name not in self._sizes()

        return lost

    def _applies(self, **changes: Any) -> None:
        source = {**SOURCE, "kafka": {**SOURCE["kafka"], "brokers": self.broker.address}}
        location = f"s3://{self.life.store.bucket}/{self.life.namespace}/sets/{{topic}}"
        # Nobody runs pods for these tables.
        table = {
            **self.life.spec(),
            "location": location,
            "ingest": [{"name": "feed", "source": source}],
            "suspend": True,
        }
        names = ("location", "storage", "recordKey", "ingest", "suspend", "spark")
        wanted = {name: table[name] for name in names} | changes
        selector = {"topicPattern": f"{self.life.namespace}-.*"}
        self.life.applies(
            manifest(NAME, "HudiTableSet", **set_spec(wanted, selector=selector, prune=True, pruneAfter="1s"))
        )

    def _annotates(self, moment: str) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{self.life.namespace}/{PLURALS['HudiTableSet']}/{NAME}"
        self.life.server.done("PATCH", path, {"metadata": {"annotations": {"example/touched": moment}}}, kubelet.MERGE)

    def _sizes(self) -> dict[str, str]:
        """Name → target size of the files of each table of the set."""
        found = self.life.server.get("ht", "-n", self.life.namespace)["items"]
        own = [each for each in found if each["metadata"]["name"].startswith(f"{self.life.namespace}-")]
        return {each["metadata"]["name"]: each["spec"]["files"]["targetSize"] for each in own}
