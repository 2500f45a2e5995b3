"""What is planned where credentials are refused: few repeats, ever later, by themselves; and until
one has held, the condition says what is wrong and what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, RequeueAfter
from hudi_operator.plan.observed import Observed, Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import RetryPolicy, rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.positions import Extent, TopicExtent
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, FILES, NOW, desired, of, status_of, table

JDBC = {"type": "Jdbc", "jdbc": {"url": "postgresql://db/shop", "table": "orders", "every": "5m"}}
KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
THERE = Extent("c", {"orders": TopicExtent("one", {0: 0}, {0: 9}, {0: 9})})
SECRET = {"credentialsSecretRef": {"name": "s3"}}
REFUSED = "the database refuses the user"


def planned(*runs: RunStatus, later: timedelta = timedelta(0), seen: TableObservation | None = None) -> list[Effect]:
    wanted = desired(ingest=[ingest(source=JDBC)], storage=SECRET)
    return plan_table(
        wanted, Observed(table=seen, sources=(SourceObservation("feed"),), runs=runs), NOW + later, policy=RetryPolicy()
    )


def refused(number: int, ago: timedelta, **changes: object) -> RunStatus:
    """The attempt of that number, whose credentials were refused."""
    (launch,) = of(Launch, planned())
    ended = replace(
        launch.run, name=f"{launch.run.name[:-1]}{number}", attempt=number, phase="Failed", reason="AccessDenied",
        message=REFUSED, started=rfc3339(NOW - ago), finished=rfc3339(NOW - ago),
    )  # fmt: skip
    return replace(ended, **changes)


def said(effects: list[Effect], kind: str = "Stalled") -> tuple[str, str]:
    return next(((c.reason, c.message) for c in status_of(effects).conditions if c.type == kind), ("", ""))


@pytest.mark.parametrize(("refusals", "seconds"), [(1, 10), (2, 60), (3, 360), (4, 600), (10, 600)])
def test_each_repeat_comes_later_than_the_one_before_and_none_is_the_last(refusals: int, seconds: int) -> None:
    ended = timedelta(seconds=seconds - 1)
    runs = [refused(number, ended + timedelta(hours=refusals - number)) for number in range(refusals, 0, -1)]
    effects = planned(*runs)
    assert not of(Launch, effects)
    due = rfc3339(NOW + timedelta(seconds=1))
    words = f"{REFUSED}; correct Secret s3 (spec.storage.credentialsSecretRef), or the rights of what it names"
    assert said(effects) == ("AccessDenied", f"Ingest/feed: {words}: it is tried again by itself at {due}")
    assert min(again.seconds for again in of(RequeueAfter, effects)) == 1
    (launch,) = of(Launch, planned(*runs, later=timedelta(seconds=1)))
    assert launch.run.attempt == refusals + 1


@pytest.mark.parametrize(
    ("of_ingest", "source"),
    [
        ({}, SourceObservation("feed", FILES)),
        ({"mode": "Scheduled", "schedule": "0 * * * *"}, SourceObservation("feed", FILES)),
        ({"source": JDBC}, SourceObservation("feed")),
        ({"source": KAFKA}, SourceObservation("feed", extent=THERE)),
        ({"source": KAFKA, "mode": "Continuous"}, SourceObservation("feed", extent=THERE)),
    ],
    ids=["files", "scheduled", "database", "topic", "continuous"],
)
def test_an_ingest_of_every_mode_is_tried_again(of_ingest: dict[str, Any], source: SourceObservation) -> None:
    wanted = desired(ingest=[ingest(**of_ingest)], storage=SECRET)
    (launch,) = of(Launch, plan_table(wanted, Observed(sources=(source,)), NOW))
    failed = replace(launch.run, phase="Failed", reason="AccessDenied", message=REFUSED, finished=rfc3339(NOW))
    seen = Observed(sources=(source,), runs=(failed,))
    early = plan_table(wanted, seen, NOW + timedelta(seconds=9))
    assert (of(Launch, early), said(early)[0]) == ([], "AccessDenied")
    (again,) = of(Launch, plan_table(wanted, seen, NOW + timedelta(seconds=10)))
    assert (again.run.attempt, again.secret) == (2, "s3")


def test_refusals_count_whatever_each_attempt_was_for() -> None:
    runs = (refused(2, timedelta(seconds=30), batch="what came meanwhile"), refused(1, timedelta(minutes=2)))
    assert not of(Launch, planned(*runs)), "that more waits corrects no password"


def test_once_one_has_ended_well_the_refusals_before_it_count_no_more() -> None:
    well = refused(2, timedelta(minutes=5), phase="Succeeded", reason=None)
    assert of(Launch, planned(well, refused(1, timedelta(minutes=6)), seen=table()))
    assert not of(Launch, planned(refused(3, timedelta(seconds=9)), well, refused(1, timedelta(minutes=6))))
    assert of(Launch, planned(refused(3, timedelta(seconds=10)), well, refused(1, timedelta(minutes=6))))


def test_another_manifest_is_tried_at_once() -> None:
    assert of(Launch, planned(refused(1, timedelta(0), generation=0)))


def test_what_stood_still_stands_still_until_a_repeat_has_committed_or_lasted() -> None:
    before = refused(1, timedelta(minutes=1))
    (launch,) = of(Launch, planned(before))
    at_work = (launch.run, before)
    assert said(planned(before))[1].endswith("attempt 2 is at work"), "no gap between two conditions"
    assert said(planned(*at_work, later=timedelta(seconds=59)))[0] == "AccessDenied"
    assert said(planned(*at_work, later=timedelta(seconds=60))) == ("", "")
    committed = table(attempts={launch.run.name: COMMIT.time})
    assert said(planned(*at_work, seen=committed)) == ("", "")


def test_others_are_looked_at_meanwhile_as_ever() -> None:
    wanted = desired(ingest=[ingest(source=JDBC), ingest(name="other")], storage=SECRET)
    sources = (SourceObservation("feed"), SourceObservation("other"))
    runs = tuple(refused(number, timedelta(hours=4 - number)) for number in (3, 2, 1))
    last = replace(runs[0], finished=rfc3339(NOW))
    effects = plan_table(wanted, Observed(table=table(), sources=sources, runs=(last, *runs[1:])), NOW)
    soonest = min(of(RequeueAfter, effects), key=lambda again: (again.appointment, again.seconds))
    assert (soonest.why, soonest.seconds) == ("Source", 60)


def test_a_source_that_refuses_the_operator_is_asked_again_and_no_job_is_started() -> None:
    wanted = desired(ingest=[ingest(source=KAFKA, mode="Continuous")], storage=SECRET)
    sources = (SourceObservation("feed", problem=Problem("AccessDenied", "the brokers refuse")),)
    effects = plan_table(wanted, Observed(table=table(), sources=sources, failures=1), NOW)
    assert not of(Launch, effects)
    assert said(effects)[1].startswith("Ingest/feed: the brokers refuse; correct Secret s3 ")
    assert min(again.seconds for again in of(RequeueAfter, effects)) == 60


def test_a_driver_that_has_committed_and_was_refused_then_is_not_said_to_have_succeeded() -> None:
    wanted = desired(ingest=[ingest(source=KAFKA, mode="Continuous")], storage=SECRET)
    there = SourceObservation("feed", extent=THERE)
    (launch,) = of(Launch, plan_table(wanted, Observed(sources=(there,)), NOW))
    ended = replace(launch.run, phase="Failed", reason="AccessDenied", message="no", finished=rfc3339(NOW))
    found = table(attempts={ended.name: COMMIT.time})
    effects = plan_table(wanted, Observed(table=found, sources=(there,), runs=(ended,)), NOW)
    assert not of(Launch, effects)
    assert (status_of(effects).runs[0].phase, said(effects)[0]) == ("Failed", "AccessDenied")
