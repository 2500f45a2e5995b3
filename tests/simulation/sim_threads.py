"""What `hudi_table.table.store.threads` makes, as tasks of the simulated process that asks for
it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from queue import Full
from typing import Any

from hudi_table.table.store import threads
from tests.simulation.scheduler import Scheduler, Task, current


class SimLock:
    """A lock that its holder may take again."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._holder: Task | None = None
        self._depth = 0
        self._waiting: list[Task] = []

    def __enter__(self) -> bool:
        task = current()
        while self._holder is not None and self._holder is not task:
            self._scheduler.wait(self._waiting)
        self._holder = task
        self._depth += 1
        return True

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
            self._scheduler.wake(self._waiting)


class SimEvent:
    """An event whose waiting takes simulated time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False
        self._waiting: list[Task] = []

    def set(self) -> None:
        self._is_set = True
        self._scheduler.wake(self._waiting)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._scheduler.wait(self._waiting, timeout)
        return self._is_set


class SimQueue:
    """As `queue.Queue`, as far as it is used."""

    def __init__(self, scheduler: Scheduler, depth: int) -> None:
        self._scheduler, self._depth = scheduler, depth
        self._items: deque[Any] = deque()
        self._takers: list[Task] = []
        self._putters: list[Task] = []

    def put(self, item: Any, timeout: float | None = None) -> None:
        if len(self._items) >= self._depth:
            self._scheduler.wait(self._putters, timeout)
            if len(self._items) >= self._depth:
                raise Full
        self._items.append(item)
        self._scheduler.wake(self._takers)

    def get(self) -> Any:
        while not self._items:
            self._scheduler.wait(self._takers)
        return self.get_nowait()

    def get_nowait(self) -> Any:
        if not self._items:
            from queue import Empty

            raise Empty
        item = self._items.popleft()
        self._scheduler.wake(self._putters)
        return item


class SimFuture:
    """What one call of a pool will give."""

    def __init__(self, scheduler: Scheduler, work: Callable[[], Any]) -> None:
        self._scheduler, self._work = scheduler, work
        self._done = SimEvent(scheduler)
        self.is_begun = self.is_cancelled = False
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        self.is_begun = True
        try:
            self._result = self._work()
        except Exception as error:  # noqa: BLE001 - raised by `result`
            self._error = error
        self._done.set()

    def cancel(self) -> bool:
        if self.is_begun:
            return False
        self.is_cancelled = True
        return True

    def result(self) -> Any:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class SimPool:
    """At most `size` tasks that take up what is submitted, in its order."""

    def __init__(self, scheduler: Scheduler, size: int) -> None:
        self._scheduler, self._size = scheduler, size
        self._waiting: deque[SimFuture] = deque()
        self._running: dict[Task, None] = {}

    def submit(self, work: Callable[..., Any], /, *args: Any) -> SimFuture:
        future = SimFuture(self._scheduler, lambda: work(*args))
        self._waiting.append(future)
        if len(self._running) < self._size:
            self._running[current().process.start(self._serve)] = None
        return future

    def _serve(self) -> None:
        try:
            while self._waiting:
                future = self._waiting.popleft()
                if not future.is_cancelled:
                    future.run()
        finally:
            self._running.pop(current(), None)

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self._waiting.clear()
        while wait and self._running:
            self._scheduler.wait(next(iter(self._running)).waiters)


class SimThread:
    """A thread that was started."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], object]) -> None:
        self._scheduler = scheduler
        self._task = current().process.start(target)

    def join(self) -> None:
        if not self._task.is_over:
            self._scheduler.wait(self._task.waiters)


@contextlib.contextmanager
def simulated_threads(scheduler: Scheduler) -> Iterator[None]:
    """The library makes its threads as tasks of the scheduler."""
    made: dict[str, Callable[..., Any]] = {
        "lock": lambda: SimLock(scheduler),
        "event": lambda: SimEvent(scheduler),
        "queue": lambda depth: SimQueue(scheduler, depth),
        "pool": lambda size, name: SimPool(scheduler, size),
        "start": lambda target, name: SimThread(scheduler, target),
    }
    real = {name: getattr(threads, name) for name in made}
    for name, function in made.items():
        setattr(threads, name, function)
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(threads, name, function)
