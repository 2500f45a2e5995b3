"""Threads: order, bounds, the first error, what tasks see of their caller."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.clock import SystemClock


def test_results_come_in_the_order_of_the_items() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.02 if item % 4 == 0 else 0)
        return item * item

    engine = LocalEngine(4)
    assert engine.map(slow_first, range(40)) == [item * item for item in range(40)]
    assert list(engine.imap(slow_first, iter(range(40)))) == [item * item for item in range(40)]
    assert engine.map(slow_first, []) == []


def test_as_many_tasks_run_at_once_as_was_asked() -> None:
    together = threading.Barrier(3, timeout=20)
    assert LocalEngine(3).map(lambda item: together.wait() >= 0, range(9)) == [True] * 9


def test_no_more_tasks_run_at_once_than_was_asked() -> None:
    running = 0
    most = 0
    lock = threading.Lock()

    def count(item: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    LocalEngine(2).map(count, range(20))
    assert most == 2


def test_items_are_taken_only_a_little_ahead_of_the_results() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    results = LocalEngine(2).imap(lambda item: item, items())
    for expected in range(5):
        assert next(results) == expected
        assert len(taken) <= expected + 4
    results.close()  # type: ignore[attr-defined] # a generator
    assert len(taken) < 10


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_the_first_error_stops_the_rest(kind: type[BaseException]) -> None:
    started: list[int] = []
    finished: list[int] = []

    def task(item: int) -> None:
        started.append(item)
        if item == 3:
            raise kind("three")
        time.sleep(0.01)
        finished.append(item)

    with pytest.raises(kind, match="three"):
        LocalEngine(2).map(task, range(1000))
    assert set(started) - set(finished) == {3}, "what had begun has ended"
    assert len(started) < 20


def test_the_error_of_the_earliest_item_is_raised() -> None:
    def task(item: int) -> None:
        if item == 0:
            time.sleep(0.05)
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        LocalEngine(4).map(task, range(4))


def test_tasks_see_the_context_of_their_caller() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set by the caller")

    def task(item: int) -> str:
        before = variable.get()
        variable.set(f"task {item}")
        return before

    assert set(LocalEngine(3).map(task, range(12))) == {"set by the caller"}
    assert variable.get() == "set by the caller"


def test_a_task_may_use_the_engine_itself() -> None:
    engine = LocalEngine(2)
    assert engine.map(lambda outer: sum(engine.map(lambda inner: inner * outer, range(5))), range(6)) == [
        10 * outer for outer in range(6)
    ]


def test_the_default_is_one_task_per_usable_cpu() -> None:
    assert LocalEngine().parallelism == len(os.sched_getaffinity(0))
    assert LocalEngine(7).parallelism == 7


def test_the_clock_tells_utc_and_never_goes_back() -> None:
    clock = SystemClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.now().utcoffset() == timedelta(0)
    before = clock.boot_seconds()
    clock.sleep(0.02)
    clock.sleep(-1)
    assert 0.02 <= clock.boot_seconds() - before < 30
