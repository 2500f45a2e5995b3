"""A fault at every storage call of every operation: readers see the old or the new rows, never
anything else.

Matrix: {bucket, simple, global simple} × {partitioned, not} × each operation × each storage call ×
{crash before, crash after, torn write, lost reply}, on an in-memory store; of writes to logs also a
table that stores no keys. After the fault a reader that knows nothing reads; then the next write
runs with no repair, with a young failed write left alone and with one taken for dead at once; then
it is read again. An operation that reported success must be there; one that reported failure
without a doubt must not. hudi-rs reads every distinct layout that a fault leaves, Apache Hudi a
sample (`tests/interop/test_crash_layouts.py`).

Omitted: several processes at work at once (their races are another test), faults of the local disk.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hudi_table.errors import HudiError
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.create_table import create
from tests.support.crashes import (
    CHANGE_LAYOUTS,
    FIRST,
    LATER,
    LATER_LOGS,
    LAYOUTS,
    LOG_LAYOUTS,
    MADE_KEYS,
    OPERATIONS,
    Layout,
    copied,
    new_store,
    opened,
    prepared,
    read,
    replayed,
    rows,
    spec,
    with_a_failed_write,
)
from tests.support.fault_points import (
    CHANGES,
    FAULTS,
    Faulted,
    ForeignReader,
    after_each_fault,
    attempt,
    check_next_write,
    check_outcome,
    first_alike,
    on_table,
    some_of,
)
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage

EVERY_POINT = (LAYOUTS[0], LAYOUTS[3])
"""A partitioned and a flat table, of two indexes: `make test` meets every call of a write there. In
the others a write makes the same calls."""


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("layout", [*LAYOUTS, LATER], ids=str)
def test_a_fault_at_any_storage_call_leaves_the_old_or_the_new_table(layout, name, tmp_path, figure):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(1 if layout in EVERY_POINT else 2), "crash points")
    figure(len(run.foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["insert", "upsert", "delete", "insert_overwrite"])
@pytest.mark.parametrize("layout", [*LOG_LAYOUTS, LATER_LOGS, MADE_KEYS], ids=str)
def test_a_fault_at_any_storage_call_of_a_write_to_logs_leaves_the_old_or_the_new_table(layout, name, tmp_path, figure):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(), "crash points")
    figure(len(run.foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["upsert", "delete"])
@pytest.mark.parametrize("layout", [*CHANGE_LAYOUTS, replace(CHANGE_LAYOUTS[0], version=9)], ids=str)
def test_a_fault_at_any_storage_call_of_a_write_that_logs_its_changes_leaves_rows_and_changes_that_agree(
    layout, name, tmp_path, figure
):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(), "crash points")
    figure(len(run.foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("layout", [*LAYOUTS[:3], LATER], ids=str)
def test_a_fault_while_a_failed_write_is_recovered_changes_nothing_else(layout, name, tmp_path, figure):
    run = Run(with_a_failed_write(prepared(layout)), layout, name, 0.0, tmp_path)
    figure(run.every_point(), "crash points")


class Run:
    """One operation on one layout, with every fault at every call. `suspect`: after how many
    seconds without a sign of life the operation takes another write for dead."""

    def __init__(self, start: Storage, layout: Layout, name: str, suspect: float, folder: Path) -> None:
        self.operation, expected = OPERATIONS[name]
        self.start, self.suspect, self.foreign = start, suspect, ForeignReader(folder)
        self.logs_changes = layout.logs_changes
        self.old, self.new = read(start), frozenset(expected(layout))
        assert self.old == frozenset(FIRST)

    def every_point(self, stride: int = 2) -> int:
        """Check each point, or in `make test` some; returns how many there were."""
        count = 0
        for point in after_each_fault(self.start, on_table(self.operation, suspect=self.suspect), stride=stride):
            self.check(point)
            count += 1
        return count

    def check(self, point: Faulted) -> None:
        """What readers see after one fault, and the next write."""
        store, where = point.store, point.where
        found = read(store)
        check_outcome(found, self.old, self.new, point.outcome, where)
        if self.logs_changes:
            assert replayed(store) == found, f"{where}: the changes are not those of the rows"
        self.foreign.check(store, found, where)
        for suspect in point.suspects:
            after = copied(store)
            check_next_write(after, self.old, self.new, suspect, where)
            if self.logs_changes:
                assert replayed(after) == read(after), (
                    f"{where}: the changes after the next write are not those of the rows"
                )


def test_deaths_between_the_same_two_changes_leave_the_same_objects():
    """So a quick run tries one of them for all, in every test of crash points."""
    start, operate = prepared(LAYOUTS[0]), on_table(OPERATIONS["upsert"][0])
    counting = FaultPlan()
    operate(FaultyStorage(copied(start), counting))
    deaths = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN]
    left: dict[tuple[int, Fault], set[tuple[str, ...]]] = {}
    for number, fault in itertools.product(range(1, len(counting.calls) + 1), deaths):
        store = copied(start)
        # A call that found nothing is not followed by a death.
        if attempt(partial(operate, FaultyStorage(store, FaultPlan(at=number, fault=fault)))) == "crashed":
            first = first_alike(counting, number, fault)
            left.setdefault(first, set()).add(tuple(sorted(nameless(info.path) for info in store.list())))
    assert {len(shapes) for shapes in left.values()} == {1}
    assert len(left) == 1 + sum(call.method in CHANGES for call in counting.calls)


def test_a_quick_run_tries_a_part_of_the_deaths_and_a_part_of_the_lost_replies():
    found = [(number, fault) for number in range(1, 20) for fault in FAULTS]
    for stride in (2, 9, 100):
        kept = some_of(found, stride)
        assert {fault is Fault.LOST_REPLY for _, fault in kept} == {True, False}
        assert set(kept) < set(found)
    assert some_of(found, 1) == sorted(found)


def nameless(path: str) -> str:
    return re.sub(r"[0-9a-f-]{30,}|\d{17}", "*", path)


def test_the_creation_of_a_table_is_whole_or_not_at_all():
    layout = LAYOUTS[0]
    counting = FaultPlan()
    create(FaultyStorage(new_store(), counting), spec(layout))
    for number, fault in itertools.product(range(1, len(counting.calls) + 1), FAULTS):
        store = new_store()
        with contextlib.suppress(Crash, HudiError):
            create(FaultyStorage(store, FaultPlan(at=number, fault=fault)), spec(layout))
        create(store, spec(layout), if_exists="open")
        opened(store).write(rows(*FIRST), operation="upsert")
        assert read(store) == frozenset(FIRST)
