"""Ordered streams read ahead by threads, within bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

import pyarrow as pa

from hudi_table.table.store import threads

T = TypeVar("T")
POLL_SECONDS = 0.1
"""How soon a reading thread notices that nobody wants its items any more."""


class _Stream(Generic[T]):
    """Items of one source, produced by a thread; at most `depth` wait for the consumer."""

    def __init__(self, depth: int, stop: threads.Event) -> None:
        self.queue: Queue[T | BaseException | None] = threads.queue(depth)
        self.stop = stop

    def fill(self, source: Callable[[], Iterator[T]]) -> None:
        last: BaseException | None = None
        try:
            for item in source():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
            last = error
        self._put(last)

    def _put(self, item: T | BaseException | None) -> bool:
        while not self.stop.is_set():
            try:
                self.queue.put(item, timeout=POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[T]:
        while True:
            item = self.queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item


def in_order(sources: Sequence[Callable[[], Iterator[T]]], *, ahead: int, depth: int) -> Generator[T, None, None]:
    """The items of all sources, source after source, while up to `ahead` sources are read at once.

    At most `ahead * (depth + 1)` items exist beside the consumer's own. Closing the iterator stops
    the threads.
    """
    if not sources:
        return
    stop = threads.event()
    running: deque[_Stream[T]] = deque()
    waiting = iter(sources)
    pool = threads.pool(min(ahead, len(sources)), "hudi-read")

    def start() -> None:
        source = next(waiting, None)
        if source is not None:
            stream: _Stream[T] = _Stream(depth, stop)
            running.append(stream)
            pool.submit(stream.fill, source)

    try:
        for _ in range(ahead):
            start()
        while running:
            yield from running[0]
            running.popleft()
            start()
    finally:
        stop.set()
        for stream in running:
            _drain(stream.queue)
        pool.shutdown(wait=True, cancel_futures=True)


def _drain(queue: Queue[T | BaseException | None]) -> None:
    """Make room, so that a thread that waits to put sees the stop at once."""
    try:
        while True:
            queue.get_nowait()
    except Empty:
        pass


def first_rows(
    sources: Sequence[Callable[[], Iterator[pa.RecordBatch]]], limit: int | None, *, ahead: int, depth: int
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of `in_order`, cut at `limit` rows; with a limit, sources are read one at a time,
    and none for 0 rows."""
    if limit == 0:
        return
    left = limit
    batches = in_order(sources, ahead=ahead if limit is None else 1, depth=depth)
    try:
        for batch in batches:
            if left is not None and batch.num_rows >= left:
                yield batch.slice(0, left)
                return
            left = None if left is None else left - batch.num_rows
            yield batch
    finally:
        batches.close()
