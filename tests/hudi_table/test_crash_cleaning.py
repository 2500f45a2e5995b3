"""A fault at every storage call of a clean's planning and execution, and of a savepoint's making
and letting go: readers see the same rows as before, writers go on without a repair, what must stay
is there, and the retry completes what was begun.

Matrix: {bucket partitioned with an emptied partition, simple flat with logs} × {schedule, execute,
savepoint, delete} × each storage call × {crash before, crash after, torn write, lost reply}, on an
in-memory store; hudi-rs reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError, InvalidRequestError
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import LATER, LATER_LOGS, Layout, Rows, copied, opened, prepared, read, rows
from tests.support.fault_points import ForeignReader, after_each_fault, on_table

KEEP = {"hoodie.clean.commits.retained": "2"}
LAYOUTS = [Layout(IndexType.BUCKET, True), Layout(IndexType.SIMPLE, False, TableType.MERGE_ON_READ), LATER, LATER_LOGS]
NEXT = ("next", "x", 100)


def history(layout: Layout) -> tuple[Storage, list[tuple[str, Rows]]]:
    """A table of six commits with something to clean, and what it held at each."""
    store = prepared(layout)
    moments = [noted(store)]
    for value in range(4):
        table = opened(store)
        if value == 0 and layout.partitioned:
            table.write(None, operation="delete_partition", partitions=["y"])
        else:
            table.write(rows(("a", "x", 10 + value), (f"n{value}", "x", value)), operation="upsert")
        if layout.type is TableType.MERGE_ON_READ:
            table.compact(force=True)
        moments.append(noted(store))
    return store, moments


def noted(store: Storage) -> tuple[str, Rows]:
    last = load_timeline(opened(store).context).last_commit
    assert last is not None
    return last.time, read(store)


def schedule(table: HudiTable) -> None:
    table.schedule_clean(KEEP, force=True)


def execute(table: HudiTable) -> None:
    for instant in cleans(table.context.storage):
        table.run_clean(instant, engine=LocalEngine(1))


def keep(table: HudiTable) -> None:
    table.savepoint(load_timeline(table.context).commits[-2].time)


def let_go(table: HudiTable) -> None:
    for found in table.savepoints():
        table.delete_savepoint(found.instant, writers_stopped=True)


def cleans(store: Storage) -> list[str]:
    return [i.time for i in load_timeline(opened(store).context).pending if i.action is Action.CLEAN]


def files(store: Storage) -> set[str]:
    return {info.path for info in store.list() if not info.path.startswith(".hoodie/")}


STEPS: dict[str, tuple[Callable[[HudiTable], None] | None, Callable[[HudiTable], None]]] = {
    "schedule": (None, schedule),
    "execute": (schedule, execute),
    "savepoint": (None, keep),
    "delete": (keep, let_go),
}


@pytest.mark.thinned("values")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_completes_it(
    layout: Layout, step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    before, operate = STEPS[step]
    start, moments = history(layout)
    if before is not None:
        before(opened(start))
    foreign = ForeignReader(tmp_path)
    done = 0
    for point in after_each_fault(start, on_table(operate)):
        store, where = point.store, point.where
        check_moments(store, moments, where)
        foreign.check(store, moments[-1][1], where)
        for suspect in point.suspects:
            check_goes_on(copied(store), moments, suspect, where)
        check_retry(store, operate, moments, where)
        done += 1
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_moments(store: Storage, moments: list[tuple[str, Rows]], where: str) -> None:
    """A reader of any moment has its rows or is told that they are gone; those that are retained it
    has."""
    assert read(store) == moments[-1][1], where
    for number, (time, expected) in enumerate(moments):
        try:
            seen = opened(store).scan(as_of=time).to_arrow().to_pylist()
        except ExpiredError:
            assert number < len(moments) - 2, f"{where}: the retained {time} is gone"
        else:
            assert frozenset(tuple(row.values()) for row in seen) == expected, f"{where}: as of {time}"


def check_goes_on(store: Storage, moments: list[tuple[str, Rows]], suspect: float, where: str) -> None:
    """The next write needs no repair; a clean after it leaves nothing pending, and every file that
    is needed."""
    table = opened(store, suspect=suspect)
    table.write(rows(NEXT, ("z", "y", 1)), operation="upsert")
    assert read(store) == moments[-1][1] | {NEXT, ("z", "y", 1)}, where
    table.clean(KEEP, force=True, engine=LocalEngine(1))
    assert not cleans(store), where
    assert read(store) == moments[-1][1] | {NEXT, ("z", "y", 1)}, where
    for found in table.savepoints():
        named = {f"{p}/{name}".lstrip("/") for p, names in found.files.items() for name in names}
        assert named <= files(store), f"{where}: the savepoint misses {named - files(store)}"
        assert opened(store).scan(as_of=found.instant).count() == len(dict(moments)[found.instant]), where
    partitions = {path.rpartition("/")[0] for path in files(store) if path.endswith((".parquet", ".log"))}
    assert partitions <= {path.rpartition("/")[0] for path in files(store) if path.endswith("_metadata")}, where


def check_retry(
    store: Storage, operate: Callable[[HudiTable], None], moments: list[tuple[str, Rows]], where: str
) -> None:
    """Again, at once, by a process that knows nothing."""
    pending = cleans(store)
    operate(opened(store))
    assert set(cleans(store)) <= set(pending) or operate is schedule, f"{where}: another plan was made"
    execute(opened(store))
    assert len(opened(store).savepoints()) == (1 if operate is keep else 0), where
    assert not cleans(store), where
    if operate in (schedule, execute):
        assert not opened(store).clean(KEEP, force=True), f"{where}: something was left"
    check_moments(store, moments, where)
    with pytest.raises(InvalidRequestError):
        opened(store).delete_savepoint("20200101000000000")
