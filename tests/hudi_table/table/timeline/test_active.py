"""The active timeline is read as it was at one moment, though a listing takes longer than that."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from hudi_table.model.table.config import IndexType, TableType
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import list_timeline, load_timeline
from hudi_table.write.checks.create_table import create
from tests.support.aged import HOURS, AgedStorage
from tests.support.crashes import Layout, copied, new_store, opened, read, rows, spec
from tests.support.meanwhile import SlowListing

UPDATES = {TableType.COPY_ON_WRITE: 4, TableType.MERGE_ON_READ: 7}
"""So many that some commits may leave: of a table with logs those stay that the trigger of
compactions counts."""
LISTINGS = 4
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
LAYOUTS = [Layout(IndexType.SIMPLE, True, kind) for kind in TableType]


def with_commits(layout: Layout) -> Storage:
    """A table of one row in each partition, whose commits updated one of them each."""
    store = new_store()
    create(store, spec(layout))
    opened(store).write(all_rows(layout, 0), operation="upsert")
    for number in range(UPDATES[layout.type]):
        opened(store).write(rows((f"k{number}", f"p{number}", number + 1)), operation="upsert")
    return store


def all_rows(layout: Layout, value: int) -> pa.Table:
    return rows(*((f"k{number}", f"p{number}", value) for number in range(UPDATES[layout.type])))


def archived(store: Storage) -> None:
    """All that may leave; nobody is taken for dead."""
    opened(AgedStorage(store), suspect=10 * HOURS).archive(KEEP, force=True)


@pytest.mark.parametrize("ascending", [True, False], ids=["ascending", "descending"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_commit_that_is_archived_while_the_timeline_is_listed_stays_visible(layout: Layout, ascending: bool) -> None:
    start = with_commits(layout)
    whole = read(start)
    commits, torn = load_timeline(opened(start).context).commits, 0
    for number in range(len(load_timeline(opened(start).context).files)):
        store = copied(start)
        slow = SlowListing(store, number, partial(archived, store), ascending=ascending)
        assert read(slow) == whole, number
        store = copied(start)
        slow = SlowListing(store, number, partial(archived, store), ascending=ascending)
        listed = list_timeline(opened(slow).context)
        torn += any(i.time not in {c.time for c in listed.commits} and i.time > (listed.start or "") for i in commits)
        torn += any(i.time in {c.time for c in commits} for i in listed.pending)
    assert torn, "no listing was torn"


@pytest.mark.parametrize("listing", range(LISTINGS))
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_write_updates_what_is_archived_while_it_lists_the_timeline(layout: Layout, listing: int) -> None:
    store = with_commits(layout)
    slow = SlowListing(store, 4, partial(archived, store), listing=listing)
    opened(slow).write(all_rows(layout, 100), operation="upsert")
    assert {value for _, _, value in read(store)} == {100}
