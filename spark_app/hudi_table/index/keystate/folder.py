"""A folder on a local disk in which the state of one table outlives its process: files for its user
alone, for one process at a time, written whole or not at all.

The lock goes with the process that holds it. It saves work and decides nothing: what a file holds
is proved by checksums, and names of runs are never used twice, so that two processes at once, as on
a disk of the network, at most make each other begin anew.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hudi_table.index.keystate.runs import SUFFIXES, private

PREFIX: Final = "hudi-key-state-"
UNUSED_SECONDS: Final = 7 * 24 * 3600
"""A state that nobody has used for so long is removed by whoever opens another one beside it."""
_LOCK, _CONTENTS, _PART = "lock", "state", "state.part"


@dataclass(slots=True)
class Folder:
    """See above. `kept`: the names of files that its contents need."""

    path: Path
    lock: int
    kept: frozenset[str] = frozenset()

    @classmethod
    def taken(cls, root: Path, name: str) -> Folder | None:
        """The folder of this name below a root, or None while another process has it. What is there
        unused goes. Raises OSError for a folder that others may write."""
        path = root / f"{PREFIX}{name}"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            raise OSError(errno.EPERM, "is no folder of this user alone", str(path))
        if found.st_mode & 0o077:
            # Who mounts a volume for a group gives the group all rights.
            path.chmod(0o700)
        lock = _locked(path)
        if lock is None:
            return None
        os.utime(lock)
        _remove_unused(root, path, os.fstat(lock).st_mtime)
        return cls(path, lock)

    def contents(self) -> bytes:
        """What was written last, `b""` if nothing was."""
        try:
            return (self.path / _CONTENTS).read_bytes()
        except FileNotFoundError:
            return b""

    def replace(self, contents: bytes, kept: Collection[str]) -> None:
        """Put others there, in one step, which need these files."""
        part = self.path / _PART
        with open(part, "wb", opener=private) as file:
            file.write(contents)
        part.replace(self.path / _CONTENTS)
        self.kept = frozenset(kept)

    def sweep(self) -> None:
        """Remove the files that the contents do not need. A process that has one mapped still sees
        it."""
        for path in self.path.iterdir():
            if path.suffix in SUFFIXES and path.name not in self.kept:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let it go."""
        os.close(self.lock)


def _locked(path: Path) -> int | None:
    """The descriptor that holds the lock, None if another one does or the folder goes just now."""
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except BlockingIOError:
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _remove_unused(root: Path, ours: Path, now: float) -> None:
    """By the clock of the disk, which sets all the times that are compared."""
    for path in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            times = [found.stat().st_mtime for name in (_LOCK, _CONTENTS) if (found := path / name).is_file()]
            if path == ours or path.is_symlink() or now - max(times, default=now) < UNUSED_SECONDS:
                continue
            lock = _locked(path)
            if lock is not None:
                try:
                    shutil.rmtree(path)
                finally:
                    os.close(lock)
