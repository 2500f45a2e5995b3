"""A fault at every storage call of a rollback and of a restore: readers see the rows of before or
after, writers go on without a repair, and the retry completes it.

Matrix: {copy-on-write bucket partitioned, merge-on-read simple flat} × {rollback, restore} × each
storage call × {crash before, crash after, torn write, lost reply}, on an in-memory store; hudi-rs
reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.model.table.config import IndexType
from hudi_table.model.timeline.instants import Action
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import (
    FIRST,
    LATER_LOGS,
    LOG_LAYOUTS,
    Layout,
    Rows,
    copied,
    opened,
    prepared,
    read,
    rows,
)
from tests.support.fault_points import ForeignReader, after_each_fault, on_table
from tests.support.savepoints import keep

LAYOUTS = [Layout(IndexType.BUCKET, True), LOG_LAYOUTS[1], LATER_LOGS]
NEXT = ("next", "x", 100)
SAVED: Rows = frozenset(FIRST)


def written(layout: Layout) -> tuple[Storage, str]:
    """A savepoint with two writes after it, of which the first has three rows and the second takes
    one away."""
    store = prepared(layout)
    table = opened(store)
    saved = keep(table)
    table.write(rows(("a", "x", 9), ("n", "y", 1)), operation="upsert")
    table.write(rows(("b", "x", 0)), operation="delete")
    return store, saved


BEFORE: Rows = frozenset({("a", "x", 9), ("c", "y", 3), ("n", "y", 1)})
ONE_BACK: Rows = BEFORE | {("b", "x", 2)}


def roll_back(saved: str, newest: str, table: HudiTable) -> None:
    table.rollback(newest, writers_stopped=True)


def restore(saved: str, newest: str, table: HudiTable) -> None:
    table.restore(saved, writers_stopped=True)


STEPS: dict[str, tuple[Callable[[str, str, HudiTable], None], Rows]] = {
    "rollback": (roll_back, ONE_BACK),
    "restore": (restore, SAVED),
}


@pytest.mark.thinned("values")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_leaves_the_rows_of_before_or_after(
    layout: Layout, step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    work, after = STEPS[step]
    start, saved = written(layout)
    newest = load_timeline(opened(start).context).commits[-1].time
    operate = partial(work, saved, newest)
    assert read(start) == BEFORE
    foreign = ForeignReader(tmp_path)
    states: set[Rows] = set()
    done = 0
    for point in after_each_fault(start, on_table(operate)):
        store, where = point.store, point.where
        seen = read(store)
        assert seen in (BEFORE, after), where
        if point.outcome == "succeeded":
            assert seen == after, where
        states.add(seen)
        found = foreign.read(store)
        # A state of the table at some time: while a restore is under way, one between the two.
        assert found in (None, BEFORE, ONE_BACK, SAVED), f"{where}: hudi-rs reads {found}"
        for suspect in point.suspects:
            check_goes_on(copied(store), seen, suspect, where)
        check_retry(copied(store), operate, after, where)
        done += 1
    assert states == {BEFORE, after}
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_goes_on(store: Storage, seen: Rows, suspect: float, where: str) -> None:
    """The next write needs no repair, and finishes what was decided. It may bring about what was
    decided and not published."""
    opened(store, suspect=suspect).write(rows(NEXT), operation="upsert")
    found = read(store) - {NEXT}
    assert found == seen or seen == BEFORE, where
    table = opened(store)
    assert not [i for i in load_timeline(table.context).pending if i.action in (Action.ROLLBACK, Action.RESTORE)], where
    assert found in (BEFORE, ONE_BACK, SAVED), where


def check_retry(store: Storage, operate: Callable[[HudiTable], None], after: Rows, where: str) -> None:
    """Again, at once, by a process that knows nothing."""
    operate(opened(store))
    assert read(store) == after, where
    assert not load_timeline(opened(store).context).pending, where
    wrong = [f for f in opened(store).doctor(keys=True) if f.check != "Leftover"]
    assert wrong == [], where
    opened(store).write(rows(NEXT), operation="upsert")
    assert read(store) == after | {NEXT}, where
