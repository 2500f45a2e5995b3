"""What ends the reading of messages by words of its own: brokers that keep silent, and messages
that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hudi_table.sources.formats import values
from hudi_table.sources.kafka import consume
from hudi_table.sources.kafka.consume import Consumer
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker, running_broker


def test_brokers_that_keep_silent_amid_a_read_are_said_not_to_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "SILENCE_SECONDS_MAX", 2.0)
    real = Consumer.assign
    with running_broker() as broker:

        def then_silent(consumer: Consumer, positions: Mapping[tuple[str, int], int]) -> None:
            """They have told how far the topic goes."""
            broker.sleep()
            real(consumer, positions)

        monkeypatch.setattr(Consumer, "assign", then_silent)
        feed = Feed(tmp_path, broker, broker.topic(partitions=1))
        broker.produce(feed.topic, [row(1)])
        failed = feed.run()
    assert failed.error_class == "Unavailable", failed.message
    assert f"the brokers at {broker.address} sent nothing for 2 s" in failed.message
    assert not feed.location.exists()


def test_messages_whose_types_contradict_each_other_are_refused_before_there_is_a_table(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those that are decoded together contradict each other in the decoder's words; these are not.
    monkeypatch.setattr(values, "CHUNK_BYTES", 1)
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [row(1), b'{"id": "k2", "n": {"deep": 1}}'])
    failed = feed.run()
    assert failed.error_class == "InvalidSchema", failed.message
    assert "the messages contradict each other: " in failed.message
    assert "correct them at the producer" in failed.message
    assert not feed.location.exists()
