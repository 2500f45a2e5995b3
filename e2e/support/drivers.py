"""Drivers that keep at work: which follows a table's stream, how one is ended, and that no second
one is ever beside it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from e2e.support.kube import Document, Kube, kubectl
from e2e.support.operator import NAMESPACE, OWNER, Resource
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.pods import CONTAINER, DRIVER_CONTAINER

AT_WORK = ("Pending", "Running")
Way = Callable[[Kube, Document], bool]
"""Ends the driver in a pod; whether it could."""


def running(table: Resource, ingest: str) -> Document | None:
    """The pod of the driver whose container runs; None while there is none, or two."""
    found = [
        pod
        for pod in table.pods()
        if is_of(ingest, attempt_of(pod)) and _runs(pod) and "deletionTimestamp" not in pod["metadata"]
    ]
    return found[0] if len(found) == 1 else None


def attempt_of(pod: Document) -> str:
    """The attempt that a driver is."""
    return str(pod["metadata"]["labels"][ATTEMPT])


def is_of(ingest: str, attempt: str) -> bool:
    """Whether an attempt is one at an ingest of that name."""
    return f"-{ingest}-" in attempt


def kill_process(kube: Kube, pod: Document) -> bool:
    """SIGKILL of the driver's process: the child of the first process of its container."""
    (name,) = (c["name"] for c in pod["spec"]["containers"] if c["name"] in (CONTAINER, DRIVER_CONTAINER))
    inside = ("-n", NAMESPACE, "-c", name, "--", "pkill", "-KILL", "-P", "1")
    # Where the container is gone before its answer, the next look tells.
    return kube.run("exec", pod["metadata"]["name"], *inside).returncode == 0


def delete_by_force(kube: Kube, pod: Document) -> bool:
    """Its pod is gone at once for all who ask; its container ends in its own time."""
    told = ("-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false")
    return kube.run("delete", "pod", pod["metadata"]["name"], *told).returncode == 0


def evict(kube: Kube, pod: Document) -> bool:
    """As a node is drained: the driver is asked to end."""
    name = pod["metadata"]["name"]
    asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    return kube.run("create", "--raw", path, "-f", "-", given=json.dumps(asked)).returncode == 0


@dataclass
class Sight:
    """Every change of the pods of an ingest, by its name, of some tables, as the API server tells
    of it: `born` lists the drivers of each table as they came, `together` those that were at work
    beside another one."""

    ingest: str
    born: dict[str, list[str]] = field(default_factory=dict)
    together: dict[str, set[str]] = field(default_factory=dict)
    _at_work: dict[str, set[str]] = field(default_factory=dict)

    def hear(self, event: Document) -> None:
        """One change."""
        pod = event["object"]
        labels, name = pod["metadata"].get("labels", {}), pod["metadata"]["name"]
        owner = labels.get(OWNER)
        if owner is None or not is_of(self.ingest, attempt_of(pod)):
            return
        at_work = self._at_work.setdefault(owner, set())
        if event["type"] == "DELETED" or not _is_at_work(pod):
            at_work.discard(name)
            return
        if name not in self.born.setdefault(owner, []):
            self.born[owner].append(name)
        at_work.add(name)
        self.together.setdefault(owner, set()).update(at_work if len(at_work) > 1 else ())


@contextmanager
def watched(kube: Kube, ingest: str) -> Iterator[Sight]:
    """Hears of every pod of ingests of a name in the suite's namespace until the context ends; ends
    the test if it went deaf before."""
    sight = Sight(ingest)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods?watch=true&timeoutSeconds=7200&labelSelector={OWNER}"
    # Without an end: kubectl's own limit would cut it off.
    command = [kubectl(), f"--kubeconfig={kube.kubeconfig}", "--request-timeout=0", "get", "--raw", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout

        def listen() -> None:
            for line in lines:
                if line.endswith("\n"):  # not what was cut off at the end
                    sight.hear(json.loads(line))

        listener = threading.Thread(target=listen, name="watch", daemon=True)
        listener.start()
        try:
            yield sight
            assert process.poll() is None, "the watch of pods has ended: what came after it was not seen"
        finally:
            process.terminate()
            listener.join()


@dataclass(frozen=True, slots=True)
class End:
    """A driver that was ended: which attempt, how, and when."""

    attempt: str
    way: str
    at: datetime


@dataclass
class Ends:
    """Ends of the drivers of a table's ingest, one after the other, each once another one runs than
    before."""

    kube: Kube
    table: Resource
    ingest: str
    all: list[End] = field(default_factory=list)

    def next_driver(self) -> Document | None:
        """The driver that runs, if it is none of those that were ended."""
        pod = running(self.table, self.ingest)
        return pod if pod is not None and attempt_of(pod) not in {end.attempt for end in self.all} else None

    def end(self, pod: Document, way: Way) -> bool:
        """End it; False if it was gone by itself."""
        at = datetime.now(UTC)
        if not way(self.kube, pod):
            return False
        self.all.append(End(attempt_of(pod), way.__name__, at))
        return True


def _runs(pod: Document) -> bool:
    return pod["status"]["phase"] == "Running" and all("running" in state for state in _states(pod))


def _is_at_work(pod: Document) -> bool:
    """Whether its driver may be at work, or begin. A pod may be called running a moment longer than
    its containers are."""
    over = any("terminated" in state for state in _states(pod))
    return pod["status"].get("phase", "Pending") in AT_WORK and not over


def _states(pod: Document) -> list[Document]:
    return [each.get("state", {}) for each in pod["status"].get("containerStatuses", ())]
