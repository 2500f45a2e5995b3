"""A handle that lists the timeline of a local table again looks at what is new alone, and sees what
a handle sees that lists it for the first time.

Aspects: what writers and services do beside it; files that come to an instant that has completed,
that go, that come back under their name; what is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"]})
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = create_table(
        str(tmp_path / "t"), ROWS.schema, record_key="id", partition_by="p", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    made.upsert(ROWS)
    return made


def shown(timeline: Timeline) -> tuple[object, ...]:
    return timeline.instants, timeline.files, timeline.folders, timeline.planner_claims, timeline.pending


def agrees(ctx: TableContext) -> Timeline:
    found, anew = list_timeline(ctx), list_timeline(open_table(ctx.base_path).context)
    assert shown(found) == shown(anew)
    plain = replace(found)
    assert (found.completed, found.commits, found.pending) == (plain.completed, plain.commits, plain.pending)
    return found


def age(folder: Path) -> None:
    for path in (folder / ".hoodie").iterdir():
        os.utime(path, (0, 0))


def test_whatever_writers_and_services_do_beside_it(table: HudiTable, tmp_path: Path) -> None:
    ctx = open_table(str(tmp_path / "t")).context
    steps: list[Callable[[], object]] = [
        lambda: table.upsert(ROWS),
        lambda: begin_plan(table.context, Action.COMPACTION),
        lambda: table.upsert(ROWS),
        lambda: table.compact(force=True),
        lambda: table.upsert(ROWS),
        lambda: table.clean({"hoodie.clean.commits.retained": "1"}, force=True),
        lambda: table.savepoint(),
        lambda: table.upsert(ROWS),
        lambda: table.restore(table.savepoints()[0].instant, writers_stopped=True),
        lambda: table.write(ROWS, operation="insert_overwrite"),
        lambda: table.build_metadata(),
        lambda: begin(table.context, Action.DELTA_COMMIT),
        lambda: table.upsert(ROWS),
    ]
    for step in steps:
        step()
        agrees(ctx)


def test_instants_that_are_archived_are_gone(table: HudiTable, tmp_path: Path) -> None:
    for _ in range(6):
        table.upsert(ROWS)
    table.compact(force=True)
    ctx = open_table(str(tmp_path / "t")).context
    before = agrees(ctx)
    age(tmp_path / "t")
    assert open_table(str(tmp_path / "t")).archive(KEEP, force=True)
    assert len(agrees(ctx).instants) < len(before.instants)


@pytest.mark.parametrize("state", ["inflight", "requested"])
def test_a_file_that_comes_late_to_an_instant_that_has_completed_changes_nothing_of_it(
    table: HudiTable, tmp_path: Path, state: str
) -> None:
    ctx = open_table(str(tmp_path / "t")).context
    newest = list_timeline(ctx).commits[-1]
    path = tmp_path / "t" / ".hoodie" / f"{newest.time}.deltacommit.{state}"
    path.unlink()
    assert path.name not in agrees(ctx).files
    path.write_bytes(b"")
    found = agrees(ctx)
    assert path.name in found.files
    assert found.commits[-1] == newest


def test_a_completed_file_that_goes_while_another_comes_is_missed(table: HudiTable, tmp_path: Path) -> None:
    """The number of files alone does not tell."""
    ctx = open_table(str(tmp_path / "t")).context
    newest = list_timeline(ctx).commits[-1]
    hoodie = tmp_path / "t" / ".hoodie"
    (hoodie / newest.file_name).unlink()
    (hoodie / "29991231000000000.deltacommit.requested").write_bytes(b"")
    found = agrees(ctx)
    assert newest not in found.commits
    assert newest.time in {instant.time for instant in found.pending}


def test_of_what_has_completed_nobody_looks_at_a_file_twice(table: HudiTable, tmp_path: Path) -> None:
    for _ in range(5):
        table.upsert(ROWS)
    ctx = open_table(str(tmp_path / "t")).context
    timeline = list_timeline(ctx)
    assert isinstance(ctx.storage, LocalStorage)
    _, looked_at, others = ctx.storage.list_news(".hoodie", ctx.settled.files)
    assert others == 3 * len(timeline.commits)
    assert [info.path for info in looked_at] == [".hoodie/hoodie.properties"]
    begin(table.context, Action.DELTA_COMMIT)
    list_timeline(ctx)
    _, looked_at, _ = ctx.storage.list_news(".hoodie", ctx.settled.files)
    assert len(looked_at) == 2, "what has not completed may change"
