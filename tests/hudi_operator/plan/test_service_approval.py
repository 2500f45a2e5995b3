"""`plan_service`: dry runs, their approval, and what is remembered of runs. Nothing is run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Emit, Launch
from tests.support.plans import NOW, of
from tests.support.service_plans import PLAN, Story, logged

RUN = ("Compaction", "ScheduleAndExecute")
DRY = ("Compaction/Plan", "Plan")


class TestApproval:
    def planned(self, **spec: Any) -> Story:
        return Story(mode="Plan", **spec).look().end(plan=PLAN).look()

    def test_is_waited_for(self) -> None:
        story = self.planned()
        assert (story.state.phase, story.conditions["Ready"]) == ("Planned", ("True", "Planned"))
        assert story.state.plan is not None
        assert story.state.plan.predicted_seconds == 3.0, "60 MiB at 20 MiB a second"
        assert any(f"approve: {PLAN.digest}" in emit.message for emit in of(Emit, story.effects))
        assert story.look(3600).started == []
        assert not of(Emit, story.effects)

    def test_runs_exactly_that_plan_and_sets_both_side_by_side(self) -> None:
        story = self.planned().change(approve=PLAN.digest).look()
        (launch,) = of(Launch, story.effects)
        assert (launch.spec.work["plan"], launch.spec.work["mode"]) == (PLAN.digest, "ScheduleAndExecute")
        figures = {"fileGroups": 2.0, "filesAfter": 2.0, "bytesRead": 1e6, "bytesWritten": 9e5, "seconds": 4.0}
        story.end(figures=figures).look()
        found = story.state
        assert found.last_plan is not None
        assert found.actual is not None
        assert (found.last_plan.files_after, found.actual.files_after) == (2, 2)
        assert (found.last_plan.predicted_seconds, found.actual.seconds) == (3.0, 4.0)
        assert (found.plan, found.phase) == (None, "Succeeded")
        assert story.look(60).started == []

    def test_of_another_plan_runs_nothing(self) -> None:
        story = self.planned().change(approve="00112233").look()
        assert story.started == []
        assert story.conditions["PlanStale"] == ("True", "TableMoved")

    def test_of_a_plan_that_is_stale_makes_another_and_does_not_loop(self) -> None:
        story = self.planned().change(approve=PLAN.digest).look()
        story.end("Failed", reason="WriteConflict", message="file group f1 has moved").look()
        assert story.started == [DRY]
        assert story.conditions["PlanStale"] == ("True", "TableMoved")
        story.end(plan=replace(PLAN, digest="00112233")).look()
        assert story.started == []
        assert (story.state.phase, story.conditions["PlanStale"]) == ("Planned", ("True", "TableMoved"))
        for _ in range(3):
            assert story.look(600).started == []
        assert story.change(approve="00112233").look().started == [RUN]
        assert "PlanStale" not in story.conditions

    def test_of_a_plan_whose_run_failed_for_good_makes_no_other(self) -> None:
        story = self.planned().change(approve=PLAN.digest).look()
        story.end("Failed", reason="InvalidOption", message="no such strategy").look()
        assert story.started == []
        assert story.conditions["Stalled"] == ("True", "InvalidOption")
        assert "PlanStale" not in story.conditions

    def test_of_a_plan_that_comes_out_the_same_is_tried_again_within_bounds(self) -> None:
        story = self.planned(failedRunsHistoryLimit=0).change(approve=PLAN.digest).look()
        tries = 1
        for _ in range(20):
            if story.runs[0].phase == "Running":
                if story.runs[0].work == DRY[0]:
                    story.end(plan=PLAN)
                else:
                    story.end("Failed", reason="WriteConflict", message="busy")
            story.look(600)
            tries += story.started == [RUN]
        assert tries == 5
        assert story.conditions["Stalled"] == ("True", "WriteConflict")

    def test_is_given_time_though_the_need_goes_on(self) -> None:
        story = self.planned(when={"logBytes": "> 1Mi"})
        story.table = logged(last_write="20260102000000000")
        assert story.look().started == []
        assert story.change(approve=PLAN.digest).look().started == [RUN]

    def test_that_comes_with_the_manifest_waits_for_the_plan(self) -> None:
        story = Story(mode="Plan", approve=PLAN.digest).look()
        assert story.started == [DRY]
        assert story.end(plan=PLAN).look().started == [RUN]

    def test_predicts_by_what_earlier_runs_moved(self) -> None:
        story = Story(mode="Plan")
        figures = {"bytesRead": float(60 << 20), "bytesWritten": float(60 << 20), "seconds": 60.0}
        story.owner_runs = (RunStatus("r", "Compaction", "Succeeded", figures=figures),)
        story.look().end(plan=PLAN).look()
        assert story.state.plan is not None
        assert story.state.plan.predicted_seconds == 30.0

    def test_of_a_resize_carries_the_buckets_that_the_table_is_to_have(self) -> None:
        story = Story(type="Resize", mode="Plan")
        story.owner |= {"index": {"type": "Bucket", "buckets": 8}}
        (launch,) = of(Launch, story.look().effects)
        assert launch.spec.work["options"] == {"hoodie.bucket.index.num.buckets": "8"}
        assert launch.spec.table["index"]["buckets"] == 4, "the table keeps its own until it is done"


class TestHistory:
    def test_keeps_what_the_limits_say(self) -> None:
        story = Story(schedule="*/30 * * * *", successfulRunsHistoryLimit=2, failedRunsHistoryLimit=1).look()
        for phase in ("Succeeded", "Failed", "Succeeded", "Failed", "Succeeded", "Succeeded"):
            story.end(phase, reason=None if phase == "Succeeded" else "InvalidOption").look(1800)
        assert [run.phase for run in story.state.runs] == ["Running", "Succeeded", "Succeeded", "Failed"]

    def test_of_nothing_gives_no_name_twice(self) -> None:
        story = Story(schedule="*/30 * * * *", successfulRunsHistoryLimit=0, failedRunsHistoryLimit=0).look()
        names = {story.runs[0].name}
        for _ in range(5):
            story.end().look(1800)
            names.add(story.runs[0].name)
            story.runs = story.runs[:1]  # a launcher forgets, too
        assert len(names) == 6
        assert [run.phase for run in story.state.runs] == ["Running"]

    def test_that_only_the_launcher_remembers_is_no_news(self) -> None:
        limits: dict[str, Any] = {"successfulRunsHistoryLimit": 0, "failedRunsHistoryLimit": 0}
        story = Story(None, mode="Plan", **limits).look().end(plan=PLAN).look()
        story.change(approve=PLAN.digest).look().end(figures={"fileGroups": 2.0}).look()
        for _ in range(2):
            assert (story.state.plan, story.state.phase) == (None, "Succeeded")
            assert story.look(60).started == []
            assert not of(Emit, story.effects)

    def test_tells_each_run_once(self) -> None:
        story = Story().look()
        assert [emit.reason for emit in of(Emit, story.effects)] == ["Started"]
        assert [emit.reason for emit in of(Emit, story.end(message="done").look().effects)] == ["Succeeded"]
        assert not of(Emit, story.look(60).effects)

    def test_says_when_the_last_run_ended(self) -> None:
        story = Story().look().end().look()
        assert story.state.last_run_time == (NOW + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
