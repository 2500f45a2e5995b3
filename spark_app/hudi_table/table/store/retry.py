"""Sending again: what may be repeated and when, and how many requests a process has under way at
one store.

A store that is asked too much says so (503 SlowDown, 429). Every such answer halves the number of
requests that may be under way, every answer but it raises that number by a little: additive
increase, multiplicative decrease, as TCP shares a line. So all threads of a process slow down
together, and what waits has not been sent.

What was sent and may have been done is never told as done, nor as not done: once a reply was lost,
only a definite success ends the doubt.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hudi_table.errors import HudiError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.errors import ConflictingCreateError, SlowDownError
from hudi_table.table.store.ports import Storage

T = TypeVar("T")
ATTEMPTS_MAX = 5
AT_ONCE_MAX = 64
"""Requests of one process that are under way at one store, until it asks for fewer."""
_WAIT_SECONDS_MAX = 60.0
"""After that a request is sent although others are under way: to wait longer would be worse than to
be refused."""
_CONFLICTS_MAX = 4
_SLOWED_MORE = 2
"""Who is told to slow down tries again so many times as often as after a fault, and so many times
more."""
_BACKOFF_SECONDS, _BACKOFF_SECONDS_MAX = 0.1, 2.0
_PARTS_MAX, _PARTS_OF_ONE_MAX = 16, 8
"""Parts of uploads that are under way, together and of one upload."""


@dataclass
class Pace:
    """Of one process and one store. `retries` of a request that failed: one however long it took,
    and others until the repetitions have been under way for `seconds`.

    What waits for its turn takes nothing of them: it has not been sent.
    """

    retries: int = 0
    seconds: float = 10.0
    limit: float = AT_ONCE_MAX
    _under_way: int = 0
    _cuts: int = 0
    _parts: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _clock: SystemClock = field(default_factory=SystemClock, repr=False)

    def send(self, request: Callable[[], T], *, exclusive: bool = False) -> T:
        """The reply, asked again a few times after what may pass. `exclusive`: a creation, whose
        repetition could meet its own object: it is sent again only after the store has said that it
        did nothing.

        Raises what the last request raised, but OutcomeUnknownError if any of them may have been
        done.
        """
        doubt: OutcomeUnknownError | None = None
        left = self.seconds
        repeats = 0
        while True:
            cuts = self._turn()
            sent = self._clock.boot_seconds()
            try:
                return self._sent(request, cuts)
            except HudiError as error:
                if isinstance(error, OutcomeUnknownError):
                    doubt = error
                if repeats:
                    left -= self._clock.boot_seconds() - sent
                if left < 0 or repeats >= self._repeats_of(error, exclusive=exclusive):
                    if doubt is None or error is doubt:
                        raise
                    raise OutcomeUnknownError(f"{doubt.message}; then: {error.message}", path=doubt.path) from error
            self._clock.sleep(_backoff(repeats))
            repeats += 1

    def hand_over(self, request: Callable[[], T]) -> T:
        """What a call returns by which the client sends parts of an upload, in its turn, once: the
        client sends parts again by itself.

        That it returns is no answer of the store, so it does not raise the limit. A complaint that
        it raises halves it.
        """
        return self._sent(request, self._turn(), is_answer=False)

    def _repeats_of(self, error: HudiError, *, exclusive: bool) -> int:
        if isinstance(error, ConflictingCreateError):
            return max(self.retries, _CONFLICTS_MAX)
        if isinstance(error, SlowDownError):
            return repeats_of_slowed(self.retries)
        passes = isinstance(error, UnavailableError | OutcomeUnknownError)
        return self.retries if passes and not exclusive else 0

    def _turn(self) -> int:
        """Wait until another request may be under way. Returns how often the limit has been cut."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way < self.limit, _WAIT_SECONDS_MAX)
            self._under_way += 1
            return self._cuts

    def _sent(self, request: Callable[[], T], cuts: int, *, is_answer: bool = True) -> T:
        slowed = False
        try:
            return request()
        except SlowDownError:
            slowed = True
            raise
        finally:
            with self._changed:
                self._answered(cuts, slowed=slowed, is_answer=is_answer)

    def _answered(self, cuts: int, *, slowed: bool, is_answer: bool) -> None:
        """`cuts`: how often the limit had been cut when the request was sent. All that were under
        way then are one complaint."""
        if not slowed and is_answer:
            self.limit = min(self.limit + 1 / self.limit, AT_ONCE_MAX)
        elif slowed and cuts == self._cuts:
            self._cuts += 1
            self.limit = max(1.0, min(self.limit, self._under_way) / 2)
        self._under_way -= 1
        self._changed.notify_all()

    @contextlib.contextmanager
    def upload(self) -> Iterator[int]:
        """How many parts of one upload may be under way: a half of those that are left, one at
        least."""
        with self._changed:
            parts = max(1, min(_PARTS_OF_ONE_MAX, int(self.limit), (_PARTS_MAX - self._parts) // 2))
            self._parts += parts
        try:
            yield parts
        finally:
            with self._changed:
                self._parts -= parts


def repeats_of_slowed(retries: int) -> int:
    """How often a request is sent again that was told to slow down."""
    return retries * _SLOWED_MORE + _SLOWED_MORE if retries else 0


def _backoff(repeats: int) -> float:
    """Seconds, half of them by chance: who failed together does not come back together."""
    whole = min(_BACKOFF_SECONDS * float(2**repeats), _BACKOFF_SECONDS_MAX)
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def until_confirmed(request: Callable[[], T], *, attempts_max: int = ATTEMPTS_MAX) -> T:
    """The reply of an idempotent request, asked again while its outcome is unknown.

    Raises UnavailableError when no attempt got a definite answer.
    """
    last: OutcomeUnknownError | None = None
    for _ in range(attempts_max):
        try:
            return request()
        except OutcomeUnknownError as error:
            last = error
    assert last is not None
    raise UnavailableError(f"the store did not confirm a request in {attempts_max} attempts: {last.message}") from last


@contextlib.contextmanager
def confirmed() -> Iterator[None]:
    """For requests that are not sent again. Raises UnavailableError where the store did not confirm
    one."""
    try:
        yield
    except OutcomeUnknownError as error:
        raise UnavailableError(f"the store did not confirm a request: {error.message}", path=error.path) from error


def put(storage: Storage, path: str, data: bytes) -> None:
    """Put, repeated until confirmed: the same bytes at the same path change nothing."""
    until_confirmed(lambda: storage.put(path, data))


def delete_all(storage: Storage, paths: Sequence[str]) -> None:
    """Delete several objects, repeated until confirmed."""
    if paths:
        until_confirmed(lambda: storage.delete_all(paths))


def delete(storage: Storage, path: str) -> None:
    """Delete, repeated until confirmed."""
    until_confirmed(lambda: storage.delete(path))
