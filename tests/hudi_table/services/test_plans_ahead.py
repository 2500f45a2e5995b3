"""Under a lock of both, a planner of version 6 that sleeps, or whose clock is behind, publishes no
plan that another engine's writer could miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.services import late_plans, planning
from hudi_table.table.commit.beside import ahead
from hudi_table.table.commit.recovery import recover_planner
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.services.test_late_plans import Theirs, row, table, values
from tests.support.sleeping import Killed, Sleeps

__all__ = ["table"]

ASLEEP = [0.0, 1.0, 30.0]
"""Seconds: none, fewer than a plan is ahead, and more."""


class Standing(SystemClock):
    """Stands still but for those who sleep."""

    def __init__(self) -> None:
        self.begun, self.boot, self.passed = super().now(), super().boot_seconds(), 0.0

    def now(self) -> datetime:
        return self.begun + timedelta(seconds=self.passed)

    def boot_seconds(self) -> float:
        return self.boot + self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Standing:
    monkeypatch.setattr(planning, "ATTEMPTS_MAX", 2)
    return Standing()


def process(table: HudiTable, clock: Standing, storage: Any = None) -> HudiTable:
    return HudiTable(replace(table.context, clock=clock, storage=storage or table.context.storage))


def asleep(
    table: HudiTable, clock: Standing, seconds: float, meant: Callable[[str, bytes], bool], *, dies: bool = False
) -> tuple[HudiTable, list[Theirs]]:
    """A planner that sleeps before the request that is meant; then another engine begins to
    write."""
    begun = list[Theirs]()

    def happen() -> None:
        clock.passed += seconds
        begun.append(Theirs(process(table, clock), row("b", 7), clock))

    store = Sleeps(
        table.context.storage, lambda call, path, data: call == "put_if_absent" and meant(path, data), happen, dies
    )
    return process(table, clock, store), begun


def is_decision(path: str, data: bytes) -> bool:
    return path.startswith(".hoodie/.txn/") and b".compaction.requested" in data


def is_plan(path: str, _: bytes) -> bool:
    return path.endswith(".compaction.requested")


def plans(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).pending if i.action.value == "compaction"]


def claims(table: HudiTable) -> list[str]:
    return [info.path for info in table.context.storage.list(".hoodie") if info.path.endswith(".claim")]


def finds(theirs: Theirs, table: HudiTable) -> bool:
    """Whether Hudi's commit finds the plan: it looks at pending ones later than its instant."""
    return any(time > theirs.time for time in plans(table))


@pytest.mark.parametrize("seconds", ASLEEP)
def test_a_write_that_begins_while_the_planner_sleeps_before_its_decision_finds_the_plan_or_is_in_the_next(
    table: HudiTable, clock: Standing, seconds: float
) -> None:
    planner, begun = asleep(table, clock, seconds, is_decision)
    if seconds < ahead.AHEAD_SECONDS:
        assert planner.schedule_compaction(force=True) is not None
        assert finds(begun[0], table)
        assert claims(table) == []
        return
    with pytest.raises(WriteConflictError, match="goes on"):
        planner.schedule_compaction(force=True)
    assert plans(table) == []
    assert claims(table) == []
    begun[0].commits()
    assert process(table, clock).schedule_compaction(force=True) is not None
    table.compact()
    assert values(table) == [2, 7]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_so_does_one_that_begins_while_the_planner_sleeps_before_the_plans_file(
    table: HudiTable, clock: Standing, seconds: float
) -> None:
    planner, begun = asleep(table, clock, seconds, is_plan)
    assert planner.schedule_compaction(force=True) is not None
    assert finds(begun[0], table)


@pytest.mark.parametrize("passed", [0.0, 60.0])
def test_the_decided_plan_of_a_planner_that_died_appears_only_while_its_instant_lies_ahead(
    table: HudiTable, clock: Standing, passed: float
) -> None:
    planner, begun = asleep(table, clock, 0.0, is_decision, dies=True)
    with pytest.raises(Killed):
        planner.schedule_compaction(force=True)
    table.context.storage.delete(".hoodie/lock")
    clock.passed += passed
    other = process(table, clock)
    for path in claims(table):
        recover_planner(other.context, path.removeprefix(".hoodie/").partition(".")[0])
    assert claims(table) == []
    if not passed:
        assert finds(begun[0], table)
        return
    assert plans(table) == []
    begun[0].commits()
    assert other.schedule_compaction(force=True) is not None
    table.compact()
    assert values(table) == [2, 7]


@pytest.mark.parametrize("seconds", [60.0, 10_000.0], ids=["a minute", "hours"])
def test_a_planner_whose_plan_was_given_up_while_it_slept_behind_its_decision_plans_again(
    table: HudiTable, clock: Standing, seconds: float
) -> None:
    def happen() -> None:
        clock.passed += seconds
        table.context.storage.delete(".hoodie/lock")
        other = process(table, clock)
        for path in claims(table):
            recover_planner(other.context, path.removeprefix(".hoodie/").partition(".")[0])
        assert (claims(table), plans(table)) == ([], [])

    store = Sleeps(
        table.context.storage,
        lambda call, path, data: call == "put_if_absent" and is_decision(path, data),
        happen,
        behind=True,
    )
    plan = process(table, clock, store).schedule_compaction(force=True)
    assert plan is not None
    assert plans(table) == [plan.instant]


def test_a_write_of_an_engine_whose_clock_is_ahead_goes_first(
    table: HudiTable, clock: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, claim = list[Theirs](), late_plans._claim_anew
    fast = Standing()
    fast.passed = 60.0

    def late(*arguments: Any) -> None:
        claim(*arguments)
        if not begun:
            begun.append(Theirs(process(table, clock), row("b", 7), fast))

    monkeypatch.setattr(late_plans, "_claim_anew", late)
    with pytest.raises(WriteConflictError, match="goes on"):
        process(table, clock).schedule_compaction(force=True)
    assert plans(table) == []
    begun[0].commits()
    assert process(table, clock).schedule_compaction(force=True) is not None
    table.compact()
    assert values(table) == [2, 7]


def test_a_plan_for_which_its_time_was_too_short_is_drawn_further_ahead(
    table: HudiTable, clock: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, refuse = list[str](), ahead.refuse_late

    def slow(ctx: Any, name: str, listed: Any) -> None:
        tried.append(name)
        clock.passed += 5
        refuse(ctx, name, listed)

    monkeypatch.setattr("hudi_table.table.commit.decision.refuse_late", slow)
    assert process(table, clock).schedule_compaction(force=True) is not None
    assert len(tried) == 3, "2, 4 and 8 seconds"
    assert plans(table) == [tried[-1].partition(".")[0]]
    assert claims(table) == []


def test_the_clock_has_caught_up_when_the_lock_is_given_back(table: HudiTable, clock: Standing) -> None:
    plan = process(table, clock).schedule_compaction(force=True)
    assert plan is not None
    assert ahead.AHEAD_SECONDS <= clock.passed < ahead.AHEAD_SECONDS + 1
    process(table, clock).upsert(row("b", 7))
    table.compact()
    assert values(table) == [2, 7]


def published_late(table: HudiTable, clock: Standing) -> Theirs:
    """A plan whose planner slept between its last look and the create of the plan's file, and what
    another engine has begun meanwhile."""
    planner, begun = asleep(table, clock, 30.0, is_plan)
    assert planner.schedule_compaction(force=True) is not None
    assert not finds(begun[0], table)
    return begun[0]


def test_the_plan_of_a_planner_that_slept_right_before_its_file_is_not_executed_while_a_write_that_missed_it_goes_on(
    table: HudiTable, clock: Standing
) -> None:
    theirs = published_late(table, clock)
    with pytest.raises(UnavailableError, match=f"another engine's write of {theirs.time} began before the plan"):
        table.compact()
    table.context.storage.delete(f".hoodie/.heartbeat/{theirs.time}")
    table.compact()
    assert (plans(table), values(table)) == ([], [2])


def test_nor_once_that_has_completed_until_it_is_taken_back(table: HudiTable, clock: Standing) -> None:
    theirs = published_late(table, clock)
    theirs.commits()
    assert values(table) == [2, 7]
    with pytest.raises(WriteConflictError, match=f"the write of {theirs.time} has put .* beside the plan"):
        table.compact()
    assert values(table) == [2, 7]
    table.rollback(theirs.time, writers_stopped=True)
    table.compact()
    process(table, clock).upsert(row("b", 7))
    assert (plans(table), values(table)) == ([], [2, 7])


def test_a_write_that_began_behind_the_plans_file_holds_no_execution_up(table: HudiTable, clock: Standing) -> None:
    assert process(table, clock).schedule_compaction(force=True) is not None
    clock.passed += 2
    theirs = Theirs(process(table, clock), row("b", 7), clock)
    table.compact()
    theirs.commits()
    assert values(table) == [2, 7]
