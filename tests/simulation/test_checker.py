"""The checker of histories finds what it is there to find: each anomaly is planted in a history
that is well without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from tests.simulation.checker import Checker, Step
from tests.simulation.history import Event, History


@dataclass
class Told:
    """Two writes, one after the other, of `a` and `b`; a third of `a` alone; reads before, between
    and after them."""

    history: History = field(default_factory=History)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write("w1", 10, 20, "T1", ["a", "b"])
        self.write("w2", 30, 40, "T2", ["a", "b"])
        self.write("w3", 50, 60, "T3", ["a"])
        self.read(1, 2)
        self.read(21, 22, "a=w1@T1", "b=w1@T1")
        self.read(41, 42, "a=w2@T2", "b=w2@T2")
        self.read(61, 62, "a=w3@T3", "b=w2@T2")

    def write(
        self, name: str, begun: float, ended: float, instant: str, keys: list[str], kind: str = "upsert"
    ) -> Event:
        event = Event("writer", kind, begun, ended, "done", name, keys, instant)
        self.history.events.append(event)
        self.steps.append(Step((begun + ended) / 2, instant, name))
        return event

    def read(self, begun: float, ended: float, *rows: str, pin: str | None = None) -> Event:
        found = [(row[0], row[2:].partition("@")[0], row.partition("@")[2]) for row in rows]
        event = Event("reader", "read pinned" if pin else "read", begun, ended, "done", pin=pin, rows=found)
        self.history.events.append(event)
        return event

    def changed(self, begun: float, ended: float, since: str, *changes: tuple[str, str, str, str]) -> Event:
        event = Event("reader", "read changes", begun, ended, "done", since=since, changes=list(changes))
        self.history.events.append(event)
        return event

    def of(self, write: str) -> Event:
        return next(event for event in self.history.events if event.write == write)

    def wrong(self) -> list[str]:
        return Checker(self.history, sorted(self.steps, key=lambda step: step.moment)).check()


def test_a_history_without_anomalies_passes() -> None:
    told = Told()
    told.read(35, 36, "a=w2@T2", "b=w2@T2")
    told.read(45, 46, "a=w1@T1", "b=w1@T1", pin="T1")
    told.history.events.append(Event("reader", "count", 63, 64, "done", count=2))
    assert told.wrong() == []


def test_what_changed_is_told_in_the_state_of_then_or_change_by_change() -> None:
    told = Told()
    told.write("w4", 70, 80, "T4", ["b"], "delete")
    told.write("w5", 90, 100, "T5", ["c"], "overwrite")
    told.read(63, 64, "a=w3@T3").since = "T2"
    told.read(63, 64, "b=w2@T2").of = "w2"
    told.read(101, 102, "c=w5@T5").since = "T1"
    of_b = [("u", "b", "w1", "w2"), ("d", "b", "w2", "")]
    of_a = [("u", "a", "w1", "w2"), ("u", "a", "w2", "w3"), ("d", "a", "w3", "")]
    told.changed(101, 102, "T1", *of_a, *of_b, ("i", "c", "", "w5"))
    told.changed(101, 102, "T3", ("d", "b", "w2", ""), ("d", "a", "w3", ""), ("i", "c", "", "w5"))
    assert told.wrong() == []


@pytest.mark.parametrize("outcome", ["unknown", "CommitStateUnknown"])
def test_of_a_write_whose_outcome_is_unknown_either_is_well(outcome: str) -> None:
    told = Told()
    told.of("w3").outcome = outcome
    assert told.wrong() == []
    told.steps = told.steps[:2]
    told.history.events[-1].rows = [("a", "w2", "T2"), ("b", "w2", "T2")]
    assert told.wrong() == []


def lost(told: Told) -> None:
    del told.steps[2]


def lost_to_a_reader(told: Told) -> None:
    told.read(63, 64, "a=w2@T2", "b=w2@T2")


def half_a_write(told: Told) -> None:
    told.read(35, 36, "a=w2@T2", "b=w1@T1")


def failed_and_there(told: Told) -> None:
    told.of("w3").outcome = "WriteConflict"


def doubled(told: Told) -> None:
    told.steps.append(Step(70, "T4", "w1"))


def a_row_twice(told: Told) -> None:
    told.read(63, 64, "a=w3@T3", "a=w2@T2", "b=w2@T2")


def back_in_time(told: Told) -> None:
    told.of("w2").ended = 100
    told.read(36, 37, "a=w2@T2", "b=w2@T2")
    told.read(38, 39, "a=w1@T1", "b=w1@T1")


def from_the_future(told: Told) -> None:
    told.read(23, 24, "a=w2@T2", "b=w2@T2")


def of_nobody(told: Told) -> None:
    told.read(63, 64, "a=w9@T9", "b=w2@T2")


def decided_for_nobody(told: Told) -> None:
    told.steps.append(Step(70, "T4", "w9"))


def another_commit_time(told: Told) -> None:
    told.read(63, 64, "a=w3@T9", "b=w2@T2")


def another_past(told: Told) -> None:
    told.read(63, 64, "a=w2@T2", "b=w1@T1", pin="T2")


def a_wrong_count(told: Told) -> None:
    told.history.events.append(Event("reader", "count", 63, 64, "done", count=3))


def acknowledged_too_early(told: Told) -> None:
    told.steps[2] = Step(65, "T3", "w3")


def not_readable(told: Told) -> None:
    told.history.events.append(Event("reader", "read", 63, 64, "Unavailable"))


def another_row_looked_up(told: Told) -> None:
    told.read(63, 64, "b=w1@T1").sought = "b"


def a_deleted_row(told: Told) -> None:
    told.write("w4", 70, 80, "T4", ["b"], "delete")
    told.read(81, 82, "a=w3@T3", "b=w2@T2")


def a_row_taken_back(told: Told) -> None:
    told.steps.append(Step(70, "T3", is_removal=True))
    told.read(71, 72, "a=w3@T3", "b=w2@T2")


def a_dropped_row(told: Told) -> None:
    told.write("w4", 70, 80, "T4", ["a"], "drop partition")
    told.read(81, 82, "b=w2@T2")


def what_did_not_change(told: Told) -> None:
    told.read(63, 64, "a=w3@T3", "b=w2@T2").since = "T2"


def what_another_has_written(told: Told) -> None:
    told.read(63, 64, "a=w3@T3").of = "w2"


def a_change_too_few(told: Told) -> None:
    told.changed(63, 64, "T1", ("u", "a", "w1", "w2"), ("u", "b", "w1", "w2"))


def a_change_of_another_row(told: Told) -> None:
    told.changed(63, 64, "T2", ("u", "a", "w1", "w3"))


def a_bug(told: Told) -> None:
    told.history.events.append(Event("keeper", "clean", 63, 64, "broken", message="KeyError"))


@pytest.mark.parametrize(
    "plant",
    [
        lost, lost_to_a_reader, half_a_write, failed_and_there, doubled, a_row_twice, back_in_time, from_the_future, of_nobody,
        decided_for_nobody, another_commit_time, another_past, a_wrong_count, acknowledged_too_early, not_readable, another_row_looked_up, a_deleted_row,
        a_row_taken_back, a_dropped_row, what_did_not_change, what_another_has_written, a_change_too_few, a_change_of_another_row, a_bug,
    ],
)  # fmt: skip
def test_a_planted_anomaly_is_found(plant: Callable[[Told], None]) -> None:
    told = Told()
    assert told.wrong() == []
    told = Told()
    plant(told)
    assert told.wrong()


def test_a_delete_that_has_not_seen_a_row_stands_before_it() -> None:
    """It reads which of its keys are there: a first write of a key, decided meanwhile, excludes
    nothing."""
    told = Told()
    told.write("w4", 65, 90, "T4", ["c"])
    told.write("w5", 66, 100, "T5", ["c"], "delete")
    told.read(101, 102, "a=w3@T3", "b=w2@T2", "c=w4@T4")
    assert told.wrong() == []
    told.read(103, 104, "a=w3@T3", "b=w2@T2")
    assert told.wrong(), "seen once, it does not go of itself"


def test_a_delete_that_has_seen_a_row_takes_it() -> None:
    told = Told()
    told.write("w4", 65, 70, "T4", ["c"])
    told.write("w5", 71, 80, "T5", ["c"], "delete")
    told.read(101, 102, "a=w3@T3", "b=w2@T2", "c=w4@T4")
    assert told.wrong()


@pytest.mark.parametrize("begun", [66, 91])
def test_a_row_that_a_delete_has_not_seen_counts_above_a_later_one_with_a_lower_ordering_value(begun: int) -> None:
    told = Told()
    told.write("w4", 65, 90, "T4", ["c"]).ts = 2
    told.write("w5", begun, 100, "T5", ["c"], "delete")
    told.write("w6", 101, 110, "T6", ["c"]).ts = 1
    told.read(111, 112, "a=w3@T3", "b=w2@T2", "c=w4@T4")
    seen = begun > 90
    assert bool(told.wrong()) == seen
    told.read(113, 114, "a=w3@T3", "b=w2@T2", "c=w6@T6")
    assert told.wrong(), "shown once, it does not go of itself"


def test_a_delete_need_not_have_seen_a_row_that_nobody_has_acknowledged_or_shown() -> None:
    """Its writer died once the write was decided, and had not published it."""

    def died() -> Told:
        told = Told()
        told.write("w4", 65, 71, "T4", ["c"]).outcome = "unknown"
        told.of("w4").ended = math.inf
        told.write("w5", 80, 90, "T5", ["c"], "delete")
        told.read(101, 102, "a=w3@T3", "b=w2@T2", "c=w4@T4")
        return told

    assert died().wrong() == []
    told = died()
    told.read(75, 76, "a=w3@T3", "b=w2@T2", "c=w4@T4")
    assert told.wrong(), "a read has shown it before the delete began"


@pytest.mark.parametrize("silent", ["w4", "w5", ""])
def test_an_overwrite_takes_a_bulk_insert_beside_it_if_each_tells_its_partition(silent: str) -> None:
    told = Told()
    told.write("w4", 65, 90, "T4", ["c"], "bulk insert")
    told.write("w5", 66, 100, "T5", ["d"], "overwrite")
    told.steps = [replace(step, tells_place=step.write != silent) for step in told.steps]
    told.read(101, 102, "d=w5@T5", "c=w4@T4")
    assert (told.wrong() == []) == bool(silent)


def test_a_row_that_is_taken_back_shows_what_was_there_before() -> None:
    told = Told()
    told.steps.append(Step(70, "T3", is_removal=True))
    told.read(71, 72, "a=w2@T2", "b=w2@T2")
    assert told.wrong() == []


def test_a_delete_that_met_nothing_stays_possible_where_a_later_one_has_deleted() -> None:
    """The later one explains why the row is not read; as of the first it may be there."""
    told = Told()
    told.write("w4", 70, 80, "T4", ["c"])
    told.write("d1", 72, 90, "T5", ["c"], "delete")
    told.write("d2", 100, 110, "T6", ["c"], "delete")
    told.read(120, 121, "a=w3@T3", "b=w2@T2")
    told.read(122, 123, "a=w3@T3", "b=w2@T2", "c=w4@T4", pin="T5")
    assert told.wrong() == []


def test_a_delete_that_a_read_has_shown_is_no_longer_one_that_met_nothing() -> None:
    told = Told()
    told.write("w4", 70, 80, "T4", ["c"])
    told.write("d1", 72, 90, "T5", ["c"], "delete")
    told.read(120, 121, "a=w3@T3", "b=w2@T2")
    told.read(122, 123, "a=w3@T3", "b=w2@T2", "c=w4@T4", pin="T5")
    assert len(told.wrong()) == 1
