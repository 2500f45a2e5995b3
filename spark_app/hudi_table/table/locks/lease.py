"""What every lock promises, and the waiting that they share.

No lock here is a fence: whoever holds one can be stopped for longer than its lease, wake, and send
a request. `Held.valid` says it without a request, by this machine's clock alone, which counts
suspension; `Held.renew` asks the store. What must not happen twice is guarded by exclusive creation
inside the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from hudi_table.errors import UnavailableError, WriteAbortedError
from hudi_table.table.store.ports import Clock

H = TypeVar("H")


class Held(Protocol):
    """A lock that was taken."""

    def valid(self) -> bool:
        """Whether its lease lasts, by this machine's clock: false from the end of the lease on, and
        once it is known to be lost."""
        ...

    def lease_seconds(self) -> float:
        """For how long a renewal lasts, as its server grants it."""
        ...

    def renew(self) -> None:
        """Ask the store whether it is still ours, and lengthen the lease.

        Raises WriteAbortedError if another has it, or may have had it; UnavailableError or
        OutcomeUnknownError if the store does not say, and then `valid` holds as before.
        """
        ...

    def release(self) -> None:
        """Give it back. Who has lost it gives back nothing; who cannot reach the store leaves it to
        the lease."""
        ...


class Lock(Protocol):
    """A lock that some writers of one table agree on."""

    def acquire(self, patience: float) -> Held:
        """Take it within so many seconds. Raises UnavailableError that names the holder."""
        ...


class Lease:
    """The time for which a lock is held: from the sending of the request that was granted."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self._until = float("-inf")

    def sending(self) -> float:
        """The moment, to be given to `granted`."""
        return self._clock.boot_seconds()

    def granted(self, sent: float) -> None:
        """A request that was sent at this moment was granted."""
        self._until = max(self._until, sent + self.seconds)

    def end(self) -> None:
        """It is given back, or lost."""
        self._until = float("-inf")
        self.seconds = float("-inf")

    def lasts(self) -> bool:
        """Whether it lasts."""
        return self._clock.boot_seconds() < self._until


def wait(attempt: Callable[[], H | str], clock: Clock, *, patience: float, pause: float, what: str) -> H:
    """What `attempt` gets as soon as it gets it; a text is why it did not. It is made once at
    least."""

    def attempted() -> H | str:
        try:
            return attempt()
        except UnavailableError as error:
            return error.message

    end = clock.boot_seconds() + patience
    while isinstance(got := attempted(), str):
        left = end - clock.boot_seconds()
        if left <= 0:
            raise UnavailableError(f"{what} was not to be had within {patience:g} seconds: {got}; try again later")
        clock.sleep(min(pause, left))
    return got


def lost(what: str, why: str) -> WriteAbortedError:
    """The error of who finds that its lock is another's."""
    return WriteAbortedError(f"{what} is no longer ours: {why}; nothing was published under it, write again")
