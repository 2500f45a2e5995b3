"""The API server that the tests of the charts share: it writes an audit log, and has what charts
need but do not bring."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Iterator

import pytest
import yaml

from tests.support.api_server import ROOT, ApiServer, api_server
from tests.support.audit import POLICY, AuditLog
from tests.support.helm import CRDS, NAMESPACE, Helm

_numbers = itertools.count(1)
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def namespace_of(name: str) -> dict[str, object]:
    """A namespace that takes only pods that are `restricted`."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiServer, AuditLog]]:
    folder = tmp_path_factory.mktemp("charts") / "k8s"
    folder.mkdir()
    policy, log = folder / "audit-policy.yaml", AuditLog(folder / "audit.log")
    policy.write_text(yaml.safe_dump(POLICY))
    with api_server(folder, f"--audit-policy-file={policy}", f"--audit-log-path={log.path}") as running:
        theirs = (ROOT / "tests" / "data" / "prometheus").glob("*.yaml.xz")
        running.apply(*(yaml.safe_load(lzma.decompress(path.read_bytes())) for path in theirs))
        running.apply(namespace_of(NAMESPACE))
        yield running, log


@pytest.fixture(scope="session")
def server(audited: tuple[ApiServer, AuditLog]) -> ApiServer:
    """A control plane with the definitions of Prometheus' operator."""
    return audited[0]


@pytest.fixture(scope="session")
def audit(audited: tuple[ApiServer, AuditLog]) -> AuditLog:
    """What the API server was asked for."""
    return audited[1]


@pytest.fixture(scope="session")
def helm(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm, for that server."""
    return Helm(tmp_path_factory.mktemp("helm"), server)


@pytest.fixture(scope="session")
def resources(server: ApiServer, helm: Helm) -> None:
    """Our kinds are served, from their chart."""
    helm.done("install", "hudi-operator-crds", CRDS, "--namespace", NAMESPACE)
    done = server.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd", "--all")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    """A new one, restricted, for tables. They go at the end: their stores are only here during the
    test."""
    name = f"lake-{next(_numbers)}"
    server.apply(namespace_of(name))
    yield name
    server.kubectl("delete", "ht,tsvc", "--all", "-n", name)
