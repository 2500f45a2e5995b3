"""A fault at every storage call of every operation: readers see the old or the new rows, never anything else.

Matrix: {bucket, simple, global simple} × {partitioned, not} × each operation × each storage call × {crash before, crash
after, torn write, lost reply}, on an in-memory store. After the fault a reader that knows nothing reads; then the next
write runs with no repair, with a young failed write left alone and with one taken for dead at once; then it is read
again. An operation that reported success must be there; one that reported failure without a doubt must not. hudi-rs
reads every distinct layout that a fault leaves, Apache Hudi a sample (`tests/interop/test_crash_layouts.py`).

Omitted: several processes at work at once (their races are another test), faults of the local disk.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_table.errors import CommitStateUnknownError, HudiError
from hudi_table.table.ports import Storage
from hudi_table.write.create import create
from tests.support import hudi_rs
from tests.support.crashes import (
    CHANGE_LAYOUTS,
    FIRST,
    LAYOUTS,
    LOG_LAYOUTS,
    OPERATIONS,
    SCHEMA,
    Layout,
    Rows,
    copied,
    dump,
    new_store,
    opened,
    prepared,
    read,
    replayed,
    rows,
    shape_of,
    spec,
    with_a_failed_write,
)
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.scale import scale

FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN, Fault.LOST_REPLY)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_leaves_the_old_or_the_new_table(layout, name, tmp_path, figure):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(), "crash points")
    figure(len(run.shapes), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["insert", "upsert", "delete", "insert_overwrite"])
@pytest.mark.parametrize("layout", LOG_LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_of_a_write_to_logs_leaves_the_old_or_the_new_table(layout, name, tmp_path, figure):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(), "crash points")
    figure(len(run.shapes), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["upsert", "delete"])
@pytest.mark.parametrize("layout", CHANGE_LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_of_a_write_that_logs_its_changes_leaves_rows_and_changes_that_agree(
    layout, name, tmp_path, figure
):
    run = Run(prepared(layout), layout, name, 900.0, tmp_path)
    figure(run.every_point(), "crash points")
    figure(len(run.shapes), "layouts read by hudi-rs")


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("layout", LAYOUTS[:3], ids=str)
def test_a_fault_while_a_failed_write_is_recovered_changes_nothing_else(layout, name, tmp_path, figure):
    run = Run(with_a_failed_write(prepared(layout)), layout, name, 0.0, tmp_path)
    figure(run.every_point(), "crash points")


class Run:
    """One operation on one layout, with every fault at every call. `suspect`: after how many seconds without a sign of
    life the operation takes another write for dead."""

    def __init__(self, start: Storage, layout: Layout, name: str, suspect: float, folder: Path) -> None:
        self.operation, expected = OPERATIONS[name]
        self.start, self.suspect, self.folder = start, suspect, folder
        self.logs_changes = layout.logs_changes
        self.old, self.new = read(start), frozenset(expected(layout))
        self.shapes: set[tuple[str, ...]] = set()
        assert self.old == frozenset(FIRST)

    def every_point(self) -> int:
        """Check each point; returns how many there were."""
        plan = FaultPlan()
        self._operate(copied(self.start), plan)
        count = 0
        for number, fault in points(len(plan.calls)):
            self.check(number, fault)
            count += 1
        return count

    def check(self, number: int, fault: Fault) -> None:
        """One fault at one call, what readers then see, and the next write."""
        store = copied(self.start)
        plan = FaultPlan(at=number, fault=fault)
        outcome = attempt(lambda: self._operate(store, plan))
        where = f"{fault} at call {number} ({plan.fired[0] if plan.fired else 'not reached'}), {outcome}"
        found = read(store)
        check_outcome(found, self.old, self.new, outcome, where)
        if self.logs_changes:
            assert replayed(store) == found, f"{where}: the changes are not those of the rows"
        self._check_foreign(store, found, where)
        for suspect in (900.0, 0.0):
            after = copied(store)
            check_next_write(after, self.old, self.new, suspect, where)
            if self.logs_changes:
                assert replayed(after) == read(after), (
                    f"{where}: the changes after the next write are not those of the rows"
                )

    def _operate(self, store: Storage, plan: FaultPlan) -> None:
        self.operation(opened(FaultyStorage(store, plan), suspect=self.suspect))

    def _check_foreign(self, store: Storage, found: Rows, where: str) -> None:
        shape = shape_of(store)
        if shape in self.shapes:
            return
        self.shapes.add(shape)
        base = dump(store, self.folder / str(len(self.shapes)))
        theirs = hudi_rs.read(base).select(SCHEMA.names).to_pylist()
        assert frozenset(tuple(row.values()) for row in theirs) == found, f"{where}: hudi-rs reads {theirs}"


def points(count: int) -> Iterator[tuple[int, Fault]]:
    """All points in `test-full`; in `make test` every call once, with the faults in turn."""
    if scale() > 1:
        yield from itertools.product(range(1, count + 1), FAULTS)
    else:
        for number in range(1, count + 1):
            yield number, FAULTS[number % len(FAULTS)]


def attempt(operate: Callable[[], None]) -> str:
    """Run the operation to its end or its fault; says how it ended."""
    try:
        operate()
    except Crash:
        return "crashed"
    except CommitStateUnknownError:
        return "unknown"
    except HudiError:
        return "failed"
    return "succeeded"


def check_outcome(found: Rows, old: Rows, new: Rows, outcome: str, where: str) -> None:
    assert found in (old, new), f"{where}: neither old nor new but {sorted(found)}"
    if outcome == "succeeded":
        assert found == new, f"{where}: reported and not there"
    if outcome == "failed":
        assert found == old, f"{where}: reported as failed and there"


def check_next_write(store: Storage, old: Rows, new: Rows, suspect: float, where: str) -> None:
    """The next writer needs no repair: its row is there beside the old or the new ones."""
    extra = ("next", "x", 100)
    opened(store, suspect=suspect).write(rows(extra), operation="upsert")
    found = read(store)
    assert found in (old | {extra}, new | {extra}), f"{where}: the next write left {sorted(found)}"


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
