"""Threads that reconcile what is due. Whatever a reconcile raises, its worker goes on; one that a
reconcile holds up is stood in for, and one that has ended is replaced: what happens to one resource
never costs the others their reconciles.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from hudi_operator.api.resources import Key
from hudi_operator.runtime.queue import WorkQueue

PATIENCE_SECONDS = 1.0
TEND_SECONDS = 1.0
OVERDUE_SECONDS = 5.0
"""A reconcile that lasts longer, as at a store that does not answer, has a worker of its own:
another one takes up what is due."""
STANDING_IN_MAX = 32
"""Threads cannot be ended. So many may wait; past that the queue stands still, which the liveness
probe sees if it lasts."""
_log = logging.getLogger(__name__)


@dataclass
class Workers:
    """`wanted` threads that take from the queue, and stand-ins. `reconcile` gives the key back to
    the queue, whatever happens, and raises nothing but exits: those set `ending`, which asks the
    process to end.

    `last_reconciled`: when a reconcile last ended, or the work began, on the queue's clock.
    """

    queue: WorkQueue
    reconcile: Callable[[Key], None]
    wanted: int
    ending: threading.Event
    overdue_seconds: float = OVERDUE_SECONDS
    last_reconciled: float = 0.0
    _reconciles: dict[threading.Thread, tuple[Key, float]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to work."""
        self.last_reconciled = self.queue.clock()
        self._stopped.clear()
        self.tend()
        threading.Thread(target=self._tend, name="tends-workers", daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """Take up nothing more; whether all that was at work has ended after so many seconds."""
        self.queue.close()
        self._stopped.set()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(seconds / max(1, len(threads)))
        return not any(thread.is_alive() for thread in threads)

    def reconciles(self) -> list[tuple[Key, float]]:
        """What is being reconciled, and for how many seconds."""
        now = self.queue.clock()
        return [(key, now - began) for key, began in list(self._reconciles.values())]

    def working(self, seconds: float | None = None) -> int:
        """How many are alive and free, or at a reconcile that has not lasted for more than so many
        seconds; without a number, in time."""
        now, limit = self.queue.clock(), self.overdue_seconds if seconds is None else seconds
        held = [thread for thread, (_, began) in list(self._reconciles.items()) if now - began > limit]
        return sum(thread.is_alive() and thread not in held for thread in list(self._threads))

    def tend(self) -> None:
        """Start as many as are missing."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            room = self.wanted + STANDING_IN_MAX - len(self._threads)
            missing = min(room, self.wanted - self.working())
            for _ in range(0 if self._stopped.is_set() else missing):
                thread = threading.Thread(target=self._work, name="worker")
                self._threads.append(thread)
                thread.start()

    def _tend(self) -> None:
        while not self._stopped.wait(TEND_SECONDS):
            try:
                self.tend()
            except RuntimeError as error:
                _log.error("no worker can be started: %s", error)

    def _work(self) -> None:
        me = threading.current_thread()
        while not self.queue.closed:
            key = self.queue.take(PATIENCE_SECONDS)
            if key is None:
                continue
            self._reconciles[me] = (key, self.queue.clock())
            try:
                self.reconcile(key)
            except (KeyboardInterrupt, SystemExit) as error:
                _log.error("%s: a reconcile ended in %s: the process ends", key, type(error).__name__)
                self.ending.set()
                return
            finally:
                _, began = self._reconciles.pop(me)
                self.last_reconciled = self.queue.clock()
            # Somebody stands in for a worker whose reconcile lasted that long: one of them is enough.
            if self.last_reconciled - began > self.overdue_seconds and self.working() > self.wanted:
                return
