"""The lock of Apache Hudi's `FileSystemBasedLockProvider`, on local disk: the file `lock`.

Hudi's client has three habits that no other client can mend. It does not create the file
exclusively on a local disk: it looks, and opens. It renews nothing, and takes a file for stale
whose age is beyond the setting. And a client that gives up waiting deletes the file as it closes,
whoever's it is. So a holder of ours looks again after a moment and at each renewal whether the file
is its own; two clients of Hudi cannot tell.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from dataclasses import dataclass

from hudi_table.errors import HudiError, InvalidOptionError
from hudi_table.model.json_text import parse_json
from hudi_table.model.options.lock_settings import PREFIX, FileLockSettings
from hudi_table.table.locks.lease import Lease, lost, wait
from hudi_table.table.store.errors import local_error
from hudi_table.table.store.owned.file import OwnedFile, delete_if_written, modified
from hudi_table.table.store.ports import Clock

SETTLING = 0.02
"""Seconds from the creation to the second look: far more than Hudi's client needs between its look
and its opening."""
_FOREVER = float("inf")
_OWNER = "hudi_table"
_READ_MAX = 64 << 10
HOW_TO_FREE = (
    f"it lies there until its holder deletes it, since {PREFIX}filesystem.expire is not set: if the process that made it has ended, "
    "delete the file"
)
"""What to do about the file of a process that was killed."""


def lock_bytes(created: str, thread: str, stack: list[str]) -> bytes:
    """The content as Hudi writes it; it is read by people alone."""
    calls = f"[ {', '.join(map(json.dumps, stack))} ]" if stack else "[ ]"
    return (
        "{\n"
        f'  "lockCreateTime" : {json.dumps(created)},\n'
        f'  "lockThreadName" : {json.dumps(thread)},\n'
        f'  "lockStacksInfo" : {calls}\n'
        "}"
    ).encode()


@dataclass(frozen=True, slots=True)
class LockFound:
    """A lock file that lies there: since when nobody has written it, in seconds, and what it tells
    of who made it ('' for nothing)."""

    path: str
    age: float
    maker: str

    def __str__(self) -> str:
        return f"the file has been there for {self.age:.0f} seconds{f', made {self.maker}' if self.maker else ''}"


def found_lock(folder: str, clock: Clock) -> LockFound | None:
    """The lock file of a folder, if there is one. A holder of ours writes it again each minute;
    Hudi's clients do not. Raises OSError."""
    full = lock_path(folder)
    written = modified(full)
    if written is None:
        return None
    return LockFound(full, clock.now().timestamp() - written, _maker(full))


def lock_path(folder: str) -> str:
    """The lock file of a folder. Raises InvalidOptionError for a folder of a store."""
    return f"{_folder(folder)}/lock"


def _maker(full: str) -> str:
    try:
        with open(full, encoding="utf-8", errors="replace") as file:
            document = parse_json(file.read(_READ_MAX))
        created, thread = str(document["lockCreateTime"]), str(document["lockThreadName"])
        calls = document["lockStacksInfo"] or [""]
        where = f" in {calls[0]}" if thread.startswith(_OWNER) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"at {created} by {thread!r}{where}"


class FileSystemLock:
    """The file `lock` in the folder of the settings."""

    def __init__(self, clock: Clock, settings: FileLockSettings, *, pause: float) -> None:
        self._clock = clock
        self._full = lock_path(settings.folder)
        self._stale = settings.stale_minutes * 60.0
        self._pause = pause

    def acquire(self, patience: float) -> HeldFileLock:
        """Take it within so many seconds."""
        what = f"the lock {self._full}"
        return wait(self._attempt, self._clock, patience=patience, pause=self._pause, what=what)

    def _attempt(self) -> HeldFileLock | str:
        try:
            return self._tried()
        except OSError as error:
            raise _translated(error, self._full) from error

    def _tried(self) -> HeldFileLock | str:
        written = modified(self._full)
        if written is not None:
            age = self._clock.now().timestamp() - written
            if not self._stale or age <= self._stale:
                found = LockFound(self._full, age, _maker(self._full))
                return str(found) if self._stale else f"{found}; {HOW_TO_FREE}"
            if not delete_if_written(self._full, written):
                return "another writer took it, since it was stale"
        created = self._clock.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        data = lock_bytes(
            created, f"{_OWNER} {uuid.uuid4()}", [f"{_OWNER} (process {os.getpid()} on {socket.gethostname()})"]
        )
        lease = Lease(self._clock, self._stale or _FOREVER)
        sent = lease.sending()
        try:
            file = OwnedFile.create(self._full, data)
        except FileExistsError:
            return "another writer was faster"
        lease.granted(sent)
        self._clock.sleep(SETTLING)
        if file.holds(data):
            return HeldFileLock(file, data, lease, self._full)
        file.close()
        return "another writer opened the file as we made it"


class HeldFileLock:
    """The file, held open."""

    def __init__(self, file: OwnedFile, data: bytes, lease: Lease, full: str) -> None:
        self._file: OwnedFile | None = file
        self._data = data
        self._lease = lease
        self._full = full

    def valid(self) -> bool:
        """Whether nobody may take it for stale yet, and nobody has: a client of Hudi that closes
        deletes whatever lies there, and the disk tells that at once."""
        file = self._file
        if file is None or not self._lease.lasts():
            return False
        try:
            return file.holds(self._data)
        except OSError:
            # A renewal has just found that it is another's, and has let go of it.
            return False

    def lease_seconds(self) -> float:
        """For how long a renewal lasts."""
        return self._lease.seconds

    def renew(self) -> None:
        """Make the file new, and look whether it is ours: it was all the while, then."""
        if self._file is None:
            raise lost(f"the lock {self._full}", "it was given back, or lost before")
        sent = self._lease.sending()
        try:
            self._file.touch()
            ours = self._file.holds(self._data)
        except OSError as error:
            raise _translated(error, self._full) from error
        if not ours:
            self._let_go()
            raise lost(f"the lock {self._full}", "another writer has deleted or overwritten it")
        self._lease.granted(sent)

    def release(self) -> None:
        """Delete the file, if it is ours."""
        if self._file is None:
            return
        try:
            if self._file.holds(self._data):
                self._file.delete()
        except OSError as error:
            raise _translated(error, self._full) from error
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._lease.end()


def _folder(given: str) -> str:
    """A folder of this machine, also as Hadoop writes it. Raises InvalidOptionError for one of a
    store, which creates no file exclusively for Hudi's client."""
    scheme, separator, rest = given.partition(":")
    if separator and "/" not in scheme:
        if scheme != "file":
            raise InvalidOptionError(
                f"option {PREFIX + 'filesystem.path'!r}: {given!r} is not on a local disk: on an object store use "
                "StorageBasedLockProvider"
            )
        given = f"/{rest.lstrip('/')}"
    return os.path.abspath(given)


def _translated(error: OSError, full: str) -> HudiError:
    folder, _, name = full.rpartition("/")
    return local_error(error, path=name, base=folder, writes=True)
