"""How late a table is behind its topics, as its resource says; on a real broker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hudi_operator.metrics.resources import seconds_of
from hudi_table.sources.checkpoints import current_positions
from tests.support.feeds import row
from tests.support.kafka import Broker
from tests.support.operated import Place, condition

RESTS = {"suspend": True}
HOURS_10 = 36_000
FUTURE = 4_070_908_800
"""The year 2099."""


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(
        tmp_path, broker, broker.topic(partitions=2, **{"message.timestamp.after.max.ms": "9223372036854775807"})
    )


def produce(place: Place, numbers: range, moment: float, partition: int = 0) -> None:
    producer = place.broker.producer()
    for number in numbers:
        producer.produce(place.topic, row(number), partition=partition, timestamp=int(moment * 1000))
    assert producer.flush(30) == 0


def taken(place: Place, rows: int) -> None:
    place.apply(place.document())
    assert place.count() == rows, place.lines


def told(place: Place) -> tuple[str, float]:
    """What the condition Fresh says, and the lag, while nothing is read."""
    found = place.apply(place.document(of=RESTS))
    (ingest,) = found["status"]["ingest"]
    return condition(found, "Fresh")["status"], seconds_of(ingest["lag"])


def test_a_partition_that_is_behind_makes_a_table_late_beside_one_that_is_current(place: Place) -> None:
    produce(place, range(10), time.time())
    taken(place, 10)
    produce(place, range(10, 12), time.time())
    produce(place, range(12, 15), time.time() - HOURS_10, partition=1)
    fresh, lag = told(place)
    assert (fresh, HOURS_10 <= lag < HOURS_10 + 120) == ("False", True), lag


def test_a_message_that_has_just_come_to_an_idle_topic_makes_no_table_late(place: Place) -> None:
    produce(place, range(10), time.time() - HOURS_10)
    taken(place, 10)
    produce(place, range(10, 11), time.time())
    fresh, lag = told(place)
    assert (fresh, lag < 60) == ("True", True), lag


def test_a_message_of_the_future_is_in_the_table_as_if_it_had_come_now(place: Place) -> None:
    produce(place, range(10), time.time() - HOURS_10)
    produce(place, range(10, 11), FUTURE)
    taken(place, 11)
    held = current_positions(place.table().context, "feed", place.topic)
    assert held is not None
    assert time.time() - 120 < held.positions.newest / 1000 <= time.time()
    produce(place, range(11, 15), time.time() - HOURS_10)
    fresh, lag = told(place)
    assert (fresh, lag >= HOURS_10) == ("False", True), lag


def test_a_message_of_the_future_that_waits_hides_none_behind_it(place: Place) -> None:
    produce(place, range(10), time.time())
    taken(place, 10)
    produce(place, range(10, 11), FUTURE)
    produce(place, range(11, 15), time.time() - HOURS_10)
    fresh, lag = told(place)
    assert (fresh, lag >= HOURS_10) == ("False", True), lag
