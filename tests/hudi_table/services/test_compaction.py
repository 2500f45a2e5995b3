"""Compaction beside writers: what a plan takes, who conflicts with it, and that executing it
changes no row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.options.known import IgnoredOptionWarning
from hudi_table.model.timeline.instants import Action, planner_claim
from hudi_table.table.commit import recovery
from hudi_table.table.commit.transaction import begin_plan
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.view.compaction_plans import plan_body, planned_slices
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.tables import TestClock
from tests.support.written import INDEXES, contents, keys, meta_rows, new_table, rows, slices

EVERY_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.fixture(params=["bucket", "simple"])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """Keys a, b, c in x and y; a updated and d inserted, then c deleted, in later commits."""
    made = new_table(index=INDEXES[request.param], type="MergeOnRead")
    made.insert(rows(("a", "x", 1), ("b", "y", 2), ("c", "x", 3)))
    made.upsert(rows(("a", "x", 10), ("d", "x", 4)))
    made.delete(keys(("c", "x")))
    return made


ROWS = [("a", "x", 10), ("b", "y", 2), ("d", "x", 4)]


def pending(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).pending if i.action is Action.COMPACTION]


def planned(table: HudiTable) -> str:
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    return plan.instant


def test_a_compaction_changes_no_row_and_leaves_no_log(table: HudiTable) -> None:
    before = meta_rows(table)
    result = table.run_compaction(planned(table))
    assert result.figures["logFiles"] > 0
    assert not any(found.logs for found in slices(table))
    after = meta_rows(table)
    kept = [name for name in next(iter(before.values())) if name != "_hoodie_file_name"]
    assert {key: [row[name] for name in kept] for key, row in after.items()} == {
        key: [row[name] for name in kept] for key, row in before.items()
    }


@pytest.mark.parametrize("version", [6, 9])
def test_changes_that_are_kept_beside_a_base_file_hold_no_compaction_up(version: int) -> None:
    made = new_table(
        type="MergeOnRead", index=INDEXES["simple"], version=version, options={"hoodie.table.cdc.enabled": "true"}
    )
    made.insert(rows(("a", "x", 1)))
    made.insert(rows(("b", "x", 2)))
    made.upsert(rows(("a", "x", 3)))
    changes = [info.path for info in made.context.storage.list("x") if info.path.endswith(".cdc")]
    made.run_compaction(planned(made))
    assert changes
    assert contents(made) == [("a", "x", 3), ("b", "x", 2)]
    assert not any(found.logs for found in slices(made))


def test_its_commit_is_one_of_hudi_with_the_logs_that_it_merged(table: HudiTable) -> None:
    instant = planned(table)
    table.run_compaction(instant)
    newest = load_timeline(table.context).last_commit
    assert newest is not None
    assert (newest.time, newest.file_name) == (instant, f"{instant}.commit")
    metadata = commit_metadata(table.context, newest)
    assert (metadata.operation_type, metadata.compacted) == ("COMPACT", True)
    for stat in metadata.stats:
        assert stat.extra["totalLogFilesCompacted"] > 0
        assert stat.extra["totalLogSizeCompacted"] > 0
    assert sum(stat.num_deletes for stat in metadata.stats) == 1


def test_what_is_written_beside_a_plan_is_there_before_and_after_its_execution(table: HudiTable) -> None:
    instant = planned(table)
    table.upsert(rows(("a", "x", 11), ("e", "x", 5)))
    table.delete(keys(("b", "y")))
    expected = [("a", "x", 11), ("d", "x", 4), ("e", "x", 5)]
    assert contents(table) == expected
    table.run_compaction(instant)
    assert contents(table) == expected
    table.compact(force=True)
    assert contents(table) == expected
    assert not any(found.logs for found in slices(table))


def test_a_key_deleted_before_a_plan_and_written_again_after_it_is_found_when_it_is_updated(table: HudiTable) -> None:
    instant = planned(table)
    table.upsert(rows(("c", "x", 30)))
    table.run_compaction(instant)
    table.upsert(rows(("c", "x", 31)))
    assert contents(table) == sorted([*ROWS, ("c", "x", 31)])


def test_a_time_travel_before_the_compaction_sees_the_old_rows(table: HudiTable) -> None:
    first = load_timeline(table.context).commits[1].time
    old = sorted(tuple(r.values()) for r in table.scan(["id", "value"], as_of=first).to_arrow().to_pylist())
    table.run_compaction(planned(table))
    table.upsert(rows(("a", "x", 12)))
    assert sorted(tuple(r.values()) for r in table.scan(["id", "value"], as_of=first).to_arrow().to_pylist()) == old
    changed = table.scan(["id"], query="incremental", since=first).to_arrow()["id"].to_pylist()
    assert sorted(changed) == ["a", "d"]


def test_a_writer_that_read_before_the_plan_conflicts_with_it(table: HudiTable) -> None:
    other = open_table(table.base_path)
    with pytest.raises(WriteConflictError, match="plans to rewrite"):
        table.upsert(rows(("a", "x", 12)), engine=Meanwhile(lambda: planned(other)))
    table.run_compaction(pending(table)[0])
    assert contents(table) == ROWS


def test_a_writer_of_another_group_goes_on_beside_the_plan(table: HudiTable) -> None:
    other = open_table(table.base_path)
    only_x = {
        "hoodie.compaction.strategy": "PartitionRegexBased",
        "hoodie.compaction.partition.path.regex": "x",
    }
    table.upsert(
        rows(("b", "y", 20)), engine=Meanwhile(lambda: other.schedule_compaction(only_x, force=True))
    )  # fmt: skip
    table.run_compaction(pending(table)[0])
    assert contents(table) == [("a", "x", 10), ("b", "y", 20), ("d", "x", 4)]


def test_a_planner_whose_groups_moved_plans_again(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer decides between the planner's listing and its decision."""
    other = open_table(table.base_path)
    told: list[str] = []

    def body(chosen: list[object], *more: object) -> bytes:
        if not told:
            told.append(other.upsert(rows(("a", "x", 12))).instant)
        return plan_body(chosen, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("hudi_table.services.compaction.schedule.plan_body", body)
    instant = planned(table)
    assert instant > told[0]
    newest = next(i for i in load_timeline(table.context).pending if i.time == instant)
    logs = [name for item in planned_slices(table.context, newest) for name in item.logs]
    assert any(told[0][8:] in name for name in logs)
    assert not load_timeline(table.context).planner_claims
    table.run_compaction(instant)
    assert ("a", "x", 12) in contents(table)


def test_two_executors_at_once_and_a_third_later_make_one_commit(table: HudiTable) -> None:
    instant = planned(table)
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(open_table(table.base_path).run_compaction, instant) for _ in range(2)]
        results = [future.result() for future in work]
    results.append(table.run_compaction(instant))
    assert [r.figures for r in results] == [results[0].figures] * 3
    assert results[2].replayed
    assert contents(table) == ROWS


def test_a_group_lies_in_one_plan_only_and_a_plan_of_nothing_is_none(table: HudiTable) -> None:
    first = planned(table)
    assert table.schedule_compaction(force=True) is None
    table.upsert(rows(("a", "x", 12)))
    assert table.schedule_compaction(force=True) is None
    assert pending(table) == [first]


def test_the_trigger_decides_unless_it_is_forced(table: HudiTable) -> None:
    assert table.schedule_compaction({"hoodie.compact.inline.max.delta.commits": "10"}) is None
    before = table.context.storage.list_dir(".hoodie")[1]
    assert not [info for info in before if info.path.endswith(".claim")]
    plan = table.schedule_compaction({"hoodie.compact.inline.max.delta.commits": "2"})
    assert plan is not None
    assert "deltacommits" in plan.why


def test_seconds_since_the_first_log_make_a_compaction_due(table: HudiTable) -> None:
    by_time = {
        "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
        "hoodie.compact.inline.max.delta.seconds": "600",
    }
    clock = TestClock(table.context.clock.now() + timedelta(seconds=500))
    later = HudiTable(replace(table.context, clock=clock))
    assert later.schedule_compaction(by_time) is None
    clock.advance(200)
    assert later.schedule_compaction(by_time) is not None


def test_a_write_compacts_inline_when_its_options_say_so(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 12)), options={"hoodie.compact.inline": "true", **EVERY_COMMIT})
    assert not any(found.logs for found in slices(table))
    table.upsert(rows(("a", "x", 13)), options={"hoodie.compact.schedule.inline": "true", **EVERY_COMMIT})
    assert len(pending(table)) == 1
    table.upsert(rows(("b", "y", 14)), options={"hoodie.compact.inline": "true", **EVERY_COMMIT})
    assert pending(table) == []
    assert contents(table) == [("a", "x", 13), ("b", "y", 14), ("d", "x", 4)]


def test_contradicting_options_and_tables_without_logs_are_refused_before_anything_is_written(
    table: HudiTable,
) -> None:
    both = {"hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"}
    commits = len(load_timeline(table.context).commits)
    with pytest.raises(InvalidOptionError, match="exclude each other"):
        table.upsert(rows(("a", "x", 12)), options=both)
    assert len(load_timeline(table.context).commits) == commits
    with pytest.raises(InvalidRequestError, match="copy-on-write"):
        new_table().schedule_compaction(force=True)
    with pytest.raises(InvalidRequestError, match="no pending compaction"):
        table.run_compaction("20200101000000000")
    with pytest.raises(InvalidRequestError, match="as_of"):
        open_table(table.base_path, as_of="2020").compact()


@pytest.mark.parametrize(
    "key", ["hoodie.compact.inline", "hoodie.compact.schedule.inline", "hoodie.log.compaction.inline"]
)
def test_a_writer_of_a_table_without_logs_is_told_that_nothing_is_compacted(key: str) -> None:
    with pytest.warns(IgnoredOptionWarning, match=f"{key}' does nothing here: table '.*' is copy-on-write"):
        new_table().insert(rows(("a", "x", 1)), options={key: "true"})


def test_the_claim_of_a_dead_planner_is_aborted_and_deleted(table: HudiTable) -> None:
    txn = begin_plan(table.context, Action.COMPACTION)
    claim = f".hoodie/{planner_claim(txn.time)}"
    assert table.context.storage.head(claim).size == 0
    table.upsert(rows(("a", "x", 12)))
    impatient = open_context(open_storage(table.base_path), settings=TxnSettings(3600.0, 0.0))
    recovery.recover(impatient, load_timeline(impatient))
    assert load_timeline(table.context).planner_claims == ()
    with pytest.raises(Exception, match="aborted"):
        txn.plan(plan_body([]), {"instant:" + txn.time})
    assert pending(table) == []


def test_a_log_compaction_puts_one_log_in_the_place_of_many_and_changes_no_row(table: HudiTable) -> None:
    before = meta_rows(table)
    table.upsert(rows(("a", "x", 10)))
    expected = meta_rows(table)
    (done,) = table.compact_logs(force=True)
    assert done.figures["logFiles"] >= 2
    assert meta_rows(table) == expected
    assert before.keys() == expected.keys()
    newest = load_timeline(table.context).last_commit
    assert newest is not None
    assert newest.file_name == f"{done.instant}.deltacommit"
    assert commit_metadata(table.context, newest).operation_type == "LOG_COMPACT"
    table.upsert(rows(("a", "x", 11)))
    assert ("a", "x", 11) in contents(table)
    table.compact(force=True)
    assert ("a", "x", 11) in contents(table)
    assert not any(found.logs for found in slices(table))


def test_what_is_written_beside_a_log_compaction_stays_behind_it(table: HudiTable) -> None:
    """Its log comes right behind those that it stands for, however late it is written."""
    table.upsert(rows(("a", "x", 5), ("b", "y", 5)))
    table.upsert(rows(("a", "x", 6), ("b", "y", 6)))
    plan = table.services.log_compaction(force=True).schedule()
    table.upsert(rows(("a", "x", 11), ("b", "y", 11)))
    expected = contents(table)
    assert plan is not None
    (done,) = table.compact_logs({"hoodie.log.compaction.blocks.threshold": "2"})
    assert done.instant == plan.instant
    assert contents(table) == expected
    assert table.compact_logs(force=True)
    assert contents(table) == expected
    assert ("a", "x", 11) in expected


def test_a_log_compaction_takes_slices_with_as_many_logs_as_the_options_say(table: HudiTable) -> None:
    asked = {"hoodie.log.compaction.blocks.threshold": "4"}
    assert table.services.log_compaction(asked).schedule() is None
    with pytest.raises(InvalidOptionError, match=r"hoodie\.log\.compaction\.blocks\.threshold"):
        table.services.log_compaction({"hoodie.log.compaction.blocks.threshold": "1"}).schedule()
    for value in range(3):
        options = {"hoodie.log.compaction.inline": "true", **asked}
        table.upsert(rows(("a", "x", 100 + value)), options=options)
    assert (
        len(
            [
                i
                for i in load_timeline(table.context).commits
                if "LOG_COMPACT" in commit_metadata(table.context, i).operation_type
            ]
        )
        == 1
    )
    assert ("a", "x", 102) in contents(table)


def test_an_all_deleted_group_is_compacted_to_a_file_without_rows(table: HudiTable) -> None:
    table.delete(keys(("a", "x"), ("d", "x"), ("b", "y")))
    table.compact(force=True)
    assert contents(table) == []
    assert not any(found.logs for found in slices(table))
    table.upsert(rows(("a", "x", 1)))
    assert contents(table) == [("a", "x", 1)]
