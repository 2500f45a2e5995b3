"""Engines that write to one table at once under a lock that all take, and what they were told of
each row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from tests.interop.model import rows
from tests.support.zookeeper import running_zookeeper

LOCKS = ("lock file", "ZooKeeper")
MODE = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    # A clean of a lazy writer rolls back what has no heartbeat, and short writes of ours have none.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}
"""What a writer of Hudi's is told beside the lock: one that others write beside, and nothing else
but writes."""
_PATIENT = {
    "hoodie.write.lock.wait_time_ms": "60000",
    # A client of the lock file tries once for each of these, and one that gives up deletes the file of whoever is inside.
    "hoodie.write.lock.client.num_retries": "600",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}
_PROVIDERS = "org.apache.hudi.client.transaction.lock"


@contextlib.contextmanager
def locked(lock: str, folder: Path) -> Iterator[dict[str, str]]:
    """The properties of a lock of its own, for engines of both sides."""
    if lock == "lock file":
        (folder / "locks").mkdir()
        yield _PATIENT | {
            "hoodie.write.lock.provider": f"{_PROVIDERS}.FileSystemBasedLockProvider",
            "hoodie.write.lock.filesystem.path": str(folder / "locks"),
            "hoodie.write.lock.filesystem.expire": "0",
        }
        return
    with running_zookeeper(folder / "server") as server:
        yield _PATIENT | {
            "hoodie.write.lock.provider": f"{_PROVIDERS}.ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": server.address,
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "t",
            "hoodie.write.lock.zookeeper.session_timeout_ms": "30000",
        }


@dataclass
class Acknowledged:
    """Rows of one engine, each of a key of its own from `first` on."""

    first: int
    keys: set[str] = field(default_factory=set)
    refused: int = 0

    def next(self, write: Callable[[pa.Table], bool]) -> None:
        """One more row; `write` tells whether it was acknowledged, or refused."""
        data = rows([self.first + len(self.keys) + self.refused], 1)
        if write(data):
            self.keys |= set(data["id"].to_pylist())
        else:
            self.refused += 1
