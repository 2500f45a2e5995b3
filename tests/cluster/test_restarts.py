"""An API server that goes and comes back, again and again, while tables are written: all converge,
and no file is taken twice.

It is stopped, or killed, at any moment; etcd stays, and is compacted once, so that no watch can go
on where it was. With it the controller manager is started anew. The test plays the kubelet, whose
pods run on meanwhile, and what starts the operator anew should it end. Omitted: nodes, a lost etcd.
"""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.operator_process import ROWS_A_FILE, FedTable, started
from tests.support.scale import scale, scaled

TABLES = 20 if scale() > 1 else 6
SEEDS = (20, 21, 22) if scale() > 1 else (20,)
CONVERGED_SECONDS_MAX = 30.0
"""From the return of the API server until each table has the rows of all files, and says so."""
FED_AT_ONCE = 4
AWAY = (AssertionError, OSError, HTTPException, ValueError)
"""How a call of an API server fails that is going, gone, or coming."""


@dataclass
class Machinery:
    """What a cluster does beside the operator, in threads: pods run, and a Deployment starts its
    pod anew."""

    server: ApiServer
    namespace: str
    folder: Path
    ran: list[str] = field(default_factory=list)
    operators: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going(self) -> Iterator[None]:
        threads = [threading.Thread(target=work) for work in (self._kubelet, self._deployment)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()

    def _kubelet(self) -> None:
        """Run each pod once; its end is reported when there is somebody to report it to."""
        while not self._ending.wait(0.1):
            try:
                waiting = kubelet.waiting(self.server, self.namespace)
            except AWAY:
                continue
            for pod in waiting:
                self._run(pod)

    def _run(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if name not in self.ran:
            self.ran.append(name)
            kubelet.executed(pod, self.folder / name)
        while not self._ending.is_set():
            try:
                kubelet.reported(self.server, pod, self.folder / name)
            except AWAY:
                time.sleep(0.1)
            else:
                return

    def _deployment(self) -> None:
        process = None
        try:
            while not self._ending.wait(0.1):
                if process is None or process.poll() is not None:
                    self.operators += 1
                    # A container that is started anew has the name of its pod again.
                    process = started(
                        self.server, self.namespace, self.folder / "operator.log", "--identity", "operator-0"
                    )
        finally:
            if process is not None:
                process.kill()
                process.wait()


@dataclass
class Lakes:
    """Tables, and how many files each was given."""

    tables: list[FedTable]
    given: Counter[str] = field(default_factory=Counter)

    def feed(self, table: FedTable) -> None:
        self.given[table.name] += 1
        table.lands(self.given[table.name])

    def behind(self, server: ApiServer, namespace: str) -> str:
        """What is not as it should be, or nothing."""
        try:
            found = {item["metadata"]["name"]: item for item in server.get("ht", "-n", namespace)["items"]}
        except AWAY as error:
            return f"the API server does not answer: {error}"
        wrong = []
        for table in self.tables:
            status = found[table.name].get("status", {})
            records = (status.get("data") or {}).get("records", 0)
            at_work = [run["name"] for run in status.get("runs", ()) if run["phase"] == "Running"]
            if records != self.given[table.name] * ROWS_A_FILE or at_work:
                wrong.append(f"{table.name} has {records} rows of {self.given[table.name]} files, at work: {at_work}")
        return "; ".join(wrong)


def converged(lakes: Lakes, server: ApiServer, namespace: str, since: float) -> float:
    """Seconds since `since` when all is as it should be. Raises AssertionError that says what is
    not."""
    while wrong := lakes.behind(server, namespace):
        assert time.monotonic() - since < CONVERGED_SECONDS_MAX, wrong
        time.sleep(0.25)
    return time.monotonic() - since


def compacted(server: ApiServer) -> None:
    """Forget every revision of etcd but the newest: a watch that goes on from an older one is told
    that it is gone."""

    def call(path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = urllib.request.Request(f"{server.etcd_url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=10) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    revision = call("kv/range", {"key": "YQ=="})["header"]["revision"]
    call("kv/compaction", {"revision": revision, "physical": True})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_converge_after_each_return_of_the_api_server(
    seed: int, server: ApiServer, namespace: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    chance = random.Random(seed)
    lakes = Lakes([FedTable(server, namespace, f"t{n}", tmp_path / f"t{n}") for n in range(TABLES)])
    machinery = Machinery(server, namespace, tmp_path)
    restarts = scaled(2)
    seconds = []
    for table in lakes.tables:
        table.create()
        lakes.feed(table)
    with machinery.going():
        converged(lakes, server, namespace, time.monotonic() + CONVERGED_SECONDS_MAX)
        for number in range(restarts):
            fed = chance.sample(lakes.tables, FED_AT_ONCE)
            for table in fed:
                lakes.feed(table)
                table.touch(number)
            # Anywhere in the looks, the starts and the ends of jobs that this brings about.
            time.sleep(chance.uniform(0, 2))
            server.stop(kill=number % 2 == 1)
            if number == restarts // 2:
                compacted(server)
            server.start()
            since = time.monotonic()
            # Where it has lost its own lead it is started anew; else its watches wait for up to a minute before they ask again.
            server.start_controllers()
            seconds.append(converged(lakes, server, namespace, since))
    files = sum(lakes.given.values())
    jobs = server.get("jobs", "-n", namespace)["items"]
    assert len(jobs) <= files, "a file was taken twice"
    # Kubernetes says of its Jobs that a pod may sometimes be started twice, as where their controller is started anew: then the second finds nothing to do.
    assert len(machinery.ran) - len(jobs) <= restarts * FED_AT_ONCE, "pods were started again and again"
    figure(len(machinery.ran) - len(jobs), "pods that the controller of Jobs started twice")
    for table in lakes.tables:
        assert open_table(str(table.lake)).scan().count() == lakes.given[table.name] * ROWS_A_FILE
    figure(restarts, f"restarts of the API server while {TABLES} tables were written")
    figure(round(max(seconds)), "seconds at the most until all had converged")
    figure(machinery.operators - 1, "times that the operator ended and was started anew")
