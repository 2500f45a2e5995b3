"""Probes and metrics of a real operator on a real API server: what a scrape tells, and which fault
turns which probe red.

The gauges of each field have tests of their own (tests/hudi_operator/metrics); here it is what the
watch brings.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from hudi_operator.api.resources import Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.kube.lease import Election
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.metrics import catalog
from hudi_operator.metrics.counters import Counters, new_registry, request_counter
from hudi_operator.metrics.health import Health, Limits
from hudi_operator.metrics.process import ProcessGauges
from hudi_operator.metrics.resources import ResourceGauges
from hudi_operator.metrics.server import CONNECTIONS_MAX, ProbeServer
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.watch_check import Hearing, Watched
from hudi_table.errors import UnavailableError
from hudi_table.table.store.clock import SystemClock
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec
from tests.support.operator_process import operator as operator_process
from tests.support.probes import answered, port_told
from tests.support.tables import TestClock
from tests.support.volumes import POLICIES

START_SECONDS = 120.0
OVERDUE_SECONDS = 0.3
LIMITS = Limits(reconcile=OVERDUE_SECONDS, queue=0.3, behind=0.3, election=1e5, answer=1e5)
"""A test asks for the Lease once, and a busy machine lets it go on late: only a clock that a test
moves passes the limits of the Lease."""


class SlowLauncher(ClusterLauncher):
    """Hangs while it is told to."""

    hangs = False

    def __init__(self, rest: Rest) -> None:
        super().__init__(rest, PodSettings("none", policies=POLICIES), Served(rest, SystemClock()))
        self.let_go = threading.Event()

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        if self.hangs:
            self.let_go.wait(60)
        return super().runs(owner)


@dataclass
class Process:
    """An operator with its probes, without a watch: the test brings it what it hears."""

    health: Health
    launcher: SlowLauncher
    server: ProbeServer
    registry: CollectorRegistry
    stack: ExitStack = field(default_factory=ExitStack)

    def get(self, path: str) -> tuple[int, str]:
        return answered(self.server.server_address[1], path)

    def samples(self) -> dict[str, list[dict[str, str]]]:
        return samples(self.get("/metrics")[1])


def samples(text: str) -> dict[str, list[dict[str, str]]]:
    """Family → labels of its samples, with the value."""
    return {
        family.name: [{**sample.labels, "": str(sample.value)} for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


@pytest.fixture
def process(server: ApiServer, namespace: str) -> Iterator[Process]:
    registry, clock = new_registry(), SystemClock()
    rest = Rest(server.client(), request_counter(registry))
    cluster = ApiCluster(rest, clock, "test")
    meter, launcher, queue = Counters(registry, cluster), SlowLauncher(rest), WorkQueue(clock.boot_seconds)
    operator = Operator(cluster, Reconciler(cluster, launcher, clock, meter=meter), queue, 2, meter=meter)
    queue.group = operator.group
    election = Election(rest, clock, namespace, "hudi-operator", "test")
    health = Health(operator, election, Hearing(rest, operator, clock, [namespace], (launcher,)), clock, LIMITS)
    resources = ResourceGauges(cluster, clock)
    registry.register(resources)
    registry.register(ProcessGauges(health, resources))
    probes = ProbeServer("127.0.0.1", 0, health, registry)
    probes.start()
    yield Process(health, launcher, probes, registry)
    launcher.let_go.set()
    operator.stop(10)
    probes.shutdown()
    probes.server_close()


def leads(process: Process) -> None:
    assert process.health.election.attempt()
    process.health.operator.start()
    process.health.leading = True


def made(server: ApiServer, namespace: str, name: str = "flights") -> Key:
    document = {**manifest(name, **spec(location=f"file:///nowhere/{name}", ingest=[]))}
    server.apply({**document, "metadata": {"name": name, "namespace": namespace}})
    return Key("HudiTable", namespace, name)


def heard(process: Process, server: ApiServer, key: Key, *, deleted: bool = False) -> None:
    document = server.get("ht", key.name, "-n", key.namespace)
    process.health.operator.heard(document, deleted=deleted)


def test_one_that_waits_for_the_lead_is_alive_and_ready_once_the_server_answers(
    server: ApiServer, namespace: str, process: Process
) -> None:
    assert process.get("/healthz")[0] == 200
    code, said = process.get("/readyz")
    assert (code, "[-] lease" in said, "[-] permitted" in said) == (503, True, True)
    other = Election(Rest(server.client()), SystemClock(), namespace, "hudi-operator", "other")
    eventually(other.attempt, "the other one does not get the Lease")

    def is_told() -> bool:
        assert not process.health.election.attempt(), "two lead"
        process.health.hearing.ask()
        return process.health.election.answered_at is not None and process.health.hearing.permitted

    # A busy server may let a call wait too long: whoever waits for the lead asks again.
    eventually(is_told, "the server does not answer")
    code, said = process.get("/readyz")
    assert (code, re.sub(r"\d+ s", "N s", said)) == (
        200,
        "[+] lease: waits for the Lease; the API server answered N s ago\n[+] permitted: the resources may be listed\nok\n",
    )
    assert {"": "0.0"} in process.samples()["hudi_operator_leader"]


def test_one_whose_server_does_not_answer_is_not_ready_but_alive(process: Process) -> None:
    process.health.hearing.ask()
    assert process.health.election.attempt()
    clock = TestClock()
    process.health.clock = clock
    process.health.election.clock = clock
    clock.advance(process.health.clock.boot_seconds() + 1e6)
    process.health.election.attempted_at = clock.boot_seconds()
    assert process.get("/readyz")[0] == 503
    assert process.get("/healthz")[0] == 200


def test_one_that_leads_is_ready_when_it_knows_all_that_was_there(
    server: ApiServer, namespace: str, process: Process
) -> None:
    key = made(server, namespace)
    leads(process)
    process.health.hearing.compare()
    code, said = process.get("/readyz")
    assert (code, "[-] listed" in said) == (503, True)
    heard(process, server, key)
    process.health.hearing.compare()
    assert process.get("/readyz")[0] == 200


def test_a_scrape_parses_and_tells_every_family_of_the_catalog(
    server: ApiServer, namespace: str, process: Process
) -> None:
    key = made(server, namespace)
    leads(process)
    heard(process, server, key)
    eventually(lambda: "status" in server.get("ht", key.name, "-n", namespace), "it is not looked at")
    eventually(lambda: not process.health.operator.workers.reconciles(), "the look does not end")
    found = process.samples()
    assert {each.name.removesuffix("_total") for each in catalog.EVERY} == {
        name for name in found if name.startswith("hudi_")
    }
    ready = {"namespace": namespace, "table": "flights", "condition": "Ready", "": "0.0"}
    assert ready in found["hudi_table_condition"]
    assert {"kind": "HudiTable", "": "1.0"} in found["hudi_operator_resources"]
    assert any(each["verb"] == "patch" and each["code"] == "200" for each in found["hudi_operator_api_requests"])
    assert any(each.get("kind") == "HudiTable" for each in found["hudi_operator_reconcile_seconds"])
    assert "process_resident_memory_bytes" in found


def test_a_scrape_that_names_samples_tells_these_alone(server: ApiServer, namespace: str, process: Process) -> None:
    key = made(server, namespace)
    leads(process)
    heard(process, server, key)
    eventually(lambda: process.samples()["hudi_operator_reconcile_seconds"], "it is not looked at")
    names = "name[]=hudi_operator_queue_depth&name[]=hudi_operator_reconcile_seconds_count"
    code, text = process.get(f"/metrics?{names}")
    found = samples(text)
    assert (code, set(found)) == (200, {"hudi_operator_queue_depth", "hudi_operator_reconcile_seconds"})
    assert [each[""] for each in found["hudi_operator_queue_depth"]] == ["0.0"]
    assert set(samples(process.get("/metrics?name[]=hudi_table_suspended")[1])) == {"hudi_table_suspended"}
    assert process.get("/metrics?name[]=none") == (200, "")


def test_the_series_of_a_table_that_is_deleted_vanish(server: ApiServer, namespace: str, process: Process) -> None:
    keys = [made(server, namespace, name) for name in ("flights", "planes")]
    leads(process)
    for key in keys:
        heard(process, server, key)
    document = server.get("ht", "flights", "-n", namespace)
    assert {each["table"] for each in process.samples()["hudi_table_condition"]} == {"flights", "planes"}
    assert server.kubectl("delete", "ht", "flights", "-n", namespace).returncode == 0
    process.health.operator.heard(document, deleted=True)
    found = process.samples()
    told = {
        each.get("table")
        for name, each_family in found.items()
        if name.startswith("hudi_table")
        for each in each_family
    }
    assert told == {"planes"}
    assert {"kind": "HudiTable", "": "1.0"} in found["hudi_operator_resources"]


def test_a_look_that_hangs_is_told_and_turns_the_liveness_probe_red_only_when_nobody_is_left(
    server: ApiServer,
    namespace: str,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hudi_operator.runtime.workers.STANDING_IN_MAX", 0)
    process.health.operator.workers.overdue_seconds = OVERDUE_SECONDS
    keys = [made(server, namespace, name) for name in ("flights", "planes")]
    leads(process)
    process.launcher.hangs = True
    heard(process, server, keys[0])
    told = f"HudiTable {namespace}/flights is being reconciled for"
    eventually(lambda: "1 of 2 are free" in process.get("/healthz")[1], "the look that hangs is not seen")
    code, said = process.get("/healthz")
    assert (code, told in said) == (200, True), said
    heard(process, server, keys[1])
    eventually(lambda: process.get("/healthz")[0] == 503, "nobody is left, and that is not seen")
    assert "not alive: workers: 0 of 2 are free" in caplog.text
    assert float(process.samples()["hudi_operator_reconcile_oldest_seconds"][0][""]) > OVERDUE_SECONDS
    process.launcher.hangs = False
    process.launcher.let_go.set()
    eventually(lambda: process.get("/healthz")[0] == 200, "it does not recover")


def test_a_queue_that_does_not_move_is_red_and_one_that_is_long_is_not(
    server: ApiServer, namespace: str, process: Process
) -> None:
    key = made(server, namespace)
    leads(process)
    process.health.operator.stop(10)
    process.health.operator.queue.closed = False
    heard(process, server, key)
    eventually(lambda: "[-] queue: 1 due" in process.get("/healthz")[1], "a queue that stands still is not seen")

    def moves() -> bool:
        process.health.operator.workers.last_reconciled = process.health.operator.queue.clock()
        return "[+] queue: 1 due" in process.get("/healthz")[1]

    eventually(moves, "a queue that moves is red")
    assert "[-] workers: 0 of 2 are free or at work" in process.get("/healthz")[1]


def test_a_watch_that_is_deaf_turns_the_liveness_probe_red_and_a_silent_one_does_not(
    server: ApiServer, namespace: str, process: Process
) -> None:
    key = made(server, namespace)
    leads(process)
    process.launcher.hangs = True  # nobody writes a status, whose answer would be heard of
    heard(process, server, key)
    compare = process.health.hearing.compare
    for _ in range(3):
        compare()
        time.sleep(0.2)
    assert "[+] watch" in process.get("/healthz")[1], "silence is no deafness"
    server.kubectl("annotate", "ht", "flights", "-n", namespace, "example/touched=1")
    compare()
    time.sleep(0.5)
    compare()
    assert "[-] watch: has not brought a change for" in process.get("/healthz")[1]
    heard(process, server, key)
    compare()
    assert "[+] watch" in process.get("/healthz")[1]


def test_a_watch_that_is_deaf_is_begun_anew(
    server: ApiServer, namespace: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr("hudi_operator.runtime.watch_check.DEAF_SECONDS", 0.1)
    hearing = process.health.hearing
    hearing.watched = cast("Watched", SimpleNamespace(missing=dict, again=begun.append))
    key = made(server, namespace)
    leads(process)
    heard(process, server, key)
    eventually(lambda: "status" in server.get("ht", key.name, "-n", namespace), "it is not looked at")
    # Nobody brings the status that was written: our own writes tell, too, whether the watch hears.
    hearing.compare()
    time.sleep(0.2)
    hearing.compare()
    assert begun == [namespace]
    heard(process, server, key)
    hearing.compare()
    assert begun == [namespace]


def test_a_server_that_does_not_answer_is_no_deafness(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise UnavailableError("cut off")

    leads(process)
    monkeypatch.setattr(process.health.hearing.rest, "metadata", refuse)
    process.health.hearing.compare()
    assert process.health.hearing.behind_seconds() == 0


def test_whoever_holds_connections_open_cannot_have_them_all_for_long(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_operator.metrics.server.CONNECTION_SECONDS_MAX", 1.0)
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            stack.enter_context(socket.create_connection(("127.0.0.1", process.server.server_address[1])))

        def answers() -> bool:
            try:
                return process.get("/healthz")[0] == 200
            except OSError:
                return False

        assert not answers(), "there is no bound"
        eventually(answers, "idle connections are not cut off")


def test_scrapes_come_one_after_the_other_and_keep_no_probe_waiting(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_operator.metrics.server.SCRAPE_WAIT_SECONDS", 0.1)
    with process.server.scrape:
        assert process.get("/metrics")[0] == 503
        assert process.get("/healthz")[0] == 200
    assert process.get("/metrics")[0] == 200


def test_anything_else_is_not_found_and_nothing_but_get_is_done(process: Process) -> None:
    assert process.get("/debug")[0] == 404
    asked = urllib.request.Request(f"http://127.0.0.1:{process.server.server_address[1]}/metrics", b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="501"):
        urllib.request.urlopen(asked, timeout=10)


@pytest.mark.timeout(180)
def test_of_two_processes_both_are_ready_and_one_tells_of_the_tables(
    server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    made(server, namespace)
    with ExitStack() as stack:
        ports = []
        for name in ("first", "second"):
            stack.enter_context(operator_process(server, namespace, tmp_path / name))
            port = eventually(lambda name=name: port_told(tmp_path / name), "no port is opened", START_SECONDS)  # type: ignore[misc]
            eventually(lambda port=port: answered(port, "/readyz")[0] == 200, f"the {name} is not ready", START_SECONDS)  # type: ignore[misc]
            ports.append(port)
        assert [answered(port, "/healthz")[0] for port in ports] == [200, 200]
        eventually(lambda: "hudi_table_condition" in answered(ports[0], "/metrics")[1], "the table has no series")
        scrapes = [samples(answered(port, "/metrics")[1]) for port in ports]
        assert [scrape["hudi_operator_leader"][0][""] for scrape in scrapes] == ["1.0", "0.0"]
        assert [bool(scrape["hudi_table_condition"]) for scrape in scrapes] == [True, False]
        assert server.kubectl("delete", "ht", "flights", "-n", namespace).returncode == 0
        eventually(
            lambda: not samples(answered(ports[0], "/metrics")[1])["hudi_table_condition"],
            "series of a deleted table stay",
        )
