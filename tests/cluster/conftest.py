"""The API server that tests of this folder share, each in a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.api_server import ApiServer, api_server, definitions

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
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    done = server.kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default", "-n", name)
    assert done.returncode == 0, done.stderr
    return name
