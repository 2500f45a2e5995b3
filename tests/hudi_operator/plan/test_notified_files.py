"""What is planned for ingests from files of which a queue tells: a first run that lists the folder,
then one whenever messages wait, and what the status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, RequeueAfter
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, QueueDepth, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.checkpoint import Checkpoint
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/landing"
SOURCE = {
    "type": "Files",
    "path": "s3://landing/orders/",
    "format": "parquet",
    "notifications": {"type": "Sqs", "queue": QUEUE},
}
TAKEN = table(
    checkpoints={"feed": CommittedCheckpoint(Checkpoint("b1", "a", ("1.parquet",), frozenset({1})), COMMIT.time)}
)


def planned(found: TableObservation | None, waiting: int, *runs: RunStatus, in_flight: int = 0) -> list[Effect]:
    seen = SourceObservation("feed", queue=QueueDepth(waiting, in_flight))
    return plan_table(desired(ingest=[ingest(source=SOURCE)]), Observed(table=found, sources=(seen,), runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


def ended(phase: str, ago: timedelta, **changes: Any) -> RunStatus:
    (launch,) = launches(planned(None, 0))
    return replace(launch.run, phase=phase, finished=rfc3339(NOW - ago), **changes)


def fresh(effects: list[Effect]) -> tuple[str, str, str]:
    return next((c.status, c.reason, c.message) for c in status_of(effects).conditions if c.type == "Fresh")


def test_the_first_run_is_begun_though_no_message_waits_and_is_told_of_the_queue() -> None:
    (launch,) = launches(planned(None, 0))
    assert launch.spec.work["source"]["notifications"] == {"type": "Sqs", "queue": QUEUE}
    assert not launches(planned(None, 0, ended("NothingToDo", timedelta(hours=1))))


def test_a_run_is_begun_when_messages_wait_and_only_then() -> None:
    assert not launches(planned(TAKEN, 0))
    assert not launches(planned(TAKEN, 0, in_flight=7))
    (launch,) = launches(planned(TAKEN, 3))
    assert launch.run.phase == "Running"


def test_after_a_run_that_took_some_the_next_follows_at_once() -> None:
    (again,) = launches(planned(TAKEN, 3, ended("Succeeded", timedelta(seconds=1))))
    assert again.run.batch != ended("Succeeded", timedelta(0)).batch


def test_after_a_run_that_found_nothing_the_next_waits_a_minute() -> None:
    early = planned(TAKEN, 3, ended("NothingToDo", timedelta(seconds=15)))
    assert not launches(early)
    assert [e.seconds for e in early if isinstance(e, RequeueAfter) and e.why == "Ingest/feed"] == [45.0]
    assert launches(planned(TAKEN, 3, ended("NothingToDo", timedelta(seconds=61))))


@pytest.mark.parametrize(
    ("waiting", "in_flight", "said"),
    [
        (3, 0, ("False", "FilesWaiting", "about 3 messages of the queue of feed not taken yet")),
        (0, 2, ("True", "UpToDate", "but for 2 messages that a run works on, or has set aside")),
        (0, 0, ("True", "UpToDate", "what the sources hold is in the table")),
    ],
)
def test_the_status_says_how_many_messages_wait_and_how_many_are_set_aside(
    waiting: int, in_flight: int, said: tuple[str, str, str]
) -> None:
    effects = planned(TAKEN, waiting, in_flight=in_flight)
    status, reason, message = fresh(effects)
    assert (status, reason) == said[:2]
    assert said[2] in message
    (one,) = status_of(effects).ingest
    assert (one.pending_files, one.in_flight_messages, one.consumed_files) == (waiting, in_flight, 1)
