"""The start beside resources that are there: they are listed once, looked at once, and what happens
between the listing and the watch, or while we write, is not missed. The watch is the real one, in
this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hudi_operator import handlers
from hudi_operator.api.resources import Key
from hudi_operator.kube.rest import OBJECTS_PAGE, Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.watch_check import Hearing
from hudi_table.errors import AccessDeniedError, UnavailableError
from hudi_table.table.store.clock import SystemClock
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec
from tests.support.volumes import POLICIES


@pytest.fixture
def launcher(server: ApiServer) -> ClusterLauncher:
    rest = Rest(server.client())
    return ClusterLauncher(rest, PodSettings("none", policies=POLICIES), Served(rest, SystemClock()))


@pytest.fixture
def operator(server: ApiServer, launcher: ClusterLauncher) -> Operator:
    """Without workers: the test takes from its queue."""
    clock = SystemClock()
    cluster = ApiCluster(Rest(server.client()), clock, "test")
    found = Operator(cluster, Reconciler(cluster, launcher, clock), WorkQueue(clock.boot_seconds))
    found.queue.group = found.group
    return found


@pytest.fixture
def hearing(server: ApiServer, namespace: str, operator: Operator, launcher: ClusterLauncher) -> Hearing:
    return Hearing(Rest(server.client()), operator, SystemClock(), [namespace], (launcher,))


def tables(server: ApiServer, namespace: str, *names: str) -> None:
    for name in names:
        document = manifest(name, **spec(location=f"file:///nowhere/{name}", ingest=[]))
        document["metadata"]["namespace"] = namespace
        server.apply(document)


def service(server: ApiServer, namespace: str, name: str, table: str) -> None:
    document = manifest(name, "TableService", tableRef={"name": table}, type="Cleaning", schedule="0 3 * * *")
    document["metadata"]["namespace"] = namespace
    server.apply(document)


def touched(server: ApiServer, namespace: str, name: str) -> None:
    done = server.kubectl("annotate", "ht", name, "-n", namespace, "example/touched=1")
    assert done.returncode == 0, done.stderr


def deleted(server: ApiServer, namespace: str, name: str) -> None:
    done = server.kubectl("delete", "ht", name, "-n", namespace)
    assert done.returncode == 0, done.stderr


def looks(operator: Operator, patience: float = 0.0) -> list[str]:
    """Names of what is due, in order; each is looked at to its end, and well."""
    found = []
    while (key := operator.queue.take(patience)) is not None:
        found.append(key.name)
        operator.queue.done(key, None)
    return found


@contextmanager
def watched(operator: Operator, launcher: ClusterLauncher, server: ApiServer, namespace: str) -> Iterator[None]:
    stop = threading.Event()
    rest = Rest(server.client())
    watches = handlers.Watches(operator, rest, launcher.watchable, [namespace], str(server.kubeconfig))
    thread = threading.Thread(target=watches.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_what_belongs_to_one_table_is_looked_at_one_after_the_other(
    server: ApiServer, namespace: str, operator: Operator
) -> None:
    tables(server, namespace, "a", "b")
    service(server, namespace, "of-b", "b")
    service(server, namespace, "clean-a", "a")
    operator.load([namespace])
    assert looks(operator) == ["a", "clean-a", "b", "of-b"]


def test_what_changes_after_the_listing_is_looked_at_again_and_nothing_else_is(
    server: ApiServer, namespace: str, operator: Operator, launcher: ClusterLauncher
) -> None:
    tables(server, namespace, "same", "changed", "replaced")
    service(server, namespace, "of-same", "same")
    operator.load([namespace])
    assert sorted(looks(operator)) == ["changed", "of-same", "replaced", "same"]
    touched(server, namespace, "changed")
    deleted(server, namespace, "replaced")
    tables(server, namespace, "replaced", "made")
    heard: list[str] = []

    def hears() -> list[str]:
        heard.extend(looks(operator))
        return heard

    with watched(operator, launcher, server, namespace):
        eventually(lambda: {"changed", "made", "replaced"} <= {*hears()}, "a change is not heard of")
        touched(server, namespace, "same")
        eventually(lambda: "same" in hears(), "the watch does not go on")
    before = heard[: heard.index("same")]
    assert sorted(before) == ["changed", "made", "replaced"]
    document = operator.cluster.get(Key("HudiTable", namespace, "changed"))
    assert document is not None
    assert document["metadata"]["annotations"] == {"example/touched": "1"}


@pytest.mark.parametrize("writes", ["a status", "a finalizer"])
@pytest.mark.parametrize("changed", [False, True], ids=["alone", "beside others"])
def test_a_write_of_ours_is_no_news_but_for_what_others_changed_meanwhile(
    server: ApiServer, namespace: str, operator: Operator, writes: str, changed: bool
) -> None:
    tables(server, namespace, "a")
    operator.load([namespace])
    looks(operator)
    if changed:
        touched(server, namespace, "a")
    key = Key("HudiTable", namespace, "a")
    if writes == "a status":
        operator.cluster.set_status(key, {"observedGeneration": 1})
    else:
        operator.cluster.hold(key, held=True)
    there = server.get("ht", "a", "-n", namespace)
    operator.heard(there)
    assert looks(operator) == (["a"] if changed else [])
    assert there.get("status") or there["metadata"].get("finalizers")
    operator.cluster.hold(key, held=False)


def test_what_is_deleted_after_the_listing_is_forgotten_though_no_watch_tells_of_it(
    server: ApiServer, namespace: str, operator: Operator, hearing: Hearing
) -> None:
    tables(server, namespace, "stays", "goes")
    service(server, namespace, "of-goes", "goes")
    operator.load([namespace])
    looks(operator)
    hearing.compare()
    assert looks(operator) == []
    deleted(server, namespace, "goes")
    hearing.compare()
    left = operator.cluster.keys()
    assert [key.name for key in left] == ["stays", "of-goes"]
    assert sorted(looks(operator)) == ["goes", "of-goes"]
    assert hearing.behind_seconds() == 0


def test_one_that_was_made_anew_meanwhile_is_not_forgotten(
    server: ApiServer, namespace: str, operator: Operator
) -> None:
    tables(server, namespace, "flights")
    operator.load([namespace])
    key = Key("HudiTable", namespace, "flights")
    old = operator.cluster.get(key)
    assert old is not None
    deleted(server, namespace, "flights")
    tables(server, namespace, "flights")
    operator.heard({"kind": "HudiTable", **server.get("ht", "flights", "-n", namespace)})
    operator.vanished(key, old)
    found = operator.cluster.get(key)
    assert found is not None
    assert found["metadata"]["uid"] != old["metadata"]["uid"]
    assert looks(operator) == ["flights"]


def test_what_the_watch_brings_late_is_not_taken_for_news(
    server: ApiServer, namespace: str, operator: Operator
) -> None:
    """Its list may be older than what was written since ours."""
    tables(server, namespace, "flights")
    operator.load([namespace])
    looks(operator)
    first = {"kind": "HudiTable", **server.get("ht", "flights", "-n", namespace)}
    key = Key("HudiTable", namespace, "flights")
    operator.cluster.set_status(key, {"observedGeneration": 1, "conditions": []})
    written = operator.cluster.get(key)
    operator.heard(first)
    assert looks(operator) == []
    assert operator.cluster.get(key) == written
    touched(server, namespace, "flights")
    operator.heard({"kind": "HudiTable", **server.get("ht", "flights", "-n", namespace)})
    assert looks(operator) == ["flights"]


def test_more_than_one_page_is_listed(server: ApiServer, namespace: str, operator: Operator) -> None:
    names = [f"t{n}" for n in range(OBJECTS_PAGE + 1)]
    tables(server, namespace, "t0")
    body = manifest("", **spec(location="file:///nowhere/t", ingest=[]))
    for name in names[1:]:
        body["metadata"]["name"] = name
        server.done("POST", f"/apis/{body['apiVersion']}/namespaces/{namespace}/huditables", body)
    operator.load([namespace])
    assert len(looks(operator)) == len(names)


def test_one_that_may_not_list_looks_at_what_it_was_told_of(
    server: ApiServer, namespace: str, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables(server, namespace, "flights")
    load = operator.cluster.load

    def refused(kind: str, where: str) -> None:
        load(kind, where)
        raise AccessDeniedError("not every kind")

    monkeypatch.setattr(operator.cluster, "load", refused)
    assert set(operator.load([namespace])) == {namespace}
    assert looks(operator) == ["flights"]


def test_of_a_resource_that_is_gone_no_attempts_are_remembered(
    server: ApiServer, namespace: str, operator: Operator, hearing: Hearing, launcher: ClusterLauncher
) -> None:
    tables(server, namespace, "stays", "goes")
    operator.load([namespace])
    launcher.know_owners([namespace])
    uids = {name: server.get("ht", name, "-n", namespace)["metadata"]["uid"] for name in ("stays", "goes")}
    for uid in uids.values():
        launcher.heard(uid)
    deleted(server, namespace, "goes")
    assert set(launcher.uids()) == set(uids.values())
    hearing.compare()
    assert set(launcher.uids()) == {uids["stays"]}


def test_what_was_late_when_the_server_stopped_answering_is_no_deafness(
    server: ApiServer, namespace: str, operator: Operator, hearing: Hearing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is always a moment late; who can ask no more does not know whether it came."""

    def refuse(path: str) -> None:
        raise UnavailableError("cut off")

    monkeypatch.setattr("hudi_operator.runtime.watch_check.PAUSE_SECONDS", 0.1)
    tables(server, namespace, "flights")
    operator.load([namespace])
    hearing.compare()
    assert hearing.behind_seconds() == 0
    touched(server, namespace, "flights")
    hearing.compare()
    monkeypatch.setattr(hearing.rest, "metadata", refuse)
    time.sleep(0.5)
    hearing.compare()
    assert 0 < hearing.behind_seconds() < 0.3
