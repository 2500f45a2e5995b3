"""What is planned for ingests in mode Scheduled: a run for each moment, none between, one for all
that were missed, and where the status says the schedule is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.plan.effects import Emit, Launch, RequeueAfter, SetStatus
from hudi_operator.plan.observed import CommittedCheckpoint, Problem, SourceObservation
from hudi_table.model.job.positions import Extent, Positions, TopicExtent, TopicPositions
from tests.support.plans import COMMIT, conditions, of, status_of, table
from tests.support.scheduled_plans import SOURCES, Story

NOON = "0 12 * * *"
HALF = timedelta(minutes=30)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_run_is_begun_at_each_moment_and_none_between(kind: str) -> None:
    story = Story(kind=kind).look()
    assert story.started == ["2026-01-02T00:00:00Z"]
    (launch,) = of(Launch, story.effects)
    assert launch.spec.work.get("mode", "Once") == "Once"
    assert (story.schedule.last, story.schedule.next) == ("2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z")
    assert story.end().look(HALF).started == []
    appointment = next(each for each in of(RequeueAfter, story.effects) if each.why == "Ingest/feed")
    assert (appointment.seconds, appointment.appointment) == (1800, True)
    assert story.look(HALF).started == ["2026-01-02T01:00:00Z"]
    assert "the schedule says 2026-01-02T01:00:00Z" in str(of(SetStatus, story.effects)[0].status)


def test_a_run_that_finds_nothing_is_not_repeated_before_the_next_moment() -> None:
    story = Story().look().end("NothingToDo", message="nothing").look(HALF)
    assert story.started == []
    assert "Stalled" not in conditions(story.effects)
    assert story.look(HALF).started == ["2026-01-02T01:00:00Z"]


def test_moments_that_were_missed_are_made_up_for_once() -> None:
    story = Story().look().end()
    assert story.look(timedelta(hours=5, minutes=10)).started == ["2026-01-02T05:00:00Z"]
    assert story.end().look(HALF).started == []


def test_what_was_missed_by_too_much_is_left_out_and_told_once() -> None:
    story = Story(NOON, startingDeadlineSeconds=600).look()
    assert story.started == []
    (missed,) = of(Emit, story.effects)
    assert (missed.reason, missed.message) == (
        "Missed",
        "Ingest/feed: 2026-01-01T12:00:00Z is 43200 s ago, 600 s are allowed: left out",
    )
    assert story.schedule.last == "2026-01-01T12:00:00Z"
    assert of(Emit, story.look(HALF).effects) == []
    assert story.look(timedelta(hours=11, minutes=35)).started == ["2026-01-02T12:00:00Z"]


def test_the_zone_decides_which_moment_is_meant() -> None:
    story = Story("0 3 * * *", timeZone="Asia/Tokyo").look()
    assert (story.schedule.last, story.schedule.next) == ("2026-01-01T18:00:00Z", "2026-01-02T18:00:00Z")
    assert story.schedule.time_zone == "Asia/Tokyo"


def test_a_run_that_failed_for_now_is_tried_again_for_the_same_moment() -> None:
    story = Story().look().end("Failed", reason="Unavailable", message="away").look()
    assert story.started == []
    assert story.look(timedelta(minutes=1)).started == ["2026-01-02T00:00:00Z"]
    assert story.end().look(timedelta(minutes=1)).started == []


def test_a_run_that_failed_for_good_stalls_until_the_next_moment() -> None:
    story = Story().look().end("Failed", reason="InvalidSchema", message="no").look()
    assert conditions(story.effects)["Stalled"] == ("True", "InvalidSchema")
    assert story.look(HALF).started == []
    assert story.look(HALF).started == ["2026-01-02T01:00:00Z"]
    assert "Stalled" not in conditions(story.effects)


def test_a_run_at_work_is_let_end_before_the_next_begins() -> None:
    story = Story().look().look(timedelta(hours=2))
    assert story.started == []
    assert story.end().look().started == ["2026-01-02T02:00:00Z"]


def test_another_schedule_counts_from_now_and_another_field_changes_nothing() -> None:
    story = Story(NOON).look().end()
    assert story.look().started == []
    assert story.change(schedule="0 23 * * *").look(HALF).started == []
    assert story.schedule.next == "2026-01-02T23:00:00Z"
    assert story.change(schemaPolicy="Refuse").look(HALF).started == []
    assert story.look(timedelta(hours=22)).started == ["2026-01-02T23:00:00Z"]


def test_an_ingest_that_comes_to_a_table_later_has_missed_nothing() -> None:
    story = Story(None, mode="Once").look()
    story.runs = ()
    assert story.change(mode="Scheduled", schedule=NOON).look(HALF).started == []
    assert story.schedule.next == "2026-01-02T12:00:00Z"
    assert story.look(timedelta(hours=12)).started == ["2026-01-02T12:00:00Z"]


def test_runs_of_another_mode_are_no_moments() -> None:
    story = Story(None, kind="Files", mode="Once").look().end()
    story.runs = (replace(story.runs[0], batch="9f86d081884c7d659a2f"),)
    assert story.change(mode="Scheduled", schedule=NOON).look(HALF).started == []
    assert story.schedule.last is None
    assert story.look(timedelta(hours=12)).started == ["2026-01-02T12:00:00Z"]
    assert story.end().change(mode="Once", schedule=None).look(HALF).started != []
    assert status_of(story.effects).ingest[0].schedule is None


def test_what_waits_is_told_with_the_moment_at_which_it_is_taken() -> None:
    story = Story(NOON, kind="Files").look().end().look(HALF)
    fresh = next(each for each in status_of(story.effects).conditions if each.type == "Fresh")
    assert fresh.message == "3 files of feed not in the table yet; feed runs next at 2026-01-02T12:00:00Z"


def test_a_suspended_table_lets_moments_go_by_and_makes_up_for_the_newest() -> None:
    story = Story().look().end()
    story.of = {"suspend": True}
    assert story.look(timedelta(hours=3)).started == []
    assert story.schedule.next == "2026-01-02T01:00:00Z"
    story.of = {}
    assert story.look(timedelta(minutes=1)).started == ["2026-01-02T03:00:00Z"]
    assert story.schedule.next == "2026-01-02T04:00:00Z"


def test_a_moment_that_waits_stays_the_next_one_until_its_run_begins() -> None:
    story = Story(kind="Files").look()
    story.look(timedelta(hours=3, minutes=10))
    assert (story.started, story.schedule.next) == ([], "2026-01-02T01:00:00Z")
    fresh = next(each for each in status_of(story.effects).conditions if each.type == "Fresh")
    assert fresh.message == "3 files of feed not in the table yet; feed was due at 2026-01-02T01:00:00Z"
    appointment = next(each for each in of(RequeueAfter, story.effects) if each.why == "Ingest/feed")
    assert appointment.seconds == 3000, "it is looked at again when another moment comes"
    assert story.end().look().started == ["2026-01-02T03:00:00Z"]
    assert story.schedule.next == "2026-01-02T04:00:00Z"
    fresh = next(each for each in status_of(story.effects).conditions if each.type == "Fresh")
    assert "feed runs next at 2026-01-02T04:00:00Z" in fresh.message


def test_a_table_that_is_not_seen_keeps_its_place_in_the_schedule() -> None:
    story = Story().look().end()
    story.table, story.problem = None, Problem("Unavailable", "no answer", retryable=True)
    assert story.look(timedelta(hours=1)).started == []
    assert story.schedule.last == "2026-01-02T00:00:00Z"
    story.table, story.problem = table(), None
    assert story.look(timedelta(minutes=1)).started == ["2026-01-02T01:00:00Z"]


def test_a_status_that_was_not_written_starts_no_second_run_for_a_moment() -> None:
    story = Story().look()
    begun = story.runs
    story.status = None
    assert story.look().started == []
    story.status, story.runs = None, begun
    assert story.end().look(HALF).started == []
    assert "Stalled" not in conditions(story.effects)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schedule": "61 * * * *"}, "spec.ingest[0].schedule: is '61 * * * *': bad minute"),
        ({"timeZone": "Europe/Berlim"}, "spec.ingest[0].timeZone: is 'Europe/Berlim', which is no time zone; did you mean Europe/Berlin?"),
    ],
)  # fmt: skip
def test_a_schedule_that_is_none_stalls_its_ingest_by_name(changes: dict[str, Any], words: str) -> None:
    story = Story()
    story.changes |= changes
    story.look()
    assert story.started == []
    (stalled,) = [each for each in status_of(story.effects).conditions if each.type == "Stalled"]
    assert stalled.reason == "InvalidSpec"
    assert words in stalled.message


def test_what_a_topic_has_lost_stops_it_at_its_moment() -> None:
    lost = Positions("c", {"orders": TopicPositions("one", {0: 3})}, "a", 0)
    story = Story(kind="Kafka")
    story.table = table(checkpoints={"feed": CommittedCheckpoint(lost, COMMIT.time)})
    story.source = SourceObservation(
        "feed", extent=Extent("c", {"orders": TopicExtent("one", {0: 5}, {0: 10}, {0: 10})})
    )
    assert story.look().started == []
    assert conditions(story.effects)["Stalled"] == ("True", "DataLoss")
