"""A fault at every storage call of an archiving that also merges the archive and trims the chain,
and of a second archiver beside it.

Readers see the same rows; the timeline loads; writers go on without a repair; and the next
archiving succeeds. No instant is lost: active and archived timeline together hold every one that
was there.

Matrix: {bucket partitioned, simple flat with logs and a compaction, the latter of version 9} × each
storage call × {crash before, crash after, torn write, lost reply}, on an in-memory store whose
objects are eight days old; hudi-rs reads every distinct layout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_table.model.table.config import TableType
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import DAYS, AgedStorage
from tests.support.crashes import (
    LATER,
    LATER_LOGS,
    LAYOUTS,
    LOG_LAYOUTS,
    Layout,
    Rows,
    copied,
    opened,
    prepared,
    read,
    rows,
    with_logs,
)
from tests.support.fault_points import ForeignReader, after_each_fault
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.meanwhile import AtCall
from tests.support.scale import scale

KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.merge.files.batch.size": "2",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.timeline.manifest.retained.versions": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
NEXT = ("next", "x", 100)
Instants = frozenset[tuple[str, str]]


def archive(store: Any) -> None:
    opened(store).archive(KEEP, force=True)


def aged(store: Storage) -> AgedStorage:
    return AgedStorage(store, DAYS)


def archived_once(layout: Layout) -> Storage:
    """A table that was archived before, with six more commits, in one case a compaction among
    them."""
    store = with_logs(layout) if layout.type is TableType.MERGE_ON_READ else prepared(layout)
    table = opened(store)
    table.write(rows(("a", "x", 9)), operation="upsert")
    archive(aged(store))
    for number in range(3):
        table.write(rows(("c", "y", number)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        table.compact(force=True)
    for number in range(2):
        table.write(rows(("a", "x", number)), operation="upsert")
    return store


def instants(store: Storage) -> Instants:
    found = opened(store).timeline(archived=True)
    return frozenset(zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True))


@pytest.mark.parametrize("layout", [LAYOUTS[0], LOG_LAYOUTS[1], LATER_LOGS], ids=str)
def test_a_fault_at_any_storage_call_of_an_archiving_loses_no_row_and_no_instant(
    layout: Layout, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    start = archived_once(layout)
    before, known = read(start), instants(start)
    counting = FaultPlan()
    archive(FaultyStorage(aged(copied(start)), counting))
    seen = {f"{call.method} {Path(call.path).parent}" for call in counting.calls}
    timeline = ".hoodie" if layout.version == 6 else ".hoodie/timeline"
    archived = ".hoodie/archived" if layout.version == 6 else ".hoodie/timeline/history"
    assert {f"delete {timeline}", "delete .hoodie/.txn", f"delete {archived}", f"put_if_absent {archived}"} <= seen
    foreign = ForeignReader(tmp_path)
    done = 0
    for point in after_each_fault(start, lambda store: archive(aged(store))):
        store, where = point.store, point.where
        assert read(store) == before, where
        assert instants(store) == known, where
        foreign.check(store, before, where)
        check_goes_on(store, before, known, where)
        done += 1
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


def check_goes_on(store: Storage, before: Rows, known: Instants, where: str) -> None:
    """The next write needs no repair, and the next archiving goes through and leaves what it
    should."""
    opened(store).write(rows(NEXT), operation="upsert")
    assert read(store) == before | {NEXT}, where
    archive(aged(store))
    assert read(store) == before | {NEXT}, where
    assert known <= instants(store), f"{where}: an instant is lost"
    table = opened(store)
    assert len(load_timeline(table.context).commits) == 2, where
    assert not load_timeline(table.context).pending, where
    numbers = [number for number, _ in chain.entries_after(table.context, 0)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), f"{where}: a gap in the chain"
    table.write(rows(NEXT), operation="delete")
    assert read(store) == before - {NEXT}, where


@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER], ids=str)
@pytest.mark.parametrize("other", ["archive", "write"])
def test_another_archiver_or_writer_between_any_two_calls_loses_no_row_and_no_instant(
    other: str, layout: Layout, figure: Callable[[int, str], None]
) -> None:
    start = archived_once(layout)
    before, known = read(start), instants(start)
    counting = AtCall(aged(copied(start)), 0, lambda: None)
    archive(counting)
    expected = before | {NEXT} if other == "write" else before
    interleavings = 0
    # In `make test` every fourth, others for each kind and each layout.
    first, step = (1, 1) if scale() > 1 else (1 + (other == "write") + 2 * (layout is LATER), 4)
    for number in range(first, counting.calls + 1, step):
        store = copied(start)

        def happen(store: Storage = store) -> None:
            if other == "archive":
                archive(aged(store))
            else:
                opened(store).write(rows(NEXT), operation="upsert")

        archive(AtCall(aged(store), number, happen))
        where = f"{other} before call {number}"
        assert read(store) == expected, where
        assert known <= instants(store), where
        check_goes_on(store, expected, known, where)
        interleavings += 1
    figure(interleavings, "interleavings")
