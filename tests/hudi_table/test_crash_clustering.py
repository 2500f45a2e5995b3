"""A fault at every storage call of a clustering's scheduling, of its execution and of giving a void
plan up: readers see the same rows as before, writers go on without a repair, and the retry
completes the plan that was published, if one was.

Matrix: {copy-on-write partitioned, merge-on-read flat} × {schedule, execute, give up} × each
storage call × {crash before, crash after, torn write, lost reply}, on an in-memory store; hudi-rs
reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import LATER_LOGS, Layout, Rows, copied, opened, read, rows, with_logs
from tests.support.fault_points import ForeignReader, after_each_fault, on_table
from tests.support.written import slices

LAYOUTS = [Layout(IndexType.SIMPLE, True), Layout(IndexType.SIMPLE, False, TableType.MERGE_ON_READ), LATER_LOGS]
AFTER = frozenset({("a", "x", 9), ("c", "y", 3), ("n", "x", 1)})
NEXT = ("next", "z", 100)
LOST = ("a", "x", 10)
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "city", "hoodie.parquet.small.file.limit": "0"}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


def plans(store: Storage) -> list[str]:
    return [
        name
        for name in load_timeline(opened(store).context).files
        if name.endswith((".replacecommit.requested", ".clustering.requested"))
    ]


def schedule(table: HudiTable) -> None:
    # A plan that was decided and not yet published is published instead of a new one.
    table.schedule_clustering(SORTED, force=True)
    assert len(plans(table.context.storage)) == 1


def execute(table: HudiTable) -> None:
    for name in plans(table.context.storage):
        table.run_clustering(name.partition(".")[0], engine=LocalEngine(1))


def give_up(table: HudiTable) -> None:
    for instant in table.pending_clusterings():
        with pytest.raises(WriteConflictError):
            table.run_clustering(instant, engine=LocalEngine(1))


def start(layout: Layout) -> Storage:
    store = with_logs(layout)
    assert len(slices(opened(store))) > (1 if layout.partitioned else 0)
    return store


def planned(layout: Layout) -> Storage:
    store = start(layout)
    schedule(opened(store))
    return store


def void(layout: Layout) -> Storage:
    store = planned(layout)
    opened(store).write(rows(LOST), operation="upsert", options=ALLOW)
    return store


MOVED = frozenset({LOST, ("c", "y", 3), ("n", "x", 1)})
STARTS: dict[str, tuple[Callable[[Layout], Storage], Callable[[HudiTable], None], Rows]] = {
    "schedule": (start, schedule, AFTER),
    "execute": (planned, execute, AFTER),
    "give up": (void, give_up, MOVED),
}


@pytest.mark.thinned("values")
@pytest.mark.parametrize("step", STARTS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_ends_the_plan(
    layout: Layout, step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    prepare, operate, expected = STARTS[step]
    begun = prepare(layout)
    assert read(begun) == expected
    foreign = ForeignReader(tmp_path)
    done = 0
    for point in after_each_fault(begun, on_table(operate)):
        store, where = point.store, point.where
        assert read(store) == expected, where
        foreign.check(store, expected, where)
        for suspect in point.suspects:
            check_goes_on(copied(store), expected, suspect, where)
        check_retry(copied(store), operate, expected, where)
        done += 1
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_goes_on(store: Storage, expected: Rows, suspect: float, where: str) -> None:
    """The next write, elsewhere, needs no repair and publishes a plan that was decided; nothing of
    it is ever taken for dead."""
    table = opened(store, suspect=suspect)
    before = plans(store)
    table.write(rows(NEXT), operation="upsert", options={"hoodie.parquet.small.file.limit": "0"} | ALLOW)
    assert read(store) == expected | {NEXT}, where
    assert set(before) <= set(plans(store)), f"{where}: a published plan is gone"
    if suspect == 0:
        assert not load_timeline(table.context).planner_claims, f"{where}: a dead planner's claim is left"
    end(table)
    assert read(store) == expected | {NEXT}, where


def check_retry(store: Storage, operate: Callable[[HudiTable], None], expected: Rows, where: str) -> None:
    """Again, at once, by a process that knows nothing: what was published is what is executed."""
    before, table = plans(store), opened(store)
    if not before:
        operate(table)
    assert read(store) == expected, where
    end(table)
    assert read(store) == expected, where
    assert set(before) <= set(plans(store)), f"{where}: a plan's file is gone before its quarantine is over"
    table.write(rows(("a", "x", 11)), operation="upsert")
    assert read(store) == {row for row in expected if row[0] != "a"} | {("a", "x", 11)}, where


def end(table: HudiTable) -> None:
    """Every plan is executed, or given up for good; then all small files are clustered."""
    for instant in table.pending_clusterings():
        try:
            table.run_clustering(instant, engine=LocalEngine(1))
        except WriteConflictError:
            assert instant not in table.pending_clusterings()
    table.cluster(SORTED, force=True, engine=LocalEngine(1))
    assert table.pending_clusterings() == []
    assert not any(found.logs for found in slices(table))
