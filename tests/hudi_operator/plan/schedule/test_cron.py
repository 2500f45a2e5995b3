"""Moments of schedules: in zones, over the two changes of the clock, and of schedules that are
wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hudi_operator.api.parsing import FieldError
from hudi_operator.plan.schedule.cron import Cron, parse_cron


def cron(expression: str, zone: str = "UTC") -> Cron:
    found = parse_cron(expression, zone)
    assert isinstance(found, Cron), found
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def moments(found: Cron, start: datetime, hours: int) -> list[str]:
    """All moments of some hours, one by one, as `day hour:minute` in UTC."""
    listed = []
    moment = found.next(start)
    while moment is not None and moment <= start + timedelta(hours=hours):
        listed.append(moment.strftime("%d %H:%M"))
        moment = found.next(moment)
    return listed


@pytest.mark.parametrize(
    ("expression", "zone", "expected"),
    [
        ("0 3 * * *", "UTC", "2026-01-02 03:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-01-02 02:00"),
        ("0 3 * * *", "America/New_York", "2026-01-02 08:00"),
        ("30 5 * * *", "Asia/Kolkata", "2026-01-03 00:00"),
        ("*/20 * * * *", "UTC", "2026-01-02 00:20"),
        ("0 0 1 * *", "UTC", "2026-02-01 00:00"),
        ("0 0 * * MON", "UTC", "2026-01-05 00:00"),
        ("0 0 29 2 *", "UTC", "2028-02-29 00:00"),
    ],
)
def test_the_next_moment_is_later_than_now_and_in_the_zone(expression: str, zone: str, expected: str) -> None:
    assert cron(expression, zone).next(at("2026-01-02 00:00")) == at(expected)


class TestTheClockIsPutForward:
    """In Berlin on 29 March 2026 the hour from 02:00 to 03:00 does not exist: 01:00 UTC is
    03:00."""

    def test_a_moment_that_does_not_exist_comes_right_after(self) -> None:
        assert moments(cron("30 2 * * *", "Europe/Berlin"), at("2026-03-28 00:00"), 72) == [
            "28 01:30",
            "29 01:00",
            "30 00:30",
        ]

    def test_steps_follow_real_time(self) -> None:
        found = moments(cron("*/30 * * * *", "Europe/Berlin"), at("2026-03-29 00:00"), 2)
        assert found == ["29 00:30", "29 01:00", "29 01:30", "29 02:00"]

    def test_it_is_seen_as_due_from_before_and_after(self) -> None:
        found = cron("30 2 * * *", "Europe/Berlin")
        assert found.latest(at("2026-03-28 12:00"), at("2026-03-29 00:59")) is None
        assert found.latest(at("2026-03-28 12:00"), at("2026-03-29 01:00")) == at("2026-03-29 01:00")
        assert found.latest(at("2026-03-29 01:00"), at("2026-03-29 12:00")) is None


class TestTheClockIsPutBack:
    """In Berlin on 25 October 2026 the hour from 02:00 to 03:00 comes twice: at 00:00 and at 01:00
    UTC."""

    def test_a_moment_that_comes_twice_is_taken_once(self) -> None:
        assert moments(cron("30 2 * * *", "Europe/Berlin"), at("2026-10-24 12:00"), 48) == ["25 00:30", "26 01:30"]

    def test_the_second_time_is_not_due_again(self) -> None:
        found = cron("30 2 * * *", "Europe/Berlin")
        for minute in range(0, 180, 5):
            now = at("2026-10-25 00:30") + timedelta(minutes=minute)
            assert found.latest(at("2026-10-24 12:00"), now) == at("2026-10-25 00:30")
            assert found.latest(at("2026-10-25 00:30"), now) is None

    def test_steps_come_in_both_hours(self) -> None:
        found = moments(cron("0 * * * *", "Europe/Berlin"), at("2026-10-24 23:30"), 3)
        assert found == ["25 00:00", "25 01:00", "25 02:00"]


class TestTheLatestMoment:
    def test_is_not_later_than_now_and_later_than_the_last(self) -> None:
        found = cron("0 * * * *")
        assert found.latest(at("2026-01-01 00:00"), at("2026-01-02 10:30")) == at("2026-01-02 10:00")
        assert found.latest(at("2026-01-01 00:00"), at("2026-01-02 10:00")) == at("2026-01-02 10:00")
        assert found.latest(at("2026-01-02 10:00"), at("2026-01-02 10:59")) is None

    @pytest.mark.parametrize("days", [2, 30, 399])
    def test_is_found_however_long_nobody_looked(self, days: int) -> None:
        now = at("2026-06-01 10:30")
        assert cron("* * * * *").latest(now - timedelta(days=days), now) == now
        assert cron("0 0 1 6 *").latest(now - timedelta(days=days), now) == at("2026-06-01 00:00")

    def test_of_a_yearly_schedule_is_found(self) -> None:
        assert cron("0 0 1 1 *").latest(at("2025-02-01 00:00"), at("2026-12-31 00:00")) == at("2026-01-01 00:00")


@pytest.mark.parametrize(
    ("expression", "zone", "path", "words"),
    [
        ("61 * * * *", "UTC", "spec.schedule", "bad minute"),
        ("* * * *", "UTC", "spec.schedule", "wrong number of fields"),
        ("0 0 31 2 *", "UTC", "spec.schedule", "bad day-of-month"),
        ("@daily", "UTC", "spec.schedule", "wrong number of fields"),
        ("* * * * * *", "UTC", "spec.schedule", "give minute hour day month weekday"),
        ("0 3 * * *", "Europe/Berlim", "spec.timeZone", "did you mean Europe/Berlin?"),
        ("0 3 * * *", "CEST", "spec.timeZone", "'CEST', which is no time zone"),
        ("0 3 * * *", "../../etc/passwd", "spec.timeZone", "no time zone"),
        ("0 3 * * *", "", "spec.timeZone", "no time zone"),
    ],
)
def test_what_is_wrong_is_named(expression: str, zone: str, path: str, words: str) -> None:
    found = parse_cron(expression, zone)
    assert isinstance(found, FieldError)
    assert found.path == path
    assert words in found.message
