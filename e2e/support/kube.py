"""The cluster as a person with kubectl and a kubeconfig meets it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from e2e.cluster.binaries import path_of

T = TypeVar("T")
WAIT_SECONDS = float(os.environ.get("E2E_WAIT_SECONDS", "300"))
POLL_SECONDS = 0.25
REQUEST = "--request-timeout=3m"
"""Long, since a busy machine is no fault of what is tested."""
Document = dict[str, Any]


def eventually(found: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS) -> T:
    """What `found` gives once it is true. Raises AssertionError that says `what` is missing."""
    limit = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < limit, f"{what}: not after {seconds:.0f} s"
        time.sleep(POLL_SECONDS)
    return value


@dataclass(frozen=True, slots=True)
class Kube:
    """kubectl with one kubeconfig."""

    kubeconfig: Path

    def run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """kubectl; its exit code is the caller's to judge."""
        command = [kubectl(), f"--kubeconfig={self.kubeconfig}", REQUEST, *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    def need(self, *arguments: str, given: str | None = None) -> str:
        """kubectl. Raises AssertionError with what it said."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, *documents: Document) -> None:
        """Apply, as a person does."""
        self.need("apply", "-f", "-", given=yaml.safe_dump_all(documents))

    def apply_file(self, path: Path) -> None:
        """Apply a file as it is."""
        self.need("apply", "-f", str(path))

    def get(self, *arguments: str) -> Document:
        """`kubectl get … -o json`."""
        found: Document = json.loads(self.need("get", *arguments, "-o", "json"))
        return found

    def find(self, *arguments: str) -> Document | None:
        """An object, or None if it is not there or the API server does not answer."""
        done = self.run("get", *arguments, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def items(self, *arguments: str) -> list[Document]:
        """The objects of a listing."""
        return list(self.get(*arguments)["items"])

    def rollout(self, name: str, namespace: str) -> None:
        """Return once a deployment is rolled out."""
        eventually(
            lambda: self.run("rollout", "status", name, "-n", namespace, "--timeout=5s").returncode == 0,
            f"{name} is rolled out",
        )

    @contextlib.contextmanager
    def forwarded(self, target: str, namespace: str, port: int) -> Iterator[int]:
        """A port of this machine that leads to a port in the cluster, whatever the cluster's
        network is, and whoever restarts it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            local = int(free.getsockname()[1])
        command = [
            kubectl(),
            f"--kubeconfig={self.kubeconfig}",
            "port-forward",
            "-n",
            namespace,
            target,
            f"{local}:{port}",
        ]
        stop = threading.Event()

        def keep() -> None:
            while not stop.is_set():
                with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                    while process.poll() is None and not stop.wait(POLL_SECONDS):
                        pass
                    process.terminate()

        keeper = threading.Thread(target=keep, name="port-forward", daemon=True)
        keeper.start()
        try:
            eventually(lambda: _listens(local), f"{target} can be reached")
            yield local
        finally:
            stop.set()
            keeper.join()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def kubectl() -> str:
    """The one that was built for the cluster, else that of this machine."""
    built = path_of("kubectl")
    return str(built) if built.exists() else "kubectl"
