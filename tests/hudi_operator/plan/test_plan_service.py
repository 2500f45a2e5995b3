"""`plan_service`: what a TableService, its table and its runs lead to. Nothing is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Emit, Launch, RequeueAfter, Stop
from hudi_operator.plan.observed import ObservedService, Problem, Trace
from hudi_operator.plan.service import plan_service
from hudi_table.model.service.services import ServiceType
from tests.support.plans import NOW, desired, of
from tests.support.service_plans import PLAN, Story, conditions, launches, logged, seen, service, status_of

RUN = ("Compaction", "ScheduleAndExecute")
LOGS = desired(type="MergeOnRead")
DRY = ("Compaction/Plan", "Plan")


class TestOneRun:
    def test_is_started_and_is_not_repeated(self) -> None:
        story = Story().look()
        assert story.started == [RUN]
        assert story.state.phase == "Running"
        assert story.look().started == []
        story.end(message="1 file group").look()
        assert (story.state.phase, story.conditions["Ready"]) == ("Succeeded", ("True", "Succeeded"))
        assert story.look(3600).started == []

    def test_is_not_repeated_when_something_else_of_the_manifest_changes(self) -> None:
        story = Story().look().end().look()
        assert story.change(successfulRunsHistoryLimit=1, suspend=False).look().started == []

    def test_is_repeated_when_other_work_is_asked_for(self) -> None:
        story = Story().look().end().look()
        assert story.change(options={"hoodie.compaction.target.io": "10"}).look().started == [RUN]
        assert story.runs[0].name != story.runs[1].name

    def test_that_failed_for_now_is_tried_again_and_in_the_end_stalls(self) -> None:
        story = Story().look()
        for number in range(1, 6):
            story.end("Failed", reason="Unavailable", message="no answer").look()
            if number < 5:
                assert story.conditions["Reconciling"] == ("True", "Retrying")
                assert story.look(600).started == [RUN]
        assert story.conditions["Stalled"] == ("True", "Unavailable")
        assert story.look(600).started == []

    def test_that_failed_for_good_stalls_until_the_manifest_changes(self) -> None:
        story = Story().look().end("Failed", reason="InvalidOption", message="no such strategy").look()
        assert story.conditions["Stalled"] == ("True", "InvalidOption")
        assert story.state.phase == "Failed"
        assert story.change(options={"hoodie.compaction.strategy": "UnBounded"}).look().started == [RUN]

    def test_whose_credentials_were_refused_stalls_and_is_tried_again_by_itself(self) -> None:
        story = Story().look()
        for wait in (10, 60, 360, 600):
            story.end("Failed", reason="AccessDenied", message="the store refuses").look(wait - 2)
            assert story.conditions["Stalled"] == ("True", "AccessDenied")
            assert story.started == []
            assert story.look(2).started == [RUN]

    def test_that_was_lost_is_tried_again(self) -> None:
        story = Story().look()
        story.runs = ()
        assert story.look().started == []
        assert story.look(60).started == [RUN]
        assert [run.reason for run in story.state.runs] == [None, "JobLost"]

    def test_of_a_restore_is_about_its_instant_and_needs_no_spark(self) -> None:
        story = Story(type="Restore", restore={"instant": "20260101000000000"}).look()
        (launch,) = of(Launch, story.effects)
        assert (launch.spec.work["instant"], launch.spec.engine) == ("20260101000000000", "Local")

    def test_of_great_size_runs_on_spark_but_its_dry_run_does_not(self) -> None:
        large = logged(files=tuple(replace(f, size=1 << 30) for f in logged().files))
        assert [of(Launch, Story(large, mode=mode).look().effects)[0].spec.engine for mode in (RUN[1], "Plan")] == [
            "Spark",
            "Local",
        ]


class TestThePlace:
    def test_without_a_table_resource_is_told(self) -> None:
        effects = plan_service(service(), ObservedService(), NOW)
        assert conditions(effects)["Stalled"] == ("True", "TableMissing")
        assert of(RequeueAfter, effects)

    def test_of_a_wrong_table_is_told(self) -> None:
        effects = plan_service(service(), seen(owner=desired(recordKey=[])), NOW)
        assert conditions(effects)["Ready"] == ("False", "TableNotReady")
        assert not of(Launch, effects)

    def test_without_rows_yet_waits(self) -> None:
        effects = plan_service(service(), ObservedService(owner=LOGS), NOW)
        assert conditions(effects)["Ready"] == ("False", "NoTable")
        assert "Stalled" not in conditions(effects)

    def test_that_cannot_be_seen_is_looked_at_again(self) -> None:
        problem = Problem("Unavailable", "no answer", retryable=True)
        effects = plan_service(service(), ObservedService(owner=LOGS, problem=problem, failures=2), NOW)
        assert conditions(effects)["Ready"] == ("Unknown", "Unavailable")
        assert of(RequeueAfter, effects)[0].seconds == 20

    @pytest.mark.parametrize("work", ["Ingest/feed", "Clustering"])
    def test_where_another_attempt_works_is_waited_for(self, work: str) -> None:
        other = RunStatus("flights-feed-x-g1-1", work, "Running")
        effects = plan_service(service(), seen(others=(other,)), NOW)
        assert not of(Launch, effects)
        assert (status_of(effects).phase, conditions(effects)["Reconciling"]) == ("Due", ("True", "Waiting"))
        assert of(RequeueAfter, effects)

    @pytest.mark.parametrize("suspended", ["service", "table"])
    def test_that_is_suspended_starts_nothing(self, suspended: str) -> None:
        story = Story(suspend=suspended == "service")
        story.owner |= {"suspend": suspended == "table"}
        assert story.look().started == []

    def test_of_a_suspended_table_is_told_to_wait_for_it_not_to_be_done(self) -> None:
        effects = plan_service(service(), seen(owner={"type": "MergeOnRead", "suspend": True}), NOW)
        assert status_of(effects).phase == "Suspended"
        assert "flights is suspended" in next(c.message for c in status_of(effects).conditions if c.type == "Ready")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"schedule": "61 * * * *"}, "spec.schedule: is '61 * * * *': bad minute"),
            ({"schedule": "0 3 * * *", "timeZone": "Europe/Berlim"}, "did you mean Europe/Berlin?"),
            ({"options": {"hoodie.compaction.target.oi": "1"}}, "hoodie.compaction.target.io"),
            ({"clustering": {}}, "clustering belongs to type Clustering"),
            (
                {"type": "Archiving", "archiving": {"minCommits": 10}},
                "maintenance.cleaning.keepCommits of the table is 10",
            ),
            (
                {"type": "Cleaning", "cleaning": {"keepCommits": 20}},
                "maintenance.archiving.minCommits of the table is 20",
            ),
        ],
    )
    def test_of_a_wrong_manifest_is_refused_by_field(self, changes: dict[str, Any], words: str) -> None:
        effects = plan_service(service(**changes), seen(), NOW)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")
        assert words in status_of(effects).conditions[0].message
        assert not of(Launch, effects)

    def test_whose_table_has_no_logs_is_not_compacted_and_without_buckets_not_resized(self) -> None:
        effects = plan_service(service(), ObservedService(owner=desired()), NOW)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")
        wanted = service(type="Resize", mode="Plan")
        effects = plan_service(wanted, ObservedService(owner=desired(index={"type": "Simple"})), NOW)
        assert conditions(effects)["Stalled"] == ("True", "InvalidSpec")


class TestASchedule:
    def test_is_followed_from_moment_to_moment(self) -> None:
        story = Story(schedule="*/30 * * * *").look()
        assert story.started == [RUN], "the moments of the day before are made up for once"
        story.end().look()
        assert (story.started, story.state.phase) == ([], "Idle")
        assert story.state.schedule is not None
        assert story.state.schedule.next == "2026-01-02T00:30:00Z"
        (again,) = of(RequeueAfter, story.effects)
        assert (again.seconds, again.appointment) == (1790, True)
        assert story.look(1789).started == []
        assert story.look(1).started == [RUN]

    def test_makes_up_for_what_was_missed_at_most_once(self) -> None:
        story = Story(schedule="*/30 * * * *").look().end().look()
        assert story.look(86_400).started == [RUN]
        assert story.runs[0].batch == "2026-01-03T00:00:00Z"
        assert story.end().look().started == []

    def test_leaves_out_what_was_missed_by_too_much(self) -> None:
        story = Story(schedule="0 12 * * *", startingDeadlineSeconds=600).look()
        assert story.started == []
        assert [emit.reason for emit in of(Emit, story.effects)] == ["Missed"]
        assert [emit.reason for emit in of(Emit, story.look(60).effects)] == [], "it is told once"
        assert story.look(12 * 3600 + 500).started == [RUN]

    def test_that_changes_counts_from_the_change(self) -> None:
        story = Story(schedule="0 12 * * *").look().end().look()
        assert story.change(schedule="0 23 * * *").look(60).started == []
        assert story.look(23 * 3600).started == [RUN]

    def test_in_a_zone_is_read_there(self) -> None:
        story = Story(schedule="0 3 * * *", timeZone="Asia/Tokyo").look()
        assert story.state.schedule is not None
        assert story.state.schedule.last == "2026-01-01T18:00:00Z"

    def test_lets_a_run_end_by_default(self) -> None:
        story = Story(schedule="*/30 * * * *").look()
        assert story.look(1800).started == []
        assert not of(Stop, story.effects)
        assert story.end().look().started == [RUN]

    def test_replaces_a_run_if_it_says_so(self) -> None:
        story = Story(schedule="*/30 * * * *", concurrencyPolicy="Replace").look()
        first = story.runs[0].name
        assert story.look(1800).started == [RUN]
        assert [stop.name for stop in of(Stop, story.effects)] == [first]
        assert [(run.phase, run.reason) for run in story.state.runs] == [("Running", None), ("Failed", "Replaced")]

    def test_goes_on_after_a_failure(self) -> None:
        story = Story(schedule="*/30 * * * *").look().end("Failed", reason="InvalidOption", message="no").look()
        assert story.conditions["Ready"] == ("False", "InvalidOption")
        assert "Stalled" not in story.conditions
        assert story.look(1800).started == [RUN]
        assert story.end().look().conditions["Ready"] == ("True", "Scheduled")

    def test_tries_a_moment_again_that_failed_for_now(self) -> None:
        story = Story(schedule="0 12 * * *").look().end("Failed", reason="Unavailable", message="?").look()
        assert story.look(60).started == [RUN]
        assert story.runs[0].batch == story.runs[1].batch

    def test_of_dry_runs_keeps_the_newest_plan(self) -> None:
        story = Story(schedule="*/30 * * * *", mode="Plan").look()
        assert story.started == [DRY]
        story.end(plan=PLAN).look()
        story.look(1800).end(plan=replace(PLAN, digest="00112233")).look()
        assert story.state.plan is not None
        assert story.state.plan.digest == "00112233"


class TestADeadline:
    def test_stops_a_run_that_takes_longer(self) -> None:
        story = Story(activeDeadline="10m").look()
        assert story.effects[-1] == RequeueAfter(600, "activeDeadline")
        assert story.look(300).effects[-1] == RequeueAfter(300, "activeDeadline")
        story.look(300)
        assert [stop.name for stop in of(Stop, story.effects)] == [story.runs[0].name]
        assert story.conditions["Stalled"] == ("True", "DeadlineExceeded")
        assert story.state.runs[0].reason == "DeadlineExceeded"
        story.runs = (replace(story.runs[0], phase="Lost"),)
        assert story.look(60).started == []
        assert story.state.runs[0].reason == "DeadlineExceeded"

    def test_is_told_once(self) -> None:
        story = Story(activeDeadline="10m").look().look(600)
        assert [emit.reason for emit in of(Emit, story.effects)] == ["DeadlineExceeded"]


class TestNeed:
    @pytest.mark.parametrize(
        ("changes", "when", "due"),
        [
            ({"type": "Compaction"}, {"logBytes": "> 1Mi"}, True),
            ({"type": "Compaction"}, {"logBytes": "> 2Mi"}, False),
            ({"type": "Compaction"}, {"logBytes": ">= 2Mi"}, True),
            ({"type": "Compaction"}, {"logBytesRatio": "> 0.2"}, True),
            ({"type": "Compaction"}, {"logBytesRatio": "> 0.25"}, False),
            ({"type": "Compaction"}, {"commitsSince": "> 5"}, False),
            ({"type": "Compaction"}, {"commitsSince": ">= 5"}, True),
            ({"type": "Compaction"}, {"commitsSince": "> 100", "logBytes": "> 1Ki"}, True),
            ({"type": "Clustering"}, {"smallFileRatio": "> 0.5"}, True),
            ({"type": "Clustering", "clustering": {"smallFileLimit": "4Mi"}}, {"smallFileRatio": "> 0.5"}, False),
            ({"type": "Cleaning"}, {"bytesToClean": "> 1Mi"}, True),
            ({"type": "Cleaning"}, {"bytesToClean": "> 1Gi"}, False),
            ({"type": "Archiving"}, {"commitsSince": ">= 1"}, True),
        ],
    )
    def test_is_measured(self, changes: dict[str, Any], when: dict[str, str], due: bool) -> None:
        story = Story(logged(bytes_to_clean=2 << 20), **changes, when=when)
        story.owner |= {"index": None}
        story.look()
        assert bool(story.started) is due

    def test_that_was_measured_for_it_stands_in_the_status(self) -> None:
        when = {"bytesToClean": "> 1Gi"}
        status = Story(logged(bytes_to_clean=2 << 20), type="Cleaning", when=when).look().status
        assert status is not None
        assert status["bytesToClean"] == 2 << 20

    def test_that_is_not_known_starts_nothing(self) -> None:
        assert Story(type="Cleaning", when={"bytesToClean": "> 1Mi"}).look().started == []

    def test_that_remains_waits_for_the_next_write(self) -> None:
        story = Story(when={"logBytes": "> 1Mi"}).look().end("NothingToDo").look()
        assert (story.started, story.state.phase) == ([], "Idle")
        story.table = logged(last_write="20260102000000000")
        assert story.look().started == [RUN]

    def test_does_not_arise_from_a_plan_that_somebody_else_made(self) -> None:
        waiting = Trace(pending=("20260102000000000",), commits_since=5)
        story = Story(logged(traces={ServiceType.COMPACTION: waiting}), when={"logBytes": "> 1Gi"})
        assert story.look().started == []

    def test_of_an_executor_are_plans_that_wait(self) -> None:
        story = Story(mode="Execute", when={"commitsSince": "> 1000"})
        assert story.look().started == []
        waiting = Trace(pending=("20260102000000000",), commits_since=5)
        story.table = logged(traces={ServiceType.COMPACTION: waiting})
        assert story.look().started == [("Compaction", "Execute")]


def test_an_indexing_that_finds_everything_built_waits_for_its_next_moment() -> None:
    story = Story(type="Indexing", schedule="0 * * * *", indexing={"partitions": ["column_stats"]}).look()
    assert story.started == [("Indexing", "ScheduleAndExecute")]
    story.end("NothingToDo", message="files, column_stats are ready").look()
    assert (story.started, story.state.phase, story.conditions["Ready"]) == ([], "Idle", ("True", "Scheduled"))
    assert story.look(3600).started == [("Indexing", "ScheduleAndExecute")]


def test_a_plan_is_the_same_however_often_it_is_made() -> None:
    one, two = (plan_service(service(), seen(), NOW) for _ in range(2))
    assert one == two
    assert launches(one) == [RUN]
