"""The lock that Hudi's writers share, on the simulated store: ours hold it around each decision.

Clocks are hours apart here, so that it excludes nobody for certain. Nothing may depend on it: among
ours the decision chain excludes.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_table.errors import ObjectExistsError
from hudi_table.model.options.lock_settings import LockSettings, StorageLockSettings
from hudi_table.table.locks.shared import SharedLock
from hudi_table.table.locks.storage import StorageLock
from hudi_table.table.store.owned.versioned import Version
from hudi_table.table.timeline.context import TableContext
from tests.simulation.store import SimStorage

SETTINGS = LockSettings(StorageLockSettings(validity=60.0, renewal=10.0), patience=120.0, pause=1.0)


class SimObjects:
    """The objects of a simulated storage with their versions, as locks ask for them."""

    def __init__(self, storage: SimStorage) -> None:
        self._storage = storage

    def get(self, path: str) -> tuple[bytes, Version]:
        store = self._storage.store
        return self._storage.requests.read("get", path, lambda: (store.get(path), self._version(path)))

    def create(self, path: str, data: bytes) -> Version:
        return self._written("put_if_absent", path, data, None)

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        return self._written("replace", path, data, version)

    def put(self, path: str, data: bytes) -> None:
        self._storage.put(path, data)

    def _version(self, path: str) -> Version:
        return self._storage.store.infos[path].etag, None

    def _written(self, method: str, path: str, data: bytes, version: Version | None) -> Version:
        store, written = self._storage.store, list[Version]()

        def change() -> None:
            found = self._version(path) if path in store.infos else None
            if found != version:
                raise ObjectExistsError(f"{path} is not the version that was read", path=path)
            store.put(path, data)
            written.append(self._version(path))

        self._storage.requests.write(method, path, change)
        return written[-1]


def with_sim_lock(ctx: TableContext, storage: SimStorage) -> TableContext:
    """The table under the lock."""
    provider = SETTINGS.provider
    assert isinstance(provider, StorageLockSettings)
    lock = StorageLock(SimObjects(storage), ctx.clock, provider, pause=SETTINGS.pause)
    return replace(ctx, lock=SharedLock(lock, SETTINGS))
