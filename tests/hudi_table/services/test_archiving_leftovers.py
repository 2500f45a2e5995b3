"""What writes that crashed after their decision left beside the timeline goes with them into no
archive: it is deleted."""

from __future__ import annotations

from hudi_table.model.names import TEMP
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import AgedStorage
from tests.support.crashes import LAYOUTS, opened, prepared, rows
from tests.support.recording import RecordingStorage, Trace

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}


def written() -> Storage:
    """A table with more commits than may stay."""
    store = prepared(LAYOUTS[0])
    for number in range(5):
        opened(store).write(rows(("a", "x", 100 + number)), operation="upsert")
    return store


def test_markers_and_heartbeats_that_archived_writes_left_go_too() -> None:
    store = written()
    first, *_, last = [instant.time for instant in load_timeline(opened(store).context).commits]
    for time in (first, last):
        store.put(f".hoodie/.temp/{time}/x/f.parquet.marker.CREATE", b"")
        store.put(f".hoodie/.heartbeat/{time}", b"")
    assert opened(AgedStorage(store)).archive(KEEP) is not None
    left = [*store.list(".hoodie/.temp"), *store.list(".hoodie/.heartbeat")]
    assert [info.path for info in left] == [
        f".hoodie/.temp/{last}/x/f.parquet.marker.CREATE",
        f".hoodie/.heartbeat/{last}",
    ]


def test_the_folder_of_markers_is_listed_once_where_nothing_is_left_in_it() -> None:
    trace = Trace()
    assert opened(RecordingStorage(AgedStorage(written()), trace)).archive(KEEP) is not None
    assert [step.call for step in trace.steps if step.key.startswith(TEMP)] == ["list_dir"]
