"""On versions 8 and 9 nothing that stays on the timeline is older than what has left it: Hudi takes
an instant for pending that is neither there nor older than all that is there
(`tests/interop/test_archived_before_active.py`)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table, upgrade_table
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.services.archiving.plan import Present, plan_archiving
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.services.test_archiving_plan import NOW, POLICY, at, commits, done, leave, timeline
from tests.interop import ours
from tests.interop.model import rows
from tests.interop.test_archiving import age

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
LATEST_ALONE = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
LEAVING = [f"{at(minute)}.commit" for minute in (0, 10, 20)]


@pytest.mark.parametrize("action", ["clean", "rollback", "restore", "indexing"])
def test_what_is_no_write_leaves_with_the_writes_around_it(action: str) -> None:
    listed = timeline([*commits(5), *done(15, action), *done(35, action)])
    found = plan_archiving(listed, POLICY, Present(NOW, 3600.0, False, gapless=True), gone=lambda _: True)
    assert leave(found) == sorted([*LEAVING, f"{at(15)}.{action}"])


@pytest.mark.parametrize("action", ["clean", "restore", "indexing"])
def test_of_version_6_it_stays(action: str) -> None:
    listed = timeline([*commits(5), *done(15, action)])
    found = plan_archiving(listed, POLICY, Present(NOW, 3600.0, False), gone=lambda _: True)
    assert leave(found) == LEAVING


def test_what_may_not_leave_yet_holds_the_writes_behind_it() -> None:
    young = {f"{at(15)}.clean": NOW - timedelta(minutes=10)}
    listed = timeline([*commits(5), *done(15, "clean")], young)
    found = plan_archiving(listed, POLICY, Present(NOW, 3600.0, False, gapless=True), gone=lambda _: True)
    assert leave(found) == LEAVING[:2]
    assert found.held_by == f"{at(20)} is held back by {at(15)}, which is younger than 3600 s"


def written(base: Path, version: int, **options: str) -> HudiTable:
    """A merge-on-read table whose first writes are followed by a clean."""
    ours.create(base, index="bucket", partitioned=True, type="MergeOnRead", version=version)
    for number in range(1, 3):
        ours.write(base, "upsert", rows(range(12), number), options=options)
    assert open_table(base).compact(force=True)
    assert open_table(base).clean(LATEST_ALONE, force=True)
    for number in range(3, 8):
        ours.write(base, "upsert", rows(range(12), number))
    return open_table(base)


def assert_no_gap(table: HudiTable) -> None:
    timeline = load_timeline(table.context)
    everything = table.timeline(archived=True)["instant"].to_pylist()
    staying = {i.time for i in timeline.instants}
    left = [comparable_time(time) for time in everything if time not in staying]
    assert left
    assert max(left) < min(map(comparable_time, staying))


@pytest.mark.parametrize("version", [8, 9])
def test_an_archived_timeline_begins_behind_all_that_has_left(tmp_path: Path, version: int) -> None:
    table = written(tmp_path / "t", version)
    age(tmp_path / "t")
    assert table.archive(KEEP | {"hoodie.compact.inline.max.delta.commits": "1"}, force=True)
    assert_no_gap(open_table(tmp_path / "t"))


@pytest.mark.parametrize("version", [8, 9])
def test_an_upgraded_timeline_begins_behind_all_that_has_left(tmp_path: Path, version: int) -> None:
    """In version 6 the newest clean stays, and so does the building of a metadata table."""
    base = tmp_path / "t"
    table = written(base, 6, **{"hoodie.metadata.enable": "true"})
    age(base)
    assert table.archive(KEEP | {"hoodie.compact.inline.max.delta.commits": "1"}, force=True)
    before = set(open_table(base).timeline(archived=True)["instant"].to_pylist())
    assert {i.action.value for i in load_timeline(open_table(base).context).completed} >= {"clean", "indexing"}
    upgrade_table(base, to=version)
    assert_no_gap(open_table(base))
    assert before <= set(open_table(base).timeline(archived=True)["instant"].to_pylist())
