"""A namespace that lives: the operator as a process, and a kubelet that runs the job of every pod
that waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import kubelet
from tests.support.api_server import ApiServer


@contextmanager
def pods_run(server: ApiServer, namespace: str, folder: Path) -> Iterator[list[str]]:
    """Pods are run one after the other while the context lasts; their names."""
    done: list[str] = []
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.1):
            for pod in kubelet.waiting(server, namespace):
                name = pod["metadata"]["name"]
                if name not in done:
                    done.append(name)
                    kubelet.run(server, pod, folder / name)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        stopping.set()
        thread.join()
