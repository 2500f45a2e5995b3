"""`LocalEngine`: independent tasks on threads of this process.

Threads suit the work: pyarrow, obstore and file system calls let go of the interpreter's lock.
"""

from __future__ import annotations

import contextvars
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.ports import Engine, Storage, is_remote

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Runs at most `parallelism` tasks at once (default: the CPUs that this process may use)."""

    def __init__(self, parallelism: int | None = None) -> None:
        self._parallelism = max(1, parallelism or _usable_cpus())

    def with_threads(self, threads: int) -> LocalEngine:
        """The same engine with so many tasks at once."""
        return LocalEngine(threads)

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self._parallelism

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`function` of each item, in the order of the items.

        At an error, what has not begun is dropped, what runs is waited for, and the first item's
        error is raised.
        """
        if len(items) <= 1 or self._parallelism == 1:
            return [function(item) for item in items]
        return list(self.imap(function, items))

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like `map`, lazily: at most `parallelism` results wait to be taken.

        Tasks see the context variables of the caller as they are when each is taken up. Leaving the
        iterator early stops it the same way as an error.
        """
        ahead = self._parallelism + 1
        waiting: deque[Future[R]] = deque()
        pool = threads.pool(self._parallelism, "hudi")
        try:
            for item in items:
                waiting.append(pool.submit(contextvars.copy_context().run, function, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            pool.shutdown(wait=True)


def at_a_store(engine: Engine, storage: Storage, held: int, memory: int) -> Engine:
    """The engine for tasks that hold `held` bytes each and wait for a store: of this process's
    threads there may be as many at once as requests, as far as `memory` goes. Those that work share
    the processors."""
    if not isinstance(engine, LocalEngine) or not is_remote(storage):
        return engine
    return engine.with_threads(max(engine.parallelism, min(REQUESTS_AT_ONCE, memory // max(1, held))))


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
