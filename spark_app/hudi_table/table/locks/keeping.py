"""A lock that is held around any work, however long, and renewed meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from hudi_table.errors import HudiError, OutcomeUnknownError, UnavailableError, WriteAbortedError
from hudi_table.table.locks.lease import Held, Lock
from hudi_table.table.store import threads

_RENEWALS = 3
"""Renewals within a lease, which may be shorter than was asked for."""


@contextlib.contextmanager
def kept(lock: Lock, *, patience: float, every: float, tells: bool = True) -> Iterator[Held]:
    """Take the lock within `patience` seconds and renew it `every` so many, at least three times
    within its lease.

    Raises WriteAbortedError at the end if it was lost meanwhile, unless the work asks for that
    itself (`tells`). What was done under it is done then: another may have done something beside
    it.
    """
    held = lock.acquire(patience)
    over = threads.event()
    pool = threads.pool(1, "hudi-lock")
    renewing = pool.submit(_renew_until, over, held, every)
    try:
        yield held
    except BaseException:
        with contextlib.suppress(HudiError):
            _end(over, pool, held)
        raise
    with contextlib.nullcontext() if tells else contextlib.suppress(HudiError):
        lasted = _end(over, pool, held)
        renewing.result()
        if not lasted:
            raise WriteAbortedError(
                "the lock was lost before its work ended: its lease is over, or another has deleted or overwritten it; what was done "
                "stands, and another may have done something beside it"
            )


def _end(over: threads.Event, pool: Executor, held: Held) -> bool:
    """Whether it was held to the end."""
    over.set()
    pool.shutdown(wait=True)
    lasted = held.valid()
    held.release()
    return lasted


def _renew_until(over: threads.Event, held: Held, every: float) -> None:
    """Whatever the store does not answer is asked again. Raises WriteAbortedError when the lock is
    lost, and when its lease has ended without an answer."""
    while not over.wait(min(every, max(held.lease_seconds() / _RENEWALS, 0.0))):
        try:
            held.renew()
        except (UnavailableError, OutcomeUnknownError) as error:
            if not held.valid():
                raise WriteAbortedError(
                    f"the lease of the lock ended while its store did not answer: {error.message}"
                ) from error
