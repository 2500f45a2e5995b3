"""The reconcile loop on a real API server: what is asked for is done through Jobs, once, whenever
the operator is killed.

The test plays the kubelet and runs the real job. Every kill is between two calls of the API, before
or after one took effect; a new operator then goes on. Omitted: the watch, leader election.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import KINDS, Key
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.api import open_table
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.version_change import NOTE, VersionChange
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.killed import Killed, KilledRest
from tests.support.manifests import manifest
from tests.support.operator_process import ROWS_A_FILE, FedTable
from tests.support.scale import scale
from tests.support.volumes import POLICIES

SETTINGS = PodSettings("registry.example/hudi-spark@sha256:" + "0" * 64, policies=POLICIES)
LOOKS_MAX = 12
KINDS_OF = ("ht", "tsvc")
POINTS = {"odd": (1, 2), "even": (2, 2)} if scale() > 1 else {"some": (7, 41)}
"""Which calls are tried: all of them, in two parts; of the quick version every forty-first."""


@dataclass
class Lake:
    """A table fed from a folder, perhaps with a service, its operator, and the kubelet."""

    server: ApiServer
    table: FedTable
    rest: KilledRest
    keys: list[Key]
    ran: list[str] = field(default_factory=list)

    def look(self) -> None:
        """One look at each resource by an operator that has just started; one that is killed is
        started anew."""
        try:
            self._operator(self.rest)
        except Killed:
            self._operator(KilledRest(self.server))

    def _operator(self, rest: Rest) -> None:
        cluster = ApiCluster(rest, SystemClock(), "test")
        for kind in KINDS:
            cluster.load(kind, self.table.namespace)
        launcher = ClusterLauncher(rest, SETTINGS, Served(rest, SystemClock()))
        reconciler = Reconciler(cluster, launcher, SystemClock(), RetryPolicy(backoff_first_seconds=0))
        for key in self.keys:
            reconciler.reconcile(key)

    def is_there(self) -> bool:
        return self.server.has("ht", self.table.name, "-n", self.table.namespace)

    def status(self, kind: str = "ht") -> dict[str, Any]:
        name = next(key.name for key in self.keys if (key.kind == "TableService") == (kind == "tsvc"))
        found: dict[str, Any] = self.server.get(kind, name, "-n", self.table.namespace).get("status", {})
        return found

    def settles(self, done: Callable[[Lake], bool]) -> None:
        """Look, and let pods run, until it is done and nothing is at work."""
        for _ in range(LOOKS_MAX):
            self.look()
            if done(self) and not any(run["phase"] == "Running" for key in KINDS_OF for run in self._runs(key)):
                return
            self.run_pods()
        raise AssertionError(f"it does not settle: {[self.status(kind) for kind in KINDS_OF if self._has(kind)]}")

    def _has(self, kind: str) -> bool:
        return any((key.kind == "TableService") == (kind == "tsvc") for key in self.keys)

    def _runs(self, kind: str) -> list[dict[str, Any]]:
        return list(self.status(kind).get("runs", ())) if self._has(kind) else []

    def jobs(self) -> list[dict[str, Any]]:
        names = {key.name for key in self.keys}
        found = self.server.get("jobs", "-n", self.table.namespace)["items"]
        return [job for job in found if job["metadata"]["ownerReferences"][0]["name"] in names]

    def stopped(self) -> None:
        """Wait until the Jobs that were told to end, whose pods never ran, have ended or went with
        their table."""
        kubelet.eventually(lambda: all(map(_has_ended, filter(self._has_deadline, self.jobs()))), "a Job does not end")

    def _has_deadline(self, job: dict[str, Any]) -> bool:
        return job["spec"].get("activeDeadlineSeconds") is not None and job["metadata"]["name"] not in self.ran

    def run_pods(self, ends: Callable[[dict[str, Any], Path], None] | None = None, of: str = "") -> None:
        """Let every pod that has not run do so, of this work alone; with `ends` it only ends, as
        that says."""
        for job in self.jobs():
            name = job["metadata"]["name"]
            if name in self.ran or of not in name:
                continue
            self.ran.append(name)
            pod = kubelet.eventually(lambda name=name: self._pod(name), "the Job makes no pod")  # type: ignore[misc]
            if ends is not None:
                ends(pod, self.table.folder / name)
            else:
                kubelet.run(self.server, pod, self.table.folder / name)
            kubelet.eventually(lambda name=name: _has_ended(self._job(name)), "the Job does not end")  # type: ignore[misc]

    def _pod(self, job: str) -> dict[str, Any] | None:
        labels = "batch.kubernetes.io/job-name"
        found = [
            p for p in kubelet.pods(self.server, self.table.namespace) if p["metadata"]["labels"].get(labels) == job
        ]
        assert len(found) <= 1, "two drivers for one attempt"
        return found[0] if found else None

    def _job(self, name: str) -> dict[str, Any]:
        return self.server.get("job", name, "-n", self.table.namespace)

    def is_right(self, records: int, *phases: str) -> None:
        """The table has so many rows and says so; its own attempts, newest first, have ended so,
        and there were no others."""
        status = self.status()
        conditions = _conditions(self)
        assert conditions["Ready"] == ("True", "TableReadable"), conditions
        assert status["data"]["records"] == records
        assert tuple(run["phase"] for run in status.get("runs", ())) == phases
        assert [run["attempt"] for run in status.get("runs", ())] == list(range(len(phases), 0, -1))
        assert open_table(str(self.table.lake)).scan().count() == records


def has_records(number: int) -> Callable[[Lake], bool]:
    return lambda lake: (lake.status().get("data") or {}).get("records") == number


def fed(lake: Lake) -> None:
    """Two files, one after the other, become rows."""
    for number in (1, 2):
        lake.table.lands(number)
        lake.settles(has_records(number * ROWS_A_FILE))
    lake.is_right(2 * ROWS_A_FILE, "Succeeded", "Succeeded")
    assert len(lake.jobs()) == 2


def lost(lake: Lake) -> None:
    """The first job dies before it has written anything, the second one after its commit, without a
    word."""

    def dies_early(pod: dict[str, Any], folder: Path) -> None:
        del folder
        kubelet.end(lake.server, pod, 137, "", "OOMKilled")

    def dies_late(pod: dict[str, Any], folder: Path) -> None:
        kubelet.executed(pod, folder)
        kubelet.end(lake.server, pod, 137, "", "OOMKilled")

    lake.table.lands(1)
    for ends in (dies_early, dies_late):
        lake.look()
        lake.look()
        lake.run_pods(ends)
    lake.settles(has_records(ROWS_A_FILE))
    lake.is_right(ROWS_A_FILE, "Succeeded", "Failed")
    assert len(lake.jobs()) == 2


def cleaned(lake: Lake) -> None:
    """A service plans, waits for its approval, and does exactly what was approved."""
    written = {
        "type": "Cleaning",
        "mode": "Plan",
        "tableRef": {"name": lake.table.name},
        "cleaning": {"keepFileVersions": 1},
    }
    service = Key("TableService", lake.table.namespace, f"{lake.table.name}-clean")
    lake.table.lands(1)
    lake.settles(has_records(ROWS_A_FILE))
    lake.table.lands(2)
    lake.settles(has_records(2 * ROWS_A_FILE))
    metadata = {"name": service.name, "namespace": service.namespace}
    lake.server.apply({**manifest(service.name, "TableService", **written), "metadata": metadata})
    lake.keys.append(service)
    lake.settles(lambda lake: "plan" in lake.status("tsvc"))
    digest = lake.status("tsvc")["plan"]["digest"]
    lake.server.apply({**manifest(service.name, "TableService", **written, approve=digest), "metadata": metadata})
    files = len(list(lake.table.lake.glob("*.parquet")))
    lake.settles(lambda lake: len(lake.status("tsvc")["runs"]) > 1)
    assert [run["phase"] for run in lake.status("tsvc")["runs"]] == ["Succeeded", "Succeeded"]
    assert len(list(lake.table.lake.glob("*.parquet"))) < files
    lake.is_right(2 * ROWS_A_FILE, "Succeeded", "Succeeded")
    assert len(lake.jobs()) == 4


def upgraded(lake: Lake) -> None:
    """A table gets another version by an approved plan; the first job dies half-way, and until the
    second has ended no ingest is started. Then back."""
    service = Key("TableService", lake.table.namespace, f"{lake.table.name}-version")

    def wants(to: int, **more: Any) -> None:
        asked = {"type": "Upgrade", "mode": "Plan", "upgrade": {"to": to}, "tableRef": {"name": lake.table.name}}
        metadata = {"name": service.name, "namespace": service.namespace}
        lake.server.apply({**manifest(service.name, "TableService", **asked, **more), "metadata": metadata})

    def dies_half_way(pod: dict[str, Any], folder: Path) -> None:
        del folder
        (lake.table.lake / NOTE).parent.mkdir()
        (lake.table.lake / NOTE).write_bytes(VersionChange(9, 6, f"{digest}/first").to_json())
        lake.table.lands(2)
        kubelet.end(lake.server, pod, 137, "", "OOMKilled")

    lake.table.lands(1)
    lake.settles(has_records(ROWS_A_FILE))
    wants(6)
    lake.keys.append(service)
    lake.settles(lambda lake: "plan" in lake.status("tsvc"))
    digest = lake.status("tsvc")["plan"]["digest"]
    wants(6, approve=digest)
    lake.look()
    lake.look()
    lake.run_pods(dies_half_way, of="version")
    lake.look()
    assert _conditions(lake)["Upgrading"][0] == "True"
    assert len(lake.status()["runs"]) == 1, "the file waits"
    lake.settles(has_records(2 * ROWS_A_FILE))
    assert [run["phase"] for run in lake.status("tsvc")["runs"]] == ["Succeeded", "Failed", "Succeeded"]
    assert lake.status()["tableVersion"] == 6
    wants(9)
    lake.settles(lambda lake: "plan" in lake.status("tsvc"))
    wants(9, approve=lake.status("tsvc")["plan"]["digest"])
    lake.settles(lambda lake: lake.status().get("tableVersion") == 9 and "Upgrading" not in _conditions(lake))
    lake.is_right(2 * ROWS_A_FILE, "Succeeded", "Succeeded")


def _conditions(lake: Lake) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in lake.status()["conditions"]}


def _has_ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def purged(lake: Lake) -> None:
    """A table is deleted with its files, while its job is at work; other tables keep theirs."""
    lake.table.create(deletionPolicy="Purge")
    lake.table.lands(1)
    lake.settles(has_records(ROWS_A_FILE))
    lake.table.lands(2)
    lake.look()
    done = lake.server.kubectl("delete", "ht", lake.table.name, "-n", lake.table.namespace, "--wait=false")
    assert done.returncode == 0, done.stderr
    for _ in range(LOOKS_MAX):
        if not lake.is_there():
            break
        lake.look()
        lake.stopped()
        lake.run_pods(of="purge")
    assert not lake.is_there(), "the table is not let go"
    assert not [path for path in lake.table.lake.rglob("*") if path.is_file()]
    assert sorted(path.name for path in lake.table.landing.iterdir()) == ["1.parquet", "2.parquet"]


LIVES = {life.__name__: life for life in (fed, lost, cleaned, purged, upgraded)}
KILLED_IN = LIVES if scale() > 1 else [name for name in LIVES if name != upgraded.__name__]
"""The longest of them is lived through once in the quick version."""


def lived(life: Callable[[Lake], None], server: ApiServer, namespace: str, folder: Path, rest: KilledRest) -> None:
    name = f"t{rest.at}{'a' if rest.after else 'b'}"
    table = FedTable(server, namespace, name, folder / name)
    table.create()
    life(Lake(server, table, rest, [Key("HudiTable", namespace, name)]))


@pytest.mark.parametrize("life", LIVES)
def test_jobs_do_what_is_asked_for(life: str, server: ApiServer, namespace: str, tmp_path: Path) -> None:
    lived(LIVES[life], server, namespace, tmp_path, KilledRest(server))


@pytest.mark.thinned("values")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("points_tried", POINTS)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("life", KILLED_IN)
def test_an_operator_that_is_killed_anywhere_starts_nothing_twice_and_loses_nothing(
    life: str,
    moment: str,
    points_tried: str,
    server: ApiServer,
    namespace: str,
    tmp_path: Path,
    figure: Callable[[int, str], None],
) -> None:
    points = 0
    for at in itertools.count(*POINTS[points_tried]):
        # One operator lives through all looks until it is killed, so its calls are counted through.
        rest = KilledRest(server, at, after=moment == "after")
        lived(LIVES[life], server, namespace, tmp_path, rest)
        if rest.calls < at:
            break
        points += 1
    figure(points, "kills between calls of the API")
