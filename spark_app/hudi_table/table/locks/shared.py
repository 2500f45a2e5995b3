"""The lock of a table as its commits hold it: around what is decided, and once for what is decided
within."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from hudi_table.model.options.lock_settings import LockSettings
from hudi_table.table.locks.keeping import kept
from hudi_table.table.locks.lease import Held, Lock


@dataclass(slots=True)
class SharedLock:
    """A lock that other engines take too, waited for and renewed as the settings say.

    Threads of one process wait for each other as other processes do.
    """

    lock: Lock
    settings: LockSettings

    @contextlib.contextmanager
    def section(self) -> Iterator[None]:
        """What is done inside nobody does beside it, as long as `lasts` says so. A section within
        one of the same thread is part of it, unless that one has lost the lock: then it is taken
        anew.

        Raises UnavailableError if the lock was not to be had. That it was lost is no error here:
        what was decided before stands.
        """
        outer = self._held()
        if outer is not None and outer.valid():
            yield
            return
        with kept(self.lock, patience=self.settings.patience, every=self.settings.renewal, tells=False) as held:
            token = _INSIDE.set((*_INSIDE.get(), (self, held)))
            try:
                yield
            finally:
                _INSIDE.reset(token)

    def is_lost(self) -> bool:
        """Whether this thread is in a section whose lease has ended."""
        held = self._held()
        return held is not None and not held.valid()

    def lasts(self) -> bool:
        """Whether this thread is in a section whose lease lasts."""
        held = self._held()
        return held is not None and held.valid()

    def _held(self) -> Held | None:
        return next((held for lock, held in reversed(_INSIDE.get()) if lock is self), None)


_INSIDE: ContextVar[tuple[tuple[SharedLock, Held], ...]] = ContextVar("locks that this thread holds", default=())
