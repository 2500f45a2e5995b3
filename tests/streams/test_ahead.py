"""While a batch is decoded and committed, the messages of the next one are read: each comes once
and in its place, wherever the next batch begins."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.errors import DataLossError
from hudi_table.model.job.positions import Positions, TopicPositions
from hudi_table.sources.formats import values as parts
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.kafka.brokers import by_place
from hudi_table.sources.kafka.consume import Messages, Until
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.source import KafkaBatch, KafkaSource
from tests.support.feeds import row
from tests.support.kafka import Broker

ROWS, PARTITIONS = 900, 3
BYTES = 1 << 30


@pytest.fixture
def source(broker: Broker) -> Iterator[KafkaSource]:
    topic = broker.topic(partitions=PARTITIONS)
    broker.produce(topic, [row(number) for number in range(ROWS)])
    settings = KafkaSettings.of(
        {"type": "Kafka", "format": "json", "kafka": {"brokers": broker.address, "topics": [topic]}}
    )
    found = KafkaSource(settings, os.environ, Decoding(settings, JsonDecoder(), None, ("id",)), "attempt")
    yield found
    found.close()


def begun(source: KafkaSource) -> Positions:
    return source.start(source.discover(), None)


def taken(messages: Messages) -> dict[int, list[int]]:
    """The offsets of each partition, as they came."""
    places, offsets = (np.concatenate([*each, np.zeros(0, np.int64)]) for each in (messages.places, messages.offsets))
    return {partition: offsets[places == number].tolist() for number, (_, partition) in enumerate(messages.names)}


def expect(source: KafkaSource, start: Positions, until: Until) -> Positions:
    """Read one batch, and see that it is all that lies between its ends."""
    messages, at = source.messages(by_place(start), until)
    (topic,) = start.topics
    for partition, offsets in taken(messages).items():
        begin, end = start.topics[topic].offsets[partition], at[topic, partition]
        assert offsets == list(range(begin, end)), (partition, begin, end)
        if until.stops is not None and until.strict:
            assert end <= max(begin, until.stops[topic, partition])
    return Positions(
        "", {topic: TopicPositions("", {partition: at[topic, partition] for partition in range(PARTITIONS)})}
    )


def held(positions: Positions) -> int:
    return sum(by_place(positions).values())


def wait_for_reading(source: KafkaSource, count: int) -> None:
    """Until so many messages have been read, ahead too."""
    ends = time.monotonic() + 60
    while sum(source.consumer.positions.values()) < count:
        assert time.monotonic() < ends, "nobody reads on"
        time.sleep(0.01)


def test_the_next_batch_is_read_while_the_one_before_is_held(source: KafkaSource) -> None:
    stops = by_place(source.discover().ends)
    reached = expect(source, begun(source), Until(200, BYTES, stops))
    wait_for_reading(source, held(reached) + 200)
    assert held(expect(source, reached, Until(200, BYTES, stops))) == held(reached) + 200


def test_nothing_is_read_ahead_of_a_batch_that_is_not_full(source: KafkaSource) -> None:
    stops = by_place(source.discover().ends)
    expect(source, begun(source), Until(ROWS + 1, BYTES, stops))
    assert source._ahead is None


@pytest.mark.parametrize("strict", [False, True], ids=["to its end", "a range"])
def test_wherever_a_batch_begins_it_has_what_lies_between(source: KafkaSource, *, strict: bool) -> None:
    chance = random.Random(0)
    ends = by_place(source.discover().ends)
    stops = {place: end // 2 for place, end in ends.items()} if strict else ends
    known = [begun(source)]
    for _ in range(60):
        # What was committed, or what was before: an attempt that failed reads its batch again.
        start = known[-1] if chance.random() < 0.7 else chance.choice(known)
        time.sleep(chance.choice([0, 0, 0.01]))
        known.append(expect(source, start, Until(chance.choice([7, 50, 200]), BYTES, stops, strict=strict)))
    while held(known[-1]) < sum(stops.values()):
        known.append(expect(source, known[-1], Until(100, BYTES, stops, strict=strict)))
    assert held(known[-1]) == sum(stops.values())


def test_what_lies_behind_a_stop_comes_once_the_stop_has_moved(source: KafkaSource) -> None:
    ends = by_place(source.discover().ends)
    at = begun(source)
    for part in (5, 3, 1):
        stops = {place: end // part for place, end in ends.items()}
        at = expect(source, at, Until(ROWS, BYTES, stops, strict=True))
        assert by_place(at) == stops


def test_what_lies_behind_the_stops_of_a_full_batch_comes_once_there_are_none(source: KafkaSource) -> None:
    ends = by_place(source.discover().ends)
    stops = {place: end // 3 for place, end in ends.items()}
    at = expect(source, begun(source), Until(sum(stops.values()) // 2, BYTES, stops, strict=True))
    wait_for_reading(source, sum(stops.values()) - 1)
    while held(at) < ROWS:
        at = expect(source, at, Until(ROWS, BYTES, ends))
    assert by_place(at) == ends


def test_a_reading_begins_anew_where_the_brokers_had_nothing_before(broker: Broker, source: KafkaSource) -> None:
    (topic,) = begun(source).topics
    later = {(topic, partition): end + 1 for (topic, partition), end in by_place(source.discover().ends).items()}
    with pytest.raises(DataLossError, match="has no more what comes next"):
        source.messages(later, Until(ROWS, BYTES))
    broker.produce(topic, [row(number) for number in range(ROWS)])
    stops = by_place(source.discover().ends)
    messages, at = source.messages(later, Until(10 * ROWS, BYTES, stops))
    assert at == stops
    assert sum(map(len, taken(messages).values())) == sum(stops.values()) - sum(later.values())


def test_headers_that_are_kept_are_part_of_what_a_commit_may_have(broker: Broker) -> None:
    topic, size = broker.topic(partitions=1), 100_000
    broker.produce(topic, [row(number) for number in range(50)], headers=[("large", b"x" * size)])
    kafka = {"brokers": broker.address, "topics": [topic], "metadata": ["headers"]}
    settings = KafkaSettings.of({"type": "Kafka", "format": "json", "kafka": kafka})
    source = KafkaSource(settings, os.environ, Decoding(settings, JsonDecoder(), None, ("id",)), "attempt")
    try:
        messages, _ = source.messages(by_place(begun(source)), Until(ROWS, 20 * size, by_place(source.discover().ends)))
    finally:
        source.close()
    assert 20 <= len(messages.values) <= 21


def test_what_comes_while_a_topic_is_followed_is_added_to_what_was_read_ahead(
    broker: Broker, source: KafkaSource
) -> None:
    at, clock = begun(source), source.clock
    for count in (ROWS, ROWS + 100):
        while held(at) < count:
            at = expect(source, at, Until(400, BYTES, deadline=clock.boot_seconds() + 0.5))
        broker.produce(next(iter(at.topics)), [row(number) for number in range(100)])


def test_a_reading_that_is_not_wanted_ends_with_its_source(source: KafkaSource) -> None:
    # Without stops, and with room: it would go on for as long as messages come.
    expect(source, begun(source), Until(10, BYTES))
    began = time.monotonic()
    source.close()
    assert time.monotonic() - began < 30


class Noted(JsonDecoder):
    """How many messages each call is given, and by which thread."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        self.calls.append((threading.current_thread().name, len(messages)))
        return super().decode(messages, known)


@pytest.mark.parametrize("rows", [ROWS + 1, 200], ids=["all", "and those of the next commit"])
def test_messages_are_decoded_while_others_come(
    source: KafkaSource, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "EARLY_BYTES", 200)
    known = pa.schema([("id", pa.string()), ("n", pa.int64())])
    noted = Noted()
    source.decoding = replace(source.decoding, values=noted)
    at, until, numbers = begun(source), Until(rows, BYTES, by_place(source.discover().ends)), list[int]()
    while held(at) < ROWS:
        found = KafkaBatch(source, at, until).read(known)
        numbers += found.batches.read_all().column("n").to_pylist()
        at = found.checkpoint
    assert sorted(numbers) == list(range(ROWS))
    assert sum(count for _, count in noted.calls) == ROWS, "one is decoded twice"
    assert sum(count for name, count in noted.calls if "decode" in name) > ROWS / 2, "they are decoded at the end"
