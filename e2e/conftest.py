"""What the suite shares: a cluster that somebody made, an S3 server and a broker in it, the
operator, the table of the tour."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator

import pytest

from e2e.cluster.places import KUBECONFIG
from e2e.support import operator, public_operators, times
from e2e.support.broker import Broker, running_broker
from e2e.support.kube import Kube
from e2e.support.lake import Lake
from e2e.support.spark_controller import controller
from examples.kubernetes.land import make_buckets


@pytest.fixture(scope="session")
def kube() -> Kube:
    """The cluster of E2E_KUBECONFIG, or that of `make cluster-up`."""
    assert KUBECONFIG.exists(), f"no cluster: {KUBECONFIG} is not there; type make cluster-up"
    found = Kube(KUBECONFIG)
    found.need("get", "--raw", "/readyz")
    return found


@pytest.fixture(scope="session")
def lake(kube: Kube) -> Iterator[Lake]:
    """The S3 server, with credentials that nothing but Secrets may hold."""
    kube.apply_file(operator.MANIFESTS / "namespaces.yaml")
    access, secret = _credentials(kube)
    kube.apply_file(operator.MANIFESTS / "storage.yaml")
    kube.rollout("deployment/s3", "storage")
    with kube.forwarded("service/s3", "storage", 7070) as port:
        yield Lake(f"http://127.0.0.1:{port}", access, secret)


@pytest.fixture(scope="session")
def installed(kube: Kube, lake: Lake) -> None:
    """The operator runs."""
    operator.install(kube)


@pytest.fixture(scope="session")
def broker(kube: Kube, lake: Lake, installed: None) -> Broker:
    """A Kafka broker in the cluster, which is made when a test first needs it; and buckets for what
    comes of its topics."""
    make_buckets(lake.client())
    return running_broker(kube)


@pytest.fixture(scope="module")
def spark_operators(kube: Kube, installed: None) -> Iterator[None]:
    """Who submits SparkApplications: the public Spark operators where their charts can be had;
    elsewhere `e2e.support.spark_controller` submits what they would."""
    if public_operators.installed(kube):
        yield
    else:
        with controller(kube):
            yield


def _credentials(kube: Kube) -> tuple[str, str]:
    """Of the Secret in both namespaces; made once, so that a suite can be repeated on one
    cluster."""
    found = kube.find("secret", "s3", "-n", "storage")
    if found is not None:
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    else:
        data = {
            "AWS_ACCESS_KEY_ID": f"CANARY{secrets.token_hex(7).upper()}",
            "AWS_SECRET_ACCESS_KEY": f"canary-{secrets.token_hex(20)}",
        }
    for namespace in ("storage", operator.NAMESPACE):
        kube.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s3", "namespace": namespace},
                "stringData": data,
            }
        )
    return data["AWS_ACCESS_KEY_ID"], data["AWS_SECRET_ACCESS_KEY"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The time table."""
    for line in times.table():
        terminalreporter.write_line(line)
