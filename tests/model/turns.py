"""Turns: a write that has lost an attempt is let go first by those that began later (section 2.10
of docs/explanation/commit-protocol.md).

A turn is a name, ('turn', instant of the first attempt), beside the claims. What a write has come
to is remembered in ('at', name): how many attempts it has lost, and the instant of the first. Who
writes again and again is a chain of writers, each of which begins when the one before has ended.
That a waiting ends after a time, whatever others do, is left out: who waits no more does as
without turns, which K11 searches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.compaction import Compactor
from tests.model.engine import OVER, Env, Instance, Location, Step
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.store import Key, Store
from tests.model.writer import Writer


class InTurn(Writer):
    """A writer that tries again until it commits. `behind`: the number of the process that has to
    end before it begins; `others`: how many write beside it at a time."""

    def __init__(self, *arguments: Any, others: int, behind: int | None = None, **more: Any) -> None:
        super().__init__(*arguments, retry=True, **more)
        self.others, self.behind = others, behind

    @property
    def place(self) -> Key:
        """Where its attempts are counted."""
        return ("at", self.name)

    def begin(self) -> Location:
        return super().begin() if self.behind is None else ("rest",)

    def at_rest(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        assert self.behind is not None
        if env.locations[self.behind][0] in OVER:
            yield Step("begins", ("draw",))

    def steps(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        lost, begun = store.get(self.place, (0, 0))
        for step in super().steps(at, store, env):
            if at[0] == "claim" and step.to[0] == "listing" and not begun:
                step.writes = (*step.writes, (self.place, (0, step.to[1])))
            elif at[0] == "look" and step.to == ("draw",):
                self._lost(step, lost + 1, begun)
            elif step.to[0] == "done" and lost:
                step.writes = (*step.writes, (("turn", begun), None))
            yield step

    def _lost(self, step: Step, lost: int, begun: int) -> None:
        """An attempt is lost, and the turn is there. Its last one is number 2 + `others`."""
        step.writes = (*step.writes, (self.place, (lost, begun)), (("turn", begun), self.name))
        if lost > 1 + self.others:
            step.to = ("WRONG", f"I11 {self.name} has lost {lost} attempts")

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        ahead = [] if "turns are waited for" in self.without else self._ahead(store)
        if not ahead:
            yield Step("LIST: nobody goes before", ("sure", *at[1:]))
            return
        names = [process.name for process in env.processes]
        for turn in ahead:
            if env.locations[names.index(store[turn])][0] == "dead" and "a turn expires" not in self.without:
                yield Step(f"LIST: the turn of {turn[1]} has expired", at, ((turn, None),))

    def _ahead(self, store: Store) -> list[Key]:
        begun = store[self.place][1]
        later = "who began earlier goes first" in self.without
        return sorted(k for k in store if k[0] == "turn" and (k[1] > begun if later else k[1] < begun))

    def at_sure(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from super().at_decide(at, store, env)


class Leaving(Compactor):
    """A planner, and executor of its plan, that leaves out the group that a live turn touches.
    `behind` as of a writer."""

    def __init__(self, *arguments: Any, behind: int | None = None):
        super().__init__(*arguments)
        self.behind = behind

    def begin(self) -> Location:
        return super().begin() if self.behind is None else ("rest",)

    def at_rest(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        assert self.behind is not None
        if env.locations[self.behind][0] in OVER:
            yield Step("begins", ("draw",))

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        leaves = "plans leave out turns" not in self.without and any(key[0] == "turn" for key in store)
        for step in super().at_listing(at, store, env):
            if step.to[0] == "plan" and leaves:
                yield Step("LIST: a turn is there, drop the claim", ("done", at[1]), ((("q", at[1]), None),))
            else:
                yield step


def t1(p: Parts) -> Instance:
    chain = [InTurn(f"S{n}", 1 + n, ("f",), p.without, others=1, behind=n - 1 if n > 1 else None) for n in (1, 2, 3)]
    return Instance("an upsert beside another writer's three, of one group, in turns",
                    [InTurn("W", 1, ("f",), p.without, others=1), *chain], FIRST, {**ROWS, 3: 1, 4: 1}, lost_replies=0)  # fmt: skip


def t2(p: Parts) -> Instance:
    """Any of them may die, with a turn or without."""
    chain = [InTurn(f"S{n}", 1 + n, ("f",), p.without, others=1, behind=n - 1 if n > 1 else None) for n in (1, 2)]
    return Instance("an upsert beside another writer's two, of one group, in turns; any may die",
                    [InTurn("W", 1, ("f",), p.without, others=1), *chain], FIRST, {**ROWS, 3: 1}, lost_replies=0, deaths=True,
                    alone=(0, 1, 2))  # fmt: skip


def t3(p: Parts) -> Instance:
    """A planner counts as one other, however often it comes back."""
    chain = [Leaving(f"C{n}", p.without, behind=n - 1 if n > 1 else None) for n in (1, 2, 3)]
    return Instance("a delta beside a planner and executor that comes back twice, of one group, in turns",
                    [InTurn("W", 1, ("f",), p.without, others=1, logs=True), *chain], FIRST, {0: 1, 1: 1}, lost_replies=0)  # fmt: skip


TURNS: dict[str, Maker] = {"T1": t1, "T2": t2, "T3": t3}
