"""The one place that makes threads, and what threads wait for each other by. A simulator puts its
own in the place of these functions.

Whoever needs one calls it by this module (`threads.lock()`), so that there is one place to replace.
Locks under which nothing waits, as those of caches, may be Python's own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from queue import Queue
from typing import Any, Protocol

_forked = threading.Event()
os.register_at_fork(after_in_child=_forked.set)

Lock = AbstractContextManager[bool]
"""What one thread holds at a time, within `with`."""


class Event(Protocol):
    """What threads wait for until one says that it has come."""

    def set(self) -> None:
        """It has come."""
        ...

    def is_set(self) -> bool:
        """Whether it has come."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it, no longer than so many seconds; whether it has come."""
        ...


class Started(Protocol):
    """A thread that runs."""

    def join(self) -> None:
        """Wait for its end."""
        ...


def lock() -> Lock:
    """A new lock. A thread that holds it may take it again."""
    return threading.RLock()


def event() -> Event:
    """A new event, not set."""
    return threading.Event()


def queue(depth: int) -> Queue[Any]:
    """A new queue of at most so many items."""
    return Queue(depth)


def pool(size: int, name: str) -> Executor:
    """A new pool of at most so many threads."""
    return ThreadPoolExecutor(size, thread_name_prefix=name)


def start(target: Callable[[], object], name: str) -> Started:
    """Run `target` in a thread of its own, which does not hold up the end of the program."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def is_forked() -> bool:
    """Whether this process is a copy of another one, without the threads that libraries had started
    there: who waits for one of those waits forever."""
    known = sys.modules.get("multiprocessing.process")
    return _forked.is_set() or (known is not None and known.parent_process() is not None)
