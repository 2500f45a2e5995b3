"""Instances of services that publish plans: clustering, giving up lost files of a compaction,
cleaning beside savepoints, restoring."""

from __future__ import annotations

from tests.model.clustering import Clusterer, ClusteringExecutor
from tests.model.engine import InFlight, Instance
from tests.model.lost import AfterGivingUp, GiverUp, Started
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.restoring import Restorer
from tests.model.savepoints import CleanPlanner, Dropper, Savepointer
from tests.model.store import Store

ONE = {0: 1, 1: 1}


def c1(p: Parts) -> Instance:
    return Instance("clustering that rejects updates: upsert, planner, recovery",
                    [p.writer("W1", 1), Clusterer("C", p.without, rejects=True), p.recovery()], FIRST, ONE,
                    lost_replies=0)  # fmt: skip


def c2(p: Parts) -> Instance:
    return Instance("clustering that allows updates: upsert, planner, second executor, recovery",
                    [p.writer("W1", 1, allows=True), Clusterer("C", p.without), ClusteringExecutor("X", p.without),
                     p.recovery()], FIRST, ONE, lost_replies=0)  # fmt: skip


def c3(p: Parts) -> Instance:
    """The plan is made; the upsert moves the timeline on, so that the archiver passes what a
    given-up plan leaves."""
    store = {**FIRST, ("p", 2): ("f",), ("h", 1): ("P", 2, ("f",), ("f",), (1, 1), "p")}
    return Instance("a pending clustering: two executors, given up, upsert of another group, archiver",
                    [p.writer("W1", 1, ("h",)), ClusteringExecutor("C", p.without), ClusteringExecutor("X", p.without),
                     p.recovery(gives_up=True, chain_max=3), p.archiver()], store, ONE, lost_replies=0)  # fmt: skip


def c4(p: Parts) -> Instance:
    overwrite = p.writer("W1", None, ("f",), touches=("f", "h"), replaces=("f", "h"), allows=True)
    return Instance("clustering that allows updates, an overwrite of its group, recovery",
                    [overwrite, Clusterer("C", p.without), p.recovery()], FIRST, {0: 1}, lost_replies=0)  # fmt: skip


def c5(p: Parts) -> Instance:
    """An executor that deals the rows out otherwise is one without the guard."""
    store = {**FIRST, ("d", "f", 1, 0): 3, ("p", 2): ("f",), ("h", 1): ("P", 2, ("f",), ("f",), (1, 3), "p")}
    other = (2, 1) if "executors write the same" in p.without else (1, 2)
    return Instance("a pending clustering into two groups: two executors",
                    [ClusteringExecutor("C", p.without, outputs=("g", "h"), parts=(1, 2)),
                     ClusteringExecutor("X", p.without, outputs=("g", "h"), parts=other)], store, ONE, acked=0b11)  # fmt: skip


def c6(p: Parts) -> Instance:
    insert = p.writer("W1", 1, ("h",), touches=("h", "f"))
    return Instance("clustering that rejects updates: a large insert, which touches the whole partition, planner",
                    [insert, Clusterer("C", p.without, rejects=True), p.recovery()], FIRST, ONE, lost_replies=0)  # fmt: skip


LOST: Store = {
    **FIRST,
    ("c", 2): ((), (), ("f",)),
    ("r", 2): "W1",
    ("h", 1): ("C", 2, ((), (), ("f",)), ("f",)),
    ("k", 3): ("f",),
    ("h", 2): ("P", 3, ("f",), ("f",), (1, (("l", "f", 1, 2),))),
}
"""A compaction 3 is scheduled of group f, whose log of operation 1 is lost."""


def g1(p: Parts) -> Instance:
    started = Started("Y", p.without, instant=3, number=2, mask=0b11)
    giving = GiverUp("G", p.without, instant=3, operations=0b10)
    return Instance("a lost log of a scheduled compaction is given up: an executor that has read it, another, a delta, recovery, archiver",
                    [started, AfterGivingUp("X", p.without), giving, p.writer("W", 2, logs=True), p.recovery(chain_max=6),
                     p.archiver()], LOST, ROWS, lost_replies=0)  # fmt: skip


TWICE: Store = {
    **FIRST,
    ("c", 2): ((("d", "f", 2, 0),), (), ("f",)),
    ("r", 2): "W1",
    ("d", "f", 2, 0): 3,
    ("h", 1): ("C", 2, ((("d", "f", 2, 0),), (), ("f",)), ("f",)),
}
"""Group f was written by 1 and rewritten by 2."""


def s1(p: Parts) -> Instance:
    return Instance("clean, savepoint of what it would delete, upsert of another group",
                    [CleanPlanner("K", p.without), Savepointer("V", p.without), p.writer("W2", 2, ("h",))], TWICE, ROWS,
                    acked=0b11)  # fmt: skip


def s2(p: Parts) -> Instance:
    return Instance("clean, savepoint, its deletion, upsert of another group",
                    [CleanPlanner("K", p.without), Savepointer("V", p.without), Dropper("D", p.without),
                     p.writer("W2", 2, ("h",))], TWICE, ROWS, lost_replies=0, acked=0b11)  # fmt: skip


def r1(p: Parts) -> Instance:
    late = InFlight(("absent", ("r", 2), "old"), 0, waited=False)
    return Instance("rollback of the newest instant, an upsert of its group, recovery, a late claim of that instant",
                    [p.writer("W2", 2), Restorer("U", p.without), p.recovery(chain_max=4)], TWICE, ROWS, lost_replies=0,
                    acked=0b11, flying=(late,))  # fmt: skip


def r2(p: Parts, *, late_claim: bool = True) -> Instance:
    """Instant 2 is decided and not published; another of its claims is under way."""
    asleep = ("publish", 2, 1, (("d", "f", 2, 0),))
    store = {k: v for k, v in TWICE.items() if k != ("c", 2)}
    late = InFlight(("absent", ("r", 2), "old"), 0, waited=False)
    return Instance("rollback of an instant whose writer sleeps before publication; recovery, a late claim of it",
                    [p.writer("W1", 1, first=asleep), Restorer("U", p.without), p.recovery()], store, ROWS,
                    flying=(late,) if late_claim else ())  # fmt: skip


def r2n(p: Parts) -> Instance:
    """As R2, without the late claim."""
    return r2(p, late_claim=False)


def r3(p: Parts) -> Instance:
    return Instance("rollback beside a clean and an upsert",
                    [CleanPlanner("K", p.without), p.writer("W2", 2, ("h",)), Restorer("U", p.without)], TWICE, ROWS,
                    lost_replies=0, acked=0b11)  # fmt: skip


def r4(p: Parts) -> Instance:
    return Instance("restore to the first instant, upserts of two groups",
                    [p.writer("W2", 2), p.writer("W3", 3, ("h",)), Restorer("U", p.without, to=1)], TWICE, {**ROWS, 3: 1},
                    lost_replies=0, acked=0b11)  # fmt: skip


def r5(p: Parts) -> Instance:
    keep = 1 if "archiving keeps two" in p.without else 2
    return Instance("rollback, archiver, an upsert",
                    [p.writer("W2", 2), Restorer("U", p.without), p.archiver(keep=keep)], TWICE, ROWS, lost_replies=0,
                    acked=0b11)  # fmt: skip


PLANS: dict[str, Maker] = {
    maker.__name__[0].upper() + maker.__name__[1:]: maker
    for maker in (c1, c2, c3, c4, c5, c6, g1, s1, s2, r1, r2, r2n, r3, r4, r5)
}
