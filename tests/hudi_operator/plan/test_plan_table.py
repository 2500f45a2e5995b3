"""`plan_table`: what waiting files, a manifest and a table that cannot be seen lead to. Nothing is
run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Launch, RequeueAfter, SetStatus
from hudi_operator.plan.observed import Observed, Problem, SourceObservation, Trace
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.checkpoint import batch_id
from hudi_table.model.service.debt import CompactionDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import IndexSpec, IndexType, PartitionField, TableType
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, CONFIG, FILES, NOW, conditions, desired, of, run_after, seen, status_of, table


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

    def test_are_looked_for_again_within_a_minute(self) -> None:
        (again,) = of(RequeueAfter, plan_table(desired(), seen(table(*FILES)), NOW))
        assert again.seconds <= 60
        assert again.appointment

    def test_none_start_nothing(self) -> None:
        effects = plan_table(desired(), seen(table(*FILES)), NOW)
        assert not of(Launch, effects)
        assert conditions(effects) == {
            "Ready": ("True", "TableReadable"),
            "Fresh": ("True", "AllConsumed"),
            "Compacted": ("True", "CopyOnWrite"),
            "WellSized": ("True", "WellSized"),
            "Clean": ("True", "NoFailedWrites"),
            "Archived": ("True", "TimelineShort"),
        }

    def test_at_a_place_where_none_ever_were_are_reported_with_the_place(self) -> None:
        spec = desired().spec
        assert spec is not None
        place = spec.ingest[0].source.path
        effects = plan_table(desired(), Observed(sources=(SourceObservation("feed"),)), NOW)
        assert conditions(effects)["Fresh"] == ("Unknown", "NoFiles")
        assert conditions(effects)["Ready"] == ("False", "NoTable")
        assert all(
            f"no files at {place}" in c.message for c in status_of(effects).conditions if c.type in ("Fresh", "Ready")
        )
        assert conditions(plan_table(desired(), seen(table(*FILES), ()), NOW))["Fresh"] == ("True", "AllConsumed")

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

    def test_of_several_ingests_make_the_table_as_late_as_the_worst_of_them(self) -> None:
        old = (replace(FILES[0], modified=NOW - timedelta(hours=2)),)
        sources = (SourceObservation("feed", FILES[1:]), SourceObservation("other", old))
        late = status_of(plan_table(desired(ingest=[ingest(), ingest(name="other")]), Observed(sources=sources), NOW))
        assert [each.lag for each in late.ingest] == ["9m", "2h"]
        assert late.lag == "2h", "and not the first, nor that of the greatest number"
        assert status_of(plan_table(desired(ingest=[]), Observed(), NOW)).lag is None

    def test_are_no_longer_told_of_once_the_table_is_not_seen_but_the_lag_stays(self) -> None:
        away = Observed(problem=Problem("Unavailable", "no store", True))
        assert status_of(plan_table(desired({"lag": "5m"}), away, NOW)).lag == "5m"

    def test_without_a_transform_need_no_spark(self) -> None:
        (launch,) = of(Launch, plan_table(desired(), seen(), NOW))
        assert launch.spec.engine == "Local"

    def test_of_great_size_need_spark(self) -> None:
        (launch,) = of(Launch, plan_table(desired(), seen(files=(replace(FILES[0], size=1 << 30),)), NOW))
        assert launch.spec.engine == "Spark"

    @pytest.mark.parametrize(
        ("step", "engine"),
        [
            ({"sql": "select *, concat_ws('-', a, b) id from source"}, "Local"),
            ({"sql": "select *, hash(a) id from source"}, "Spark"),
            ({"flatten": {}}, "Local"),
        ],
    )
    def test_need_spark_for_a_transform_that_only_spark_does(self, step: dict[str, Any], engine: str) -> None:
        wanted = desired(ingest=[ingest(transform=[step])])
        (launch,) = of(Launch, plan_table(wanted, seen(), NOW))
        assert launch.spec.engine == engine


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
            (
                {"ingest": [ingest(source={"type": "Pulsar"})]},
                "spec.ingest[0].source.type: is 'Pulsar', must be one of Files, Kafka, Debezium",
            ),
            ({"ingest": [ingest(mode="Cron")]}, "spec.ingest[0].mode: is 'Cron', must be one of Once, Continuous"),
            ({"ingest": [ingest(cron="* * * * *")]}, "spec.ingest[0].cron: unknown field"),
            (
                {"orderingFields": [*"abcdefghi"]},
                "spec.orderingFields: is ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'], takes at most 8",
            ),
        ],
    )
    def test_that_asks_for_what_is_not_there_yet_is_refused_by_name(self, changes: dict[str, Any], words: str) -> None:
        effects = plan_table(desired(**changes), seen(), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")
        assert "Fresh" not in conditions(effects)
        assert words in next(c.message for c in status_of(effects).conditions if c.type == "Stalled")

    def test_that_asks_for_merge_on_read_is_worked_on(self) -> None:
        assert of(Launch, plan_table(desired(type="MergeOnRead"), seen(), NOW))

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
            ({"index": {"type": "Bucket", "buckets": 4, "hashFields": ["ts"]}, "recordKey": ["id", "ts"]}, "recordKey"),
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

    def test_that_wants_keys_looked_up_elsewhere_is_refused_and_in_another_way_taken(self) -> None:
        found = table()
        found = replace(found, config=replace(found.config, index=IndexSpec(IndexType.SIMPLE)))
        assert not of(Launch, plan_table(desired(index={"type": "GlobalSimple"}), seen(found), NOW))
        assert of(Launch, plan_table(desired(index={"type": "Bloom"}), seen(found), NOW))

    def test_that_wants_another_index_than_one_whose_keys_stay_is_refused_by_field(self) -> None:
        found = table()
        stays = replace(found.config, index=IndexSpec(IndexType.RECORD_INDEX), partition_by=(PartitionField("day"),))
        wanted = desired(index={"type": "GlobalBloom"}, partitionBy=[{"field": "day"}])
        effects = plan_table(wanted, seen(replace(found, config=stays)), NOW)
        assert not of(Launch, effects)
        (stalled,) = [c for c in status_of(effects).conditions if c.type == "Stalled"]
        assert stalled.message.startswith(
            "spec.index.type: is 'GlobalBloom', and the table has an index RecordIndex whose keys stay"
        )
        moves = replace(stays, extra={"hoodie.record.index.update.partition.path": "true"})
        assert of(Launch, plan_table(wanted, seen(replace(found, config=moves)), NOW))

    def test_that_leaves_out_what_the_table_knows_is_taken(self) -> None:
        assert of(Launch, plan_table(desired(mergeMode=None, index=None), seen(table()), NOW))


class TestAnIngestThatIsHalted:
    """`feed` cannot go on; `other`, and what `maintenance` asks for, do."""

    BOTH: ClassVar = [ingest(), ingest(name="other")]

    def sources(self, problem: Problem | None = None) -> tuple[SourceObservation, ...]:
        return (SourceObservation("feed", () if problem else FILES, problem), SourceObservation("other", FILES))

    def failed(self, phase: str = "Failed") -> RunStatus:
        effects = plan_table(desired(ingest=self.BOTH), Observed(sources=self.sources()), NOW)
        return run_after(effects, phase, reason="InvalidSchema", message="no such column")

    @pytest.mark.parametrize("phase", ["Failed", "NothingToDo"])
    def test_by_its_job_keeps_no_other_from_its_files(self, phase: str) -> None:
        observed = Observed(sources=self.sources(), runs=(self.failed(phase),))
        effects = plan_table(desired(ingest=self.BOTH), observed, NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/other"]
        (stalled,) = [c for c in status_of(effects).conditions if c.type == "Stalled"]
        assert stalled.message.startswith("Ingest/feed: ")
        assert "other" not in stalled.message

    def test_by_its_source_or_its_checkpoint_keeps_no_other_from_its_files(self) -> None:
        problem = Problem("CorruptTable", "the checkpoint of ingest 'feed' is damaged")
        effects = plan_table(desired(ingest=self.BOTH), Observed(sources=self.sources(problem), failures=1), NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/other"]
        assert conditions(effects)["Stalled"] == ("True", "CorruptTable")

    def test_by_what_it_may_not_start_keeps_no_other_from_its_files(self) -> None:
        refused = {"Ingest/feed": Problem("InvalidRequest", "a Job of that name is not ours")}
        observed = Observed(sources=self.sources(), unlaunchable=refused)
        effects = plan_table(desired(ingest=self.BOTH), observed, NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/other"]
        assert conditions(effects)["Stalled"] == ("True", "InvalidRequest")

    @pytest.mark.parametrize("whole", [False, True], ids=["an attempt", "all of the table"])
    def test_by_what_may_not_be_started_is_looked_at_again_within_a_minute(self, whole: bool) -> None:
        problem = Problem("LauncherNotServed", "this cluster serves no sparkapplications")
        why = {"refused": problem} if whole else {"unlaunchable": {"Ingest/feed": problem}}
        effects = plan_table(desired(), Observed(sources=self.sources()[:1], **why), NOW)
        assert conditions(effects)["Stalled"] == ("True", "LauncherNotServed")
        assert min(again.seconds for again in of(RequeueAfter, effects) if not again.appointment) <= 60

    def test_is_told_while_something_else_is_at_work(self) -> None:
        other = RunStatus("nightly", "Cleaning", "Running")
        observed = Observed(sources=self.sources(), runs=(self.failed(),), others=(other,))
        effects = plan_table(desired(ingest=self.BOTH), observed, NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSchema")

    def test_keeps_no_service_from_the_table(self) -> None:
        debt = CompactionDebt(why="5 deltacommits")
        observed = seen(table(config=LOGGED, compaction=debt), runs=(self.failed(),))
        effects = plan_table(compacted(), observed, NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Compaction"]
        assert conditions(effects)["Stalled"] == ("True", "InvalidSchema")


class TestAServiceThatIsHalted:
    def test_keeps_no_other_service_from_the_table(self) -> None:
        debt = CompactionDebt(why="5 deltacommits")
        old = {ServiceType.CLEANING: Trace(pending=("20260101000000001",))}
        observed = seen(table(*FILES, config=LOGGED, compaction=debt, traces=old))
        cleaned = compacted(maintenance={"cleaning": {"mode": "Auto"}})
        failed = run_after(plan_table(cleaned, observed, NOW), "Failed", reason="InvalidOption", message="no")
        assert failed.work == "Compaction"
        effects = plan_table(cleaned, replace(observed, runs=(failed,)), NOW)
        assert [launch.run.work for launch in of(Launch, effects)] == ["Cleaning"]
        assert conditions(effects)["Stalled"] == ("True", "InvalidOption")


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
        (again,) = of(RequeueAfter, effects)
        assert (again.seconds, again.appointment) == (60, True), "nobody tells that a Secret was corrected"

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


LOGGED = replace(CONFIG, type=TableType.MERGE_ON_READ)


def compacted(**changes: Any) -> DesiredTable:
    maintenance = {"compaction": {"mode": "Auto"}, **changes.pop("maintenance", {})}
    return desired(type="MergeOnRead", maintenance=maintenance, **changes)


class TestCompaction:
    def owed(self, **debt: Any) -> Observed:
        found = CompactionDebt(**debt)
        traces = {ServiceType.COMPACTION: Trace(pending=found.pending)}
        return seen(table(*FILES, config=LOGGED, compaction=found, traces=traces))

    def test_starts_when_it_is_due_and_says_why(self) -> None:
        effects = plan_table(compacted(), self.owed(why="5 deltacommits", file_groups=2, bytes_read=1 << 20), NOW)
        (launch,) = of(Launch, effects)
        assert launch.run.work == "Compaction"
        assert launch.spec.engine == "Local"
        assert launch.spec.work == {
            "type": "Compaction",
            "mode": "ScheduleAndExecute",
            "options": {},
            "plan": "",
            "instant": "",
            "force": True,
            "comment": "",
            "measureIndex": True,
        }
        (found,) = [c for c in status_of(effects).conditions if c.type == "Reconciling"]
        assert found.reason == "Compacting"
        assert "5 deltacommits: 2 file groups, 1.0 MiB" in found.message

    def test_executes_a_published_plan_without_making_another(self) -> None:
        effects = plan_table(compacted(), self.owed(pending=("20260101000000001",), bytes_read=1 << 40), NOW)
        (launch,) = of(Launch, effects)
        assert (launch.spec.engine, launch.spec.work["mode"]) == ("Spark", "Execute")
        assert launch.run.batch == "20260101000000001"

    def test_waits_for_waiting_files(self) -> None:
        observed = seen(table(config=LOGGED, compaction=CompactionDebt(why="now")))
        assert [launch.run.work for launch in of(Launch, plan_table(compacted(), observed, NOW))] == ["Ingest/feed"]

    def test_of_nothing_starts_nothing(self) -> None:
        assert not of(Launch, plan_table(compacted(), self.owed(), NOW))
        assert not of(Launch, plan_table(compacted(suspend=True), self.owed(why="now"), NOW))

    def test_that_found_nothing_to_do_is_not_repeated_until_somebody_writes(self) -> None:
        observed = self.owed(why="now")
        done = run_after(plan_table(compacted(), observed, NOW), "NothingToDo")
        effects = plan_table(compacted(), replace(observed, runs=(done,)), NOW)
        assert not of(Launch, effects)
        assert "Stalled" not in conditions(effects)
        assert observed.table is not None
        written = replace(observed.table, last_write="20260102000000000")
        assert of(Launch, plan_table(compacted(), replace(observed, table=written, runs=(done,)), NOW))

    def test_that_did_well_while_its_plan_still_waits_is_a_fault(self) -> None:
        observed = self.owed(pending=("20260101000000001",))
        done = run_after(plan_table(compacted(), observed, NOW), "Succeeded")
        effects = plan_table(compacted(), replace(observed, runs=(done,)), NOW)
        assert conditions(effects)["Stalled"] == ("True", "Invariant")

    def test_waits_for_a_service_of_its_own_resource(self) -> None:
        other = RunStatus("nightly-clustering-0a1b2c3d-g1-1", "Clustering", "Running")
        effects = plan_table(compacted(), replace(self.owed(why="now"), others=(other,)), NOW)
        assert not of(Launch, effects)
        assert conditions(effects)["Reconciling"] == ("True", "Running")
        assert of(RequeueAfter, effects)

    def test_is_left_to_a_table_service_of_its_type(self) -> None:
        observed = replace(self.owed(why="now"), keepers={ServiceType.COMPACTION: "nightly"})
        assert not of(Launch, plan_table(compacted(), observed, NOW))
