"""A writer that sleeps, for however long, between its look at the lease and the create of its
completed file, while another engine overtakes it under the lock (section 2.6).

Its write is given up and taken back, and a commit of nothing takes its name: whatever it sends when
it wakes is refused. What is left out is a shorter window than that of `locked.py`: from the other
engine's commit until the name is taken, and only what the sleeper itself creates in it. That, too,
is a guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Instance, Location, Step, create
from tests.model.locked import EngineUnderLock, Helper, Locked, LockedWriter, overtaken
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.rights import Guards
from tests.model.store import Store, claimed, committed, files_of

NOTHING: tuple[tuple[Any, ...], ...] = ((), (), ())
"""The body of the commit that takes the name."""


def is_closed(store: Store, instant: int) -> bool:
    """Whether a commit of nothing has its name."""
    return store.get(("c", instant)) == NOTHING


class Closed(Locked):
    """Who finds a commit of nothing in the place of a file knows that the instant was taken
    back."""

    def at_under(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self._unless_closed(at, store, super().at_under(at, store, env))

    def at_behind(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self._unless_closed(at, store, super().at_behind(at, store, env))

    def _unless_closed(self, at: Location, store: Store, steps: Iterator[Step]) -> Iterator[Step]:
        if is_closed(store, at[1]) and "a commit of nothing is read" not in self.without:
            yield self.lost(at[1])
        else:
            yield from steps


class Sleeper(Closed, LockedWriter):
    """Sleeps before its file while others act."""

    def in_window(self, at: Location) -> bool:
        return at[0] != "show" and super().in_window(at)

    def at_show(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        is_late = overtaken(store, committed(store, at[1]), Guards())
        if is_late and self._still_open(store, at[1]) and "window of a late file" not in self.without:
            return
        yield from super().at_show(at, store, env)

    def _still_open(self, store: Store, instant: int) -> bool:
        """Whether neither a commit has its name nor, where none takes it, its rollback is over."""
        return ("c", instant) not in store and claimed(store, instant)


class Closer(Closed, Helper):
    """Gives up what was overtaken, deletes its files, and takes its name."""

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from super().at_idle(at, store, env)
        for key in sorted(k for k in store if k[0] == "h"):
            entry = store[key]
            if entry[0] == "A" and claimed(store, entry[1]) and not is_closed(store, entry[1]):
                yield Step(f"LIST: {entry[1]} is given up", (self._first(), entry[1]))

    def at_files(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for file in files_of(store, at[1])[:1]:
            yield Step(f"DELETE {file}", at, ((file, None),))
            return
        ends = self._first() == "name"
        yield Step("LIST: no files left", ("idle",) if ends else ("name", at[1]))

    def at_name(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        after = ("files", instant) if self._first() == "name" else ("idle",)
        if "its name is taken" in self.without:
            yield Step(f"DELETE {instant}.requested", after, ((("r", instant), None),))
            return
        label = f"PUT {instant}.commit of nothing"
        yield from create(store, ("c", instant), NOTHING, label, ok=after, refused=("late", instant), unknown=None)

    def at_late(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if is_closed(store, at[1]):
            yield Step(f"GET {at[1]}.commit: of nothing", ("idle",))
        else:
            yield Step(f"GET {at[1]}.commit: late, or gone", ("drop", at[1]))

    def at_drop(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE {at[1]}.commit", ("name", at[1]), ((("c", at[1]), None),))

    def _first(self) -> str:
        return "name" if "files go before the name is taken" in self.without else "files"


def l4(p: Parts) -> Instance:
    others = [Closer("B", 1, p.without), Closer("D", 1, p.without), EngineUnderLock("F", 2, p.without)]
    return Instance("an upsert that sleeps before its file, two recoveries, and another engine's upsert, under one lock",
                    [Sleeper("W1", 1, without=p.without), *others], FIRST, ROWS, lost_replies=0, deaths=True)  # fmt: skip


def l5(p: Parts) -> Instance:
    """The other engine writes once more on what it finds then."""
    others = [Closer("B", 1, p.without), EngineUnderLock("F", 2, p.without), EngineUnderLock("G", 3, p.without)]
    return Instance("an upsert that sleeps before its file, a recovery, and two upserts of another engine, under one lock",
                    [Sleeper("W1", 1, without=p.without), *others], FIRST, {**ROWS, 3: 1}, lost_replies=0, deaths=True)  # fmt: skip


LATE: dict[str, Maker] = {"L4": l4, "L5": l5}
