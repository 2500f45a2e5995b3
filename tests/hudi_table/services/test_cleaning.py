"""Cleaning a table: what it deletes, what it leaves, what it records, and what readers and writers
notice."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import ExpiredError, InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.instants import Action
from hudi_table.services.cleaning.plan import clean_choice
from hudi_table.services.planning import publish
from hudi_table.table.commit.transaction import begin
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clean_plans import completed_cleans
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.aged import HOURS, AgedStorage
from tests.support.beside import another_engine
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.recording import RecordingStorage, Trace
from tests.support.tables import TestClock, memory_storage
from tests.support.taken_back import aged, newest
from tests.support.written import INDEXES, SCHEMA, rows

KEEP = {"hoodie.clean.commits.retained": "2"}
BY_POLICY = [
    KEEP | {"hoodie.clean.policy": "KEEP_LATEST_COMMITS"},
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"},
]


def table_of(tmp_path: Path, commits: int = 5, **more: Any) -> HudiTable:
    more.setdefault("version", 6)
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"], **more)
    for value in range(commits):
        table.upsert(rows(("a", "x", value), ("b", "y", value)))
    return table


def commits(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).commits]


def names(table: HudiTable) -> set[str]:
    return {i.path for i in table.context.storage.list() if not i.path.startswith(".hoodie/")}


def test_a_dry_run_says_per_partition_what_goes_and_what_holds_back_and_changes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    kept = table.savepoint(commits(table)[1])
    before = names(table)
    plan = table.plan_clean(KEEP)
    assert plan is not None
    assert plan.instant == ""
    assert plan.files_before - plan.files_after == 2
    assert plan.bytes_freed > 0
    assert [line.split(": ")[0] for line in plan.details] == ["x", "y", "x", "y"]
    assert plan.details[0].startswith("x: 1 file, ")
    assert plan.details[2] == f"x: 1 file held back by savepoint {kept.instant}"
    assert names(table) == before
    assert not [i for i in load_timeline(table.context).instants if i.action is Action.CLEAN]


def test_nothing_to_do_claims_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2)
    before = {i.path for i in table.context.storage.list()}
    assert table.plan_clean(KEEP) is None
    assert table.clean(KEEP, force=True) == []
    assert {i.path for i in table.context.storage.list()} == before


def test_staged_rows_of_a_killed_write_go_with_a_clean(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    folder = tmp_path / "t" / ".hoodie" / ".staged"
    folder.mkdir()
    for name, age in (("old.arrow", 90_000), ("young.arrow", 80_000)):
        folder.joinpath(name).touch()
        moment = datetime.now(UTC).timestamp() - age
        os.utime(folder / name, times=(moment, moment))
    assert table.clean(KEEP, force=True) == []
    assert [found.name for found in folder.iterdir()] == ["young.arrow"]
    os.utime(folder / "young.arrow", times=(moment - 20_000, moment - 20_000))
    assert table.services.cleaning(KEEP).schedule() is None
    assert not list(folder.glob("*")), "also where a plan is asked for alone"


def test_retained_moments_read_on_and_earlier_ones_are_expired(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    moments = commits(table)
    (done,) = table.clean(KEEP)
    assert done.figures["filesDeleted"] == 4
    assert done.figures["bytesFreed"] > 0
    for time, value in zip(moments[-3:], (2, 3, 4), strict=True):
        assert table.scan(["value"], as_of=time).to_arrow().column(0).to_pylist() == [value, value]
    with pytest.raises(ExpiredError, match=f"the clean {done.instant} deleted"):
        open_table(table.base_path, as_of=moments[1]).scan().to_arrow()
    with pytest.raises(ExpiredError, match="can no longer be determined"):
        table.changes(moments[0]).to_arrow()
    assert table.run_clean(done.instant).replayed


def test_a_scan_that_was_planned_before_names_the_clean_that_took_its_file(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    scan = table.scan(as_of=commits(table)[1])
    assert scan.plan
    (done,) = table.clean(KEEP)
    with pytest.raises(ExpiredError, match=f"was cleaned by the clean {done.instant} while it was read") as error:
        scan.to_arrow()
    assert error.value.instant == done.instant


def test_a_clean_that_has_only_begun_expires_what_it_names(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    plan = table.schedule_clean(KEEP)
    assert plan is not None
    with pytest.raises(ExpiredError, match=plan.instant):
        table.scan(as_of=commits(table)[1]).to_arrow()
    assert table.scan(as_of=commits(table)[-1]).count() == 2


def test_it_is_due_after_as_many_commits_as_the_trigger_says(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    due = KEEP | {"hoodie.clean.max.commits": "3"}
    assert len(table.clean(due)) == 1
    table.upsert(rows(("a", "x", 9)))
    assert table.clean(due) == []
    assert len(table.clean(due, force=True)) == 1


def test_a_writer_cleans_only_if_its_options_say_so(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.upsert(rows(("a", "x", 9)), options=KEEP)
    assert not list(completed_cleans(table.context, load_timeline(table.context)))
    with pytest.raises(InvalidOptionError, match="not a whole number"):
        table.upsert(
            rows(("a", "x", 10)), options={"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "-"}
        )
    table.upsert(rows(("a", "x", 10)), options=KEEP | {"hoodie.clean.automatic": "true"})
    assert len(list(completed_cleans(table.context, load_timeline(table.context)))) == 1


def test_only_partitions_that_changed_since_the_last_clean_are_looked_at(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.clean(KEEP)
    for value in range(3):
        table.upsert(rows(("a", "x", 20 + value)))
    table.clean(KEEP)
    plan = FaultPlan()
    watched = HudiTable(open_context(FaultyStorage(table.context.storage, plan)))
    table.upsert(rows(("a", "x", 30)))
    assert watched.plan_clean(KEEP) is not None
    assert {call.path for call in plan.calls if call.method == "list_dir" and ".hoodie" not in call.path} == {"x"}


def test_partitions_that_only_archived_commits_changed_are_looked_at(tmp_path: Path) -> None:
    """What the timeline has lost since the last clean tells of no partition any more."""
    table = table_of(tmp_path)
    table.clean(KEEP)
    table.upsert(rows(("b", "y", 10)))
    written = commits(table)[-1]
    for value in range(5):
        table.upsert(rows(("c", "z", value)))
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    assert HudiTable(open_context(AgedStorage(table.context.storage, HOURS))).archive(KEEP | few, force=True)
    assert written not in commits(table)
    table.clean(KEEP)
    (left,) = [path for path in names(table) if path.startswith("y/") and path.endswith(".parquet")]
    assert written in left


def test_where_a_savepoint_held_files_back_is_looked_at_again_once_it_is_gone(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    kept = table.savepoint(commits(table)[1])
    held = {path for path in names(table) if kept.instant in path}
    table.clean(KEEP)
    for value in range(4):
        table.upsert(rows(("c", "z", value)))
    table.clean(KEEP)
    assert held <= names(table)
    table.delete_savepoint(kept.instant, writers_stopped=True)
    table.upsert(rows(("c", "z", 9)))
    table.clean(KEEP)
    assert not held & names(table)


@pytest.mark.parametrize("options", BY_POLICY, ids=lambda options: options["hoodie.clean.policy"])
def test_a_partition_that_was_dropped_goes_with_its_last_file_and_can_come_back(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = table_of(tmp_path)
    table.write(None, operation="delete_partition", partitions=["x"])
    for value in range(3):
        table.upsert(rows(("b", "y", 10 + value)))
    table.clean(options)
    assert {path.split("/")[0] for path in names(table)} == {"y"}
    table.upsert(rows(("a", "x", 1)))
    assert "x/.hoodie_partition_metadata" in names(table)
    assert open_table(table.base_path).scan().count() == 2


def test_the_metadata_of_an_emptied_partition_stays_while_a_writer_is_at_work(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.write(None, operation="delete_partition", partitions=["x"])
    for value in range(3):
        table.upsert(rows(("b", "y", 10 + value)))
    plan = table.schedule_clean(KEEP)
    assert plan is not None
    # It has claimed, and may have seen the metadata file.
    begin(open_context(table.context.storage), Action.COMMIT)
    table.run_clean(plan.instant)
    assert {path for path in names(table) if path.startswith("x/")} == {"x/.hoodie_partition_metadata"}


def test_a_file_that_cannot_be_deleted_is_recorded_and_tried_again(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    plan = table.schedule_clean(KEEP)
    assert plan is not None
    refused = FaultPlan(at=1, fault=Fault.UNAVAILABLE, only=lambda call: call.method == "delete")
    done = HudiTable(open_context(FaultyStorage(table.context.storage, refused))).run_clean(
        plan.instant, engine=LocalEngine(1)
    )
    assert done.figures["filesFailed"] == 1
    assert "could not be" in done.message
    (record,) = completed_cleans(table.context, load_timeline(table.context))
    ((partition, (failed,)),) = [(p, found) for p, found in record.failed.items() if found]
    assert f"{partition}/{failed}" in names(table)
    with pytest.raises(ExpiredError):
        table.scan(as_of=commits(table)[1]).to_arrow()
    (again,) = table.clean(KEEP, force=True)
    assert again.figures["filesDeleted"] == 1
    assert f"{partition}/{failed}" not in names(table)


def test_an_approved_plan_is_published_exactly_or_refused_with_the_file_that_moved(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    plan = table.plan_clean(KEEP)
    assert plan is not None
    table.upsert(rows(("a", "x", 9)))
    published = table.schedule_clean(KEEP, plan=plan.digest)
    assert published is not None
    assert published.digest == plan.digest
    assert published.bytes_freed == plan.bytes_freed
    table.run_clean(published.instant)
    again = table.plan_clean(KEEP)
    assert again is not None
    table.savepoint(commits(table)[3])
    with pytest.raises(WriteConflictError, match="make a new plan and approve that"):
        table.schedule_clean(KEEP, plan=again.digest)
    with pytest.raises(WriteConflictError, match="plan 'none' cannot be made again"):
        table.schedule_clean(KEEP, plan="none")


def test_a_savepoint_made_since_the_planner_looked_makes_it_plan_again(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    other = open_table(table.base_path)
    choose = clean_choice(table.context, KEEP, force=True)
    made: list[str] = []

    def overtaken(view: object) -> object:
        draft = choose(view)  # type: ignore[arg-type]
        if load_timeline(table.context).planner_claims and not made:
            made.append(other.savepoint(commits(table)[1]).instant)
        return draft

    planned = publish(table.context, Action.CLEAN, overtaken)  # type: ignore[arg-type]
    assert planned is not None
    table.run_clean(planned.instant)
    assert other.scan(as_of=made[0]).count() == 2


def test_pending_compactions_keep_what_they_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, 3, type="MergeOnRead")
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    for value in range(4):
        table.upsert(rows(("a", "x", 20 + value)))
    before = table.scan().to_arrow()
    for options in BY_POLICY:
        assert table.clean(options, force=True) == []
    table.run_compaction(plan.instant)
    assert table.scan().to_arrow().sort_by("id") == before.sort_by("id")
    table.upsert(rows(("a", "x", 30)))
    (done,) = table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    assert done.figures["filesDeleted"] > 0
    assert table.scan().count() == 2


def test_change_logs_go_with_their_slice(tmp_path: Path) -> None:
    table = table_of(tmp_path, options={"hoodie.table.cdc.enabled": "true"})
    before = {path for path in names(table) if path.endswith(".cdc")}
    assert before
    table.clean({"hoodie.clean.commits.retained": "1"})
    left = {path for path in names(table) if path.endswith(".cdc")}
    assert left < before
    assert table.changes(commits(table)[-2]).to_arrow().num_rows == 2


def test_a_clean_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no pending clean 20200101000000000"):
        table_of(tmp_path, 1).run_clean("20200101000000000")


def test_as_a_service_it_plans_schedules_and_executes(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    service = table.services.cleaning(KEEP)
    dry = service.plan()
    assert dry is not None
    assert service.pending() == []
    planned = table.services.cleaning(KEEP, plan=dry.digest).schedule()
    assert planned is not None
    assert service.pending() == [planned.instant]
    done = service.execute(planned)
    assert done.figures["filesDeleted"] == dry.files_before - dry.files_after
    assert service.schedule() is None


def test_a_table_opened_as_of_a_moment_is_not_cleaned(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    past = open_table(table.base_path, as_of=commits(table)[0])
    with pytest.raises(InvalidRequestError, match="opened as of"):
        past.clean()


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        # The retained commits, and what a reader of the moment before them may see.
        ({"hoodie.clean.commits.retained": "1"}, 2),
        ({"hoodie.clean.commits.retained": "3"}, 4),
        ({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}, 1),
        ({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "3"}, 3),
        ({"hoodie.clean.fileversions.retained": "3"}, 3),
        ({"hoodie.clean.hours.retained": "3"}, 5),
        ({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "2"}, 4),
        ({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "3"}, 5),
    ],
)
def test_as_much_is_kept_as_the_policy_and_its_number_say(options: dict[str, str], kept: int) -> None:
    """Six commits, an hour apart."""
    storage, clock = memory_storage(), TestClock()
    table = HudiTable(create(storage, TableSpec(SCHEMA, "id", partition_by="city", name="t"), clock=clock))
    for value in range(6):
        clock.advance(3600)
        table.upsert(rows(("a", "x", value)))
    table.clean(options, force=True)
    assert len([name for name in names(table) if name.endswith(".parquet")]) == kept


@pytest.mark.parametrize(("incremental", "listed"), [("true", {"x"}), ("false", {"x", "y"})])
def test_partitions_without_a_change_since_the_last_clean_are_listed_unless_an_option_forbids_to_skip_them(
    tmp_path: Path, incremental: str, listed: set[str]
) -> None:
    table = table_of(tmp_path)
    for value in range(6):
        table.upsert(rows(("a", "x", 10 + value)))
        if value == 2:
            table.clean(KEEP, force=True)
    trace = Trace()
    recorded = open_context(RecordingStorage(table.context.storage, trace), table.context.clock)
    HudiTable(recorded).clean(KEEP | {"hoodie.clean.incremental.enabled": incremental}, force=True)
    assert {step.key for step in trace.steps if step.call in ("list", "list_dir")} & {"x", "y"} == listed


def test_a_clean_keeps_what_another_engine_has_brought_back_since_it_was_planned(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    plan = table.schedule_clean({"hoodie.clean.commits.retained": "1"})
    assert plan is not None

    def take_two_writes_back(other: HudiTable) -> None:
        # It does not look whether a clean is planned.
        name = f".hoodie/{plan.instant}.clean.requested"
        planned = other.context.storage.get(name)
        other.context.storage.delete(name)
        for _ in range(2):
            aged(other).rollback(newest(other))
        other.context.storage.put(name, planned)

    another_engine(table, take_two_writes_back)
    open_table(table.base_path).run_clean(plan.instant)
    assert open_table(table.base_path).scan(["value"]).to_arrow().column(0).to_pylist() == [2, 2]
