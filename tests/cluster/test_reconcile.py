"""The reconcile loop on a real API server: files become rows through Jobs, whenever the operator is killed.

The test plays the kubelet and runs the real job. Every kill is between two calls of the API, before or after one took effect;
a new operator then goes on. Omitted: the watch, leader election.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_operator.api.resources import Key
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.api import open_table
from hudi_table.table.clock import SystemClock
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.killed import Killed, KilledRest
from tests.support.manifests import ingest, manifest, spec
from tests.support.scale import scale

SETTINGS = PodSettings("registry.example/hudi-spark@sha256:" + "0" * 64)
LOOKS_MAX = 12
STRIDE = 5
"""The quick version tries every fifth call."""


@dataclass
class Lake:
    """A table with an ingest from a folder, its operator, and the kubelet."""

    server: ApiServer
    folder: Path
    key: Key
    rest: KilledRest
    ran: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, server: ApiServer, namespace: str, folder: Path, rest: KilledRest) -> Lake:
        name = f"t{rest._at}{'a' if rest._after else 'b'}"
        landing = folder / name / "landing"
        landing.mkdir(parents=True)
        document = spec(
            location=f"file://{folder / name / 'lake'}",
            ingest=[ingest(source={"type": "Files", "path": f"file://{landing}/", "format": "parquet"})],
        )
        done = server.kubectl("create", "-n", namespace, "-f", "-", given=json.dumps(manifest(name, **document)))
        assert done.returncode == 0, done.stderr
        return cls(server, folder / name, Key("HudiTable", namespace, name), rest)

    def lands(self, number: int) -> None:
        rows = pa.table({"id": [f"k{number}-{i}" for i in range(5)], "ts": pa.array([number] * 5, pa.int64())})
        pq.write_table(rows, self.folder / "landing" / f"{number}.parquet")

    def look(self) -> None:
        """One look of an operator that has just started; one that is killed is started anew."""
        try:
            self._operator(self.rest)
        except Killed:
            self._operator(KilledRest(self.server))

    def _operator(self, rest: Rest) -> None:
        cluster = ApiCluster(rest, SystemClock(), "test")
        cluster.load(self.key.namespace)
        launcher = ClusterLauncher(rest, SETTINGS, Served(rest, SystemClock()))
        Reconciler(cluster, launcher, SystemClock()).reconcile(self.key)

    def settles(self) -> dict[str, Any]:
        """Look, and let pods run, until nothing is at work; what the resource says then."""
        for _ in range(LOOKS_MAX):
            self.look()
            status: dict[str, Any] = self.server.get("ht", self.key.name, "-n", self.key.namespace).get("status", {})
            if (
                status.get("runs")
                and all(run["phase"] != "Running" for run in status["runs"])
                and not self._pending(status)
            ):
                return status
            self._run_pods()
        raise AssertionError(f"it does not settle: {status}")

    def jobs(self) -> list[dict[str, Any]]:
        found = self.server.get("jobs", "-n", self.key.namespace)["items"]
        return [job for job in found if job["metadata"]["ownerReferences"][0]["name"] == self.key.name]

    def _pending(self, status: dict[str, Any]) -> bool:
        return any(each.get("pendingFiles") for each in status.get("ingest", ()))

    def _run_pods(self) -> None:
        for job in self.jobs():
            name = job["metadata"]["name"]
            if name in self.ran:
                continue
            self.ran.append(name)
            pod = kubelet.eventually(lambda name=name: self._pod(name), "the Job makes no pod")  # type: ignore[misc]
            kubelet.run(self.server, pod, self.folder / name)
            kubelet.eventually(lambda name=name: self._has_ended(name), "the Job does not end")  # type: ignore[misc]

    def _pod(self, job: str) -> dict[str, Any] | None:
        labels = "batch.kubernetes.io/job-name"
        found = [p for p in kubelet.pods(self.server, self.key.namespace) if p["metadata"]["labels"].get(labels) == job]
        assert len(found) <= 1, "two drivers for one attempt"
        return found[0] if found else None

    def _has_ended(self, name: str) -> bool:
        status = self.server.get("job", name, "-n", self.key.namespace).get("status", {})
        return any(
            each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in status.get("conditions", ())
        )


def life(lake: Lake) -> None:
    """Two files, one after the other, become rows; everything is checked."""
    lake.lands(1)
    lake.settles()
    lake.lands(2)
    status = lake.settles()
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions["Ready"] == ("True", "TableReadable"), conditions
    assert status["data"]["records"] == 10
    assert [run["phase"] for run in status["runs"]] == ["Succeeded", "Succeeded"]
    assert [run["attempt"] for run in status["runs"]] == [2, 1]
    assert len(lake.jobs()) == 2
    assert open_table(str(lake.folder / "lake")).scan().count() == 10


def test_files_become_rows_through_jobs(server: ApiServer, namespace: str, tmp_path: Path) -> None:
    life(Lake.of(server, namespace, tmp_path, KilledRest(server)))


@pytest.mark.timeout(1200)
def test_an_operator_that_is_killed_anywhere_starts_nothing_twice_and_loses_nothing(
    server: ApiServer, namespace: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    points = 0
    for after in (False, True):
        for at in itertools.count(1, 1 if scale() > 1 else STRIDE):
            # One operator lives through all looks until it is killed, so its calls are counted through.
            rest = KilledRest(server, at, after=after)
            life(Lake.of(server, namespace, tmp_path, rest))
            if rest.calls < at:
                break
            points += 1
    figure(points, "kills between calls of the API")
