"""Objects that are replaced on condition that nobody else has replaced them.

On an object store the condition goes with the put: the tag that the store gave to what was read, or
its generation. On a local disk the condition is checked under a lock on the file itself
(`flock`), which the system lets go when its holder dies; who waited for the lock of a file that was
replaced meanwhile sees that the name means another file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from typing import Protocol

import obstore

from hudi_table.errors import ObjectExistsError, UnsupportedTableError
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.local_files import NewFile, replace_file, sync_folder, write_all
from hudi_table.table.store.ports import Storage, plain
from hudi_table.table.store.remote import ObjectStorage, Version

__all__ = ["Version", "VersionedObjects", "versioned_objects"]


class VersionedObjects(Protocol):
    """Objects with versions. Errors are those of `Storage`; each write is sent once, and its lost
    reply is OutcomeUnknownError."""

    def get(self, path: str) -> tuple[bytes, Version]:
        """The object and its version. Raises ObjectNotFoundError."""
        ...

    def create(self, path: str, data: bytes) -> Version:
        """Create exclusively. Raises ObjectExistsError."""
        ...

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        """Replace what has this version. Raises ObjectExistsError if it has another, or is gone."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace, whatever is there."""
        ...


def versioned_objects(storage: Storage) -> VersionedObjects:
    """The objects of a storage with their versions. Raises UnsupportedTableError for a storage that
    has none."""
    storage = plain(storage)
    if isinstance(storage, LocalStorage):
        return _LocalObjects(storage)
    if isinstance(storage, ObjectStorage):
        return _RemoteObjects(storage)
    raise UnsupportedTableError(f"{storage.base_path} is a store that replaces nothing on a condition")


class _RemoteObjects:
    """A friend of `ObjectStorage`, by whose clients, pace and errors it asks."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def get(self, path: str) -> tuple[bytes, Version]:
        key, once = self._storage._key(path), self._storage._once

        def read() -> tuple[bytes, Version]:
            result = obstore.get(once, key)
            return bytes(result.bytes()), (result.meta["e_tag"], result.meta.get("version"))

        return self._storage._request(path, read)

    def create(self, path: str, data: bytes) -> Version:
        return self._storage.put_version(path, data, None)

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        return self._storage.put_version(path, data, version)

    def put(self, path: str, data: bytes) -> None:
        self._storage.put(path, data)


class _LocalObjects:
    """A friend of `LocalStorage`. A version is a digest, so what is written must differ each time
    for a version to mean one moment."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage

    def get(self, path: str) -> tuple[bytes, Version]:
        data = self._storage.get(path)
        return data, _digest(data)

    def create(self, path: str, data: bytes) -> Version:
        with self._storage._errors(path, writes=True):
            full = self._storage._writable(path)
            file = NewFile(full, fsync=self._storage._fsync)
            try:
                write_all(file.descriptor, data)
                file.publish()
            finally:
                file.close()
            self._storage._sync_name(full, path)
        return _digest(data)

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        with self._storage._errors(path, writes=True):
            full = self._storage._writable(path)
            with _locked(full) as held:
                if held is None or _digest(held) != version:
                    raise ObjectExistsError(f"{path!r} is not the version that was read", path=path)
                replace_file(full, data, fsync=self._storage._fsync)
            if self._storage._fsync:
                sync_folder(os.path.dirname(full))
        return _digest(data)

    def put(self, path: str, data: bytes) -> None:
        self._storage.put(path, data)


@contextlib.contextmanager
def _locked(full: str) -> Iterator[bytes | None]:
    """What the file holds, which nobody else replaces meanwhile; None if it is gone, or was
    replaced while we waited."""
    try:
        descriptor = os.open(full, os.O_RDWR | os.O_CLOEXEC)  # NFS locks nothing that is open for reading alone
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield os.pread(descriptor, os.fstat(descriptor).st_size, 0) if is_named(descriptor, full) else None
    finally:
        os.close(descriptor)


def is_named(descriptor: int, full: str) -> bool:
    """Whether the name still means the open file."""
    try:
        named = os.stat(full, follow_symlinks=False)
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def _digest(data: bytes) -> Version:
    return hashlib.sha256(data).hexdigest(), None
