"""Alerts fire for what their runbooks name, and for nothing else: what is planned is stored, told
as series, and asked by the chart's own expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import SetStatus
from hudi_operator.plan.observed import Observed, Problem, SourceObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.alerts import firing
from tests.support.manifests import manifest, spec, stored
from tests.support.plans import NOW, desired, of, table
from tests.support.scheduled_plans import HOURLY, SOURCES
from tests.support.scheduled_plans import Story as Scheduled
from tests.support.service_plans import Story, logged

HOUR = 3600
OTHER = RunStatus("flights-feed-x-g1-1", "Ingest/feed", "Running")
AWAY = Problem("Unavailable", "no answer", retryable=True)


def busy(story: Story) -> None:
    story.others = (OTHER,)


def full(story: Story) -> None:
    story.beside = {"unlaunchable": {"Compaction": Problem("Queued", "as many are at work as may be", retryable=True)}}


def away(story: Story) -> None:
    story.beside = {"table": None, "problem": AWAY}


def no_table(story: Story) -> None:
    story.beside = {"table": None}


def stalled(story: Story) -> None:
    story.owner |= {"recordKey": []}


def wrong(story: Story) -> None:
    story.change(options={"hoodie.compaction.target.oi": "1"})


WAITS: dict[str, Callable[[Story], None]] = {
    "something else of the table is at work": busy,
    "the namespace has reached its attempts": full,
    "the store does not answer": away,
    "there is no table yet": no_table,
    "the table is stalled": stalled,
    "the manifest is wrong": wrong,
}


def late(story: Story) -> bool:
    return firing("HudiServiceLate", story.now, *story.documents)


def rested() -> Story:
    """A service whose run of this hour has ended."""
    return Story(schedule=HOURLY).look().end().look()


@pytest.mark.parametrize("cause", WAITS)
def test_a_moment_that_waits_is_late_after_an_hour_whatever_it_waits_for(cause: str) -> None:
    story = rested()
    WAITS[cause](story)
    assert not late(story.look(2 * HOUR - 20)), "it was due for less than an hour"
    assert story.started == []
    assert late(story.look(60))
    assert late(story.look(24 * HOUR)), "a newer moment does not hide the one that waits"


def test_a_moment_that_waits_for_the_run_before_it_is_late() -> None:
    story = Story(schedule=HOURLY).look()
    assert not late(story.look(2 * HOUR - 60)), "of the run at work nothing is late"
    assert story.started == []
    assert late(story.look(120))
    assert not late(story.end().look()), "one run makes up for all moments that were missed"
    assert story.started != []


def test_a_moment_that_the_operator_does_not_come_to_is_late() -> None:
    story = rested()
    assert not firing("HudiServiceLate", story.now + timedelta(hours=1, minutes=50), *story.documents)
    assert firing("HudiServiceLate", story.now + timedelta(hours=2, minutes=1), *story.documents)


def test_what_is_run_or_left_out_is_not_late() -> None:
    story = rested()
    for _ in range(3):
        assert not late(story.look(HOUR))
        assert not late(story.end("Failed", reason="InvalidOption", message="no").look())
    story = rested().change(startingDeadlineSeconds=600)
    busy(story)
    assert not late(story.look(2 * HOUR + 1200))
    assert story.state.schedule is not None
    assert story.state.schedule.next == "2026-01-02T03:00:00Z"


@pytest.mark.parametrize("suspended", ["service", "table"])
def test_what_is_suspended_is_not_late(suspended: str) -> None:
    story = rested().change(suspend=suspended == "service")
    story.owner |= {"suspend": suspended == "table"}
    assert not late(story.look(5 * HOUR))
    assert story.started == []


def test_a_schedule_that_comes_back_has_missed_no_moment_that_was_run() -> None:
    story = rested()
    story.change(schedule=None).look(60)
    story.runs, story.status = (), {**(story.status or {}), "runs": []}
    assert not late(story.change(schedule=HOURLY).look(60))
    assert story.state.schedule is not None
    assert story.state.schedule.next == "2026-01-02T01:00:00Z"


def stands(story: Story) -> bool:
    return firing("HudiServiceStalled", story.now, *story.documents)


def ownerless(story: Story) -> None:
    story.beside = {"owner": None}


STANDS: dict[str, Callable[[Story], None]] = {"its table is deleted": ownerless, "the manifest is wrong": wrong}


@pytest.mark.parametrize("cause", STANDS)
def test_a_service_that_stands_still_is_told(cause: str) -> None:
    story = Story(when={"logBytes": "> 1Ki"}).look().end().look()
    assert not stands(story)
    STANDS[cause](story)
    assert stands(story.look(60))
    story.change(suspend=True)
    assert not stands(story.look(60))


def test_one_failure_that_is_not_repeated_is_told() -> None:
    story = Story(when={"logBytes": "> 1Ki"}).look().end("Failed", reason="InvalidOption", message="no").look()
    assert stands(story)
    assert not told(story)


def test_of_a_table_that_is_stalled_its_services_are_not_told() -> None:
    story = Story(when={"logBytes": "> 1Ki"}).look().end().look()
    stalled(story)
    service, owner = story.look(60).documents
    (told,) = of(SetStatus, plan_table(desired(**story.owner), Observed(table=logged()), story.now))
    assert firing("HudiServiceStalled", story.now, service, owner)
    both = (service, owner | {"status": told.status})
    assert not firing("HudiServiceStalled", story.now, *both)
    assert firing("HudiTableStalled", story.now, *both)


def fails(story: Story, times: int) -> Story:
    """So many moments, of which each run fails."""
    for _ in range(times):
        story.look(HOUR).end("Failed", reason="InvalidOption", message="no").look()
    return story


def told(story: Story) -> bool:
    return firing("HudiServiceFails", story.now, *story.documents)


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_three_failures_in_a_row_are_told_however_many_runs_the_status_keeps(kept: int) -> None:
    story = rested().change(failedRunsHistoryLimit=kept)
    assert not told(fails(story, 2))
    assert told(fails(story, 1))
    assert told(fails(story, 4))
    assert story.state.failures == 7
    assert told(story.look(HOUR)), "a run at work says nothing yet"
    assert not told(story.end().look())
    assert story.state.failures == 0


def test_failures_between_which_runs_did_well_are_not_in_a_row_though_the_status_keeps_none_of_these() -> None:
    story = rested().change(successfulRunsHistoryLimit=0)
    for _ in range(4):
        fails(story, 1).look(HOUR).end().look()
    assert not told(fails(story, 2))
    assert story.state.failures == 2


@pytest.mark.parametrize("policy", [{"activeDeadline": "10m"}, {"concurrencyPolicy": "Replace"}])
def test_a_run_that_is_stopped_each_time_is_told(policy: dict[str, str]) -> None:
    story = rested().change(failedRunsHistoryLimit=0, **policy)
    # Each look but the first stops the run of the hour before, and begins the next.
    assert [told(story.look(HOUR)) for _ in range(4)] == [False, False, False, True]


def test_a_run_whose_commit_is_found_later_has_not_failed() -> None:
    story = fails(rested(), 2).look(HOUR)
    story.runs = story.runs[1:]
    assert told(story.look())
    late_run = story.state.runs[0].name
    story.table = logged(attempts={late_run: "20260102030000000"})
    assert not told(story.look())


def test_a_status_of_an_earlier_release_begins_with_the_failures_of_its_runs() -> None:
    story = fails(rested(), 3)
    assert story.status is not None
    del story.status["failures"]
    assert told(fails(story, 1))
    assert story.state.failures == 4


def waiting(age: timedelta) -> SourceObservation:
    """A source with a file that is so old."""
    return SourceObservation("feed", (SourceFile("new.parquet", 1, "v", NOW - age),))


def test_what_comes_between_two_moments_of_a_schedule_is_not_late() -> None:
    story = Scheduled("0 0 * * *", "Files").look().end().look()
    story.source = waiting(timedelta(hours=-1))
    story.look(timedelta(hours=20))
    assert story.document["status"]["ingest"][0]["lag"] == "19h"
    assert not firing("HudiTableLate", story.now, story.document)
    story.table = None
    story.problem = AWAY
    story.look(timedelta(hours=6))
    assert firing("HudiTableLate", story.now, story.document), "its moment came two hours ago"
    assert not firing("HudiTableLate", story.now, story.document | {"spec": story.document["spec"] | {"suspend": True}})


def test_of_an_ingest_without_a_schedule_what_waits_is_late_after_an_hour() -> None:
    for age, late_by_then in ((timedelta(minutes=59), False), (timedelta(minutes=61), True)):
        found = Observed(table=table(), sources=(waiting(age),), runs=(OTHER,))
        (told,) = of(SetStatus, plan_table(desired(), found, NOW))
        assert firing("HudiTableLate", NOW, stored(manifest(**spec()), status=told.status)) is late_by_then


@pytest.mark.parametrize("kind", SOURCES)
def test_an_ingest_for_whose_moment_no_run_has_started_is_late(kind: str) -> None:
    story = Scheduled(kind=kind).look().end().look()
    story.table, story.problem = None, AWAY
    assert not firing("HudiIngestLate", story.look(timedelta(minutes=110)).now, story.document)
    assert firing("HudiIngestLate", story.look(timedelta(minutes=15)).now, story.document)
    assert firing("HudiIngestLate", story.look(timedelta(hours=9)).now, story.document)
    story.table, story.problem = table(), None
    assert not firing("HudiIngestLate", story.look().now, story.document), "one run makes up for all"
    assert len(story.started) == 1


PENDING = NOW - timedelta(hours=7)
LEFT_OVER = Instant("20260101170000000", Action.COMPACTION, State.REQUESTED)
DRIVER = RunStatus(
    "flights-feed-g1-1", "Ingest/feed", "Running", 1, batch="continuous:begin/x", started="2025-12-01T00:00:00Z"
)
YOUNGER = RunStatus("flights-feed-g1-1", "Ingest/feed", "Running", 1, batch="9f86", started="2026-01-01T23:50:00Z")


def left_over(*runs: RunStatus, since: datetime | None = PENDING) -> bool:
    """Whether a plan that began so long ago is told, beside attempts."""
    pending = (LEFT_OVER,) if since is not None else ()
    found = Observed(table=table(pending=pending, oldest_pending=since), runs=runs)
    (told,) = of(SetStatus, plan_table(desired(ingest=[]), found, NOW))
    return firing("HudiTableWriteLeftOver", NOW, stored(manifest(**spec(ingest=[])), status=told.status))


@pytest.mark.parametrize("beside", [(), (DRIVER,), (YOUNGER,)], ids=["nobody", "a driver", "a younger attempt"])
def test_a_plan_that_nobody_carries_out_is_told_whatever_else_goes_on(beside: tuple[RunStatus, ...]) -> None:
    assert left_over(*beside)
    assert not left_over(*beside, since=NOW - timedelta(hours=5))
    assert not left_over(*beside, since=None)


def test_what_an_attempt_at_work_may_have_begun_is_not_left_over() -> None:
    assert not left_over(replace(YOUNGER, started="2026-01-01T16:59:58Z"))
