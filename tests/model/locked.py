"""Our writers beside a writer of another engine, under the lock that both take (section 2.6).

Of the lock of ours others may think at any time that it has expired. The other engine takes it,
checks, publishes and gives it back, in one step: that it keeps its own lease is its own matter. Two
windows are left out, since no process can look at its lease and send in one step: from our look at
the lease until the decision is there, and until the file is. Both guards are these windows
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.beside import OtherEngine
from tests.model.engine import Env, Instance, Location, Step, create
from tests.model.parts import FIRST, ROWS, TWO_GROUPS, Maker, Parts
from tests.model.rights import ChainProcess, Guards, given_up, materialise
from tests.model.store import Key, Store, committed, tail
from tests.model.writer import Writer

LOCK: Key = ("lock",)


def strangers(store: Store) -> tuple[int, ...]:
    """Completed instants of which the chain has no entry."""
    return tuple(k[1] for k in store if k[0] == "c" and committed(store, k[1]) is None and k[1] != 1)


def overtaken(store: Store, entry: Any, without: Guards) -> bool:
    """Whether another engine has completed what meets the entry since that was made. Ages are the
    store's own; here the entry tells what was older."""
    newer = [t for t in strangers(store) if t not in store[("older", entry[1])]]
    return any(set(store[("c", t)][2]) & set(entry[3]) for t in newer) and "overtaken is given up" not in without


class Locked(ChainProcess):
    """What a writer and a helper share: the lock, and publishing under it. `bit`: the operation of
    the instant that is published."""

    bit = 0
    shows = ()
    """Who holds the lock publishes at once what it comes across."""

    def take(self, to: Location) -> Step:
        """The lock, free or expired: nobody can tell a holder that sleeps from one that is dead."""
        return Step("LOCK", to, ((LOCK, self.name),))

    def holds(self, store: Store) -> bool:
        """What a look at the lease says."""
        return store.get(LOCK) == self.name

    def in_window(self, at: Location) -> bool:
        windows = {"send": "window of our decision", "show": "window of our file"}
        return at[0] in windows and windows[at[0]] not in self.without

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if self.holds(store) or "lease before the file" in self.without:
            yield Step("the lease lasts", ("show", *at[1:]))
        else:
            yield Step("the lease is lost", ("again", *at[1:]))

    def at_again(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield self.take(("under", *at[1:]))

    def at_under(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant, entry = at[1], committed(store, at[1])
        if ("c", instant) in store:
            yield self.published(instant)
        elif given_up(store, instant, self.without):
            yield self.lost(instant)
        elif overtaken(store, entry, self.without):
            yield Step(f"LIST: {instant} is overtaken", ("give_up", *at[1:], tail(store)))
        else:
            yield Step(f"LIST: {instant} is not overtaken", ("publish", *at[1:]))

    def at_give_up(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant, slot, again = at[1], at[-1] + 1, ("again", *at[1:-1])
        for step in create(
            store,
            ("h", slot),
            ("A", instant),
            f"PUT chain/{slot}=abort {instant}",
            ok=again,
            refused=again,
            unknown=None,
        ):
            if step.writes:
                step.fail = self.bit
            yield step

    def at_show(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry, label = committed(store, at[1]), f"{self.name} publishes {at[1]}"
        yield from materialise(store, entry, self, label, ("behind", *at[1:]), at)

    def at_behind(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        if given_up(store, instant, self.without) and "a look behind the file" not in self.without:
            yield Step(f"given up meanwhile: DELETE {instant}.commit", ("under", *at[1:]), ((("c", instant), None),))
        else:
            yield self.published(instant)

    def published(self, instant: int) -> Step:
        """The instant is there."""
        raise NotImplementedError

    def lost(self, instant: int) -> Step:
        """The instant was given up."""
        raise NotImplementedError


class LockedWriter(Locked, Writer):
    """Holds the lock from its last listing to its file."""

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield self.take(("locked", *at[1:]))

    def at_locked(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, _, _, completed, _ = at
        new = [t for t in strangers(store) if t not in completed and set(store[("c", t)][2]) & set(self.touches)]
        if new and "other engines looked for" not in self.without:
            yield self._lose(f"LIST: {new[0]} is another engine's", instant)
        else:
            yield Step("LIST: nothing of another engine", ("sure", *at[1:]))

    def at_sure(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if self.holds(store) or "lease before the decision" in self.without:
            yield Step("the lease lasts", ("send", *at[1:]))
        else:
            yield self._lose("the lease is lost", at[1])

    def at_send(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in Writer.at_decide(self, at, store, env):
            if step.writes:
                step.writes = (*step.writes, (("older", at[1]), strangers(store)))
            yield step

    def at_help(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        """Whoever helps does as `Helper`."""
        if self._is_over(store, at[-1]):
            yield Step(f"entry {at[-1]} is there", ("listing", *at[1:3]))

    def at_walk(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if self._is_over(store, at[2] + 1):
            yield Step(f"entry {at[2] + 1} is there", ("look", *at[1:]))

    def _is_over(self, store: Store, slot: int) -> bool:
        instant = store[("h", slot)][1]
        return ("c", instant) in store or given_up(store, instant, self.without)

    def published(self, instant: int) -> Step:
        return Step(f"{instant} is there", ("done", instant), ack=self.bit)

    def lost(self, instant: int) -> Step:
        return self._fail("given up", instant)


class Helper(Locked):
    """Another process of ours, which publishes what is decided and has no file; or gives it up."""

    mortal = False

    def __init__(self, name: str, operation: int, without: Guards):
        super().__init__(name, without)
        self.bit = 1 << operation

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        waiting = [v[1] for k, v in store.items() if k[0] == "h" and v[0] == "C" and ("c", v[1]) not in store]
        for instant in waiting:
            if not given_up(store, instant, self.without):
                yield Step(f"LIST: {instant} is decided and not there", ("again", instant))

    def published(self, instant: int) -> Step:
        return Step(f"{instant} is there", ("idle",))

    def lost(self, instant: int) -> Step:
        return Step(f"{instant} is given up", ("idle",))


class EngineUnderLock(OtherEngine):
    """Takes the lock, checks, publishes and gives it back."""

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_publish(at, store, env):
            step.writes = (*step.writes, (LOCK, None))
            yield step


def l1(p: Parts) -> Instance:
    others = [Helper("B", 1, p.without), EngineUnderLock("F", 2, p.without)]
    return Instance("an upsert, a helper, and another engine's upsert, all under one lock",
                    [LockedWriter("W1", 1, without=p.without), *others], FIRST, ROWS, lost_replies=0, deaths=True)  # fmt: skip


def l2(p: Parts) -> Instance:
    ours = [LockedWriter("W1", 1, without=p.without), LockedWriter("W2", 2, ("g",), without=p.without)]
    return Instance("upserts of two groups, a helper, and another engine's upsert of one of them, under one lock",
                    [*ours, Helper("B", 1, p.without), EngineUnderLock("F", 3, p.without)], TWO_GROUPS, {**ROWS, 3: 1},
                    lost_replies=0, deaths=True)  # fmt: skip


def l3(p: Parts) -> Instance:
    """The other engine writes twice."""
    others = [Helper("B", 1, p.without), EngineUnderLock("F", 2, p.without), EngineUnderLock("G", 3, p.without)]
    return Instance("an upsert, a helper, and two upserts of another engine, all under one lock",
                    [LockedWriter("W1", 1, without=p.without), *others], FIRST, {**ROWS, 3: 1}, lost_replies=0, deaths=True)  # fmt: skip


LOCKED: dict[str, Maker] = {"L1": l1, "L2": l2, "L3": l3}
