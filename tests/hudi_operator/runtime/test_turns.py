"""Whose turn it is where only so many attempts may be at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hudi_operator.api.fields.pods import PodPolicies, PodPolicy
from hudi_operator.api.resources import Key
from hudi_operator.api.status import RunStatus
from hudi_operator.runtime.ports import Cluster
from hudi_operator.runtime.turns import FORGOTTEN_SECONDS, Turns


@dataclass
class World:
    """Resources with their running attempts, and a clock."""

    most: int | None = None
    each: int | None = None
    running: dict[Key, str] = field(default_factory=dict)
    now: float = 0.0
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        policies = PodPolicies(PodPolicy(max_attempts=self.each), {}, self.most)
        self.turns = Turns(cast("Cluster", self), lambda: self.now, policies)

    def keys(self) -> list[Key]:
        return list(self.running)

    def get(self, key: Key) -> Mapping[str, Any]:
        return {"status": {"runs": [{"name": self.running[key], "phase": "Running"}]}}

    def asks(self, namespace: str, name: str, work: str = "Cleaning") -> str:
        """One look that wants to start an attempt; '' if it was started."""
        key = Key("HudiTable", namespace, name)
        self.now += 0.1
        with self.turns.taken(key, RunStatus(f"{namespace}-{name}", work, "Running", 1, 1)) as why:
            if not why:
                self.running[key] = f"{namespace}-{name}"
        return why

    def ends(self, namespace: str, name: str) -> None:
        del self.running[Key("HudiTable", namespace, name)]


def test_without_a_limit_nobody_waits() -> None:
    world = World()
    assert [world.asks("a", str(n)) for n in range(50)] == [""] * 50


def test_no_more_than_so_many_are_at_work_and_who_waits_is_told_why() -> None:
    world = World(most=2)
    assert [world.asks("a", str(n)) for n in range(2)] == ["", ""]
    assert world.asks("a", "2") == "2 attempts at work, 2 may be; it waits for its turn"
    world.ends("a", "0")
    assert world.asks("a", "2") == ""


def test_no_more_than_so_many_of_one_namespace() -> None:
    world = World(each=1)
    assert (world.asks("a", "0"), world.asks("b", "0")) == ("", "")
    assert world.asks("a", "1") == "1 attempt at work in namespace a, 1 may be; it waits for its turn"


def test_a_namespace_with_many_tables_takes_no_turn_of_another() -> None:
    world = World(most=4)
    for n in range(4):
        assert world.asks("crowd", f"{n:02}") == ""
    for n in range(4, 30):
        assert world.asks("crowd", f"{n:02}")
    assert world.asks("small", "0")
    world.ends("crowd", "00")
    assert world.asks("crowd", "04"), "the other namespace has none at work"
    assert world.asks("small", "0") == ""
    world.ends("crowd", "01")
    assert world.asks("crowd", "05"), "another one of its namespace has waited longer"
    assert world.asks("crowd", "04") == ""


def test_who_waits_no_more_holds_nobody_up() -> None:
    world = World(most=1)
    assert world.asks("a", "0") == ""
    assert world.asks("b", "gone")
    assert world.asks("c", "0")
    world.ends("a", "0")
    assert world.asks("c", "0"), "b waits longer"
    world.now += FORGOTTEN_SECONDS
    assert world.asks("c", "0") == ""


def test_an_attempt_that_is_adopted_and_a_purge_wait_for_nobody() -> None:
    world = World(most=1)
    assert world.asks("a", "0") == ""
    assert world.asks("a", "0") == ""
    assert world.asks("b", "0", "Purge") == ""


def test_a_turn_is_held_until_the_status_is_written() -> None:
    world = World(most=1)
    run = RunStatus("x", "Cleaning", "Running", 1, 1)
    with world.turns.taken(Key("HudiTable", "a", "x"), run) as why:
        assert why == ""
        assert world.asks("b", "0")
    assert world.asks("b", "0") == "", "its launch failed: nothing runs"
