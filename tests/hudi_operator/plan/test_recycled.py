"""What is planned behind a driver that ended for want of memory: a successor at once, and a word
where each commit takes what the driver may have."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch
from hudi_operator.plan.observed import Observed, SourceObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.positions import Extent, TopicExtent
from tests.support.manifests import ingest
from tests.support.plans import NOW, desired, of, status_of, table

KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
THERE = SourceObservation("feed", extent=Extent("c", {"orders": TopicExtent("one", {0: 0}, {0: 9}, {0: 9})}))
FULL = {"residentBytes": float(1800 << 20), "memoryBytes": float(2 << 30)}


def planned(*runs: RunStatus, generation: int = 1, later: timedelta = timedelta(0)) -> list[Effect]:
    wanted = desired(generation=generation, ingest=[ingest(source=KAFKA, mode="Continuous")])
    return plan_table(wanted, Observed(table=table(), sources=(THERE,), runs=runs), NOW + later)


def life(number: int, figures: dict[str, float], commits: int = 1) -> RunStatus:
    """A driver that has ended well."""
    (launch,) = of(Launch, planned())
    ended = rfc3339(NOW - timedelta(minutes=10 - number))
    return replace(
        launch.run, name=f"driver-{number}", attempt=number, phase="Succeeded", started=ended, finished=ended,
        figures={"commits": float(commits), **figures},
    )  # fmt: skip


def short(effects: list[Effect]) -> str:
    return next((c.message for c in status_of(effects).conditions if c.type == "MemoryShort"), "")


def test_a_successor_is_started_at_once() -> None:
    (launch,) = of(Launch, planned(life(1, FULL, 40)))
    assert (launch.run.attempt, launch.run.batch.rpartition("/")[2]) == (2, "driver-1")


def test_two_lives_of_one_commit_each_say_that_the_memory_is_too_small() -> None:
    effects = planned(life(2, FULL), life(1, FULL))
    assert of(Launch, effects), "it goes on all the same: each life brings a commit"
    assert short(effects) == (
        "the driver of feed is begun anew behind each commit, with 1.8 GiB of 2.0 GiB taken: give spec.spark.driver.memory more"
    )


@pytest.mark.parametrize(
    "lives",
    [
        (life(1, FULL),),
        (life(2, FULL, 2), life(1, FULL)),
        (life(2, {}), life(1, FULL)),
        (life(3, {}), life(2, FULL), life(1, FULL)),
    ],
    ids=["one", "of more commits", "ended otherwise", "before"],
)  # fmt: skip
def test_nothing_is_said_of_lives_that_brought_more_forward(lives: tuple[RunStatus, ...]) -> None:
    assert short(planned(*lives)) == ""


def test_another_manifest_and_a_driver_that_lasts_end_what_is_said() -> None:
    lives: tuple[Any, ...] = (life(2, FULL), life(1, FULL))
    (launch,) = of(Launch, planned(*lives))
    assert short(planned(launch.run, *lives, later=timedelta(minutes=9)))
    assert short(planned(launch.run, *lives, later=timedelta(minutes=10))) == ""
    assert short(planned(*lives, generation=2)) == ""
