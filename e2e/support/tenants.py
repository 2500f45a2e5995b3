"""Namespaces of others that the operator watches beside that of the suite, each with a Secret of
its own."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator

from e2e.support import operator
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake

SERVED_SECONDS = 120.0
"""From a file that lies there to the table that holds it, on a busy machine; a lost operator would
take longer."""


def watch(kube: Kube, lake: Lake, *names: str) -> None:
    """Have the namespaces watched, and make those that are not there. They enforce `restricted`."""
    for name in names:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        kube.apply(secret(name, lake.access_key, lake.secret_key))
    operator.install(kube, *names)


def unwatch(kube: Kube, *names: str) -> None:
    """Watch that of the suite alone, then delete these; return once they are gone."""
    operator.install(kube)
    kube.need("delete", "namespace", *names, "--ignore-not-found", "--timeout=3m")


def secret(namespace: str, access_key: str, secret_key: str, name: str = "s3") -> Document:
    """The credentials of a table."""
    data = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key}
    coded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": coded}


@contextlib.contextmanager
def the_operator_goes_on(kube: Kube) -> Iterator[None]:
    """The same pods, not restarted, and ready."""
    before = _operators(kube)
    yield
    eventually(lambda: all(ready for *_, ready in _operators(kube)), "the operator is ready")
    assert _operators(kube) == before


def _operators(kube: Kube) -> set[tuple[str, int, bool]]:
    """Of each: uid, restarts, whether it is ready."""
    found = set()
    for pod in operator.operator_pods(kube):
        if "deletionTimestamp" not in pod["metadata"]:
            status = pod["status"]["containerStatuses"][0]
            found.add((pod["metadata"]["uid"], status["restartCount"], status["ready"]))
    return found
