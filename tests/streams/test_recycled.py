"""A driver that has taken most of the memory that it may have ends between two commits, and its
successor goes on from there; real processes on a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_table.model.job.jobspec import MEMORY_BYTES, RESIDENT_BYTES
from tests.streams.test_continuous import count, wait_for, wait_until_it_follows
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker
from tests.support.operated import Place, condition

FOLLOWING: dict[str, Any] = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
ALL_SHOWN = {"index": {"type": "Simple"}}
"""In a bucket a row that comes again meets the first, and nobody sees that there were two."""
SMALL, LARGE = 1 << 20, 1 << 40


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(), dict(ALL_SHOWN), {**FOLLOWING, "operation": "Insert"})


def test_a_driver_ends_well_behind_the_commit_that_left_it_little_memory(feed: Feed) -> None:
    total = 0
    for _ in range(2):
        feed.broker.produce(feed.topic, [row(i) for i in range(total, total + 10)])
        total += 10
        assert feed.start({MEMORY_BYTES: SMALL}).wait(120) == 0, feed.log()
        done = feed.result()
        assert (done.outcome, done.figures["commits"], done.figures[MEMORY_BYTES]) == ("Succeeded", 1, SMALL)
        assert done.figures[RESIDENT_BYTES] > 20 << 20, "the whole of the process is measured"
        assert "ended for a successor to go on, since" in done.message
        assert "it ends, for a successor to go on from the newest checkpoint: " in feed.log()
    assert [each["n"] for each in sorted(feed.rows(), key=lambda each: int(each["n"]))] == list(range(total))


def test_a_driver_that_has_memory_enough_goes_on_and_one_that_has_committed_nothing_does_too(feed: Feed) -> None:
    roomy, idle = feed.start({MEMORY_BYTES: LARGE}), Feed(feed.folder / "idle", feed.broker, feed.broker.topic())
    idle.folder.mkdir()
    quiet = idle.start({**FOLLOWING, MEMORY_BYTES: SMALL})
    for number in range(3):
        feed.broker.produce(feed.topic, [row(i) for i in range(10 * number, 10 * number + 10)])
        wait_for(lambda wanted=10 * number + 10: count(feed) == wanted, feed.log)  # type: ignore[misc]
    wait_until_it_follows(idle)
    for driver, its in ((roomy, feed), (quiet, idle)):
        assert driver.poll() is None, its.log()
        driver.terminate()
        assert driver.wait(60) == 0
        assert RESIDENT_BYTES not in its.result().figures


def test_successors_follow_at_once_and_the_condition_names_what_is_too_small(broker: Broker, tmp_path: Path) -> None:
    place = Place(tmp_path, broker, broker.topic())
    small = {"spark": {"driver": {"memory": "64Mi"}}, **ALL_SHOWN}
    asked = {"mode": "Continuous", "commitInterval": "300ms", "operation": "Insert"}

    def life() -> None:
        for number in range(3):
            place.broker.produce(place.topic, [row(i) for i in range(10 * number, 10 * number + 10)])
            place.wait_for(lambda wanted=10 * number + 10: place.count() == wanted)  # type: ignore[misc]
        place.wait_for(lambda: condition(place.stored(), "MemoryShort") != {})
        place.wait_for(lambda: place.runs()[0]["phase"] == "Running")

    place.keep(life, place.document(asked, small))
    assert place.count() == 30, "each once"
    found = condition(place.stored(), "MemoryShort")
    assert (found["status"], found["reason"]) == ("True", "EachCommit")
    assert found["message"].startswith("the driver of feed is begun anew behind each commit, with ")
    assert found["message"].endswith(" of 64.0 MiB taken: give spec.spark.driver.memory more")
    assert condition(place.stored(), "Stalled") == {}
    assert {run["phase"] for run in place.runs()[1:]} == {"Succeeded"}
