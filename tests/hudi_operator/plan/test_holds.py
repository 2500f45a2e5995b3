"""What cleaning and archiving leave to tables that follow: how far they are behind, for how long
they may hold, and what the status says of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hudi_operator.manifests.services import ServiceWork
from hudi_operator.plan.effects import Effect, Launch
from hudi_operator.plan.observed import Follower, Observed, TableObservation
from hudi_operator.plan.schedule.holds import followers_of, hold_of, keeping
from hudi_operator.plan.table import plan_table
from hudi_table.model.service.debt import ArchivingDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.model.timeline.instants import Action, Instant, State, format_instant_time
from tests.support.manifests import ingest
from tests.support.plans import NOW, desired, status_of, table

CLEANING = ServiceType.CLEANING
USUAL = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "10"}
COMMITS = tuple(
    Instant(format_instant_time((NOW - timedelta(minutes=40 - n)).replace(tzinfo=None)), Action.COMMIT, State.COMPLETED)
    for n in range(40)
)
"""One a minute, the newest a minute ago."""


def follower(behind: int, **changes: Any) -> Follower:
    position = COMMITS[-1 - behind].time if behind < len(COMMITS) else "20200101000000000"
    return replace(Follower("HudiTable default/cities", "feed", position, "24h", deletes=True), **changes)


def seen(**changes: Any) -> TableObservation:
    archiving = ArchivingDebt(writes=40, most=30, leaving=20, due=True)
    return table(commits=COMMITS, archiving=archiving, **changes)


def planned(*followers: Follower, **spec: Any) -> list[Effect]:
    wanted = desired(ingest=None, **spec)
    return plan_table(wanted, Observed(table=seen(), followers=followers), NOW)


def launched(effects: list[Effect]) -> dict[str, dict[str, Any]]:
    return {e.spec.work["type"]: e.spec.work["options"] for e in effects if isinstance(e, Launch)}


def test_a_clean_keeps_what_a_table_has_not_taken_yet() -> None:
    assert launched(planned())["Cleaning"] == USUAL
    effects = planned(follower(30))
    assert launched(effects)["Cleaning"] == {
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "2"
    }  # fmt: skip
    (clean,) = [c for c in status_of(effects).conditions if c.type == "Clean"]
    kept = f"what changed since {COMMITS[9].time} is kept for HudiTable default/cities (ingest feed), which is 30 commits behind"
    assert kept in clean.message


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "it is close behind"),
        ({"behind": 0}, "it has taken everything"),
        ({"behind": 30, "max_hold": "10m"}, "it has held for as long as it may"),
        ({"behind": 30, "max_hold": "0s"}, "it may not hold"),
        ({"behind": 30, "deletes": False}, "it takes no deletes, and so needs no older file"),
        ({"behind": 99}, "what comes next for it is gone already"),
    ],
)
def test_a_clean_is_as_always_where(changes: dict[str, Any], why: str) -> None:
    found = launched(planned(follower(changes.pop("behind", 3), **changes)))
    assert found["Cleaning"] == USUAL, why


def test_archiving_waits_for_a_table_that_is_far_behind() -> None:
    off = {"maintenance": {"cleaning": {"mode": "Disabled"}}}
    assert "Archiving" in launched(planned(**off))
    assert "Archiving" in launched(planned(follower(5), **off))
    effects = planned(follower(15, deletes=False), **off)
    assert not launched(effects)
    (archived,) = [c for c in status_of(effects).conditions if c.type == "Archived"]
    assert "is kept for HudiTable default/cities (ingest feed), which is 15 commits behind" in archived.message


def test_the_one_that_is_furthest_behind_counts() -> None:
    hold = hold_of(CLEANING, seen(), [follower(3), follower(20), follower(30, max_hold="1m")], NOW)
    assert hold is not None
    assert hold.behind == 20


def test_other_services_are_not_held() -> None:
    assert hold_of(ServiceType.CLUSTERING, seen(), [follower(30)], NOW) is None


def test_hours_that_are_asked_for_are_never_shortened() -> None:
    hold = hold_of(CLEANING, seen(), [follower(30)], NOW)
    asked = ServiceWork(CLEANING, options={"hoodie.clean.hours.retained": "48"})
    assert keeping(asked, hold, {}, NOW).options["hoodie.clean.hours.retained"] == "48"
    files = ServiceWork(CLEANING, options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"})
    assert keeping(files, hold, {}, NOW).options["hoodie.clean.policy"] == "KEEP_LATEST_BY_HOURS"


def test_followers_are_told_by_their_manifest_and_their_status() -> None:
    source = {"type": "Hudi", "hudi": {"location": "s3a://lake//flights/", "deletes": "Delete", "maxHold": "2h"}}
    status = {"ingest": [{"name": "feed", "position": "20260101000000000"}]}
    below = desired(status=status, location="s3://lake/cities", ingest=[ingest(source=source)])
    (found,) = followers_of(below, desired())
    assert found == Follower("HudiTable default/flights", "feed", "20260101000000000", "2h", deletes=True)
    other = desired(location="s3://lake/others", ingest=None)
    assert not list(followers_of(below, other))


def test_moments_are_those_of_the_tables_zone() -> None:
    hold = hold_of(CLEANING, seen(), [follower(30)], NOW)
    assert hold is not None
    assert hold.since == datetime(2026, 1, 1, 23, 29, tzinfo=UTC)
