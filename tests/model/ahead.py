"""Version 6, under a lock that another engine takes too: the instant of a compaction's plan lies
ahead of the clock until its file is there (section 2.6).

A clock ticks. The other engine draws an instant by it, or by one that is a tick ahead, reads, and
puts a log to the slice that it has read. Then it takes the lock, looks for pending plans later than
itself, and publishes, in one step. A planner may sleep between its look at the clock and the plan's
file: then the executor waits for a write of a later instant, and does not execute the plan beside
its log. The model knows no ages, so it waits for one that has seen the plan, too. Instants are
ticks times `TICK`, so that there is room between.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.compaction import Compactor
from tests.model.engine import Env, Instance, Location, Process, Step
from tests.model.locked import LOCK
from tests.model.parts import FIRST, Maker, Parts
from tests.model.store import Key, Store, bases_in_view, chain_max, newest, tail, timeline

NOW: Key = ("now",)
TICK, TICKS_MAX = 10, 4


class Ticking(Process):
    """The clock. It stands still at the end: nothing waits for it there."""

    mortal = False

    def __init__(self, name: str = "T") -> None:
        self.name = name

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if store[NOW] < TICKS_MAX:
            yield Step(f"it is {store[NOW] + 1}", at, ((NOW, store[NOW] + 1),))


class TheirDelta(Process):
    """A delta of another engine. A plan that it has read gets its log."""

    mortal = False

    def __init__(self, name: str, operation: int) -> None:
        self.name, self.bit = name, 1 << operation

    def begin(self) -> Location:
        return ("draw",)

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for ahead in (0, 1):
            instant = TICK * (store[NOW] + ahead)
            if ("r", instant) not in store:
                yield Step(f"PUT {instant}.requested", ("read", instant), ((("r", instant), self.name),))

    def at_read(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        completed = timeline(store)[0]
        plans = [k[1] for k in store if k[0] == "k" and k[1] not in completed]
        base = max([bases_in_view(store, ("f",))[0][0], *plans])
        yield Step(f"LIST: logs go to {base}", ("file", at[1], base, tuple(completed)))

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, base, completed = at
        log = ("l", "f", base, instant)
        yield Step(f"PUT log of {instant} on {base}", ("check", instant, base, completed), ((log, self.bit),))

    def at_check(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, base, completed = at
        if store.get(LOCK) is not None:
            return
        log: Key = ("l", "f", base, instant)
        later = [k[1] for k in store if k[0] == "k" and k[1] > instant and ("c", k[1]) not in store]
        if later or any(k[0] == "c" and k[1] not in completed for k in store):
            writes = ((("r", instant), None), (log, None))
            yield Step("LOCK, conflict, UNLOCK", ("failed", instant), writes, fail=self.bit)
        else:
            body = ((log,), (), ("f",))
            yield Step(
                f"LOCK, PUT {instant}.deltacommit, UNLOCK", ("done", instant), ((("c", instant), body),), ack=self.bit
            )


class Ahead(Compactor):
    """A planner that claims anew under the lock, and the executor of its plan."""

    mortal = False

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = max(newest(store), chain_max(store), TICK * store[NOW]) + 1
        yield Step(f"LIST chain: tail {tail(store)}; draw {instant}", ("claim", instant, tail(store)))

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_listing(at, store, env):
            if step.to[0] == "plan":
                step.to = ("lock", *step.to[1:])
            yield step

    def at_lock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if store.get(LOCK) is None:
            yield Step("LOCK", ("anew", *at[1:]), ((LOCK, self.name),))

    def at_anew(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, draft = at
        if self.draft(store, env) != draft:
            yield Step("LIST: it moved, UNLOCK", ("relock", instant, known), ((LOCK, None),))
            return
        time = max(newest(store), chain_max(store), TICK * (store[NOW] + 2))
        writes = ((("q", instant), None), (("q", time + 1), self.name))
        yield Step(f"PUT {time + 1}.claim", ("plan", time + 1, known, draft), writes)

    def at_relock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("plan again", ("listing", *at[1:]))

    def at_publish_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        if TICK * (store[NOW] + 1) > instant and "late plans are given up" not in self.without:
            writes = ((("h", tail(store) + 1), ("A", instant)), (("q", instant), None), (LOCK, None))
            yield Step(f"{instant} has passed: PUT abort {instant}, UNLOCK", ("failed", instant), writes)
        else:
            yield Step(f"{instant} lies ahead", ("show", *at[1:]))

    def at_show(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from super().at_publish_plan(at, store, env)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant, looks = at[1], "late writes are looked for" not in self.without
        if looks and any(k[0] == "r" and k[1] > instant and ("c", k[1]) not in store for k in store):
            return
        if looks and any(k[0] == "l" and k[2] < instant < k[3] and ("c", k[3]) in store for k in store):
            yield Step(f"LIST: a later log lies beside the plan of {instant}", ("failed", instant))
            return
        yield from super().at_file(at, store, env)

    def at_unclaim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_unclaim(at, store, env):
            step.writes = (*step.writes, (LOCK, None))
            yield step


def l6(p: Parts) -> Instance:
    return Instance("a compaction, planned under a lock, and a delta of another engine whose clock may be a tick ahead",
                    [Ahead("C", p.without), TheirDelta("F", 1), Ticking()], {**FIRST, NOW: 1}, {0: 1, 1: 1}, lost_replies=0)  # fmt: skip


AHEAD: dict[str, Maker] = {"L6": l6}
