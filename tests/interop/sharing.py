"""Engines that write to one table at once under a lock that all take, and what they were told of
each row."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table.api import open_table
from hudi_table.errors import WriteConflictError
from tests.interop.model import CITIES, rows
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.zookeeper import running_zookeeper

Write: TypeAlias = Callable[[pa.Table], bool]
"""Tells whether the rows were acknowledged, or refused for a conflict."""
LOCKS = ("lock file", "ZooKeeper")
TYPES = {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}
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


REFUSED = ("resolve conflicts", 'equalsIgnoreCase(String)" because "a" is null')
"""A conflict, and case 54: another of Hudi's writers was replacing the properties as it began."""


class Acknowledged:
    """What one engine writes: rows of new keys from `first` on, and which were acknowledged.
    `places`: the partition of each, by its place among the model's. `both`: the number of a key
    that others write too; each write to its partition is a newer version of it, by `versions`."""

    def __init__(
        self, places: Iterator[int], first: int = 1_000, both: int | None = None, versions: Iterator[int] | None = None
    ) -> None:
        self.keys: set[str] = set()
        self.refused: list[tuple[int, str]] = []
        self.updates: dict[str, int] = {}
        self._places, self._first, self._given = places, first, itertools.count()
        self._both, self._versions = both, versions

    def next(self, write: Write) -> None:
        """One more row; `write` tells whether it was acknowledged, or refused."""
        place = next(self._places)
        data = rows([(self._first + next(self._given)) * len(CITIES) + place], 1)
        (key,) = data["id"].to_pylist()
        version = None
        if self._both is not None and self._versions is not None and place == self._both % len(CITIES):
            version = next(self._versions)
            data = pa.concat_tables([data, rows([self._both], version)])
        if not write(data):
            self.refused.append((place, key))
            return
        self.keys.add(key)
        if version is not None:
            self.updates[key] = version

    def repeat(self, count: int, write: Write) -> None:
        """So many rows."""
        for _ in range(count):
            self.next(write)


def by_ours(base: Path, lock: Mapping[str, str]) -> Write:
    """Writes of ours under this lock."""

    def write(data: pa.Table) -> bool:
        try:
            open_table(base, lock=lock).upsert(data)
        except WriteConflictError:
            return False
        return True

    return write


def by_spark(oracle: HudiOracle, base: Path, kind: str, lock: Mapping[str, str], version: int = 6) -> Write:
    """Writes of Hudi's on Spark under this lock, to a table of this version."""
    told = {"hoodie.datasource.write.table.type": TYPES[kind], **MODE, **lock}
    if version > 6:
        told["hoodie.write.table.version"] = str(version)

    def write(data: pa.Table) -> bool:
        try:
            upsert(oracle, base, data, **told)
        except HudiFailedError as error:
            if not any(known in str(error) for known in REFUSED):
                raise
            return False
        return True

    return write


def overtaken(base: Path, keys: set[str]) -> set[str]:
    """Those of `keys` whose file lies below one of a higher instant that had completed before, so
    that no engine shows it: what a writer of Hudi's that draws its instant, waits and then reads
    what is there can do to itself."""
    completed: dict[str, Any] = {path.stem: path.stat().st_mtime_ns for path in (base / ".hoodie").glob("*.commit")}
    # From version 8 on the names tell when.
    completed |= dict(path.stem.split("_") for path in (base / ".hoodie" / "timeline").glob("*_*.commit"))
    found = set[str]()
    for path in base.rglob("*.parquet"):
        group, _, instant = path.stem.split("_")
        if instant not in completed:
            continue
        above = [other.stem.rpartition("_")[2] for other in path.parent.glob(f"{group}_*.parquet")]
        if any(other > instant and completed.get(other, completed[instant]) < completed[instant] for other in above):
            found |= keys & set(pq.ParquetFile(path).read(columns=["id"])["id"].to_pylist())
    return found
