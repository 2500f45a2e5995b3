"""Tables that Hudi archived beyond a savepoint (`hoodie.archive.beyond.savepoint`, versions 8 and
9): archived writes that are younger than one which stays on the timeline.

Their files count as long as a savepoint keeps that one. What would take that from them is refused,
or archives it too; what would read past them is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hudi_table.api import HudiTable, downgrade_table, open_table, upgrade_table
from hudi_table.errors import ExpiredError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.job.checkpoint import key_of
from hudi_table.services.archiving.execute import archive_kept
from hudi_table.services.planning import publish
from hudi_table.sources.checkpoints import all_checkpoints
from hudi_table.table.timeline.active import confirm, load_timeline
from hudi_table.table.timeline.archived import archived_completions, newest_with, under
from tests.support.savepoints import BEYOND, archived_beyond, beyond_savepoint
from tests.support.taken_back import aged, newest
from tests.support.written import INDEXES, contents, new_table, rows

LATER = pytest.mark.parametrize("version", [8, 9])
KINDS = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def times(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).commits]


def again(table: HudiTable) -> HudiTable:
    return open_table(table.base_path)


@LATER
@KINDS
def test_a_restore_is_refused_since_archived_rows_would_come_back(kind: str, version: int) -> None:
    table, kept = beyond_savepoint(type=kind, version=version)
    with pytest.raises(
        InvalidRequestError, match=f"after the savepoint {kept} is archived .* read the table as of {kept}"
    ):
        table.services.restore(kept).plan()
    with pytest.raises(InvalidRequestError, match=f"after the savepoint {kept} is archived"):
        table.restore(kept, writers_stopped=True)
    assert contents(table) == BEYOND
    assert contents(open_table(table.base_path, as_of=kept)) == BEYOND[:1]


@LATER
def test_a_restore_to_a_savepoint_behind_the_archived_writes_does_its_work(version: int) -> None:
    table, _ = beyond_savepoint(version=version)
    kept = table.savepoint().instant
    table.upsert(rows(("g", "x", 6)))
    table.restore(kept, writers_stopped=True)
    table.upsert(rows(("n", "w", 1)))
    assert contents(table) == [*BEYOND, ("n", "w", 1)]


@LATER
@KINDS
@pytest.mark.parametrize("metadata", ["false", "true"])
def test_with_a_savepoint_that_is_deleted_its_commit_leaves_the_timeline(
    kind: str, version: int, metadata: str
) -> None:
    table, kept = beyond_savepoint(type=kind, version=version, options={"hoodie.metadata.enable": metadata})
    table.delete_savepoint(kept, writers_stopped=True)
    table = again(table)
    assert contents(table) == BEYOND
    assert kept not in times(table)
    assert kept in archived_completions(table.context)
    table.upsert(rows(("b", "y", 20), ("n", "w", 1)), options={"hoodie.metadata.enable": metadata})
    expected = [("a", "x", 1), ("b", "y", 20), *BEYOND[2:], ("n", "w", 1)]
    assert contents(table) == expected
    for number in range(4):
        table.upsert(rows(("n", "w", number)))
    table.clean(KEEP, force=True)
    assert aged(table).archive(KEEP, force=True)
    assert contents(again(table)) == [*expected[:-1], ("n", "w", 3)]
    assert again(table).doctor(keys=True) == ()


@LATER
def test_a_deletion_that_died_behind_the_archiving_is_ended_by_the_next(version: int) -> None:
    table, kept = beyond_savepoint(version=version)
    archive_kept(table.context, kept)
    assert contents(again(table)) == BEYOND
    again(table).delete_savepoint(kept, writers_stopped=True)
    assert again(table).savepoints() == []
    assert contents(again(table)) == BEYOND


def test_a_savepoint_stays_while_files_that_its_commit_replaced_are_there() -> None:
    table = new_table(index=INDEXES["bucket"], version=9)
    table.upsert(rows(("a", "x", 1)))
    table.write(rows(("o", "x", 2)), operation="insert_overwrite")
    kept = table.savepoint().instant
    for number in range(4):
        table.upsert(rows(("b", "y", number)))
    table = archived_beyond(table, kept)
    before = contents(table)
    with pytest.raises(
        InvalidRequestError, match=r"files that it replaced are there; .* clean .* then delete the savepoint"
    ):
        table.delete_savepoint(kept, writers_stopped=True)
    assert contents(again(table)) == before
    table.clean(KEEP, force=True)
    again(table).delete_savepoint(kept, writers_stopped=True)
    assert contents(again(table)) == before


@LATER
def test_a_downgrade_is_refused_until_the_savepoint_is_deleted(version: int) -> None:
    table, kept = beyond_savepoint(version=version)
    with pytest.raises(InvalidRequestError, match=f"the savepoint {kept} keeps .* --delete {kept}"):
        downgrade_table(table.base_path, to=6)
    assert contents(again(table)) == BEYOND
    again(table).delete_savepoint(kept, writers_stopped=True)
    downgrade_table(table.base_path, to=6)
    assert contents(again(table)) == BEYOND
    again(table).upsert(rows(("n", "w", 1)))
    assert contents(again(table)) == [*BEYOND, ("n", "w", 1)]


def test_an_upgrade_that_keeps_the_layout_goes_on() -> None:
    table, kept = beyond_savepoint(version=8)
    upgrade_table(table.base_path, to=9)
    assert contents(again(table)) == BEYOND
    assert [item.instant for item in again(table).savepoints()] == [kept]


@LATER
@KINDS
def test_a_rollback_of_the_first_write_behind_them_is_refused(kind: str, version: int) -> None:
    table, _ = beyond_savepoint(type=kind, version=version)
    table.rollback(newest(table), writers_stopped=True)
    assert contents(table) == BEYOND[:-1]
    with pytest.raises(InvalidRequestError, match="is the only write that is not archived, or kept by a savepoint"):
        table.rollback(newest(table), writers_stopped=True)
    assert contents(again(table)) == BEYOND[:-1]


@LATER
@KINDS
def test_what_was_there_between_them_is_refused_and_a_full_scan_passes_over_it(kind: str, version: int) -> None:
    table, kept = beyond_savepoint(type=kind, version=version)
    done = archived_completions(table.context)
    between = sorted(time for time in done if time > kept)
    for moment in (between[0], done[between[0]], done[between[1]]):
        with pytest.raises(ExpiredError):
            table.scan(as_of=moment).to_arrow()
        for ask in (partial(table.scan, query="incremental"), table.changes):
            with pytest.raises(ExpiredError, match="is archived, and the savepoint"):
                ask(since="20200101", until=moment, full_scan=True).to_arrow()
    with pytest.raises(ExpiredError, match="partly archived"):
        table.changes(since="20200101").to_arrow()
    told = table.changes(since="20200101", full_scan=True).to_arrow()
    assert sorted(row["id"] for row in told["after"].to_pylist()) == [row[0] for row in BEYOND]
    assert set(told["op"].to_pylist()) <= {"r", "c", "i"}
    assert table.scan(query="incremental", since="20200101", full_scan=True).count() == len(BEYOND)


@LATER
def test_of_checkpoints_the_newest_counts_though_an_older_commit_is_kept(version: int) -> None:
    table = new_table(index=INDEXES["bucket"], version=version)
    table.upsert(rows(("a", "x", 1)), extra_metadata={"told": "old", key_of("orders"): "old"})
    kept = table.savepoint().instant
    table.upsert(rows(("b", "y", 2)), extra_metadata={"told": "new", key_of("orders"): "new"})
    gone = newest(table)
    for number in range(2):
        table.upsert(rows(("c", "z", number)))
    table = archived_beyond(table, kept)
    timeline = load_timeline(table.context)
    assert newest_with(table.context, timeline, under("told")) == (gone, "new")
    assert newest_with(table.context, timeline, under("never")) is None
    assert all_checkpoints(table.context) == [(key_of("orders"), gone, "new")]
    table.delete_savepoint(kept, writers_stopped=True)
    table = again(table)
    assert newest_with(table.context, load_timeline(table.context), under("told")) == (gone, "new")


@LATER
def test_a_listing_is_held_against_the_oldest_commit_that_archiving_could_have_taken(version: int) -> None:
    table, _ = beyond_savepoint(version=version)
    for number in range(3):
        table.upsert(rows(("n", "w", number)))
    timeline = load_timeline(table.context)
    confirm(table.context, timeline)
    first = next(i for i in timeline.commits if i.time not in timeline.saved)
    table.context.storage.delete(table.context.layout.timeline_path(first.file_name))
    with pytest.raises(ObjectNotFoundError):
        confirm(table.context, timeline)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_savepoint_whose_commit_was_archived_meanwhile_is_let_go(version: int, monkeypatch: Any) -> None:
    table = new_table(index=INDEXES["bucket"], version=version)
    for number in range(6):
        table.upsert(rows(("a", "x", number)))
    oldest = times(table)[1]

    def beside_an_archiver(*args: Any) -> Any:
        done = publish(*args)
        layout = table.context.layout
        (found,) = [i for i in load_timeline(table.context).commits if i.time == oldest]
        table.context.storage.delete(layout.timeline_path(found.file_name))
        return done

    monkeypatch.setattr("hudi_table.services.savepoints.publish", beside_an_archiver)
    with pytest.raises(ExpiredError, match=f"{oldest} was archived while its savepoint was made: keep a newer commit"):
        table.savepoint(oldest)
    assert again(table).savepoints() == []
