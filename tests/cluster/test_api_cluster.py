"""Statuses, events and Secrets on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_operator.api.resources import Key
from hudi_operator.kube.rest import Rest
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_table.table.store.clock import SystemClock
from tests.support.api_server import ApiServer
from tests.support.manifests import manifest, spec


def condition(message: str) -> dict[str, Any]:
    return {
        "type": "Ready", "status": "True", "reason": "TableReadable", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }  # fmt: skip


@pytest.fixture
def key(server: ApiServer, namespace: str) -> Key:
    done = server.kubectl("create", "-n", namespace, "-f", "-", given=json.dumps(manifest(**spec())))
    assert done.returncode == 0, done.stderr
    return Key("HudiTable", namespace, "flights")


@pytest.fixture
def cluster(server: ApiServer, key: Key) -> ApiCluster:
    found = ApiCluster(Rest(server.client()), SystemClock(), "pod-1")
    found.load(key.kind, key.namespace)
    return found


def stored(server: ApiServer, key: Key) -> dict[str, Any]:
    return server.get("ht", key.name, "-n", key.namespace)


def test_resources_are_listed_with_what_the_server_filled_in(cluster: ApiCluster, key: Key) -> None:
    assert cluster.keys() == [key]
    document = cluster.get(key)
    assert document is not None
    assert document["kind"] == "HudiTable"
    assert document["spec"]["deletionPolicy"] == "Retain"


def test_a_status_is_applied_once_and_what_it_leaves_out_goes(server: ApiServer, cluster: ApiCluster, key: Key) -> None:
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("one")], "data": {"files": 3}})
    first = stored(server, key)
    assert first["status"]["conditions"] == [condition("one")]
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("one")], "data": {"files": 3}})
    assert stored(server, key)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("two")]})
    assert stored(server, key)["status"]["conditions"] == [condition("two")]
    assert "data" not in stored(server, key)["status"]
    assert stored(server, key)["metadata"]["generation"] == 1


def test_conditions_of_another_writer_stay(server: ApiServer, cluster: ApiCluster, key: Key) -> None:
    theirs = {**condition("by hand"), "type": "Approved"}
    body = {**manifest(), "status": {"conditions": [theirs]}}
    body.pop("spec")
    done = server.kubectl(
        "apply", "-n", key.namespace, "--server-side", "--field-manager=other", "--subresource=status", "-f", "-",
        given=json.dumps(body),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("one")]})
    assert {each["type"] for each in stored(server, key)["status"]["conditions"]} == {"Approved", "Ready"}


def test_nothing_is_written_to_a_resource_that_is_gone_or_made_anew(
    server: ApiServer, cluster: ApiCluster, key: Key
) -> None:
    assert server.kubectl("delete", "ht", key.name, "-n", key.namespace).returncode == 0
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("one")]})
    assert server.kubectl("get", "ht", key.name, "-n", key.namespace).returncode != 0
    server.kubectl("create", "-n", key.namespace, "-f", "-", given=json.dumps(manifest(**spec())))
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("two")]})
    assert "status" not in stored(server, key)


def test_what_others_changed_meanwhile_is_no_hindrance(server: ApiServer, cluster: ApiCluster, key: Key) -> None:
    done = server.kubectl("label", "ht", key.name, "-n", key.namespace, "team=sea")
    assert done.returncode == 0, done.stderr
    cluster.set_status(key, {"observedGeneration": 1, "conditions": [condition("one")]})
    assert stored(server, key)["status"]["conditions"] == [condition("one")]
    assert stored(server, key)["metadata"]["labels"] == {"team": "sea"}


def test_the_same_event_again_is_counted(server: ApiServer, cluster: ApiCluster, key: Key) -> None:
    for _ in range(3):
        cluster.emit(key, Emit(EventType.WARNING, "Unavailable", "the store does not answer"))
    cluster.emit(key, Emit(EventType.NORMAL, "Started", "Ingest/feed: attempt 1"))
    found = server.get("events.events.k8s.io", "-n", key.namespace)["items"]
    assert {(each["reason"], (each.get("series") or {}).get("count", 1)) for each in found} == {
        ("Unavailable", 3),
        ("Started", 1),
    }
    assert "Unavailable" in server.kubectl("describe", "ht", key.name, "-n", key.namespace).stdout


def test_a_secret_is_read_and_a_missing_one_is_none(server: ApiServer, cluster: ApiCluster, key: Key) -> None:
    server.kubectl("create", "secret", "generic", "s3", "-n", key.namespace, "--from-literal=AWS_ACCESS_KEY_ID=key-1")
    assert cluster.secret(key.namespace, "s3") == {"AWS_ACCESS_KEY_ID": "key-1"}
    assert cluster.secret(key.namespace, "other") is None
