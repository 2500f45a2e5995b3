"""The queue of resources: order, one worker for each, repeats, and threads. A clock of its own, but
for the threads."""

from __future__ import annotations

import threading
import time
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hudi_operator.api.resources import Key
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.queue import JITTER, WorkQueue

POLICY = RetryPolicy(backoff_first_seconds=1.0, backoff_max_seconds=8.0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def key(name: str) -> Key:
    return Key("HudiTable", "lake", name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue:
    return WorkQueue(clock, POLICY)


def taken(queue: WorkQueue) -> list[str]:
    found = []
    while (item := queue.take(0)) is not None:
        found.append(item.name)
    return found


def test_what_is_due_first_comes_first_and_what_is_not_waits(queue: WorkQueue, clock: Clock) -> None:
    queue.add(key("b"), 2)
    queue.add(key("a"), 1)
    queue.add(key("c"), 60)
    assert taken(queue) == []
    clock.now = 3
    assert queue.waiting() == (2, 2)
    assert taken(queue) == ["a", "b"]


def test_the_sooner_of_two_moments_counts(queue: WorkQueue, clock: Clock) -> None:
    queue.add(key("a"), 60)
    queue.add(key("a"))
    queue.add(key("a"), 30)
    assert taken(queue) == ["a"]
    clock.now = 100
    assert taken(queue) == []


def test_a_resource_that_changes_while_it_is_looked_at_is_looked_at_again_and_by_nobody_else_before(
    queue: WorkQueue,
) -> None:
    queue.add(key("a"))
    assert taken(queue) == ["a"]
    queue.add(key("a"))
    queue.add(key("b"))
    assert taken(queue) == ["b"]
    queue.done(key("a"), None)
    assert taken(queue) == ["a"]


def test_of_one_group_one_is_worked_on_at_a_time(clock: Clock) -> None:
    queue = WorkQueue(clock, POLICY, group=lambda key: key.name[0])
    for name in ("a1", "a2", "b1"):
        queue.add(key(name))
    assert taken(queue) == ["a1", "b1"]
    queue.done(key("a1"), None)
    assert taken(queue) == ["a2"]


def test_a_look_that_fails_is_repeated_ever_later_until_one_does_well(queue: WorkQueue, clock: Clock) -> None:
    waits = []
    queue.add(key("a"))
    for _ in range(5):
        assert taken(queue) == ["a"]
        waits.append(queue.failed(key("a")))
        clock.now += waits[-1]
    assert waits == [1, 2, 4, 8, 8]
    assert taken(queue) == ["a"]
    queue.done(key("a"), 10)
    clock.now += 9
    assert taken(queue) == []
    clock.now += 1 + 10 * JITTER
    assert taken(queue) == ["a"]
    assert queue.failed(key("a")) == 1


def test_what_is_gone_is_not_looked_at(queue: WorkQueue) -> None:
    queue.add(key("a"))
    queue.forget(key("a"))
    assert taken(queue) == []


def test_a_closed_queue_gives_nothing_and_lets_who_waits_go(queue: WorkQueue) -> None:
    found: list[Key | None] = []
    waiting = threading.Thread(target=lambda: found.append(WorkQueue.take(real, 60)))
    real = WorkQueue(time.monotonic, POLICY)
    waiting.start()
    real.close()
    waiting.join(10)
    assert found == [None]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 5)), max_size=40))
def test_every_resource_is_handed_out_once_for_all_that_was_said_of_it(said: list[tuple[str, float]]) -> None:
    clock = Clock()
    queue = WorkQueue(clock, POLICY)
    for name, after in said:
        queue.add(key(name), after)
    clock.now = 10
    least = {name: min(after for other, after in said if other == name) for name, _ in said}
    assert taken(queue) == sorted(least, key=lambda name: (least[name], key(name)))


def test_many_workers_never_share_a_resource() -> None:
    queue = WorkQueue(time.monotonic, POLICY)
    busy: Counter[Key] = Counter()
    looks: Counter[Key] = Counter()
    wrong: list[Key] = []

    def work() -> None:
        while (item := queue.take(0.5)) is not None:
            busy[item] += 1
            if busy[item] > 1:
                wrong.append(item)
            looks[item] += 1
            time.sleep(0.001)
            busy[item] -= 1
            queue.done(item, 0 if looks[item] < 20 else None)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for number in range(5):
        queue.add(key(str(number)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong
    assert [looks[key(str(number))] for number in range(5)] == [20] * 5


def test_of_one_namespace_no_more_than_its_share_is_worked_on_at_once(clock: Clock) -> None:
    queue = WorkQueue(clock, POLICY, share=2)
    for n in range(4):
        queue.add(key(f"a{n}"))
    queue.add(Key("HudiTable", "other", "b"), 0.0)
    assert taken(queue) == ["a0", "a1", "b"]
    queue.done(key("a0"), None)
    assert taken(queue) == ["a2"]
    queue.failed(key("a1"))
    assert taken(queue) == ["a3"]
