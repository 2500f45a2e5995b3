"""Instances of simpler protocols (section 6) and of sharing a table with a foreign engine (sections
2.6 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.model.engine import Instance, Process
from tests.model.mixed import ForeignRollback, ForeignWriter, SharingWriter
from tests.model.naive import NaiveRollback, NaiveWriter
from tests.model.parts import FIRST, ROWS, TWO_GROUPS
from tests.model.rights import Guards
from tests.model.services import Archiver, Cleaner, SlowReader
from tests.model.store import Store

ONE = {0: 1, 1: 1}


def _two(*others: Process, second: tuple[str, ...] = ("f",), lost: int = 0, **options: Any) -> Instance:
    first = FIRST if second == ("f",) else TWO_GROUPS
    writers: list[Process] = [NaiveWriter("W1", 1, **options), NaiveWriter("W2", 2, second, **options)]
    return Instance("", [*writers, *others], first, ROWS, lost_replies=lost)


def _one(*others: Process, **options: Any) -> Instance:
    return Instance("", [NaiveWriter("W1", 1, **options), *others], FIRST, ONE, lost_replies=0)


def _roll_forward() -> Instance:
    store: Store = {**TWO_GROUPS, ("d", "h", 1, 0): 0}
    options: dict[str, Any] = {"exclusive": True, "decision": True, "fresh": True}
    writers: list[Process] = [NaiveWriter(f"W{n}", n, (g,), **options) for n, g in ((1, "f"), (2, "g"), (3, "h"))]
    others: list[Process] = [NaiveRollback(fence="decision", only_forward=True), Archiver()]
    return Instance("", [*writers, *others], store, {**ROWS, 3: 1}, lost_replies=0)


def _mixed(without: Guards = frozenset(), *, steal: bool = False, dishonest: bool = False) -> Instance:
    foreign: list[Process] = [
        ForeignWriter("F", 2, exclusive=True, lock="lease", fresh=True, steal=steal),
        ForeignRollback("FR", dishonest=dishonest),
    ]
    ours = SharingWriter("W1", 1, without=without, steal=steal)
    return Instance("", [ours, *foreign], FIRST, ROWS, lost_replies=0, deaths=True)


DECISION: dict[str, Any] = {"exclusive": True, "decision": True}
SIMPLER: dict[str, tuple[Callable[[], Instance], str]] = {
    "N0 no lock": (lambda: _two(exclusive=True), "I1"),
    "N1 clock instants, overwrite": (lambda: _two(clock=(2,), lock="lease"), "I1"),
    "N2 lease": (lambda: _two(exclusive=True, lock="lease"), "I1"),
    "N3 lazy rollback": (lambda: _one(NaiveRollback(), exclusive=True), "I1"),
    "N3b lazy rollback after a reload": (lambda: _one(NaiveRollback(recheck=True), exclusive=True), "I1"),
    "N4 file without a marker": (
        lambda: _two(NaiveRollback(fence="decision"), Archiver(), second=("g",), unmarked=True, **DECISION),
        "I2",
    ),
    "N5 late file": (lambda: _two(NaiveRollback(fence="decision"), Archiver(), second=("g",), **DECISION), "I2"),
    "N6 cleaner beside a slow reader": (lambda: _one(Cleaner(), SlowReader(), exclusive=True), "I6"),
    "N7 poison, then delete": (lambda: _one(NaiveRollback(fence="poison"), exclusive=True), "I1"),
    "N8 delete, then poison": (lambda: _one(NaiveRollback(fence="poison", poison_last=True), exclusive=True), "I1"),
    "N9 decision per instant, lease": (lambda: _two(lock="lease", **DECISION), "I1"),
    "N10 the thief decides first": (lambda: _two(NaiveRollback(fence="decision"), lock="resolve", **DECISION), "I1"),
    "N13 roll-forward of an archived instant": (_roll_forward, "I1"),
    "M2 lock of a live holder stolen": (lambda: _mixed(steal=True), "I1"),
    "M3 heartbeat of a live writer expired": (lambda: _mixed(dishonest=True), "I1"),
    "M4 no check under the lock": (lambda: _mixed(Guards({"check under lock"})), "I1"),
}
"""Name -> (instance, the invariant that its search finds violated first)."""

SOUND: dict[str, tuple[Callable[[], Instance], int]] = {
    "N12 N10 and the own instant is the newest": (
        lambda: _two(NaiveRollback(fence="decision"), lock="resolve", fresh=True, lost=1, **DECISION),
        43_133,
    ),
    "M1 lock never lost, heartbeats honest": (_mixed, 1_682),
}
"""Name -> (instance, states of its exhaustive search)."""
