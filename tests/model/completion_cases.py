"""Instances of table versions 8 and 9: completion times that are decided, slices that go by
them."""

from __future__ import annotations

from typing import Any

from tests.model.completions import (
    AppendingWriter,
    TimedArchiver,
    TimedCompactor,
    TimedExecutor,
    TimedWriter,
    completions_violated,
    view_by_completion,
)
from tests.model.engine import Instance, Process
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.store import Store

TIMED: Store = {**FIRST, ("ct", 1, 1): 1}
WITH_LOG: Store = {
    **TIMED, ("l", "f", 0, 2): 2, ("r", 2): "old", ("c", 2): ((("l", "f", 0, 2),), (), ("f",)), ("ct", 2, 5): 1,
    ("h", 1): ("C", 2, ((("l", "f", 0, 2),), (), ("f",)), ("f",), 5),
}  # fmt: skip
"""A delta that another clock let complete late."""


def _writer(p: Parts, name: str, operation: int, groups: tuple[str, ...] = ("f",), **more: Any) -> Process:
    return TimedWriter(name, operation, groups, p.without, **more)


def _instance(name: str, processes: list[Process], store: Store, rows: dict[int, int], **more: Any) -> Instance:
    return Instance(name, processes, store, rows, view=view_by_completion, rules=completions_violated, **more)


def k12(p: Parts) -> Instance:
    return _instance("versions 8 and 9: two upserts of one group, free clocks, recovery",
                     [_writer(p, "W1", 1, ahead=(0, 2)), _writer(p, "W2", 2), p.recovery(timed=True)], TIMED, ROWS)  # fmt: skip


def v1(p: Parts) -> Instance:
    return _instance("versions 8 and 9: two deltas, compaction, second executor",
                     [_writer(p, "W1", 1, logs=True, ahead=(0, 2)), _writer(p, "W2", 2, logs=True),
                      TimedCompactor("C", p.without), TimedExecutor("X", p.without)], TIMED, ROWS, lost_replies=0)  # fmt: skip


def v2(p: Parts) -> Instance:
    archiver = TimedArchiver("A", p.without, horizon="H before archiving" not in p.without, keep=1)
    return _instance("versions 8 and 9: delta, compaction, archiver, recovery",
                     [_writer(p, "W1", 1, logs=True, ahead=(0, 2)), TimedCompactor("C", p.without), archiver,
                      p.recovery(timed=True)], TIMED, {0: 1, 1: 1}, lost_replies=0)  # fmt: skip


def v3(p: Parts) -> Instance:
    return _instance("versions 8 and 9: a base file written over a log that completed by a fast clock; delta",
                     [_writer(p, "W1", 3, rewrites=True), _writer(p, "W2", 2, logs=True)], WITH_LOG,
                     {**ROWS, 3: 1}, acked=0b11)  # fmt: skip


def v4(p: Parts) -> Instance:
    return _instance("versions 8 and 9: an upsert whose decision is sent again by another clock, helped, recovery",
                     [_writer(p, "W1", 1, ahead=(0, 1)), _writer(p, "W2", 2, ("g",)), p.recovery(timed=True)],
                     {**TIMED, ("d", "g", 1, 0): 0}, ROWS)  # fmt: skip


def v6(p: Parts) -> Instance:
    """Neither writer waits for the other, nor for the plan; the plan waits for both."""
    planner = TimedCompactor("C", p.without)
    planner.touches = ("f", "append 1", "append 2") if "plans conflict with appends" not in p.without else ("f",)
    appending = [
        AppendingWriter(f"W{n}", n, ("f",), p.without, logs=True, touches=(f"append {n}",), ahead=ahead)
        for n, ahead in ((1, (0, 2)), (2, (0,)))
    ]
    return _instance("versions 8 and 9: two deltas that append beside each other, compaction, second executor",
                     [*appending, planner, TimedExecutor("X", p.without)], TIMED, ROWS, lost_replies=0)  # fmt: skip


COMPLETIONS: dict[str, Maker] = {maker.__name__.upper(): maker for maker in (k12, v1, v2, v3, v4, v6)}
