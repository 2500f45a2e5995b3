"""A topic that an ingest read before and does not see for a while: its place is kept, and what is
lost of it is said."""

from __future__ import annotations

from pathlib import Path

from hudi_table.sources.checkpoints import current_positions
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


def test_a_topic_that_is_away_for_a_while_is_read_on_where_it_was(broker: Broker, tmp_path: Path) -> None:
    feed, _, both = two_topics(broker, tmp_path)
    feed.work["operation"] = "Insert"
    assert feed.run(topicPattern=both).figures["messagesRead"] == 2
    # As where the right to see it is taken away.
    broker.produce(feed.topic, [row(3)])
    assert feed.run(topicPattern=feed.topic).figures["messagesRead"] == 1
    broker.produce(f"{feed.topic}-more", [row(4)])
    assert feed.run(topicPattern=both).figures["messagesRead"] == 1
    assert sorted(each["n"] for each in feed.rows()) == [1, 2, 3, 4]
    held = current_positions(feed.open().context, "feed", None)
    assert held is not None
    assert held.positions.away == {}


def test_a_topic_that_is_made_again_while_it_is_away_is_a_loss(broker: Broker, tmp_path: Path) -> None:
    feed, more, both = two_topics(broker, tmp_path)
    feed.run(topicPattern=both)
    broker.delete(more)
    broker.produce(feed.topic, [row(3)])
    assert feed.run(topicPattern=both).figures["messagesRead"] == 1
    broker.topic(more, 1)
    broker.produce(more, [row(4)])
    assert f"topic {more} was deleted and made again" in feed.run(topicPattern=both).message
    assert feed.run(topicPattern=both, onDataLoss="Continue").figures["messagesRead"] == 1
    assert [each["n"] for each in feed.rows()] == [1, 2, 3, 4]


def two_topics(broker: Broker, tmp_path: Path) -> tuple[Feed, str, str]:
    """A feed of a topic with a message, another topic with one, and the pattern of both."""
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    more = broker.topic(f"{feed.topic}-more", 1)
    broker.produce(feed.topic, [row(1)])
    broker.produce(more, [row(2)])
    return feed, more, f"{feed.topic}(-more)?"
