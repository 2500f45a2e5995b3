"""`plan_table`: which effects follow from what is desired and what was seen.

Aspects: the manifest, the table's visibility, waiting files, runs and their retries, status and events. Everything is a
value; nothing is run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredTable, desired_table
from hudi_operator.api.status import HudiTableStatus, RunStatus
from hudi_operator.plan.effects import Effect, Emit, Launch, RequeueAfter, SetStatus
from hudi_operator.plan.observed import (
    CommittedCheckpoint,
    FileFact,
    Observed,
    Problem,
    SourceObservation,
    TableObservation,
)
from hudi_operator.plan.runs import RetryPolicy
from hudi_operator.plan.table import plan_table
from hudi_table.model.checkpoint import SourceFile, advance, batch_id
from hudi_table.model.instants import Action, Instant, State
from hudi_table.model.table_config import IndexSpec, IndexType, MergeMode, TableConfig, TableType
from tests.support.manifests import ingest, manifest, spec, stored

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CONFIG = TableConfig(
    name="flights",
    type=TableType.COPY_ON_WRITE,
    record_key=("id",),
    ordering_fields=("ts",),
    merge_mode=MergeMode.EVENT_TIME,
    index=IndexSpec(IndexType.BUCKET, 4),
)
FILES = tuple(SourceFile(f"{i}.parquet", 100, f"v{i}", NOW - timedelta(minutes=10 - i)) for i in range(3))
COMMIT = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)


def desired(status: dict[str, Any] | None = None, generation: int = 1, **changes: Any) -> DesiredTable:
    return desired_table(stored(manifest(**spec(**changes)), generation=generation, status=status))


def table(*consumed: SourceFile, attempt: str = "a", **changes: Any) -> TableObservation:
    checkpoints = {}
    if consumed:
        checkpoints["feed"] = CommittedCheckpoint(advance(None, "feed", attempt, consumed, consumed), COMMIT.time)
    found = TableObservation(
        CONFIG,
        commits=(COMMIT,),
        last_moment=NOW - timedelta(days=1),
        files=(FileFact("2013/01", 200 << 20, 7),),
        checkpoints=checkpoints,
        attempts={attempt: COMMIT.time} if consumed else {},
    )
    return replace(found, **changes)


def seen(found: TableObservation | None = None, files: tuple[SourceFile, ...] = FILES, **rest: Any) -> Observed:
    return Observed(table=found, sources=(SourceObservation("feed", files),), **rest)


def status_of(effects: list[Effect]) -> HudiTableStatus:
    (document,) = [effect.status for effect in effects if isinstance(effect, SetStatus)]
    found, errors = parse(HudiTableStatus, document, "status")
    assert not errors
    assert found is not None
    return found


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status_of(effects).conditions}


def of(kind: type, effects: list[Effect]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def run_after(effects: list[Effect], phase: str, **changes: Any) -> RunStatus:
    """The launched run, ended a moment after it started."""
    (launch,) = of(Launch, effects)
    ended = {"finished": "2026-01-02T00:00:05Z"} if phase != "Running" else {}
    return replace(launch.run, phase=phase, **(ended | changes))


class TestWaitingFiles:
    def test_start_an_ingest(self) -> None:
        effects = plan_table(desired(), seen(), NOW)
        (launch,) = of(Launch, effects)
        assert launch.run.work == "Ingest/feed"
        assert launch.run.batch == batch_id("feed", FILES)
        assert launch.spec.attempt == launch.run.name
        assert launch.spec.table["recordKey"] == ["id"]
        assert conditions(effects)["Ready"] == ("False", "Ingesting")
        assert conditions(effects)["Reconciling"] == ("True", "Ingesting")
        assert conditions(effects)["Fresh"] == ("False", "FilesWaiting")

    def test_none_start_nothing(self) -> None:
        effects = plan_table(desired(), seen(table(*FILES)), NOW)
        assert not of(Launch, effects)
        assert conditions(effects) == {
            "Ready": ("True", "TableReadable"),
            "Fresh": ("True", "AllConsumed"),
            "Compacted": ("True", "CopyOnWrite"),
            "WellSized": ("True", "WellSized"),
            "Clean": ("True", "NoFailedWrites"),
        }

    def test_that_are_new_start_an_ingest_while_the_table_stays_ready(self) -> None:
        effects = plan_table(desired(), seen(table(FILES[0])), NOW)
        assert of(Launch, effects)[0].run.batch == batch_id("feed", FILES[1:])
        assert conditions(effects)["Ready"] == ("True", "TableReadable")

    def test_that_were_replaced_in_place_count_as_new(self) -> None:
        changed = replace(FILES[0], version="other")
        assert of(Launch, plan_table(desired(), seen(table(*FILES), (changed, *FILES[1:])), NOW))

    def test_that_are_hidden_or_empty_are_no_data(self) -> None:
        files = (replace(FILES[0], path="_SUCCESS"), replace(FILES[0], path="a/.tmp/x"), replace(FILES[1], size=0))
        assert not of(Launch, plan_table(desired(), seen(table(*FILES), files), NOW))

    def test_start_one_ingest_at_a_time(self) -> None:
        both = [ingest(), ingest(name="other")]
        sources = (SourceObservation("feed", FILES), SourceObservation("other", FILES))
        effects = plan_table(desired(ingest=both), Observed(sources=sources), NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/feed"]

    def test_start_nothing_in_a_suspended_table(self) -> None:
        effects = plan_table(desired(suspend=True), seen(table(FILES[0])), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Ready"] == ("True", "Suspended")

    def test_are_told_with_their_size_and_age(self) -> None:
        (found,) = status_of(plan_table(desired(), seen(table(FILES[0])), NOW)).ingest
        assert (found.pending_files, found.pending_bytes, found.lag) == (2, 200, "9m")
        assert (found.consumed_files, found.last_commit) == (1, COMMIT.time)

    def test_without_a_transform_need_no_spark(self) -> None:
        (launch,) = of(Launch, plan_table(desired(), seen(), NOW))
        assert launch.spec.engine == "Local"

    def test_of_great_size_need_spark(self) -> None:
        (launch,) = of(Launch, plan_table(desired(), seen(files=(replace(FILES[0], size=1 << 30),)), NOW))
        assert launch.spec.engine == "Spark"

    def test_with_a_transform_need_spark(self) -> None:
        wanted = desired(ingest=[ingest(transform=[{"sql": "select * from source"}])])
        (launch,) = of(Launch, plan_table(wanted, seen(), NOW))
        assert launch.spec.engine == "Spark"


class TestARun:
    def test_that_runs_is_waited_for(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        running = run_after(first, "Running")
        effects = plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(running,)), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Reconciling"] == ("True", "Running")

    def test_of_a_repeated_plan_has_the_same_name(self) -> None:
        one, two = (of(Launch, plan_table(desired(), seen(), NOW + timedelta(hours=i)))[0] for i in range(2))
        assert one.run.name == two.run.name
        assert len(one.run.name) <= 50

    def test_of_another_generation_has_another_name(self) -> None:
        one, two = (of(Launch, plan_table(desired(generation=g), seen(), NOW))[0] for g in (1, 2))
        assert one.run.name != two.run.name

    def test_that_failed_for_now_is_repeated_after_a_wait(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        failed = run_after(first, "Failed", reason="Unavailable", message="no answer")
        status = of(SetStatus, first)[0].status
        at_once = plan_table(desired(status), seen(runs=(failed,)), NOW + timedelta(seconds=6))
        assert not of(Launch, at_once)
        assert of(RequeueAfter, at_once)[0].seconds == pytest.approx(9)
        assert conditions(at_once)["Reconciling"] == ("True", "Retrying")
        later = plan_table(desired(status), seen(runs=(failed,)), NOW + timedelta(seconds=15))
        (launch,) = of(Launch, later)
        assert launch.run.attempt == 2
        assert launch.run.name != failed.name

    def test_that_failed_too_often_stalls(self) -> None:
        policy = RetryPolicy(attempts_max=2)
        effects = plan_table(desired(), seen(), NOW)
        one = run_after(effects, "Failed", reason="Unavailable", message="no answer")
        two = replace(one, name=f"{one.name[:-1]}2", attempt=2)
        effects = plan_table(desired(), seen(runs=(two, one)), NOW + timedelta(hours=1), policy=policy)
        assert not of(Launch, effects)
        assert not of(RequeueAfter, effects)
        assert conditions(effects)["Stalled"] == ("True", "Unavailable")
        assert conditions(effects)["Ready"] == ("False", "Unavailable")

    def test_that_failed_for_good_is_not_repeated(self) -> None:
        failed = run_after(plan_table(desired(), seen(), NOW), "Failed", reason="InvalidSchema", message="no column id")
        effects = plan_table(desired(), seen(runs=(failed,)), NOW + timedelta(hours=1))
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSchema")

    @pytest.mark.parametrize("change", ["files", "generation"])
    def test_that_failed_for_good_is_repeated_when_its_cause_may_be_gone(self, change: str) -> None:
        failed = run_after(plan_table(desired(), seen(), NOW), "Failed", reason="InvalidSchema", message="no column id")
        files = (replace(FILES[0], version="mended"), *FILES[1:]) if change == "files" else FILES
        wanted = desired(generation=2 if change == "generation" else 1)
        assert of(Launch, plan_table(wanted, seen(files=files, runs=(failed,)), NOW + timedelta(hours=1)))

    def test_that_vanished_but_committed_succeeded(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        lost = run_after(first, "Lost")
        found = table(*FILES, attempt=lost.name)
        effects = plan_table(desired(of(SetStatus, first)[0].status), seen(found, runs=(lost,)), NOW)
        assert not of(Launch, effects)
        (run,) = status_of(effects).runs
        assert (run.phase, run.instants) == ("Succeeded", (COMMIT.time,))

    def test_that_reported_failure_but_committed_succeeded(self) -> None:
        failed = run_after(plan_table(desired(), seen(), NOW), "Failed", reason="CommitStateUnknown", message="?")
        effects = plan_table(desired(), seen(table(*FILES, attempt=failed.name), runs=(failed,)), NOW)
        assert status_of(effects).runs[0].phase == "Succeeded"
        assert conditions(effects)["Ready"] == ("True", "TableReadable")

    def test_that_vanished_without_a_commit_is_repeated(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        lost = run_after(first, "Lost")
        effects = plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(lost,)), NOW + timedelta(minutes=1))
        assert of(Launch, effects)[0].run.attempt == 2
        assert status_of(effects).runs[1].reason == "JobLost"

    def test_that_the_launcher_no_longer_knows_was_lost(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        effects = plan_table(desired(of(SetStatus, first)[0].status), seen(), NOW + timedelta(minutes=1))
        assert [run.reason for run in status_of(effects).runs if run.phase == "Failed"] == ["JobLost"]

    def test_that_succeeded_without_taking_its_files_is_not_repeated_for_ever(self) -> None:
        done = run_after(plan_table(desired(), seen(), NOW), "Succeeded")
        effects = plan_table(desired(), seen(table(), runs=(done,)), NOW + timedelta(hours=1))
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "Invariant")

    def test_is_remembered_among_the_newest_ten(self) -> None:
        first = run_after(plan_table(desired(), seen(), NOW), "Succeeded")
        many = tuple(
            replace(first, name=f"r{i:02}", attempt=i, started=f"2026-01-01T00:00:{i:02}Z") for i in range(1, 31)
        )
        runs = status_of(plan_table(desired(), seen(table(*FILES), runs=many), NOW)).runs
        assert [run.name for run in runs] == [f"r{i:02}" for i in range(30, 20, -1)]


class TestTheManifest:
    def test_with_errors_stalls_with_all_of_them(self) -> None:
        effects = plan_table(desired(recordKey=None, type="COW"), Observed(), NOW)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")
        (stalled,) = [c for c in status_of(effects).conditions if c.type == "Stalled"]
        assert "spec.recordKey" in stalled.message
        assert "spec.type" in stalled.message
        assert status_of(effects).observed_generation == 1

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"type": "MergeOnRead"}, "spec.type: MergeOnRead"),
            ({"ingest": [ingest(source={"type": "Kafka"})]}, "spec.ingest[0].source.type: Kafka"),
            ({"ingest": [ingest(mode="Continuous")]}, "spec.ingest[0].mode: Continuous"),
            ({"ingest": [ingest(mode="Cron", schedule="* * * * *")]}, "spec.ingest[0].mode: Cron"),
            ({"maintenance": {"clustering": {"mode": "Auto"}}}, "spec.maintenance.clustering.mode"),
            ({"deletionPolicy": "Purge"}, "spec.deletionPolicy: Purge"),
            ({"orderingFields": ["a", "b"]}, "spec.orderingFields"),
        ],
    )
    def test_that_asks_for_what_is_not_there_yet_is_refused_by_name(self, changes: dict[str, Any], words: str) -> None:
        effects = plan_table(desired(**changes), seen(), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "UnsupportedSpec")
        assert words in next(c.message for c in status_of(effects).conditions if c.type == "Stalled")

    def test_whose_transform_is_more_than_a_select_is_refused(self) -> None:
        sql = "select reflect('java.lang.System', 'exit', 0) from source"
        effects = plan_table(desired(ingest=[ingest(transform=[{"sql": sql}])]), seen(), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"recordKey": ["id", "day"]}, "recordKey"),
            ({"partitionBy": [{"field": "day"}]}, "partitionBy"),
            ({"orderingFields": ["other"]}, "orderingFields"),
            ({"mergeMode": "CommitTime"}, "mergeMode"),
            ({"index": {"type": "Bucket", "buckets": 8}}, "index.buckets"),
            ({"index": {"type": "Simple"}}, "index.type"),
            ({"paths": {"hiveStyle": True}}, "paths.hiveStyle"),
        ],
    )
    def test_that_contradicts_the_table_is_refused_by_field(self, changes: dict[str, Any], field: str) -> None:
        effects = plan_table(desired(**changes), seen(table()), NOW)
        assert not of(Launch, effects)
        (stalled,) = [c for c in status_of(effects).conditions if c.type == "Stalled"]
        assert stalled.reason == "InvalidSpec"
        assert stalled.message.startswith(f"spec.{field}: is ")
        assert status_of(effects).data is not None, "the table is still reported"

    def test_that_leaves_out_what_the_table_knows_is_taken(self) -> None:
        assert of(Launch, plan_table(desired(mergeMode=None, index=None), seen(table()), NOW))


class TestATableThatCannotBeSeen:
    def test_is_looked_at_again(self) -> None:
        problem = Problem("Unavailable", "no answer", retryable=True)
        effects = plan_table(desired(), Observed(problem=problem, failures=2), NOW)
        assert conditions(effects)["Ready"] == ("Unknown", "Unavailable")
        assert conditions(effects)["Reconciling"] == ("True", "Retrying")
        assert of(RequeueAfter, effects)[0].seconds == 20

    def test_for_long_is_stalled_and_still_looked_at(self) -> None:
        problem = Problem("Unavailable", "no answer", retryable=True)
        effects = plan_table(desired(), Observed(problem=problem, failures=5), NOW)
        assert conditions(effects)["Stalled"] == ("True", "Unavailable")
        assert of(RequeueAfter, effects)

    def test_for_want_of_rights_is_stalled(self) -> None:
        effects = plan_table(desired(), Observed(problem=Problem("AccessDenied", "refused"), failures=1), NOW)
        assert conditions(effects)["Stalled"] == ("True", "AccessDenied")
        assert not of(RequeueAfter, effects)

    def test_keeps_its_last_figures(self) -> None:
        status = of(SetStatus, plan_table(desired(), seen(table(*FILES)), NOW))[0].status
        effects = plan_table(
            desired(status), Observed(problem=Problem("Unavailable", "?", retryable=True), failures=1), NOW
        )
        found = status_of(effects)
        assert found.data is not None
        assert found.data.records == 7

    def test_with_a_source_that_cannot_be_seen_is_not_known_to_be_fresh(self) -> None:
        sources = (SourceObservation("feed", problem=Problem("AccessDenied", "refused")),)
        effects = plan_table(desired(), Observed(table(), sources=sources, failures=1), NOW)
        assert conditions(effects)["Fresh"] == ("Unknown", "SourceNotSeen")
        assert conditions(effects)["Stalled"] == ("True", "AccessDenied")


class TestTheStatus:
    def test_says_nothing_is_there_when_nothing_is(self) -> None:
        effects = plan_table(desired(), seen(files=()), NOW)
        assert conditions(effects)["Ready"] == ("False", "NoTable")
        assert "Stalled" not in conditions(effects)
        assert status_of(effects).timeline is None

    def test_keeps_the_time_of_a_condition_until_it_changes(self) -> None:
        status = of(SetStatus, plan_table(desired(), seen(table(*FILES)), NOW))[0].status
        later = plan_table(desired(status), seen(table(*FILES)), NOW + timedelta(days=1))
        assert {c.last_transition_time for c in status_of(later).conditions} == {"2026-01-02T00:00:00Z"}
        changed = plan_table(desired(status), seen(table()), NOW + timedelta(days=1))
        times = {c.type: c.last_transition_time for c in status_of(changed).conditions}
        assert times["Fresh"] == "2026-01-03T00:00:00Z"
        assert times["Ready"] == "2026-01-02T00:00:00Z"

    def test_is_the_same_when_nothing_changed(self) -> None:
        status = of(SetStatus, plan_table(desired(), seen(table(*FILES)), NOW))[0].status
        again = plan_table(desired(status), seen(table(*FILES)), NOW + timedelta(hours=1))
        assert of(SetStatus, again)[0].status == status
        assert not of(Emit, again)

    def test_tells_each_thing_once(self) -> None:
        first = plan_table(desired(), seen(), NOW)
        assert [emit.reason for emit in of(Emit, first)] == ["Started"]
        failed = run_after(first, "Failed", reason="InvalidData", message="column 'id' is null in 3 rows")
        second = plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(failed,)), NOW)
        assert [(e.type, e.reason) for e in of(Emit, second)] == [("Warning", "InvalidData")]
        third = plan_table(desired(of(SetStatus, second)[0].status), seen(runs=(failed,)), NOW)
        assert not of(Emit, third)

    def test_counts_small_files_by_the_limit_of_the_manifest(self) -> None:
        small = tuple(FileFact(f"p{i}", 1 << 20, 10) for i in range(10))
        effects = plan_table(desired(), seen(table(*FILES, files=small)), NOW)
        assert conditions(effects)["WellSized"] == ("False", "SmallFiles")
        data = status_of(effects).data
        assert data is not None
        assert (data.small_file_ratio, data.records, data.partitions) == ("1.00", 100, 10)
        fine = plan_table(desired(files={"smallFileLimit": "512Ki"}), seen(table(*FILES, files=small)), NOW)
        assert conditions(fine)["WellSized"] == ("True", "WellSized")

    def test_does_not_guess_a_number_of_records(self) -> None:
        files = (FileFact("p", 1, 5), FileFact("p", 1, None))
        data = status_of(plan_table(desired(), seen(table(*FILES, files=files)), NOW)).data
        assert data is not None
        assert data.records is None

    def test_names_failed_writes(self) -> None:
        effects = plan_table(desired(), seen(table(*FILES, suspects=("20260101000000001.inflight",))), NOW)
        assert conditions(effects)["Clean"] == ("False", "FailedWrites")

    def test_names_the_hudi_generation_that_must_not_write_keys_with_colons(self) -> None:
        (note,) = status_of(plan_table(desired(), seen(table(colon_keys=True)), NOW)).notes
        assert note.reason == "ColonKeys"
        assert "Hudi 1.x must not write" in note.message
        assert not status_of(plan_table(desired(), seen(table(colon_keys=False)), NOW)).notes
