"""Requests that do not depend on each other, sent at once.

Threads that wait for a store are counted apart from those that work: a processor serves many that
wait. On a local disk nothing is waited for, so there everything is done in order, in the caller's
thread.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from typing import TypeVar, overload

from hudi_table.table.store import threads
from hudi_table.table.store.ports import Storage, is_remote

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
REQUESTS_AT_ONCE = 32
"""Requests to an object store that one operation has under way."""


@overload
def at_once(storage: Storage, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]: ...
@overload
def at_once(
    storage: Storage, first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /
) -> tuple[A, B, C]: ...
@overload
def at_once(
    storage: Storage,
    first: Callable[[], A],
    second: Callable[[], B],
    third: Callable[[], C],
    fourth: Callable[[], D],
    /,
) -> tuple[A, B, C, D]: ...
@overload
def at_once(storage: Storage, /, *calls: Callable[[], T]) -> tuple[T, ...]: ...
def at_once(storage: Storage, /, *calls: Callable[[], object]) -> tuple[object, ...]:
    """What the calls return, in their order. The error of the first that failed is raised when
    nothing is under way any more."""
    return tuple(all_at_once(storage, calls))


def all_at_once(storage: Storage, calls: Iterable[Callable[[], T]]) -> list[T]:
    """`at_once` of any number of calls, of which `REQUESTS_AT_ONCE` are under way."""
    waiting = list(calls)
    if len(waiting) <= 1 or not is_remote(storage):
        return [call() for call in waiting]
    pool = threads.pool(min(len(waiting), REQUESTS_AT_ONCE), "hudi-io")
    try:
        futures = [pool.submit(contextvars.copy_context().run, call) for call in waiting]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
