"""A planner leaves the file groups of a write that has lost an attempt to that write."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.model.names import TURNS
from hudi_table.model.service.services import ServiceRequest
from hudi_table.model.timeline import conflict_keys
from hudi_table.model.timeline.conflict_keys import (
    TABLE,
    append_conflict_key,
    bucket_conflict_key,
    file_conflict_key,
    partition_conflict_key,
)
from hudi_table.model.timeline.instants import format_instant_time
from hudi_table.services.compaction.service import CompactionService, DeletesCompaction, LogCompactionService
from hudi_table.table.commit.beside import left_to_writes
from hudi_table.table.commit.beside.turns import LIFE_SECONDS_MAX
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.view.compaction_plans import pending_plans
from tests.hudi_table.table.commit.test_turns import Steps
from tests.support.beside import seen_anew
from tests.support.written import contents, keys, new_table, rows, slices

RETRY = {"hoodie.write.num.retries.on.conflict.failures": "10"}
BUCKET = {"type": "Bucket", "buckets": 1}


@pytest.fixture(params=[6, 9])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    """A bucket with a log in x and one in y."""
    made = new_table(str(tmp_path / "t"), type="MergeOnRead", index=BUCKET, version=request.param)
    for value in (1, 2):
        made.upsert(rows(("a", "x", value), ("b", "y", value)))
    return made


def turn(table: HudiTable, *touches: str, began: float = 0.0, seen: float = 0.0) -> Path:
    """One whose write began so many seconds ago, and has shown a sign of life so long ago."""
    begun = format_instant_time(local_now(table.context) - timedelta(seconds=began))
    path = Path(table.base_path) / TURNS / begun
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"touches": touches}))
    os.utime(path, (time.time() - seen,) * 2)
    return path


def planned(table: HudiTable) -> list[str]:
    """The partitions of which a new compaction takes the group, sorted."""
    return [] if table.schedule_compaction(force=True) is None else waiting(table)


def waiting(table: HudiTable) -> list[str]:
    plans = pending_plans(table.context, load_timeline(table.context))
    return sorted(item.partition for found in plans.values() for item in found)


def test_a_write_that_has_lost_an_attempt_loses_none_to_a_compaction_that_is_planned_in_the_next(
    table: HudiTable,
) -> None:
    def others() -> None:
        open_table(table.base_path).upsert(rows(("c", "x", 7)))

    plans: list[list[str]] = []
    engine = Steps(others, lambda: plans.append(planned(open_table(table.base_path))))
    table.upsert(rows(("a", "x", 5)), options=RETRY, engine=engine)
    assert engine.attempts == 2
    assert plans == [["y"]]
    assert planned(seen_anew(table)) == ["x", "y"], "its turn is over"
    table.compact()
    assert contents(seen_anew(table)) == [("a", "x", 5), ("b", "y", 2), ("c", "x", 7)]


@pytest.mark.parametrize(
    ("touches", "taken"),
    [
        (bucket_conflict_key("x", 0), ["y"]),
        (partition_conflict_key("x"), ["y"]),
        (conflict_keys.record_conflict_keys("x"), ["x", "y"]),
        (TABLE, []),
    ],
)
def test_a_compaction_leaves_out_what_the_write_touches_and_no_more(
    table: HudiTable, touches: str, taken: list[str]
) -> None:
    turn(table, touches)
    assert planned(table) == taken
    assert not list((Path(table.base_path) / ".hoodie").rglob("*.claim"))


def test_what_was_left_out_is_planned_once_the_turn_is_over(table: HudiTable) -> None:
    turn(table, bucket_conflict_key("x", 0)).unlink()
    assert planned(table) == ["x", "y"]


def test_a_log_compaction_leaves_it_out_too(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 3), ("b", "y", 3)))
    turn(table, bucket_conflict_key("x", 0))
    assert LogCompactionService(table.context, ServiceRequest(force=True)).schedule() is not None
    assert waiting(table) == ["y"]


def test_a_clustering_leaves_it_out(tmp_path: Path) -> None:
    made = new_table(str(tmp_path / "t"))
    alone = {"hoodie.parquet.small.file.limit": "0"}
    for value in (1, 2):
        made.insert(rows((f"a{value}", "x", value), (f"b{value}", "y", value)), options=alone)
    (one, _) = [item.file_id for item in slices(made) if item.partition == "x"]
    turn(made, file_conflict_key("x", one))
    (done,) = made.cluster({"hoodie.clustering.plan.strategy.sort.columns": "value"}, force=True)
    assert done.figures["fileGroups"] == 3
    assert one in {item.file_id for item in slices(seen_anew(made))}


def test_the_turn_of_a_dead_writer_holds_no_plan_up_and_is_deleted(table: HudiTable) -> None:
    left = turn(table, TABLE, seen=LIFE_SECONDS_MAX + 5)
    assert planned(table) == ["x", "y"]
    assert not left.exists()


def test_a_write_that_began_more_than_a_day_ago_holds_no_plan_up(table: HudiTable) -> None:
    turn(table, TABLE, began=left_to_writes.TURN_SECONDS_MAX + 60)
    assert planned(table) == ["x", "y"]


def test_logs_that_waited_for_long_when_the_write_began_go_before_it(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_to_writes, "LOGS_WAIT_SECONDS", 30.0)
    turn(table, TABLE, began=-20)
    assert planned(table) == []
    turn(table, TABLE, began=-40)
    assert planned(table) == [], "that of the first turn"
    for each in (Path(table.base_path) / TURNS).glob("*"):
        each.unlink()
    turn(table, TABLE, began=-40)
    assert planned(table) == ["x", "y"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"touches": 1}'])
def test_what_is_no_turn_holds_no_plan_up(table: HudiTable, text: str) -> None:
    turn(table, TABLE).write_text(text)
    (Path(table.base_path) / TURNS / "other").write_text('{"touches": ["table"]}')
    assert planned(table) == ["x", "y"]


def test_a_compaction_takes_what_others_only_append_to(table: HudiTable) -> None:
    turn(table, append_conflict_key("x", 0))
    assert planned(table) == ["x", "y"]


def test_a_dry_run_names_all_groups_and_what_was_approved_is_planned_whole(table: HudiTable) -> None:
    turn(table, bucket_conflict_key("x", 0))
    plan = CompactionService(table.context, ServiceRequest(force=True)).plan()
    assert plan is not None
    assert plan.file_groups == 2
    CompactionService(table.context, ServiceRequest(plan=plan.digest)).run()
    assert [len(item.logs) for item in slices(seen_anew(table))] == [0, 0]


def test_deletes_that_later_rows_depend_on_are_compacted_all_the_same(table: HudiTable) -> None:
    table.delete(keys(("a", "x")))
    turn(table, TABLE)
    (done,) = DeletesCompaction(table.context).run()
    assert done.figures["fileGroups"] == 1
