"""The lock of Apache Hudi's `StorageBasedLockProvider`, of 1.1 and 1.2: an object that is replaced
under conditions.

Who holds it writes until when; others wait until that moment, and half a second more for clocks
that differ, has passed on their own clock. Nobody's clock is trusted beyond that: who holds it goes
by the seconds since its request was sent. Hudi takes the answer to its own repeated request for
another holder's; we read back what was written.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace

from hudi_table.errors import HudiError, ObjectExistsError, ObjectNotFoundError, OutcomeUnknownError, UnavailableError
from hudi_table.model.options.lock_settings import StorageLockSettings
from hudi_table.table.locks.lease import Lease, lost, wait
from hudi_table.table.locks.storage_file import (
    AUDIT_SWITCH,
    LOCK,
    LockFile,
    audit_is_on,
    audit_line,
    audit_path,
    decoded,
)
from hudi_table.table.store.owned.versioned import Version, VersionedObjects
from hudi_table.table.store.ports import Clock

DRIFT_MILLIS = 500
"""By how much clocks may differ, as Hudi's clients have it."""
_RELEASES = 3
"""How often it is tried to give it back, so many seconds apart."""
_PAUSE = 0.1
_WHAT = f"the lock {LOCK!r}"


class StorageLock:
    """The lock of the table whose base the objects are below."""

    def __init__(self, objects: VersionedObjects, clock: Clock, settings: StorageLockSettings, *, pause: float) -> None:
        self._objects = objects
        self._clock = clock
        self._settings = settings
        self._pause = pause

    def acquire(self, patience: float) -> HeldStorageLock:
        """Take it within so many seconds."""
        held = HeldStorageLock(self._objects, self._clock, self._settings.validity)
        wait(held.attempt, self._clock, patience=patience, pause=self._pause, what=_WHAT)
        held.audit_from_here()
        return held


class HeldStorageLock:
    """What one owner has written, and when it sent it."""

    def __init__(self, objects: VersionedObjects, clock: Clock, validity: float) -> None:
        self._objects = objects
        self._clock = clock
        self._validity = round(validity * 1000)
        self._owner = str(uuid.uuid4())
        self._lease = Lease(clock, validity)
        self._sent: dict[bytes, float] = {}
        """What may be there, each with the moment of its sending: one version was surely written,
        others had no reply."""
        self._file = LockFile(True, 0, self._owner)
        self._version: Version | None = None
        self._there = b""
        """What was read last."""
        self._audit: bytes | None = None
        self._begun = 0

    def attempt(self) -> HeldStorageLock | str:
        """The lock if it is free now, else who has it."""
        try:
            data, version = self._objects.get(LOCK)
        except ObjectNotFoundError:
            return self._taken(None)
        found = decoded(data)
        passed = self._millis() > found.valid_until + DRIFT_MILLIS
        # A request of ours whose reply was lost may have come through since.
        if not (found.expired or passed or data in self._sent):
            return f"{found.owner} has it until {found.valid_until} (milliseconds), unless that is renewed"
        return self._taken(version)

    def valid(self) -> bool:
        """Whether its lease lasts."""
        return self._lease.lasts()

    def lease_seconds(self) -> float:
        """For how long a renewal lasts."""
        return self._lease.seconds

    def renew(self) -> None:
        """Write a later end under the condition that nobody has written since.

        That holds for a lease that has ended, too: nobody had the lock between.
        """
        if self._version is None:
            raise lost(_WHAT, "it was given back, or lost before")
        try:
            self._write(self._version)
        except ObjectExistsError:
            self._find_again()
            self._write_once_more()
        except OutcomeUnknownError:
            if not self._find_again():
                raise UnavailableError(f"{_WHAT} was not renewed; try again", path=LOCK) from None
        self._record("RENEW")

    def release(self) -> None:
        """Mark it as given back; Hudi's clients never delete it either."""
        for _ in range(_RELEASES):
            if self._version is None:
                return
            try:
                self._objects.replace(LOCK, replace(self._file, expired=True).encoded(), self._version)
                self._record("END")
                break
            except ObjectExistsError:
                with contextlib.suppress(HudiError):
                    self._find_again()
            except HudiError:
                self._clock.sleep(_PAUSE)
        self._end()

    def audit_from_here(self) -> None:
        """Begin the audit log if the table asks for one. Its faults are nobody's business, as with
        Hudi."""
        with contextlib.suppress(HudiError):
            if audit_is_on(self._objects.get(AUDIT_SWITCH)[0]):
                self._audit = b""
                self._begun = self._millis()
                self._record("START")

    def _taken(self, version: Version | None) -> HeldStorageLock | str:
        try:
            self._write(version)
        except ObjectExistsError:
            return "another writer was faster"
        except OutcomeUnknownError:
            if not self._came_through():
                return "the store lost the reply to a request for it"
        return self

    def _write(self, version: Version | None) -> None:
        """A new end, later than each that was written, so that no two versions are alike."""
        file = LockFile(False, max(self._millis() + self._validity, self._file.valid_until + 1), self._owner)
        data, sent = file.encoded(), self._lease.sending()
        self._file, self._sent[data] = file, sent
        written = self._objects.create(LOCK, data) if version is None else self._objects.replace(LOCK, data, version)
        self._have(data, written)
        # Requests whose replies were lost had the same condition, which holds no more.
        self._sent = {data: sent}

    def _have(self, data: bytes, version: Version) -> None:
        self._lease.granted(self._sent[data])
        self._version = version

    def _end(self) -> None:
        self._lease.end()
        self._version = None

    def _came_through(self) -> bool:
        """Whether something of ours is there now."""
        try:
            data, version = self._objects.get(LOCK)
        except ObjectNotFoundError:
            return False
        self._there = data
        if data not in self._sent:
            return False
        self._have(data, version)
        return True

    def _find_again(self) -> bool:
        """Whether the last request came through. Raises WriteAbortedError if nothing of ours is
        there."""
        last = self._file.encoded()
        if self._came_through():
            return self._there == last
        self._end()
        raise lost(_WHAT, "another writer has taken it")

    def _write_once_more(self) -> None:
        assert self._version is not None
        try:
            self._write(self._version)
        except ObjectExistsError:
            self._end()
            raise lost(_WHAT, "another writer has just taken it") from None

    def _record(self, state: str) -> None:
        if self._audit is None:
            return
        now = self._millis()
        line = audit_line(self._owner, self._begun, state, now, now + self._validity, held=self.valid())
        self._audit += line
        with contextlib.suppress(HudiError):
            self._objects.put(audit_path(self._begun, self._owner), self._audit)

    def _millis(self) -> int:
        return int(self._clock.now().timestamp() * 1000)
