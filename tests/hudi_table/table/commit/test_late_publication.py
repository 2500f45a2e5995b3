"""A writer that sleeps between its look at the lock and the create of its completed file, for
however long: what was taken back meanwhile is never published."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.hudi_table.table.commit.test_locking import PATIENT, row, their_upsert, values
from tests.support.late_publication import after_the_quarantine, asleep_before_the_create

KEEP = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
BUCKET = {"type": "Bucket", "buckets": 1}


@pytest.fixture(params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def made(base: Path, version: int, kind: TableTypeName) -> HudiTable:
    table = create_table(base, row("a", 1).schema, record_key="id", version=version, type=kind, index=BUCKET)
    table.upsert(row("a", 1))
    return open_table(base, lock=PATIENT)


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize(
    ("dies", "metadata"),
    [(True, False), (False, False), (True, True)],
    ids=["and dies", "and goes on", "and dies-metadata table"],
)
def test_a_write_that_was_taken_back_is_not_published_by_who_slept(
    tmp_path: Path, version: int, kind: TableTypeName, dies: bool, metadata: bool
) -> None:
    table = made(tmp_path / "t", version, kind)
    if metadata:
        open_table(table.base_path, lock=PATIENT).build_metadata(["files", "column_stats"])
    writer = open_table(table.base_path, lock=PATIENT)
    others = after_the_quarantine(writer)

    def meanwhile() -> None:
        their_upsert(table, 7)
        writer.upsert(row("b", 3))
        others.clean()
        assert not load_timeline(others.context).pending

    asleep_before_the_create(lambda: table.upsert(row("a", 2)), tmp_path / "t", meanwhile, dies=dies)
    assert values(table) == [3, 7]
    others.clean()
    timeline = load_timeline(others.context)
    assert not timeline.pending
    (empty,) = [i for i in timeline.commits if commit_metadata(others.context, i).is_taken_back]
    assert timeline.commits[-1] != empty
    assert not commit_metadata(others.context, empty).stats
    assert open_table(table.base_path).doctor() == ()
    for value in range(8, 14):
        writer.upsert(row("a", value))
        assert values(table) == [3, value]
    others.clean(KEEP)
    if kind == "MergeOnRead":
        others.compact(force=True)
        assert values(table) == [3, 13]
    others.archive(KEEP, force=True)
    assert empty not in load_timeline(others.context).commits
    assert values(table) == [3, 13]
    assert load_timeline(others.context).has_metadata is metadata
    assert open_table(table.base_path).doctor() == ()
