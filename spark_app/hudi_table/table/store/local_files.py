"""Files on local disk that appear whole, under their name exclusively, and that survive power loss.

A new file is written without a name (`O_TMPFILE`), synced, and hard-linked to its name, which fails
if the name is taken: a crash leaves nothing behind. Where the file system has no such files (NFS),
and to replace a file, a name ending in `STAGING_SUFFIX` is used. Nothing here maps errors: every
function raises OSError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Callable
from typing import TypeVar

from hudi_table.table.store.paths import STAGING_SUFFIX

T = TypeVar("T")

_LINK_ATTEMPTS = 200
"""How often a folder that a concurrent delete took away is made again."""


class NewFile:
    """A file that has no name yet: write to `descriptor`, then `publish`, and `close` in any
    case."""

    def __init__(self, path: str, *, fsync: bool) -> None:
        self._path = path
        self._fsync = fsync
        self.descriptor, self._staging = _open_beside(path, _open_unnamed, fsync=fsync)

    def publish(self, *, replace: bool = False) -> None:
        """Sync the content and give it its name; FileExistsError if that is taken and not to be
        replaced."""
        if self._fsync:
            os.fsync(self.descriptor)
        source = self._staging or f"/proc/self/fd/{self.descriptor}"
        try:
            self._link(source, self._path)
        except FileExistsError:
            if not replace:
                raise
            target = _staging_name(os.path.dirname(self._path))
            self._link(source, target)
            os.replace(target, self._path)

    def close(self) -> None:
        """Let go of the file: without a name it is gone."""
        os.close(self.descriptor)
        if self._staging is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._staging)

    def _link(self, source: str, target: str) -> None:
        for _ in range(_LINK_ATTEMPTS - 1):
            with contextlib.suppress(FileNotFoundError):
                return _link(source, target)
            # A concurrent delete emptied the folder and removed it between its making and this link.
            make_folder(target, fsync=self._fsync)
        return _link(source, target)


def replace_file(path: str, data: bytes, *, fsync: bool) -> None:
    """Create or replace by rename. What Hadoop keeps beside a file goes first."""
    descriptor, staging = _open_beside(path, _open_staging, fsync=fsync)
    try:
        try:
            write_all(descriptor, data)
            if fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        drop_sums(path)
        os.replace(staging, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(staging)
        raise


def drop_sums(path: str) -> None:
    """Delete the check sums that Hadoop has written beside a file: with those of other bytes no
    Java can read it (measured on Hudi 0.15.0 and 1.1.1)."""
    folder, _, name = path.rpartition("/")
    try:
        os.unlink(f"{folder}/.{name}.crc")
    except OSError as error:
        # A name that is too long for it has none.
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise


def delete_file(path: str, *, root: str, fsync: bool) -> None:
    """Delete a file, if it is there, and the folders below `root` that it leaves empty. What Hadoop
    keeps beside it goes first."""
    try:
        drop_sums(path)
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    folder = os.path.dirname(path)
    if fsync:
        sync_folder(folder)
    while len(folder) > len(root):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def is_file(location: str) -> bool:
    """Whether a location is a file of this machine, which holds no table."""
    return os.path.isfile(location)


def make_folder(path: str, *, fsync: bool) -> str:
    """The folder of a file, made with its parents; each new folder's name is synced in its
    parent."""
    folder = os.path.dirname(path)
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        try:
            os.mkdir(one)
        except FileExistsError:
            try:
                there = os.stat(one)
            except FileNotFoundError:
                return make_folder(path, fsync=fsync)  # a concurrent delete took away what another had made
            if not stat.S_ISDIR(there.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, f"{one} is a file") from None
        except FileNotFoundError:
            return make_folder(path, fsync=fsync)  # a concurrent delete took the parent away
        if fsync:
            sync_folder(os.path.dirname(one))
    return os.path.dirname(path)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable; a folder that is gone meanwhile has none."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; one call may take only some."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _staging_name(folder: str) -> str:
    return f"{folder}/{uuid.uuid4().hex}{STAGING_SUFFIX}"


def _open_beside(path: str, opened: Callable[[str], T], *, fsync: bool) -> T:
    """What `opened` makes in the folder of `path`, which is made again as often as a concurrent
    delete takes it away."""
    for _ in range(_LINK_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            return opened(make_folder(path, fsync=fsync))
    return opened(make_folder(path, fsync=fsync))


def _open_staging(folder: str) -> tuple[int, str]:
    """(descriptor, staging name)."""
    staging = _staging_name(folder)
    return os.open(staging, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), staging


def _open_unnamed(folder: str) -> tuple[int, str | None]:
    """(descriptor, staging name or None)."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), None
        except OSError as error:
            # EPERM: ext4 is about to delete the folder. Opening by name waits until that has happened.
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EPERM):
                raise
    return _open_staging(folder)


def _link(source: str, target: str) -> None:
    """Exclusive hard link. Only with a folder descriptor does Python call linkat, which follows
    /proc/self/fd."""
    folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(
            source, os.path.basename(target), dst_dir_fd=folder, follow_symlinks=source.startswith("/proc/self/fd/")
        )
    finally:
        os.close(folder)
