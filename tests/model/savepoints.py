"""Cleans and savepoints (section 2.3): plans that exclude each other by one shared key, and
deleting a savepoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Process, Step
from tests.model.planner import Planner
from tests.model.rights import Guards
from tests.model.services import may_still_appear
from tests.model.store import Key, Store, timeline

CLEANING = "cleaning"


def kept(store: Store) -> set[Key]:
    """Files that a savepoint names."""
    return {file for k, v in store.items() if k[0] == "v" for file in v}


def going(store: Store) -> set[Key]:
    """Files that a pending clean names."""
    return {file for k, v in store.items() if k[0] == "x" for file in v}


class CleanPlanner(Planner):
    """Plans to delete what is superseded and in no savepoint, then deletes it: at any later time,
    without looking again."""

    def __init__(self, name: str = "K", without: Guards = frozenset()):
        super().__init__(name, without)
        self.touches = () if "cleans and savepoints share a key" in without else (CLEANING,)

    def draft(self, store: Store, env: Env) -> Any:
        completed = timeline(store)[0]
        bases = [k for k in store if k[0] == "d" and k[2] in completed]
        old = {k for k in bases if any(b[1] == k[1] and b[2] > k[2] for b in bases)}
        return tuple(sorted(old - kept(store) - going(store))) or None

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, self.touches, draft, None, "x")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("delete", instant, draft, 0)

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, number = at
        if number < len(files):
            to = ("delete", instant, files, number + 1)
            yield Step(f"DELETE {files[number]}", to, ((files[number], None),))
        else:
            yield Step(f"PUT {instant}.clean", ("done", instant), ((("x", instant), None),))


class Savepointer(Planner):
    """Keeps the file of group f of instant `of`, or refuses if it is gone or going."""

    def __init__(self, name: str = "V", without: Guards = frozenset(), *, of: int = 1):
        super().__init__(name, without)
        self.file: Key = ("d", "f", of, 0)
        self.touches = () if "cleans and savepoints share a key" in without else (CLEANING,)

    def draft(self, store: Store, env: Env) -> Any:
        gone = self.file not in store
        if "pending cleans count as gone" not in self.without:
            gone = gone or self.file in going(store)
        return None if gone else (self.file,)

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, self.touches, draft, None, "v")


class Dropper(Process):
    """Deletes a savepoint that is older than H: first a claim that its maker left, by which others
    would publish it again."""

    mortal = False

    def __init__(self, name: str = "D", without: Guards = frozenset()):
        self.name, self.without = name, without

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for instant in sorted(k[1] for k in store if k[0] == "v"):
            if "savepoints live for H" in self.without or not may_still_appear(instant, env, store):
                first = "drop" if "claim of a savepoint goes first" in self.without else "unclaim"
                yield Step(f"LIST: savepoint {instant} is old", (first, instant))

    def at_unclaim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE {at[1]}.claim", ("drop", at[1]), ((("q", at[1]), None),))

    def at_drop(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE savepoint {at[1]}", ("done", at[1]), ((("v", at[1]), None),))
