"""`plan_table`: what runs lead to, told by the launcher and read against the timeline. Nothing is
run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.schedule.runs import RetryPolicy, merged
from hudi_operator.plan.table import plan_table
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, FILES, NOW, conditions, desired, of, run_after, seen, status_of, table


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
        assert all(again.appointment for again in of(RequeueAfter, effects)), (
            "new files are looked for, and nothing else"
        )
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


def test_what_held_the_pod_of_a_lost_run_up_is_still_told_when_it_is_gone() -> None:
    waiting = RunStatus("a-1", "Ingest/feed", "Running", 1, 1, message="ErrImagePull: no such image")
    lost = replace(waiting, phase="Lost", message="the Job was deleted")
    (found,) = merged((lost,), (waiting,), None)
    assert found.phase == "Failed"
    assert found.message == "the Job was deleted; before that: ErrImagePull: no such image"
    assert merged((lost,), (found,), None) == (found,)


def test_an_ingest_that_takes_longer_than_it_may_is_stopped_and_failed() -> None:
    limited = [ingest(activeDeadline="1h")]
    first = plan_table(desired(ingest=limited), seen(), NOW)
    running = run_after(first, "Running")
    before = of(SetStatus, first)[0].status
    early = plan_table(desired(before, ingest=limited), seen(runs=(running,)), NOW + timedelta(minutes=59))
    assert not of(Stop, early)
    assert RequeueAfter(60.0, "activeDeadline") in early
    late = plan_table(desired(before, ingest=limited), seen(runs=(running,)), NOW + timedelta(minutes=61))
    assert of(Stop, late) == [Stop(running.name)]
    (told,) = status_of(late).runs
    assert (told.phase, told.reason, told.message) == ("Failed", "DeadlineExceeded", "Ingest/feed: stopped after 1h")
    after = plan_table(
        desired(of(SetStatus, late)[0].status, ingest=limited), seen(runs=(running,)), NOW + timedelta(minutes=63)
    )
    assert not of(Stop, after)
    assert conditions(after)["Stalled"] == ("True", "DeadlineExceeded")
    more = (*FILES, replace(FILES[0], path="new.parquet"))
    after = plan_table(
        desired(of(SetStatus, late)[0].status, ingest=limited),
        seen(files=more, runs=(running,)),
        NOW + timedelta(minutes=63),
    )
    assert [launch.run.attempt for launch in of(Launch, after)] == [2]
