"""The lock that settings name, and how a program holds it around a write of ours."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hudi_table.model.options.lock_settings import (
    DynamoLockSettings,
    FileLockSettings,
    LockSettings,
    StorageLockSettings,
)
from hudi_table.table.locks.dynamodb import DynamoLock, dynamo_client
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.locks.keeping import kept
from hudi_table.table.locks.lease import Held, Lock
from hudi_table.table.locks.storage import StorageLock
from hudi_table.table.locks.zookeeper import ZooKeeperLock
from hudi_table.table.store.owned.versioned import versioned_objects
from hudi_table.table.store.ports import Clock, Storage


def open_lock(settings: LockSettings, storage: Storage, clock: Clock) -> Lock:
    """The lock of the table in `storage`; no request is sent yet."""
    provider = settings.provider
    if isinstance(provider, StorageLockSettings):
        return StorageLock(versioned_objects(storage), clock, provider, pause=settings.pause)
    if isinstance(provider, FileLockSettings):
        return FileSystemLock(clock, provider, pause=settings.pause)
    if isinstance(provider, DynamoLockSettings):
        return DynamoLock(dynamo_client(provider), clock, provider, pause=settings.pause)
    return ZooKeeperLock(clock, provider, pause=settings.pause)


def hold_lock(settings: LockSettings, storage: Storage, clock: Clock) -> AbstractContextManager[Held]:
    """A context in which the lock is held, renewed as the settings say. Raises what `kept`
    raises."""
    return kept(open_lock(settings, storage, clock), patience=settings.patience, every=settings.renewal)
