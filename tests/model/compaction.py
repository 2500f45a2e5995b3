"""Compaction of one group (section 2.3): a plan that is a chain entry, its executors, and stray
task attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Process, Step
from tests.model.planner import Planner
from tests.model.rights import Guards, expired, gap, live, materialise, prove
from tests.model.store import Key, Store, decided, start_of, tail, timeline


class Compactor(Planner):
    """Plans, publishes the plan, executes it. Content is deterministic, so that any executor may
    resume it."""

    def __init__(self, name: str = "C", without: Guards = frozenset(), *, group: str = "f"):
        super().__init__(name, without)
        self.group, self.touches = group, (group,)

    def draft(self, store: Store, env: Env) -> Any:
        return self._slice(store)

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, (self.group,), (self.group,), draft)

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("prove", instant, slot, draft)

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] == "file" and at[-1] else 0

    def commit(self, store: Store, instant: int, known: int) -> Any:
        """The chain entry of the execution, behind entry `known`."""
        files = (("d", self.group, instant, 0),)
        return ("C", instant, (files, (), (self.group,)), ("compaction",))

    def at_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if "plan in chain" not in self.without:
            yield from super().at_plan(at, store, env)
        else:
            yield Step(f"PUT {at[1]}.compaction.requested beside the chain", ("mutant_file", *at[1:]),
                       ((("k", at[1]), (self.group,)),))  # fmt: skip

    def at_prove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        gone, held = Step("look at the decision", ("relist", at[1])), ("file", *at[1:])
        yield from prove(store, at[1], at[2], self.without, held=held, lost=at, gone=gone, executes=True)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, slot, logs, _ = at
        yield Step("PUT compacted base", ("decide", instant, slot), (self._base(store, instant, logs),))
        yield from expired(at, ("prove", *at[1:-1]))

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        slot, entry = known + 1, store.get(("h", known + 1))
        if entry is None:
            commit = self.commit(store, instant, known)
            yield Step(f"PUT chain/{slot}=commit {instant}", ("publish", instant), ((("h", slot), commit),))
            yield from expired(at, ("fresh", *at[1:]), env.trims)
        elif entry[1] == instant and entry[0] == "C":
            yield Step(f"GET chain/{slot}: decided by the other executor", ("relist", instant))
        elif entry[:2] == ("P", instant) and "a new plan ends the walk" not in self.without:
            yield Step(f"GET chain/{slot}: planned again", ("failed", instant))
        elif self.waits(store, entry):
            yield Step(f"GET chain/{slot}: not materialised", ("walk", *at[1:]))
        else:
            # A compaction conflicts with nobody: whoever came later saw its plan.
            yield Step(f"GET chain/{slot}: no conflict", ("decide", instant, slot))

    def at_walk(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        yield from self.help_in_order(known + 1, store, ("decide", instant, known + 1), at)
        yield from expired(at, ("decide", *at[1:]))

    def at_fresh(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        to: Location = ("relist", at[1]) if gap(store, at[2]) else ("decide", *at[1:])
        yield Step("LIST chain again", to)

    def at_relist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry = decided(store, at[1])
        committed = entry is not None and entry[0] == "C"
        if committed and live(store, at[1]):
            yield Step(f"LIST: {at[1]} is decided, not published", ("publish", at[1]))
        else:
            yield Step(f"LIST: {at[1]} is over", ("done" if committed else "failed", at[1]))

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry = decided(store, at[1])
        if entry is not None and entry[0] == "A":
            yield Step(f"{at[1]} was aborted after its plan", ("failed", at[1]))
            return
        yield from materialise(store, entry, self, f"{self.name} publishes {at[1]}", ("done", at[1]), at)
        yield from expired(at, ("relist", at[1]), env.archives)

    def at_mutant_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        base = self._base(store, at[1], at[3])
        yield Step("PUT compacted base", ("mutant_publish", at[1]), (base,))

    def at_mutant_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        body = ((("d", self.group, at[1], 0),), (), (self.group,))
        yield Step(f"PUT {at[1]}.commit beside the chain", ("done", at[1]), ((("c", at[1]), body),))

    def _base(self, store: Store, instant: int, logs: tuple[int, tuple[Key, ...]]) -> tuple[Key, int]:
        mask = logs[0]
        for log in logs[1]:
            mask |= store.get(log, 0)
        return ("d", self.group, instant, 0), mask

    def _slice(self, store: Store) -> tuple[int, tuple[Key, ...]]:
        completed, start = set(timeline(store)[0]), start_of(store)
        bases = (
            (k[2], v)
            for k, v in store.items()
            if k[0] == "d" and k[1] == self.group and (k[2] in completed or k[2] < start)
        )
        on, mask = max(bases, default=(0, 0))
        logs = (
            k
            for k in store
            if k[0] == "l" and k[1] == self.group and k[2] == on and (k[3] in completed or k[3] < start)
        )
        return mask, tuple(sorted(logs))


class Executor(Compactor):
    """A second executor: resumes any published plan."""

    mortal = False

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for slot in range(1, tail(store) + 1):
            entry = store.get(("h", slot), ("", 0))
            if entry[0] == "P" and (live(store, entry[1]) or "archived plans not resumed" in self.without):
                yield Step(f"resume plan {entry[1]}", ("publish_plan", entry[1], slot, entry[4]))


class SecondAttempt(Process):
    """Another attempt of a task of the first process (speculation, zombie executor), ending
    whenever it likes."""

    def __init__(self, name: str = "Z", without: Guards = frozenset(), *, group: str = "n1", operation: int = 1):
        self.name, self.without, self.group, self.operation = name, without, group, operation

    def begin(self) -> Location:
        return ("draw",)

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] == "file" and at[-1] else 0

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        driver = env.locations[0]
        if driver[0] in ("prove", "file", "decide"):
            to: Location = ("prove", driver[1], driver[2])
            if "renewed right" in self.without:
                to = ("file", driver[1], driver[2], 0)
            yield Step(f"attempt 2 of a task of {driver[1]} starts", to)

    def at_prove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        gone = Step("attempt 2 ends", ("failed", at[1]))
        yield from prove(store, at[1], at[2], self.without, held=("file", *at[1:]), lost=at, gone=gone)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        group = f"{self.group}z" if "planned file ids" in self.without else self.group
        yield Step("attempt 2 PUTs its file", ("done", at[1]), ((("d", group, at[1], 9), 1 << self.operation),))
        if "renewed right" not in self.without:
            yield from expired(at, ("prove", *at[1:-1]))
