"""Queries of tables of version 9 read those files alone of the archive whose instants wrote logs
that lie before a newer base file.

The table has two files in its archive: the logs of the first were cleaned, those of the second lie
below a base file of a compaction. `Reads` counts which files are read as a whole.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.read.changes.plan import ChangesRequest, make_changes_plan
from hudi_table.read.moments import Span
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.archived_times import doubtful
from hudi_table.table.view.file_groups import groups_of
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files
from tests.hudi_table.table.timeline.test_asked import Reads

ROWS = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "y"]})
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
HISTORY = Path(".hoodie") / "timeline" / "history"


def archived(base: Path) -> set[str]:
    """Archive what may be, and the names of the files that are new then."""
    before = {path.name for path in (base / HISTORY).glob("*.parquet")}
    for path in (base / ".hoodie").rglob("*"):
        os.utime(path, (0, 0))
    assert open_table(base).archive(KEEP, force=True)
    return {path.name for path in (base / HISTORY).glob("*.parquet")} - before


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], set[str]]:
    """The table, and the files of its archive: whose logs are gone, and whose logs lie there."""
    base = tmp_path_factory.mktemp("archived") / "t"
    table = create_table(
        base, ROWS.schema, record_key="id", partition_by="p", type="MergeOnRead", version=9,
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    for cleaned in (True, False):
        for _ in range(5):
            table.upsert(ROWS)
        table.compact(force=True)
        for _ in range(3):
            table.upsert(ROWS)
        if cleaned:
            table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
            first = archived(base)
            # By completion its files are told apart to the second.
            time.sleep(1.1)
    return base, first, archived(base)


def noted(base: Path) -> tuple[TableContext, Reads]:
    ctx = open_table(base).context
    reads = Reads(ctx.storage)
    return replace(ctx, storage=reads), reads


def test_a_change_data_query_reads_what_logs_below_base_files_need(made: tuple[Path, set[str], set[str]]) -> None:
    base, _, second = made
    ctx, reads = noted(base)
    active = load_timeline(ctx).commits
    plan = make_changes_plan(ctx, ChangesRequest(Span(active[-2].moment)))
    assert [step.instant for step in plan.steps] == [active[-1].time] * 2
    # The same file tells how far the archive reaches.
    assert set(reads.whole) == second


@pytest.mark.parametrize("partitions", [None, ["x", "y"]], ids=["the whole table", "partitions"])
def test_a_snapshot_reads_what_logs_below_base_files_need(
    made: tuple[Path, set[str], set[str]], partitions: list[str] | None
) -> None:
    base, _, second = made
    ctx, reads = noted(base)
    timeline = load_timeline(ctx)
    found = FileSystemView(ctx, timeline).latest_slices(partitions)
    assert set(reads.whole) == second
    assert len(reads.whole) == len(second)
    whole = groups_of(list_data_files(ctx.storage), timeline, archived=lambda: archived_completions(ctx))
    assert found == [group.latest for name in sorted(whole) for group in whole[name]]


def test_logs_of_the_timeline_and_those_behind_the_newest_base_file_ask_nothing(
    made: tuple[Path, set[str], set[str]],
) -> None:
    base, _, _ = made
    ctx, _ = noted(base)
    timeline, files = load_timeline(ctx), list(list_data_files(ctx.storage))
    asked = doubtful(timeline, files)
    assert asked == {time for time in archived_completions(ctx) if any(f"_{time}.log." in file.path for file in files)}
    assert asked
    logs = [file for file in files if ".log." in file.path]
    assert doubtful(timeline, logs) == frozenset()
