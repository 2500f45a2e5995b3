"""A handle that lists the timeline of a table again takes up what is new alone, and sees what a
handle sees that lists it for the first time.

Aspects: a local disk, where it looks at nothing else, and a store; what writers and services do
beside it; files that come to an instant that has completed, that go, that come back under their
name; what is looked at.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.timeline.instants import Action, State, placed_instant
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"]})
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@pytest.fixture(params=["disk", "disk, version 9", "store"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    return made(f"memory://{uuid.uuid4().hex}/t" if request.param == "store" else str(tmp_path / "t"), request.param)


@pytest.fixture(params=["disk", "disk, version 9"])
def local(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    return made(str(tmp_path / "t"), request.param)


def made(path: str, kind: str) -> HudiTable:
    table = create_table(
        path, ROWS.schema, record_key="id", partition_by="p", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 1}, version=9 if kind.endswith("9") else 6,
    )  # fmt: skip
    table.upsert(ROWS)
    return table


def shown(timeline: Timeline) -> tuple[object, ...]:
    return timeline.instants, timeline.files, timeline.folders, timeline.planner_claims, timeline.pending


def agrees(ctx: TableContext) -> Timeline:
    found, anew = list_timeline(ctx), list_timeline(open_table(ctx.base_path).context)
    assert shown(found) == shown(anew)
    plain = replace(found)
    assert (found.completed, found.commits, found.pending) == (plain.completed, plain.commits, plain.pending)
    return found


def age(folder: Path) -> None:
    for path in (folder / ".hoodie").rglob("*"):
        os.utime(path, (0, 0))


def test_whatever_writers_and_services_do_beside_it(table: HudiTable) -> None:
    ctx = open_table(table.context.base_path).context
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


def test_instants_that_are_archived_are_gone(local: HudiTable, tmp_path: Path) -> None:
    for _ in range(6):
        local.upsert(ROWS)
    local.compact(force=True)
    ctx = open_table(str(tmp_path / "t")).context
    before = agrees(ctx)
    age(tmp_path / "t")
    assert open_table(str(tmp_path / "t")).archive(KEEP, force=True)
    assert len(agrees(ctx).instants) < len(before.instants)


@pytest.mark.parametrize("state", [State.INFLIGHT, State.REQUESTED])
def test_a_file_that_comes_late_to_an_instant_that_has_completed_changes_nothing_of_it(
    table: HudiTable, state: State
) -> None:
    ctx = open_table(table.context.base_path).context
    newest = list_timeline(ctx).commits[-1]
    name = newest.with_state(state).file_name
    ctx.storage.delete(ctx.layout.timeline_path(name))
    assert name not in agrees(ctx).files
    ctx.storage.put(ctx.layout.timeline_path(name), b"")
    found = agrees(ctx)
    assert name in found.files
    assert found.commits[-1] == newest


def test_a_completed_file_that_goes_while_another_comes_is_missed(table: HudiTable) -> None:
    """The number of files alone does not tell."""
    ctx = open_table(table.context.base_path).context
    newest = list_timeline(ctx).commits[-1]
    ctx.storage.delete(ctx.layout.timeline_path(newest.file_name))
    ctx.storage.put(ctx.layout.timeline_path("29991231000000000.deltacommit.requested"), b"")
    found = agrees(ctx)
    assert newest not in found.commits
    assert newest.time in {instant.time for instant in found.pending}


def test_of_what_has_completed_nothing_is_placed_twice(table: HudiTable) -> None:
    for _ in range(5):
        table.upsert(ROWS)
    ctx = open_table(table.context.base_path).context
    first = placed(ctx)
    assert first >= 3 * len(list_timeline(ctx).commits)
    begin(table.context, Action.DELTA_COMMIT)
    assert placed(ctx) <= 4, "what is new, and what is no instant"


def placed(ctx: TableContext) -> int:
    """How many files the next listing puts in their place."""
    before = placed_instant.cache_info()
    list_timeline(ctx)
    after = placed_instant.cache_info()
    return after.hits + after.misses - before.hits - before.misses


def test_of_what_has_completed_nobody_looks_at_a_file_twice(local: HudiTable, tmp_path: Path) -> None:
    for _ in range(5):
        local.upsert(ROWS)
    ctx = open_table(str(tmp_path / "t")).context
    timeline = list_timeline(ctx)
    assert isinstance(ctx.storage, LocalStorage)
    folder = ctx.layout.listed[0]
    _, looked_at, others = ctx.storage.list_news(folder, ctx.settled.files)
    assert others == 3 * len(timeline.commits)
    assert [info.path for info in looked_at] == [".hoodie/hoodie.properties"] * (folder == ".hoodie")
    begin(local.context, Action.DELTA_COMMIT)
    list_timeline(ctx)
    _, looked_at, _ = ctx.storage.list_news(folder, ctx.settled.files)
    assert len([info for info in looked_at if "properties" not in info.path]) == 1, "what has not completed may change"
