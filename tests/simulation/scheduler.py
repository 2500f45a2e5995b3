"""Simulated processes and threads: greenlets, of which one runs at a time, on a time of their own.

A task runs until it waits: for a moment, for another task, for a lock. The next one is that whose
moment comes first, so a run follows from the moments alone. A process that dies takes its tasks
along, wherever they are; one that is paused goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """Raised in each task of a process that has died: nothing that it does from then on has any
    effect."""


class SimProcess:
    """One simulated process: what dies, and what is paused, as a whole."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.scheduler, self.name = scheduler, name
        self.is_alive = True
        self.paused_until = 0.0
        self.tasks: dict[Task, None] = {}

    def start(self, work: Callable[[], object]) -> Task:
        """A new task, which begins now."""
        return self.scheduler.start(self, work)

    def pause(self, seconds: float) -> None:
        """It stands still; what it has sent goes on."""
        self.paused_until = max(self.paused_until, self.scheduler.now + seconds)

    def kill(self) -> None:
        """None of its tasks does anything more. Called by one of its own, that one ends, too."""
        own = getcurrent()
        # Of a process that dies already, tasks end one in another: none of them ends those that it is ended by.
        dying = list(self.tasks) if self.is_alive else []
        self.is_alive = False
        for task in dying:
            if task.greenlet is not own:
                self.scheduler.end(task)
        if isinstance(getattr(own, "task", None), Task) and own.task.process is self:
            raise Killed


class Task:
    """A thread of a process. `waiters` go on when it has ended."""

    __slots__ = ("error", "greenlet", "is_over", "process", "result", "until", "waiters", "work")

    def __init__(self, process: SimProcess, work: Callable[[], object]) -> None:
        self.process, self.work = process, work
        self.is_over = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiters: list[Task] = []
        self.greenlet: Any = None
        self.until = 0

    def run(self) -> None:
        """Its whole life."""
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            self.error = error
        self.is_over = True
        self.process.tasks.pop(self, None)
        self.process.scheduler.wake(self.waiters)


class _Thread(greenlet):
    task: Task


class Scheduler:
    """All tasks, by the moment at which each goes on. `now` is the time of the simulated world, in
    seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self._queue: list[tuple[float, int, Any]] = []
        self._number = 0
        self._main = getcurrent()

    def at(self, moment: float, work: Callable[[], object]) -> None:
        """Something of nobody's happens then: what was sent arrives, an outage ends. It must not
        wait."""
        self._number += 1
        heappush(self._queue, (moment, self._number, work))

    def start(self, process: SimProcess, work: Callable[[], object]) -> Task:
        """A new task of a process, which begins now."""
        task = Task(process, work)
        thread = _Thread(task.run, self._main)
        thread.task = task
        task.greenlet = thread
        process.tasks[task] = None
        self._wake_at(self.now, task)
        return task

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Let everything go on, in its order, until nothing waits for a moment any more."""
        queue = self._queue
        while queue and not until():
            moment, number, item = heappop(queue)
            self.now = max(self.now, moment)
            if not isinstance(item, Task):
                item()
            elif number == item.until and not item.is_over:
                process = item.process
                if process.paused_until > self.now:
                    self._wake_at(process.paused_until, item)
                    continue
                self.steps += 1
                item.greenlet.switch()

    def sleep_until(self, moment: float) -> None:
        """The running task goes on at that moment, and not while its process is paused."""
        task = current()
        self._wake_at(moment, task)
        self.switch(task)

    def sleep(self, seconds: float) -> None:
        """The same, from now on."""
        self.sleep_until(self.now + max(seconds, 0.0))

    def wait(self, among: list[Task], timeout: float | None = None) -> None:
        """The running task goes on when `wake` is called for the list, or after so many seconds."""
        task = current()
        among.append(task)
        self._number += 1
        task.until = self._number
        if timeout is not None:
            self._wake_at(self.now + timeout, task)
        self.switch(task)
        if task in among:
            among.remove(task)

    def wake(self, waiting: list[Task]) -> None:
        """Those of a list go on, in its order."""
        for task in waiting:
            self._wake_at(self.now, task)
        waiting.clear()

    def switch(self, task: Task) -> None:
        """To the next task; returns when this one's turn comes."""
        if not task.process.is_alive:
            raise Killed
        self._main.switch()
        if not task.process.is_alive:
            raise Killed

    def end(self, task: Task) -> None:
        """A task of a dead process: its blocks end, with no effect."""
        if task.greenlet:
            parent, task.greenlet.parent = task.greenlet.parent, getcurrent()
            task.greenlet.throw(Killed)
            if not task.is_over:
                raise AssertionError(f"a task of the dead {task.process.name} goes on")
            del parent
        task.is_over = True

    def drop(self) -> None:
        """Forget what waits."""
        self._queue.clear()
        heapify(self._queue)

    def _wake_at(self, moment: float, task: Task) -> None:
        self._number += 1
        task.until = self._number
        heappush(self._queue, (moment, self._number, task))


def current() -> Task:
    """The task that runs."""
    thread = getcurrent()
    assert isinstance(thread, _Thread), "outside of a simulated process nothing may wait"
    return thread.task


def is_simulated() -> bool:
    """Whether a task of a simulated process runs."""
    return isinstance(getcurrent(), _Thread)
