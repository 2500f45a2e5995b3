"""When a write of a table of version 8 or 9 completes: its decision says so, whoever publishes
it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import (
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, next_instant_time, parse_instant
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.later_tables import contents, ctx_of, files, new_table, rows


class Behind(SystemClock):
    """A clock that is hours late."""

    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(hours=3)


def entries(table: HudiTable) -> list[ChainEntry]:
    folder = Path(table.base_path) / ".hoodie/.txn"
    return [ChainEntry.from_json(path.read_bytes()) for path in sorted(folder.glob("0*.json"))]


def test_the_decision_says_when_a_write_completes(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    for n in range(3):
        table.upsert(rows(("a", n)))
    table.compact(force=True)
    found = entries(table)
    names = [entry.name for entry in found]
    assert set(names) <= set(files(table, ".hoodie/timeline"))
    completions = [instant.completion for name in names if (instant := parse_instant(name)) and instant.completed]
    assert completions == sorted(set(completions))
    for entry in found:
        instant = parse_instant(entry.name)
        assert instant is not None
        # Who draws a time later draws one after the completion, too.
        assert entry.max_instant >= max(instant.moment, entry.instant)


def test_a_write_completes_after_all_that_was_decided_however_late_its_clock_is(tmp_path: Path):
    table = new_table(tmp_path / "t", 9)
    table.upsert(rows(("a", 1)))
    late = HudiTable(open_context(open_storage(table.base_path), Behind()))
    late.upsert(rows(("a", 2)))
    table.upsert(rows(("a", 3)))
    commits = load_timeline(table.context).commits
    moments = [instant.completion for instant in commits]
    assert moments == sorted(set(moments))
    assert all(instant.completion > instant.time for instant in commits)
    assert contents(table) == [("a", 3)]


def test_whoever_publishes_a_decision_makes_the_same_file(tmp_path: Path):
    """A writer that died behind its decision is published by the next process under the completion
    that the decision fixed."""
    table = new_table(tmp_path / "t", 9)
    table.upsert(rows(("a", 1)))
    time = table.upsert(rows(("a", 2))).instant
    (name,) = [name for name in files(table, ".hoodie/timeline") if name.startswith(f"{time}_")]
    path = Path(table.base_path) / ".hoodie/timeline" / name
    body = path.read_bytes()
    path.unlink()
    assert contents(table) == [("a", 1)]
    caught_up(open_context(open_storage(table.base_path), Behind()))
    assert path.read_bytes() == body
    assert contents(table) == [("a", 2)]


def test_a_plan_that_another_engine_has_completed_is_not_completed_again(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    table.insert(rows(("a", 1)))
    table.upsert(rows(("a", 2)))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    done = table.run_compaction(plan.instant).instant
    folder = Path(table.base_path) / ".hoodie/timeline"
    (name,) = [name for name in files(table, ".hoodie/timeline") if name.startswith(f"{done}_")]
    moved = parse_instant(name)
    assert moved is not None
    other = folder / name.replace(moved.completion, next_instant_time(moved.completion))
    (folder / name).rename(other)
    table.upsert(rows(("a", 3)))
    assert [found for found in files(table, ".hoodie/timeline") if found.startswith(f"{done}_")] == [other.name]
    assert contents(table) == [("a", 3)]


def test_a_zombie_publishes_nothing_under_another_completion(tmp_path: Path):
    table = new_table(tmp_path / "t", 9)
    table.upsert(rows(("a", 1)))
    asleep = begin(ctx_of(table), Action.COMMIT)
    asleep.inflight()
    table.rollback(asleep.time, writers_stopped=True)
    with pytest.raises(WriteAbortedError):
        asleep.commit(CommitMetadata("UPSERT", (), {}), ())
    assert not [name for name in files(table, ".hoodie/timeline") if name.startswith(f"{asleep.time}_")]


def test_a_write_that_began_before_a_plan_and_ends_after_it_fails_on_it_and_its_successor_lies_on_the_new_slice(
    tmp_path: Path,
):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    table.insert(rows(("a", 1), ("b", 1)))
    table.upsert(rows(("a", 2)))
    early = begin(ctx_of(table), Action.DELTA_COMMIT)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    (group,) = {row["file_id"] for row in open_table(table.base_path).files().to_pylist()}
    with pytest.raises(WriteConflictError):
        early.commit(CommitMetadata("UPSERT", (), {}), {f"file:x/{group}"} | key_of(group))
    early.abort()
    after = table.upsert(rows(("a", 3))).instant
    assert after > plan.instant
    table.run_compaction(plan.instant)
    assert contents(table) == [("a", 3), ("b", 1)]
    optimised = open_table(table.base_path).scan(query="read_optimized").to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in optimised) == [("a", 2), ("b", 1)]
    (newest,) = [row for row in open_table(table.base_path).files().to_pylist() if row["latest"]]
    assert (newest["instant"], newest["log_files"]) == (plan.instant, 1)


def key_of(group: str) -> set[str]:
    from hudi_table.model.timeline.conflict_keys import file_conflict_key

    return {file_conflict_key("x", group)}


def test_an_instant_is_later_than_every_plan_of_a_compaction_that_its_writer_saw(tmp_path: Path):
    """Its log would come before the log of a log compaction, which holds older rows."""
    table = new_table(tmp_path / "t", 9, type="MergeOnRead", merge_mode="CommitTime")
    table.insert(rows(("a", 1)))
    for n in (2, 3):
        table.upsert(rows(("a", n)))
    plan = table.services.log_compaction(force=True).schedule()
    assert plan is not None
    timeline = load_timeline(table.context)
    assert timeline.newest_settled == plan.instant
    after = table.upsert(rows(("a", 4))).instant
    assert after > plan.instant
    table.services.log_compaction(force=True).run()
    assert contents(table) == [("a", 4)]
