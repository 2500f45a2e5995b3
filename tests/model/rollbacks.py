"""The instants of rollbacks (section 2.2 steps 3 and 4): drawn, claimed, found to be of two
recoveries, withdrawn, completed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.compaction import Compactor
from tests.model.engine import Env, Instance, Location, Step
from tests.model.parts import TWO_GROUPS, Maker, Parts
from tests.model.recovery import Recovery
from tests.model.rights import Guards
from tests.model.store import CLAIMS, Store, chain_max, claimed, newest, open_rollback


class RollingRecovery(Recovery):
    """A recovery of the instant `of` alone, which is aborted, whose rollback has an instant and a
    file of its own.

    Locations between the abort and the files: rollback, draw_rollback, claim_rollback, alone, only,
    withdraw; at the end: complete.
    """

    def __init__(self, name: str = "B", without: Guards = frozenset(), *, of: int, first: Location):
        super().__init__(name, without)
        self.of, self.first = of, first

    def begin(self) -> Location:
        return self.first

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_idle(at, store, env):
            if step.to[1] == self.of:
                yield step
        left = open_rollback(store, self.of)
        if left and not claimed(store, self.of):
            yield Step(f"LIST: rollback {left} has ended and is open", ("complete", self.of, left))

    def at_scan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from map(_by_rollback, super().at_scan(at, store, env))

    def at_abort(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from map(_by_rollback, super().at_abort(at, store, env))

    def at_rollback(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = open_rollback(store, at[1])
        if found:
            yield Step(f"LIST: rollback {found} of {at[1]} is open", ("delete", at[1]))
        else:
            yield Step(f"LIST: no rollback of {at[1]}", ("draw_rollback", at[1], 0))

    def at_draw_rollback(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        drawn = max(newest(store), chain_max(store), at[2]) + 1
        yield Step(f"LIST: draw {drawn} for the rollback of {at[1]}", ("claim_rollback", at[1], drawn))

    def at_claim_rollback(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, drawn = at
        if ("u", drawn) in store:
            yield Step(f"PUT {drawn}.rollback.requested =412", ("draw_rollback", instant, drawn))
        else:
            to: Location = ("only", instant) if "rollbacks stay alone" in self.without else ("alone", instant, drawn)
            yield Step(f"PUT {drawn}.rollback.requested", to, ((("u", drawn), instant),))

    def at_alone(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, drawn = at
        if any((kind, drawn) in store for kind in (*CLAIMS, "c")):
            label = f"LIST: another has {drawn} too, drop {drawn}.rollback.requested"
            yield Step(label, ("draw_rollback", instant, drawn), ((("u", drawn), None),))
        else:
            yield Step(f"LIST: rollback {drawn} is alone at its instant", ("only", instant))

    def at_only(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        others = sorted(k[1] for k, v in store.items() if k[0] == "u" and v == instant and ("uc", k[1]) not in store)[
            1:
        ]
        if others:
            yield Step(f"LIST: rollback {others[0]} of {instant} is not the oldest", ("withdraw", instant, others[0]))
        else:
            yield Step(f"LIST: one rollback of {instant}", ("delete", instant))

    def at_withdraw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, other = at
        kinds = f"u{CLAIMS}" if "withdrawn by its own name" in self.without else "u"
        yield Step(f"DELETE {other}.rollback.requested", ("only", instant), tuple(((k, other), None) for k in kinds))

    def at_finish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_finish(at, store, env):
            if step.to == ("idle",):
                step.to = ("complete", at[1], open_rollback(store, at[1]))
            yield step

    def at_complete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT {at[2]}.rollback", ("idle",), ((("uc", at[2]), at[1]),) if at[2] else ())


def _by_rollback(step: Step) -> Step:
    if step.to[0] == "delete":
        step.to = ("rollback", *step.to[1:])
    return step


DEAD: Store = {**TWO_GROUPS, ("r", 2): "dead", ("h", 1): ("A", 2), ("u", 3): 2}
"""A write of instant 2 that is aborted in the chain; a recovery has claimed a rollback of it, and
sleeps."""
SLOW = ("draw_rollback", 2, 0)
"""A recovery that listed before that rollback was there."""


def u1(p: Parts) -> Instance:
    return Instance("rollback of a dead write by two recoveries, compaction, delta of another group",
                    [p.writer("W1", 1, ("g",), logs=True), Compactor("C", p.without),
                     RollingRecovery("B", p.without, of=2, first=SLOW)], DEAD, {0: 1, 1: 1}, lost_replies=0)  # fmt: skip


def u2(p: Parts) -> Instance:
    return Instance("rollback of a dead write by two recoveries, two upserts of two groups",
                    [p.writer("W1", 1), p.writer("W2", 2, ("g",)), RollingRecovery("B", p.without, of=2, first=SLOW)], DEAD,
                    {0: 1, 1: 1, 2: 1}, lost_replies=0)  # fmt: skip


ROLLBACKS: dict[str, Maker] = {"U1": u1, "U2": u2}
