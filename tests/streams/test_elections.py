"""A partition whose broker has just begun, and does not know yet that it leads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from hudi_table.sources.kafka.client import as_hudi, results
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (confluent_kafka.KafkaError.UNKNOWN_LEADER_EPOCH, True),
        (confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION, True),
        (confluent_kafka.KafkaError._TIMED_OUT, False),
    ],
)
def test_a_leader_that_is_not_known_yet_is_waited_for(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, waits: bool
) -> None:
    feed = Feed(tmp_path, broker, broker.topic())
    broker.produce(feed.topic, [row(i) for i in range(10)])
    told = list[int]()

    def answered(*asked: Any) -> Any:
        told.append(code)
        if len(told) > 2:
            return results(*asked)
        error = confluent_kafka.KafkaException(confluent_kafka.KafkaError(code))
        raise as_hudi(error.args[0], broker.address) from error

    monkeypatch.setattr("hudi_table.sources.kafka.brokers.results", answered)
    done = feed.run()
    assert (done.outcome, done.error_class) == (("Succeeded", "") if waits else ("Failed", "Unavailable")), done.message
    assert len(feed.rows()) == 10 if waits else len(told) == 1
