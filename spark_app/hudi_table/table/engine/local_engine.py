"""`LocalEngine`: independent tasks on threads of this process.

Threads suit the work: pyarrow, obstore and file system calls let go of the interpreter's lock.
"""

from __future__ import annotations

import contextvars
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Runs at most `parallelism` tasks at once (default: the CPUs that this process may use)."""

    def __init__(self, parallelism: int | None = None) -> None:
        self._parallelism = max(1, parallelism or _usable_cpus())

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self._parallelism

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`function` of each item, in the order of the items.

        At an error, what has not begun is dropped, what runs is waited for, and the first item's error is raised.
        """
        if len(items) <= 1 or self._parallelism == 1:
            return [function(item) for item in items]
        return list(self.imap(function, items))

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like `map`, lazily: at most `parallelism` results wait to be taken.

        Tasks see the context variables of the caller as they are when each is taken up. Leaving the iterator early stops
        it the same way as an error.
        """
        ahead = self._parallelism + 1
        waiting: deque[Future[R]] = deque()
        pool = ThreadPoolExecutor(self._parallelism, thread_name_prefix="hudi")
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


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
