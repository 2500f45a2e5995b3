"""The API server that tests of this folder share, each in a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.support.api_server import ApiServer, api_server, definitions
from tests.support.kubelet import eventually
from tests.support.shell import Shell, path_with_plugin

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A control plane with our definitions, established."""
    with api_server(tmp_path_factory.mktemp("control-plane") / "k8s") as running:
        running.apply(*definitions())
        done = running.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        assert done.returncode == 0, done.stderr
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> str:
    """A new namespace that takes only pods that are `restricted`, with its default account."""
    name = f"lake-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    server.done("POST", "/api/v1/namespaces", body)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: server.call("GET", account)[0] == HTTPStatus.OK, "the namespace gets no account")
    return name


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory, server: ApiServer) -> str:
    """A PATH with kubectl and its plugin."""
    return path_with_plugin(server, tmp_path_factory.mktemp("bin"))


@pytest.fixture
def shell(server: ApiServer, namespace: str, plugin_path: str) -> Shell:
    """A user of `kubectl hudi` in the namespace."""
    return Shell(server, namespace, plugin_path)
