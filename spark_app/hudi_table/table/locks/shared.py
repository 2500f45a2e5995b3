"""The lock of a table as its commits hold it: around what is decided, and once for what is decided within."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from hudi_table.table.locks.keeping import kept
from hudi_table.table.locks.lease import Held, Lock, lost


@dataclass(slots=True)
class SharedLock:
    """A lock that other engines take too: `patience` seconds are waited for it, it is renewed every
    `renewal` seconds."""

    lock: Lock
    patience: float
    renewal: float
    _inside: threading.local = field(default_factory=threading.local, repr=False)

    @contextlib.contextmanager
    def section(self) -> Iterator[Held]:
        """What is done inside nobody does beside it. A section within one of the same thread is
        part of it. Raises UnavailableError if the lock was not to be had, WriteAbortedError at the
        end if it was lost."""
        held: Held | None = getattr(self._inside, "held", None)
        if held is not None:
            yield held
            return
        with kept(self.lock, patience=self.patience, every=self.renewal) as held:
            self._inside.held = held
            try:
                yield held
            finally:
                self._inside.held = None

    def refuse_if_lost(self) -> None:
        """Raises WriteAbortedError if this thread is in no section whose lease lasts."""
        held: Held | None = getattr(self._inside, "held", None)
        if held is None or not held.valid():
            raise lost("the table's lock", "its lease has ended")
