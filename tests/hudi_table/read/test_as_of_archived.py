"""Moments of a table with an archive: those whose files are there are read, and no other one.

Matrix: {version 6, version 9}, copy-on-write, cleaned by versions of files: such a clean names no
instant from which on it keeps everything.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_table.errors import ExpiredError
from hudi_table.model.table.config import IndexType
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_entries, instant_of
from hudi_table.table.view.clean_plans import archived_since
from tests.support.aged import AgedStorage
from tests.support.crashes import LATER, Layout, opened, prepared, rows

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def versions(number: int) -> dict[str, str]:
    """A clean that keeps so many versions of each file."""
    return {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": str(number),
    }


@pytest.fixture(params=[Layout(IndexType.BUCKET, True), LATER], ids=str)
def store(request: pytest.FixtureRequest) -> Storage:
    return prepared(request.param)


def write(store: Any, *values: int) -> None:
    for value in values:
        opened(store).write(rows(("a", "x", value)), operation="upsert")


def archive(store: Any) -> None:
    assert opened(AgedStorage(store)).archive(KEEP, force=True) is not None


def moments(store: Any) -> list[str]:
    return [i.time for i in load_timeline(opened(store).context).commits]


def seen(store: Any, moment: str) -> list[dict[str, Any]]:
    found = opened(store).scan(as_of=moment).to_arrow().to_pylist()
    return sorted(found, key=str)


def test_a_moment_before_the_oldest_clean_is_read_while_its_files_are_there(store: Storage) -> None:
    write(store, *range(6))
    archive(store)
    write(store, 6, 7)
    *_, gone, kept, newest = moments(store)
    before = {moment: seen(store, moment) for moment in (gone, kept, newest)}
    assert before[kept] != before[newest]
    (done,) = opened(store).clean(versions(2), force=True)
    assert {moment: seen(store, moment) for moment in (kept, newest)} == {
        moment: before[moment] for moment in (kept, newest)
    }
    with pytest.raises(ExpiredError, match=f"the clean {done.instant} deleted files that were current then"):
        seen(store, gone)


def test_cleans_of_the_archive_tell_what_they_took_unless_writes_are_archived_behind_the_moment(
    store: Storage,
) -> None:
    for value in range(6):
        write(store, value)
        opened(store).clean(versions(1), force=True)
    archive(store)
    ctx = opened(store).context
    found = [instant for entries in archived_entries(ctx) for instant in map(instant_of, entries) if instant]
    cleans = sorted({i.time for i in found if i.completed and i.action is Action.CLEAN})
    wrote = sorted((i for i in found if i.completed and i.action is not Action.CLEAN), key=lambda i: i.time)
    last = comparable_time(wrote[-1].moment)
    behind = [time for time in cleans if time > last]
    assert behind
    told = archived_since(ctx, last)
    assert told is not None
    assert sorted(told) == behind
    assert all(names for files in told.values() for names in files.values())
    assert archived_since(ctx, comparable_time(wrote[-2].moment)) is None
    assert archived_since(ctx, "99991231235959999") == {}
