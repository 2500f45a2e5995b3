"""A broker that has just begun does not know its topics for a moment: whoever stood in them waits,
and who comes first, and an ingest does not end for it.

A topic that is made a moment late looks the same to a client. Brokers that are killed at random:
tests/streams/test_debezium_kills.py.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.sources.kafka import brokers as asked
from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.table.store.clock import SystemClock
from tests.support.kafka import Broker, running_broker

SECONDS = 2.0


def settings_of(broker: Broker, **more: Any) -> KafkaSettings:
    return KafkaSettings.of({"type": "Kafka", "format": "json", "kafka": {"brokers": broker.address, **more}})


@contextmanager
def made_late(broker: Broker, topic: str) -> Iterator[None]:
    """The topic is there after a while."""

    def make() -> None:
        time.sleep(SECONDS)
        broker.topic(topic, partitions=1)

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("by", ["name", "pattern"])
def test_a_topic_that_was_there_is_asked_for_again(broker: Broker, by: str) -> None:
    topic = f"late-{uuid.uuid4().hex}"
    named = {"topics": [topic]} if by == "name" else {"topicPattern": f"{topic[:20]}.*"}
    with made_late(broker, topic):
        found = Brokers(settings_of(broker, **named), os.environ).extent([topic])
    assert list(found.topics) == [topic]


def test_a_broker_that_knows_of_no_topic_at_all_is_asked_again_by_who_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by kills of a broker: the first look of a driver fell into its start."""
    with running_broker() as begun:
        topic = f"late-{uuid.uuid4().hex}"
        with made_late(begun, topic):
            found = Brokers(settings_of(begun, topics=[topic]), os.environ).extent()
        assert list(found.topics) == [topic]
        monkeypatch.setattr(SystemClock, "sleep", lambda *_: pytest.fail("it knows of another topic"))
        with pytest.raises(InvalidRequestError, match=f"topic no-such does not exist at {begun.address}"):
            Brokers(settings_of(begun, topics=["no-such"]), os.environ).extent()


def test_a_topic_that_was_there_and_does_not_come_back_is_refused_by_name(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "STARTING_LOOK_SECONDS", 0.0)
    with pytest.raises(InvalidRequestError, match=f"topic gone-for-good does not exist at {broker.address}"):
        Brokers(settings_of(broker, topics=["gone-for-good"]), os.environ).extent(["gone-for-good"])
