"""A fault at every storage call of a write to a table of hash rings, of the scheduling of a split,
of its execution, and of taking it back: readers see the old or the new rows, every key is found by
the ring that counts, and whoever comes next goes on without a repair.

Matrix: {upsert into a new partition, insert_overwrite, delete_partition, schedule, execute, roll
back} × each storage call × {crash before, crash after, torn write, lost reply}, on an in-memory
store; hudi-rs reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.model.service.findings import Severity
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.hash_rings import RINGS
from tests.hudi_table.test_crash_clustering import AFTER
from tests.hudi_table.test_crash_points import Run
from tests.support.crashes import RING_LAYOUT, Rows, copied, opened, prepared, read, rows, with_logs
from tests.support.fault_points import ForeignReader, after_each_fault, on_table
from tests.support.written import slices

SPLIT = {
    "hoodie.parquet.max.file.size": "1",
    "hoodie.bucket.index.merge.threshold": "0",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "4",
}
NEXT = ("next", "x", 100)


@pytest.mark.parametrize("name", ["upsert", "insert", "insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_a_fault_at_any_storage_call_of_a_write_leaves_the_old_or_the_new_table(name, tmp_path, figure):
    run = RingRun(prepared(RING_LAYOUT), RING_LAYOUT, name, 900.0, tmp_path)
    # An insert makes the calls of an upsert, one overwrite those of the other.
    figure(run.every_point(2 if name in ("insert", "insert_overwrite_table") else 1), "crash points")
    figure(len(run.foreign), "layouts read by hudi-rs")


class RingRun(Run):
    """A run that also looks every key up by its ring."""

    def check(self, point):
        store, where = copied(point.store), point.where
        super().check(point)
        check_rings(store, read(store), where)
        items = (("a", "x", 50), ("h", "x", 51), ("e", "z", 52), ("c", "y", 53))
        opened(store).write(rows(*items), operation="upsert")
        assert read(store).issuperset(items), where
        check_rings(store, read(store), where)


def schedule(table: HudiTable) -> None:
    if not table.pending_clusterings() and not split_by(table):
        table.schedule_clustering(SPLIT, force=True)


def execute(table: HudiTable) -> None:
    for instant in table.pending_clusterings():
        table.run_clustering(instant, engine=LocalEngine(1))


def roll_back(table: HudiTable) -> None:
    for instant in split_by(table):
        table.rollback(instant, writers_stopped=True)


def split_by(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).commits if i.action.value == "replacecommit"]


def planned() -> Storage:
    store = with_logs(RING_LAYOUT)
    schedule(opened(store))
    return store


def split() -> Storage:
    store = planned()
    execute(opened(store))
    return store


STEPS: dict[str, tuple[Callable[[], Storage], Callable[[HudiTable], None]]] = {
    "schedule": (partial(with_logs, RING_LAYOUT), schedule),
    "execute": (planned, execute),
    "roll back": (split, roll_back),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_at_any_storage_call_of_a_split_changes_no_row_and_the_retry_ends_it(
    step: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    prepare, operate = STEPS[step]
    begun = prepare()
    assert read(begun) == AFTER
    foreign = ForeignReader(tmp_path)
    done = 0
    # A split makes the calls of a clustering, whose every point `test_crash_clustering.py` tries.
    for point in after_each_fault(begun, on_table(operate), stride=3):
        store, where = point.store, point.where
        assert read(store) == AFTER, where
        check_rings(store, AFTER, where)
        foreign.check(store, AFTER, where)
        for suspect in point.suspects:
            check_goes_on(copied(store), suspect, where)
        check_retry(copied(store), operate, where)
        done += 1
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_rings(store: Storage, expected: Rows, where: str) -> None:
    """Every key is found by its ring, and every group is a node of it."""
    table = opened(store)
    for key, city, value in expected:
        assert table.scan(filter=[("id", "=", key)]).to_arrow()["value"].to_pylist() == [value], (key, city, where)
    errors = [found for found in table.doctor(keys=True) if found.severity is Severity.ERROR]
    # A write that is not over may leave files that nobody sees.
    assert not [found for found in errors if found.check.value in ("WrongBucket", "DuplicateKey")], (where, errors)


def check_goes_on(store: Storage, suspect: float, where: str) -> None:
    """The next write, elsewhere, goes to groups of no plan, or waits for the execution."""
    table = opened(store, suspect=suspect)
    try:
        table.write(rows(NEXT), operation="upsert")
        expected = AFTER | {NEXT}
    except WriteConflictError:
        assert table.pending_clusterings(), where
        expected = AFTER
    assert read(store) == expected, where
    execute(opened(store))
    check_rings(store, expected, where)
    opened(store).write(rows(("a", "x", 11)), operation="upsert")
    assert read(store) == {row for row in expected if row[0] != "a"} | {("a", "x", 11)}, where
    check_rings(store, read(store), where)


def check_retry(store: Storage, operate: Callable[[HudiTable], None], where: str) -> None:
    """Again, at once, by a process that knows nothing; and then all that there is to split is
    split."""
    operate(opened(store))
    assert read(store) == AFTER, where
    execute(opened(store))
    check_rings(store, AFTER, where)
    for _ in range(2):
        opened(store).cluster(SPLIT, force=True, engine=LocalEngine(1))
    assert read(store) == AFTER, where
    check_rings(store, AFTER, where)
    instants = set(split_by(opened(store)))
    rings = [info.path.rpartition("/")[2].partition(".")[0] for info in store.list(RINGS)]
    assert set(rings) <= {*instants, "00000000000000"}, f"{where}: a ring of no commit is left"
    assert len(slices(opened(store))) >= 1, where
