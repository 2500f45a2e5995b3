"""Which resource is reconciled next: one worker for a table at a time, the earliest due first,
repeats after errors ever later."""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hudi_operator.api.resources import Key
from hudi_operator.plan.schedule.runs import RetryPolicy

SHARE = 8
JITTER = 0.2
"""Share by which an appointed time is spread, so that resources that came together do not stay
together."""


@dataclass
class WorkQueue:
    """Keys and when they are due, on a clock in seconds. For several threads at once.

    `group` names what a key is about: of the keys of one group, one at a time is worked on. Of one
    namespace no more than `share` are: one whose stores do not answer leaves workers to the others.
    """

    clock: Callable[[], float]
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    group: Callable[[Key], Hashable] = lambda key: key
    share: int = SHARE
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _due: dict[Key, float] = field(default_factory=dict)
    _heap: list[tuple[float, Key]] = field(default_factory=list)
    _taken: dict[Key, Hashable] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    closed: bool = False

    def add(self, key: Key, after: float = 0.0) -> None:
        """Reconcile a resource in so many seconds, or sooner if that was said before. One that is
        being reconciled is so again."""
        with self._changed:
            moment = self.clock() + after
            if moment < self._due.get(key, float("inf")):
                self._due[key] = moment
                heapq.heappush(self._heap, (moment, key))
                self._changed.notify()

    def forget(self, key: Key) -> None:
        """A resource is gone."""
        with self._changed:
            self._due.pop(key, None)
            self._failures.pop(key, None)

    def take(self, patience: float) -> Key | None:
        """The resource that is due first and that nobody works on; None if none is due after so
        many seconds, or once it is closed."""
        with self._changed:
            limit = self.clock() + patience
            while not self.closed:
                moment, key = self._next()
                if key is not None and moment <= self.clock():
                    self._taken[key] = self.group(key)
                    del self._due[key]
                    return key
                wait = min(limit, moment) - self.clock()
                if limit <= self.clock():
                    return None
                self._changed.wait(max(0.0, wait))
            return None

    def done(self, key: Key, again: float | None) -> None:
        """A reconcile has ended well; the next one is in so many seconds, if there is to be one."""
        self._give_back(key)
        with self._changed:
            self._failures.pop(key, None)
        if again is not None:
            self.add(key, again * (1 + JITTER * random.random()))  # noqa: S311 - spreads moments

    def failed(self, key: Key, at_most: float = float("inf")) -> float:
        """A reconcile has raised; the seconds until the next one, which double up to `at_most`."""
        self._give_back(key)
        with self._changed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(self.policy.wait_seconds(failures), at_most)
        self.add(key, wait)
        return wait

    def close(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def waiting(self) -> tuple[int, float]:
        """How many resources are due now, and for how many seconds the first of them has been."""
        with self._changed:
            now = self.clock()
            due = [now - moment for moment in self._due.values() if moment <= now]
            return len(due), max(due, default=0.0)

    def _give_back(self, key: Key) -> None:
        with self._changed:
            self._taken.pop(key, None)
            self._changed.notify()

    def _next(self) -> tuple[float, Key | None]:
        """The earliest key that is free. Entries of the heap that an earlier moment has overtaken
        are dropped."""
        busy, shares = set(self._taken.values()), Counter(key.namespace for key in self._taken)
        held: list[tuple[float, Key]] = []
        earliest: tuple[float, Key | None] = (float("inf"), None)
        while self._heap:
            moment, key = self._heap[0]
            if self._due.get(key) != moment:
                heapq.heappop(self._heap)
            elif self.group(key) in busy or shares[key.namespace] >= self.share:
                held.append(heapq.heappop(self._heap))
            else:
                earliest = (moment, key)
                break
        for item in held:
            heapq.heappush(self._heap, item)
        return earliest
