"""A fault at every storage call of a compaction's scheduling and of its execution: readers see the
same rows as before, writers go on without a repair, and the retry completes the plan that was
published, if one was.

Matrix: {bucket partitioned, simple flat, simple without stored keys} × {schedule, execute, log
compaction} × each storage call × {crash before, crash after, torn write, lost reply}, on an
in-memory store; hudi-rs reads every distinct layout of the first two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.model.timeline.instants import Action
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import (
    LATER_LOGS,
    LOG_LAYOUTS,
    MADE_KEYS,
    Layout,
    Rows,
    copied,
    opened,
    read,
    rows,
    with_logs,
)
from tests.support.fault_points import ForeignReader, after_each_fault, on_table
from tests.support.written import slices

AFTER = frozenset({("a", "x", 9), ("c", "y", 3), ("n", "x", 1)})
NEXT = ("next", "x", 100)


def plans(store: Storage) -> list[str]:
    return [name for name in load_timeline(opened(store).context).files if name.endswith(".compaction.requested")]


def schedule(table: HudiTable) -> None:
    # A plan that was decided and not yet published is published instead of a new one.
    table.schedule_compaction(force=True)
    assert len(plans(table.context.storage)) == 1


def execute(table: HudiTable) -> None:
    for name in plans(table.context.storage):
        table.run_compaction(name.partition(".")[0])


def planned(layout: Layout) -> Storage:
    store = with_logs(layout)
    schedule(opened(store))
    return store


STARTS: dict[str, tuple[Callable[[Layout], Storage], Callable[[HudiTable], None]]] = {
    "schedule": (with_logs, schedule),
    "execute": (planned, execute),
}


@pytest.mark.thinned("values")
@pytest.mark.parametrize("step", STARTS)
@pytest.mark.parametrize("layout", [*LOG_LAYOUTS, LATER_LOGS, MADE_KEYS], ids=str)
def test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_completes_the_plan(
    layout: Layout, step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    prepare, operate = STARTS[step]
    start = prepare(layout)
    assert read(start) == AFTER
    foreign = ForeignReader(tmp_path)
    done = 0
    for point in after_each_fault(start, on_table(operate)):
        store, where = point.store, point.where
        assert read(store) == AFTER, where
        foreign.check(store, AFTER, where)
        for suspect in point.suspects:
            check_goes_on(copied(store), suspect, where)
        check_retry(copied(store), operate, where)
        done += 1
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("layout", [*LOG_LAYOUTS, LATER_LOGS], ids=str)
def test_a_fault_at_any_storage_call_of_a_log_compaction_changes_no_row(
    layout: Layout, figure: Callable[[int, str], None]
) -> None:
    start = with_logs(layout)
    opened(start).write(rows(("a", "x", 9)), operation="upsert")
    done = 0
    for point in after_each_fault(start, on_table(compact_logs)):
        store, where = point.store, point.where
        assert read(store) == AFTER, where
        for suspect in point.suspects:
            later = copied(store)
            opened(later, suspect=suspect).write(rows(NEXT), operation="upsert")
            assert read(later) == AFTER | {NEXT}, where
            table = opened(later, suspect=suspect)
            compact_logs(table)
            assert read(later) == AFTER | {NEXT}, where
            assert not [i for i in load_timeline(table.context).pending if i.action is Action.LOG_COMPACTION], where
            table.compact(force=True)
            check_compacted(later, AFTER | {NEXT}, where)
        done += 1
    figure(done, "crash points")


def compact_logs(table: HudiTable) -> None:
    table.compact_logs(force=True, engine=LocalEngine(1))


def check_goes_on(store: Storage, suspect: float, where: str) -> None:
    """The next write needs no repair and publishes a plan that was decided; a compaction after it
    leaves no log."""
    table = opened(store, suspect=suspect)
    table.write(rows(NEXT), operation="upsert")
    assert read(store) == AFTER | {NEXT}, where
    before = plans(store)
    if suspect == 0:
        assert not load_timeline(table.context).planner_claims, f"{where}: a dead planner's claim is left"
    table.compact(force=True)
    assert set(before) <= set(plans(store)), f"{where}: a published plan is gone"
    check_compacted(store, AFTER | {NEXT}, where)


def check_retry(store: Storage, operate: Callable[[HudiTable], None], where: str) -> None:
    """Again, at once, by a process that knows nothing: what was published is what is executed."""
    before = plans(store)
    table = opened(store)
    if not before:
        operate(table)
    assert read(store) == AFTER, where
    execute(table)
    assert not before or plans(store) == before, f"{where}: another plan was made"
    check_compacted(store, AFTER, where)


def check_compacted(store: Storage, expected: Rows, where: str) -> None:
    assert read(store) == expected, where
    timeline = load_timeline(opened(store).context)
    assert not [i for i in timeline.pending if i.time in {name.partition(".")[0] for name in plans(store)}], where
    assert not any(found.logs for found in slices(opened(store))), where
