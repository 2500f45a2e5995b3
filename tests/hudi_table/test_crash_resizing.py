"""A fault at every storage call of a resize's scheduling, of its execution, and of taking it back:
readers see the same rows as before, each in one bucket of the number that counts; writers either go
on without a repair or are refused by the name of the plan; and the retry completes it.

Matrix: {copy-on-write, merge-on-read} × {schedule, execute, roll back}, of which a quick run takes
each step once, × each storage call × {crash before, crash after, torn write, lost reply}, on an
in-memory store; hudi-rs reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.service.findings import Severity
from hudi_table.model.table.config import IndexType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.bucket_count import buckets_at
from tests.hudi_table.test_crash_clustering import AFTER
from tests.support.crashes import LOG_LAYOUTS, Layout, copied, opened, read, rows, with_logs
from tests.support.fault_points import ForeignReader, after_each_fault, on_table
from tests.support.scale import scale
from tests.support.written import slices

FILES, LOGS = Layout(IndexType.BUCKET, True), LOG_LAYOUTS[0]
BEFORE, WANTED = 2, 3
NEXT = ("next", "z", 100)


def schedule(table: HudiTable) -> None:
    if table.pending_resize() is None and count(table) == BEFORE:
        table.services.resize(WANTED).schedule()


def execute(table: HudiTable) -> None:
    waiting = table.pending_resize()
    if waiting is not None or count(table) == BEFORE:
        table.resize_buckets(WANTED, engine=LocalEngine(1))


def roll_back(table: HudiTable) -> None:
    newest = load_timeline(table.context).commits[-1].time
    if count(table) == WANTED:
        table.rollback(newest, writers_stopped=True)


def planned(layout: Layout) -> Storage:
    store = with_logs(layout)
    schedule(opened(store))
    return store


def resized(layout: Layout) -> Storage:
    store = planned(layout)
    execute(opened(store))
    return store


def count(table: HudiTable) -> int | None:
    return buckets_at(table.context, load_timeline(table.context))


STEPS: dict[str, tuple[Callable[[Layout], Storage], Callable[[HudiTable], None], int]] = {
    "schedule": (with_logs, schedule, BEFORE),
    "execute": (planned, execute, WANTED),
    "roll back": (resized, roll_back, BEFORE),
}


CASES = [(FILES, "schedule"), (LOGS, "execute"), (FILES, "roll back")]
if scale() > 1:
    CASES = [(layout, step) for layout in (FILES, LOGS) for step in STEPS]


@pytest.mark.parametrize(("layout", "step"), CASES, ids=str)
def test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_ends_it(
    layout: Layout, step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    prepare, operate, after = STEPS[step]
    begun = prepare(layout)
    assert read(begun) == AFTER
    foreign = ForeignReader(tmp_path)
    numbers: set[int | None] = set()
    done = 0
    for point in after_each_fault(begun, on_table(operate)):
        store, where = point.store, point.where
        assert read(store) == AFTER, where
        numbers.add(check_buckets(store, where))
        foreign.check(store, AFTER, where)
        for suspect in point.suspects:
            check_goes_on(copied(store), suspect, where)
        check_retry(copied(store), operate, after, where)
        done += 1
    assert numbers == ({BEFORE} if step == "schedule" else {BEFORE, WANTED})
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_buckets(store: Storage, where: str) -> int | None:
    """Every group is that of a bucket of the number that counts, and every key is found by it."""
    table = opened(store)
    number = count(table)
    assert {bucket_of_file_id(item.file_id) for item in slices(table)} <= set(range(number or 0)), where
    for key, city, value in AFTER:
        assert table.scan(filter=[("id", "=", key)]).to_arrow()["value"].to_pylist() == [value], (key, city, where)
    return number


def check_goes_on(store: Storage, suspect: float, where: str) -> None:
    """The next write, elsewhere, needs no repair, or is refused until the plan that is published is
    executed."""
    table = opened(store, suspect=suspect)
    refused = False
    try:
        table.write(rows(NEXT), operation="upsert")
        expected = AFTER | {NEXT}
    except WriteConflictError:
        assert table.pending_resize() is not None, where
        expected, refused = AFTER, True
    assert read(store) == expected, where
    # A write that is refused does not begin: a planner's claim is left to whoever begins next.
    assert suspect or refused or not load_timeline(table.context).planner_claims, (
        f"{where}: a dead planner's claim is left"
    )
    if table.pending_resize() is not None:
        execute(opened(store))
    else:
        number = count(table)
        assert f"num.buckets={number}" in store.get(".hoodie/hoodie.properties").decode(), where
    assert read(store) == expected, where
    opened(store).write(rows(("a", "x", 11)), operation="upsert")
    assert ("a", "x", 11) in read(store), where
    assert len(read(store)) == len(expected), where


def check_retry(store: Storage, operate: Callable[[HudiTable], None], after: int, where: str) -> None:
    """Again, at once, by a process that knows nothing."""
    operate(opened(store))
    assert read(store) == AFTER, where
    assert check_buckets(store, where) == after, where
    assert not [found for found in opened(store).doctor(keys=True) if found.severity is Severity.ERROR], where
    if after == BEFORE:
        execute(opened(store))
    opened(store).write(rows(("a", "x", 11)), operation="upsert")
    assert read(store) == {row for row in AFTER if row[0] != "a"} | {("a", "x", 11)}, where
