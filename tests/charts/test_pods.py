"""The pods of attempts on a real API server: a namespace that is `restricted` admits every one of
them, whoever makes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.api_server import ApiServer
from tests.support.attempts import SETTINGS, WAYS, attempt, made, pods
from tests.support.kubelet import eventually


@pytest.fixture
def accounts(server: ApiServer, namespace: str) -> str:
    """The namespace, with the accounts of jobs."""
    for name in (SETTINGS.service_account, SETTINGS.driver_account):
        server.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
    eventually(lambda: server.kubectl("get", "sa", "default", "-n", namespace).returncode == 0, "no account is there")
    return namespace


def tried(server: ApiServer, namespace: str, template: dict[str, Any]) -> tuple[int, str]:
    """What the server says to a pod, which it keeps not."""
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "tried"}}
    status, said = server.call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    return status, json.dumps(said)


@pytest.mark.parametrize("way", WAYS)
def test_a_restricted_namespace_admits_every_pod_of_an_attempt(server: ApiServer, accounts: str, way: str) -> None:
    templates = pods(way, made(way, attempt(way)))
    assert set(templates) == ({"driver"} if way == "one pod" else {"driver", "executor"})
    for role, template in templates.items():
        status, said = tried(server, accounts, template)
        assert status == 201, f"{role}: {said}"


def test_it_refuses_one_that_sees_its_node(server: ApiServer, accounts: str) -> None:
    template = pods("one pod", made("one pod", attempt("one pod")))["driver"]
    template["spec"]["volumes"].append({"name": "node", "hostPath": {"path": "/"}})
    status, said = tried(server, accounts, template)
    assert (status, "restricted volume types" in said) == (403, True), said
