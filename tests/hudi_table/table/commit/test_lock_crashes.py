"""A fault at every storage call of a write under a lock. Then another engine takes the lock and
writes to the same file group, which it does without knowing our chain; then a writer of ours goes
on. What the other engine acknowledged is there, and ours as the write has said.

Left out: a process that sleeps between its last look at the lease and the request that it sends.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import HudiTable
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.table.commit.beside.locking import with_lock
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.beside import an_engine_without_our_chain
from tests.support.crashes import FIRST, Layout, copied, opened, prepared, read, rows
from tests.support.fault_points import after_each_fault

LAYOUTS = [
    Layout(IndexType.SIMPLE, False),
    Layout(IndexType.BUCKET, False, TableType.MERGE_ON_READ),
    Layout(IndexType.SIMPLE, False, version=9),
    Layout(IndexType.BUCKET, False, TableType.MERGE_ON_READ, version=9),
]


def locked(store: Storage, folder: Path, suspect: float = 900.0) -> HudiTable:
    lock = {
        "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.path": str(folder),
        "hoodie.write.lock.wait_time_ms_between_retry": "5",
    }
    table = opened(store, suspect=suspect)
    return type(table)(with_lock(table.context, lock))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("beside", [True, False], ids=["beside another engine", "alone"])
def test_a_fault_at_any_storage_call_of_a_write_under_a_lock_loses_nothing_that_was_acknowledged(
    layout: Layout, beside: bool, tmp_path: Path, figure
) -> None:
    old = {key: (key, city, value) for key, city, value in FIRST}
    ours, inserted = ("a", "x", 50), ("n", "x", 60)
    theirs, later = ("a", "x", 70), ("z", "x", 90)
    start, count = prepared(layout), 0
    for fault in after_each_fault(start, lambda store: locked(store, tmp_path).upsert(rows(ours, inserted))):
        count += 1
        for suspect in fault.suspects:
            store = copied(fault.store)
            if beside:
                an_engine_without_our_chain(opened(store), lambda other: other.upsert(rows(theirs)))
            locked(store, tmp_path, suspect).upsert(rows(later))
            found = {row[0]: row for row in read(store)}
            counts = commits(store) - commits(start) - 1 - beside
            assert counts in {"succeeded": (1,), "failed": (0,)}.get(fault.outcome, (0, 1)), fault.where
            # A commit that is on the timeline is there whole.
            assert found.pop("n", None) == (inserted if counts else None), fault.where
            assert found.pop("a") == (theirs if beside else ours if counts else old["a"]), fault.where
            assert found == {"b": old["b"], "c": old["c"], "z": later}, fault.where
            assert not (tmp_path / "lock").exists(), fault.where
    figure(count, "crash points under a lock")


def commits(store: Storage) -> int:
    return len(load_timeline(opened(store).context).commits)
