"""Giving up lost files of a scheduled compaction (section 2.3): its plan is written again without
them, behind the first in the chain."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.compaction import Compactor, Executor
from tests.model.engine import Env, Location, Step, create
from tests.model.rights import ChainProcess, Guards, expired, materialise, unmaterialised
from tests.model.services import may_land
from tests.model.store import Key, Store, decided, tail


def last_plan(store: Store, instant: int) -> tuple[int, int, tuple[Key, ...]]:
    """(number, mask, logs) of the last plan of an instant in the chain."""
    number = max(k[1] for k, v in store.items() if k[0] == "h" and v[:2] == ("P", instant))
    mask, logs = store[("h", number)][4]
    return number, mask, logs


class GiverUp(ChainProcess):
    """Says that the planned logs which are not there are lost: `operations`, a mask, are the rows
    that this gives up."""

    mortal = False

    def __init__(self, name: str, without: Guards, *, instant: int, operations: int):
        super().__init__(name, without)
        self.planned, self.operations = instant, operations

    def begin(self) -> Location:
        return ("look",)

    def at_look(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if decided(store, self.planned) and "a decided plan is not written again" not in self.without:
            yield Step(f"LIST: {self.planned} is decided", ("done", self.planned))
        elif ("k", self.planned) not in store:
            yield Step(f"LIST: {self.planned} is archived", ("done", self.planned))
        else:
            yield Step(f"LIST: files of plan {self.planned} are gone", ("again", self.planned, tail(store)))

    def at_again(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        _, mask, logs = last_plan(store, instant)
        there = tuple(log for log in logs if log in store)
        entry = ("P", instant, (), ("f",), (mask, there))
        label = f"PUT chain/{known + 1}=plan {instant} without what is lost"
        for step in create(
            store, ("h", known + 1), entry, label, ok=("done", instant), refused=("look",), unknown=None
        ):
            if step.writes:
                step.fail = self.operations
            yield step


class AfterGivingUp(Executor):
    """An executor of the last plan: it refuses one of which a file is gone, and waits until
    executors of an earlier plan have ended."""

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for instant in sorted(k[1] for k in store if k[0] == "k" and ("c", k[1]) not in store):
            number, mask, logs = last_plan(store, instant)
            waits = self._written_again(store, instant, number) and not self._over(instant, number, env)
            if not all(log in store for log in logs) or (
                waits and "H before a new plan is executed" not in self.without
            ):
                continue
            before = unmaterialised(store, number, self.without)
            if before:
                yield Step(f"LIST: entry {before} is not materialised", ("ahead", store[("h", before)][1], before))
            else:
                yield Step(f"resume plan {instant} of entry {number}", ("prove", instant, number, (mask, logs)))

    def may_publish(self, at: Location, store: Store) -> int:
        return at[1] if at[0] == "ahead" else super().may_publish(at, store)

    def at_ahead(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        back: Location = ("idle",)
        yield from materialise(store, store.get(("h", at[2])), self, f"{self.name} helps entry {at[2]}", back, at)
        yield from expired(at, back)

    def _written_again(self, store: Store, instant: int, number: int) -> bool:
        return any(k[0] == "h" and k[1] < number and v[:2] == ("P", instant) for k, v in store.items())

    def _over(self, instant: int, number: int, env: Env) -> bool:
        """H after the new plan: no proof older than it is left, and no request for a file that was
        sent under one."""
        for process, at in zip(env.processes, env.locations, strict=True):
            if isinstance(process, Compactor) and process.may_write(at) == instant and at[2] < number:
                return False
        return not may_land(instant, env, "d")


class Started(Compactor):
    """An executor that has read the files of the plan, entry `number`, before one of them was lost:
    it holds `mask`."""

    def __init__(self, name: str, without: Guards, *, instant: int, number: int, mask: int):
        super().__init__(name, without)
        self.first = ("prove", instant, number, (mask, ()))

    def begin(self) -> Location:
        return self.first
