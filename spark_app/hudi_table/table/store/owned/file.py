"""A file on local disk that one process owns as long as its name means this very file.

It is kept open: who deletes it and makes another of its name has another file, whatever stands in
it. Nothing here maps errors: every function raises OSError.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Self

from hudi_table.table.store.local_files import NewFile, drop_sums, write_all
from hudi_table.table.store.owned.versioned import is_named


class OwnedFile:
    """A new file of a name that nothing had. `close` lets go of it and leaves it there."""

    def __init__(self, full: str, descriptor: int) -> None:
        self._full = full
        self._descriptor = descriptor

    @classmethod
    def create(cls, full: str, data: bytes) -> Self:
        """The file with this content. Raises FileExistsError."""
        file = NewFile(full, fsync=False)
        try:
            write_all(file.descriptor, data)
            file.publish()
            return cls(full, os.dup(file.descriptor))
        finally:
            file.close()

    def holds(self, data: bytes) -> bool:
        """Whether it has its name still, and this content: Hadoop's local file system writes into a
        file that it has just not found."""
        return is_named(self._descriptor, self._full) and os.pread(self._descriptor, len(data) + 1, 0) == data

    def touch(self) -> None:
        """Make it new again; whatever file has the name now, it is this one that gets newer."""
        os.utime(self._descriptor)

    def delete(self) -> None:
        """Delete it, if its name means it."""
        _delete(self._descriptor, self._full)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


def modified(full: str) -> float | None:
    """When the file was written, in seconds of the system's clock; None if there is none."""
    try:
        return os.stat(full).st_mtime
    except FileNotFoundError:
        return None


def delete_if_written(full: str, at: float) -> bool:
    """Delete the file that was written at this moment and no other; whether it was there. Of
    several processes of ours one does."""
    try:
        descriptor = os.open(full, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return os.fstat(descriptor).st_mtime == at and _delete(descriptor, full)
    finally:
        os.close(descriptor)


def _delete(descriptor: int, full: str) -> bool:
    """Between the look and the deletion another engine may put a file of its own there: it takes no
    lock that would keep it from doing so."""
    if not is_named(descriptor, full):
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(full)
    drop_sums(full)
    return True
