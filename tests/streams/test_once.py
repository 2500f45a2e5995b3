"""A `Once` ingest from a real broker: what is in the topic is in the table, once, and the positions beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.sources.checkpoints import current_positions
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic())


def test_what_is_there_is_taken_once_and_the_rest_later(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(i) for i in range(100)])
    first = feed.run()
    assert (first.outcome, first.figures["messagesRead"]) == ("Succeeded", 100), first.message
    assert feed.run().outcome == "NothingToDo"
    feed.broker.produce(feed.topic, [row(i) for i in range(90, 120)])
    again = feed.run()
    assert (again.figures["recordsInserted"], again.figures["recordsUpdated"]) == (20, 10)
    assert [each["n"] for each in feed.rows()] == sorted(range(120), key=lambda n: f"k{n}")
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    assert sum(held.positions.topics[feed.topic].offsets.values()) == 130
