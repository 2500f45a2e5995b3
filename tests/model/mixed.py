"""One of our writers beside a foreign writer and its lazy rollback, sharing the foreign lock
(section 2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import OVER, Env, Location, Step
from tests.model.naive import NaiveRollback, NaiveWriter
from tests.model.store import Store, timeline
from tests.model.writer import Writer


def _gone(name: str, env: Env) -> bool:
    return any(p.name == name and at[0] in OVER for p, at in zip(env.processes, env.locations, strict=True))


class SharingWriter(Writer):
    """Takes the foreign lock around the last check, the decision and the publication. `steal`: from
    a live holder too."""

    def __init__(self, name: str, operation: int, *, steal: bool = False, **more: Any):
        super().__init__(name, operation, **more)
        self.steal = steal

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        holder = store.get(("lock",))
        if holder is None or self.steal or _gone(holder[0], env):
            yield Step("LOCK", ("locked", *at[1:]), ((("lock",), (self.name, at[1])),))

    def at_locked(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, _, _, completed, _ = at
        newer = [v for k, v in store.items() if k[0] == "c" and k[1] not in completed]
        bad = ("r", instant) not in store or ("rbk", instant) in store
        bad = bad or any(set(body[2]) & set(self.touches) for body in newer)
        if bad and "check under lock" not in self.without:
            yield Step("under the lock: conflict, or rolled back", ("unlock", instant, 0))
        else:
            yield Step("under the lock: clear", ("enter", *at[1:]))

    def at_enter(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, _, _ = at
        entry = ((("h", known + 1), self.entry(instant, files)),)
        yield Step(f"PUT chain/{known + 1}=commit {instant}", ("show", instant, files), entry)

    def at_show(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        body = self.entry(at[1], at[2])[2]
        yield Step(f"PUT {at[1]}.commit", ("unlock", at[1], 1), ((("c", at[1]), body),))

    def at_unlock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from NaiveWriter.at_unlock(self, at, store, env)  # type: ignore[arg-type] # the same two fields


class ForeignWriter(NaiveWriter):
    """Waits for the lock unless it may `steal` it."""

    def at_lock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        holder = store.get(("lock",))
        if holder is None or self.options.get("steal") or _gone(holder[0], env):
            yield from super().at_lock(at, store, env)


class ForeignRollback(NaiveRollback):
    """Plans under the lock after a reload, deletes outside it. `dishonest`: live writers seem dead
    too."""

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for instant in timeline(store)[1]:
            owner = store.get(("r", instant))
            dead = any(
                p.name == owner and p.instant(place) == instant and place[0] in ("dead", "failed")
                for p, place in zip(env.processes, env.locations, strict=True)
            )
            if dead or self.options.get("dishonest"):
                yield Step(f"the heartbeat of {instant} expired", ("wait", instant))

    def at_wait(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        holder = store.get(("lock",))
        if holder is None or _gone(holder[0], env):
            yield Step("LOCK", ("plan", at[1]), ((("lock",), (self.name, 0)),))

    def at_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if ("c", at[1]) in store or ("r", at[1]) not in store:
            yield Step("reload: nothing to roll back, UNLOCK", ("idle",), ((("lock",), None),))
        else:
            writes = ((("rbk", at[1]), 1), (("lock",), None))
            yield Step(f"PUT rollback.requested of {at[1]}, UNLOCK", ("sweep", at[1]), writes)

    def at_sweep(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for key in sorted((k for k in store if k[0] == "d" and k[2] == at[1]), key=str)[:1]:
            yield Step(f"DELETE {key[1]}@{key[2]}", at, ((key, None),))
            return
        yield Step("files are gone", ("finish", at[1]))
