"""An ingest that begins where others have come to: a consumer group, a sink of Kafka Connect, an
ingest of another table; on a real broker."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import create_table, write_hudi
from hudi_table.model.job.positions import Skipped, SkipReason
from hudi_table.sources.checkpoints import current_positions
from hudi_table.table.timeline.active import load_timeline
from tests.support.feeds import Feed, row
from tests.support.kafka import GUEST, GUEST_PASSWORD, Broker
from tests.support.kubelet import eventually
from tests.support.operated import Place, condition


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=3))


def commit(broker: Broker, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """What a consumer of the group commits."""
    import confluent_kafka as kafka

    consumer = kafka.Consumer({"bootstrap.servers": broker.address, "group.id": group})
    try:
        consumer.commit(offsets=[kafka.TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False)
    finally:
        consumer.close()


def committed(broker: Broker, group: str, topic: str) -> dict[int, int]:
    import confluent_kafka as kafka

    (future,) = broker.admin.list_consumer_group_offsets([kafka.ConsumerGroupTopicPartitions(group)]).values()
    return {each.partition: each.offset for each in future.result(30).topic_partitions if each.topic == topic}


def produce(feed: Feed, partitions: int = 2) -> None:
    """Messages 100 to 109 in partition 1, and so on."""
    for partition in range(partitions):
        feed.broker.produce(feed.topic, [row(100 * partition + i) for i in range(10)], partition=partition)


def of_group(feed: Feed, **more: Any) -> dict[str, Any]:
    return {"position": "ConsumerGroup", "group": f"of-{feed.topic}", **more}


def numbers(feed: Feed) -> list[int]:
    return sorted(each["n"] for each in feed.rows())


def test_it_begins_where_the_group_has_committed_and_changes_nothing_of_it(feed: Feed) -> None:
    produce(feed)
    group = f"of-{feed.topic}"
    commit(feed.broker, group, feed.topic, {0: 7, 1: 2})
    before = committed(feed.broker, group, feed.topic)
    done = feed.run(startFrom=of_group(feed))
    assert done.outcome == "Succeeded", done.message
    assert numbers(feed) == [7, 8, 9, *range(102, 110)]
    assert committed(feed.broker, group, feed.topic) == before == {0: 7, 1: 2}
    commit(feed.broker, group, feed.topic, {0: 0})
    feed.broker.produce(feed.topic, [row(10)], partition=0)
    assert feed.run(startFrom=of_group(feed)).figures["messagesRead"] == 1, "its own checkpoint counts from now on"


def test_a_partition_of_which_it_has_committed_nothing_is_read_from_its_beginning(feed: Feed) -> None:
    produce(feed, 3)
    commit(feed.broker, f"of-{feed.topic}", feed.topic, {0: 9})
    feed.run(startFrom=of_group(feed))
    assert numbers(feed) == [9, *range(100, 110), *range(200, 210)]


def test_or_at_its_end_where_that_is_wanted(feed: Feed) -> None:
    produce(feed, 3)
    commit(feed.broker, f"of-{feed.topic}", feed.topic, {0: 9})
    refused = feed.run(startFrom=of_group(feed, fallback="Latest"))
    assert "give kafka.startFrom.fallback Earliest, or mode Continuous" in refused.message
    driver = feed.start(
        {"mode": "Continuous", "commitIntervalSeconds": 0.2}, startFrom=of_group(feed, fallback="Latest")
    )
    try:
        eventually(lambda: feed.begun() and numbers(feed) == [9], "it has begun")
        feed.broker.produce(feed.topic, [row(210)], partition=2)
        eventually(lambda: numbers(feed) == [9, 210], "it follows")
    finally:
        driver.send_signal(signal.SIGTERM)
        driver.wait(60)


def test_a_group_that_has_committed_everywhere_needs_no_fallback(feed: Feed) -> None:
    produce(feed)
    commit(feed.broker, f"of-{feed.topic}", feed.topic, {0: 9, 1: 10, 2: 0})
    feed.run(startFrom=of_group(feed, fallback="Latest"))
    assert numbers(feed) == [9]


def test_a_group_that_knows_nothing_of_the_topic_is_named(feed: Feed) -> None:
    produce(feed)
    refused = feed.run(startFrom=of_group(feed))
    assert (refused.outcome, refused.error_class) == ("Failed", "InvalidRequest")
    assert f"consumer group 'of-{feed.topic}' has committed no offset of topic {feed.topic}" in refused.message


def test_what_was_deleted_behind_the_group_is_a_loss(feed: Feed) -> None:
    produce(feed)
    commit(feed.broker, f"of-{feed.topic}", feed.topic, {0: 3})
    feed.broker.forget(feed.topic, 0, 5)
    assert feed.run(startFrom=of_group(feed)).error_class == "DataLoss"
    feed.run(startFrom=of_group(feed), onDataLoss="Continue")
    assert numbers(feed) == [*range(5, 10), *range(100, 110)]
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    assert held.positions.skipped == (Skipped(SkipReason.DELETED, feed.topic, 0, 3, 5),)


def test_a_manifest_begins_at_a_group(broker: Broker, tmp_path: Path) -> None:
    place = Place(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(place.topic, [row(i) for i in range(10)], partition=0)
    commit(broker, "shop", place.topic, {0: 4})
    found = place.apply(place.document(startFrom={"position": "ConsumerGroup", "group": "shop"}))
    assert (condition(found, "Ready")["status"], place.count()) == ("True", 6), place.lines


def test_a_group_that_may_not_be_looked_at_is_refused(
    guarded_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path, guarded_broker, guarded_broker.topic())
    produce(feed)
    feed.broker.allow_reading(feed.topic)
    secret = {"KAFKA_SASL_USERNAME": GUEST, "KAFKA_SASL_PASSWORD": GUEST_PASSWORD}
    for name, value in {**secret, "KAFKA_CA": feed.broker.certificate.decode()}.items():
        monkeypatch.setenv(name, value)
    secure: dict[str, Any] = {
        "brokers": feed.broker.secure_address,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    refused = feed.run(startFrom=of_group(feed), **secure)
    assert (refused.outcome, refused.error_class) == ("Failed", "AccessDenied"), refused.message
    assert feed.run(**secure).outcome == "Succeeded", "the topic alone it may read"


def files(feed: Feed, *names: str) -> dict[str, Any]:
    """A folder of a sink that holds these files."""
    folder = feed.folder / "topics" / feed.topic
    for number, name in enumerate(names):
        place = folder / f"partition={number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"")
    folder.mkdir(parents=True, exist_ok=True)
    return {"position": "ConnectFiles", "location": f"file://{feed.folder / 'topics'}"}


def test_it_begins_behind_the_last_message_in_the_files_of_a_sink(feed: Feed) -> None:
    produce(feed, 3)
    topic = feed.topic
    start = files(
        feed,
        f"{topic}+0+0000000000+0000000003.avro",
        f"{topic}+1+0000000000+0000000001.snappy.parquet",
        f"{topic}+0+0000000004+0000000006.avro",
        f"{topic}+1+0000000002+0000000007",
        "other+0+0000000000+0000000099.avro",
        f"{topic}.avro.tmp",
    )
    done = feed.run(startFrom=start)
    assert done.outcome == "Succeeded", done.message
    assert numbers(feed) == [7, 8, 9, 108, 109, *range(200, 210)], "of the third partition there is no file"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no file at file:"),
        (["other+0+0+9.avro"], "those there are of other"),
        (["{topic}+0+0000000000.avro"], "names no end, as the files of the S3 sink do not"),
        (["{topic}+0+0+9999999999999999999.avro"], "which is no offset"),
    ],
)
def test_files_that_do_not_tell_are_named(feed: Feed, names: list[str], said: str) -> None:
    produce(feed)
    refused = feed.run(startFrom=files(feed, *(name.format(topic=feed.topic) for name in names)))
    assert (refused.outcome, refused.error_class) == ("Failed", "InvalidRequest"), refused.message
    assert said in refused.message


def of_table(feed: Feed, other: Path, **more: str) -> dict[str, Any]:
    return {"position": "Table", "location": f"file://{other}", **more}


def test_it_begins_at_the_checkpoint_of_another_table(feed: Feed, tmp_path: Path) -> None:
    produce(feed)
    feed.run()
    other = Feed(tmp_path / "other", feed.broker, feed.topic)
    other.folder.mkdir()
    feed.broker.produce(feed.topic, [row(10), row(11)], partition=0)
    done = other.run(startFrom=of_table(other, feed.location))
    assert done.outcome == "Succeeded", done.message
    assert numbers(other) == [10, 11]
    named = other.run({"name": "renamed"}, startFrom=of_table(other, feed.location))
    assert "holds a checkpoint of an ingest 'renamed'" in named.message


def test_it_begins_at_the_checkpoint_of_the_commit_of_another_table_that_is_named(feed: Feed, tmp_path: Path) -> None:
    instants = []
    for number in range(4):
        feed.broker.produce(feed.topic, [row(number)], partition=0)
        feed.run()
        instants.append(load_timeline(feed.open().context).commits[-1].time)
    feed.open().upsert(feed.open().scan().to_arrow().slice(0, 1))
    silent = load_timeline(feed.open().context).commits[-1].time
    other = Feed(tmp_path / "other", feed.broker, feed.topic)
    other.folder.mkdir()
    for named, said in (("20200101000000000", "is no completed commit"), (silent, "holds no checkpoint")):
        refused = other.run(startFrom=of_table(other, feed.location, instant=named))
        assert (refused.outcome, refused.error_class) == ("Failed", "InvalidRequest"), refused.message
        assert f"{named} of the table at {feed.location} {said}" in refused.message
        assert f"of ingest 'feed': the newest that do are {', '.join(reversed(instants))}" in refused.message
    named_otherwise = other.run({"name": "feed2"}, startFrom=of_table(other, feed.location, instant=instants[0]))
    assert "holds no checkpoint of ingest 'feed2': no commit there does" in named_otherwise.message
    done = other.run(startFrom=of_table(other, feed.location, instant=instants[1]))
    assert done.outcome == "Succeeded", done.message
    assert numbers(other) == [2, 3]


def test_it_begins_at_hudi_streamers_checkpoint_of_another_table(feed: Feed, tmp_path: Path) -> None:
    import pyarrow as pa

    produce(feed)
    table = create_table(str(tmp_path / "theirs"), pa.schema([("id", pa.string())]), record_key="id")
    write_hudi(table, pa.table({"id": ["a"]}), extra_metadata={"deltastreamer.checkpoint.key": f"{feed.topic},0:8,1:9"})
    feed.run(startFrom=of_table(feed, tmp_path / "theirs"))
    assert numbers(feed) == [8, 9, 109]


def test_a_topic_that_was_made_again_since_is_a_loss(feed: Feed, tmp_path: Path) -> None:
    produce(feed)
    feed.run()
    feed.broker.delete(feed.topic)
    feed.broker.topic(feed.topic, partitions=3)
    produce(feed)
    other = Feed(tmp_path / "other", feed.broker, feed.topic)
    other.folder.mkdir()
    refused = other.run(startFrom=of_table(other, feed.location))
    assert refused.error_class == "DataLoss", refused.message
    other.run(startFrom=of_table(other, feed.location), onDataLoss="Continue")
    assert len(other.rows()) == 20, "all of the new one"


def test_a_table_that_is_not_there_or_is_of_other_topics_is_named(feed: Feed, tmp_path: Path) -> None:
    produce(feed)
    missing = feed.run(startFrom=of_table(feed, tmp_path / "nowhere"))
    assert (missing.outcome, missing.error_class) == ("Failed", "TableNotFound"), missing.message
    other = Feed(tmp_path / "other", feed.broker, feed.broker.topic())
    other.folder.mkdir()
    other.broker.produce(other.topic, [row(1)])
    other.run()
    foreign = feed.run(startFrom=of_table(feed, other.location))
    assert f"is of topic {other.topic}, which is none of the source's" in foreign.message


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"position": "ConsumerGroup"}, "ConsumerGroup needs kafka.startFrom.group"),
        ({"position": "ConnectFiles"}, "ConnectFiles needs kafka.startFrom.location"),
        ({"position": "ConsumerGroup", "group": "a", "fallback": "Never"}, "kafka.startFrom.fallback is 'Never'"),
    ],
)
def test_what_is_missing_is_named(feed: Feed, start: dict[str, Any], said: str) -> None:
    refused = feed.run(startFrom=start)
    assert (refused.error_class, said in refused.message) == ("InvalidRequest", True), refused.message
