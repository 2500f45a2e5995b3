"""A `Once` ingest from a real broker: what is in the topic is in the table, once, and the positions
beside it."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hudi_table.cli.program import main as hudictl
from hudi_table.errors import WriteConflictError
from hudi_table.model.names import STREAMER_KEY, STREAMER_KEY_V2
from hudi_table.services.ingesting import Ingest
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions, current_positions
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import Feed, row
from tests.support.kafka import PASSWORD, USER, Broker


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


def test_a_batch_is_no_larger_than_asked_for(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(i) for i in range(100)])
    done = feed.run(maxRows=40)
    assert (done.figures["commits"], done.figures["messagesRead"]) == (3, 100)
    feed.broker.produce(feed.topic, [row(i, text="x" * 10_000) for i in range(40)])
    assert feed.run(maxBytes=100_000).figures["commits"] >= 3
    assert len(feed.rows()) == 100


def test_only_committed_messages_are_read_and_markers_are_no_rows(feed: Feed) -> None:
    producer = feed.broker.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    for number, commits in enumerate([True, False, True]):
        producer.begin_transaction()
        for i in range(5):
            producer.produce(feed.topic, row(10 * number + i), partition=0)
        producer.flush(30)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert feed.run().figures["messagesRead"] == 10
    # The last marker lies behind the last row: it is passed over, not read for ever.
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    assert held.positions.topics[feed.topic].offsets[0] == 18
    assert feed.run().outcome == "NothingToDo"
    producer.begin_transaction()
    producer.produce(feed.topic, row(77), partition=0)
    producer.flush(30)
    feed.broker.produce(feed.topic, [row(78)], partition=0)
    assert feed.run().outcome == "NothingToDo", "behind an open transaction nothing is stable"
    producer.commit_transaction(30)
    assert feed.run().figures["messagesRead"] == 2
    assert {each["n"] for each in feed.rows()} == {*range(5), *range(20, 25), 77, 78}


TOMBSTONES = [
    (b"k1", row(1)),
    (b"k2", row(2)),
    (b"k1", None),
    (b"k3", row(3)),
    (b"k2", None),
    (b"k2", b'{"id":"k2","n":22}'),
]


def test_a_tombstone_deletes_its_row_if_asked_to(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, TOMBSTONES[:2])
    feed.run(tombstones="Delete")
    broker.produce(feed.topic, TOMBSTONES[2:])
    done = feed.run(tombstones="Delete")
    assert done.outcome == "Succeeded", done.message
    assert [(each["id"], each["n"]) for each in feed.rows()] == [("k2", 22), ("k3", 3)]


def test_a_tombstone_is_passed_over_if_asked_to_and_else_refused(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, TOMBSTONES)
    refused = feed.run()
    assert (refused.outcome, refused.error_class) == ("Failed", "InvalidData")
    assert f"topic {feed.topic}, partition 0, offset 2 is a tombstone" in refused.message
    assert not feed.location.exists() or not list(feed.location.rglob("*.parquet"))
    assert feed.run(tombstones="Ignore").figures["messagesRead"] == 4
    assert {each["n"] for each in feed.rows()} == {1, 22, 3}


def test_keys_of_deletes_may_be_json_and_name_the_partition(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"partitionBy": [{"field": "day"}]})
    broker.produce(feed.topic, [(b'{"id":"k1","day":"mo"}', row(1, day="mo")), (None, row(2, day="tu"))])
    raw = feed.run(tombstones="Delete")
    assert "kafka.keyFormat raw holds one column, and a delete needs id, day" in raw.message
    assert feed.run(tombstones="Delete", keyFormat="json").figures["messagesRead"] == 2
    broker.produce(feed.topic, [(b'{"id":"k1","day":"mo"}', None)])
    assert feed.run(tombstones="Delete", keyFormat="json").figures["recordsDeleted"] == 1
    broker.produce(feed.topic, [(b'{"id":"k2"}', None)])
    assert "has no day, which a delete needs" in feed.run(tombstones="Delete", keyFormat="json").message
    assert [each["n"] for each in feed.rows()] == [2]


def test_metadata_stands_beside_the_rows(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [(b"a", row(1))], headers=[("from", b"x"), ("from", None)])
    broker.produce(feed.topic, [row(2)])
    feed.run(metadata=["topic", "partition", "offset", "timestamp", "key", "headers"])
    columns = ("id", "_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_key", "_kafka_headers")
    first, second = feed.rows(*columns)
    assert [first[name] for name in columns[1:4]] == [feed.topic, 0, 0]
    assert (first["_kafka_key"], second["_kafka_key"]) == (b"a", None)
    assert first["_kafka_headers"] == [{"key": "from", "value": b"x"}, {"key": "from", "value": None}]
    assert (second["_kafka_offset"], second["_kafka_headers"]) == (1, None)
    assert feed.rows("id", "_kafka_timestamp")[0]["_kafka_timestamp"].year >= 2024


def test_topics_that_come_later_are_read_from_their_beginning(broker: Broker, tmp_path: Path) -> None:
    base = broker.topic(partitions=1)
    feed = Feed(tmp_path, broker, base)
    pattern = f"{base}(-more)?"
    broker.produce(base, [row(1)])
    assert feed.run(topicPattern=pattern).figures["messagesRead"] == 1
    broker.topic(f"{base}-more", 1)
    broker.produce(f"{base}-more", [row(2)])
    assert feed.run(topicPattern=pattern).figures["messagesRead"] == 1
    assert [each["n"] for each in feed.rows()] == [1, 2]


def test_where_an_ingest_begins(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [row(i) for i in range(10)])
    refused = feed.run(startFrom={"position": "Latest"})
    assert (
        "there is no table yet, and an ingest in mode Once that begins at Latest would never see a row"
        in refused.message
    )
    later = int(time.time() * 1000) + 1
    time.sleep(0.05)
    broker.produce(feed.topic, [row(i) for i in range(10, 15)])
    assert feed.run(startFrom={"position": "Timestamp", "timestampMillis": later}).figures["messagesRead"] == 5
    offsets = {"position": "Offsets", "offsets": [f"{feed.topic},0:7"]}
    assert feed.run({"name": "other"}, startFrom=offsets).figures["messagesRead"] == 8
    future = {"position": "Timestamp", "timestampMillis": later + 10**9}
    third = feed.run({"name": "third"}, startFrom=future)
    assert third.figures["messagesRead"] == 0, "its place at the end is kept, though nothing is there yet"
    assert feed.run({"name": "fourth"}, startFrom={"position": "Latest"}).figures["messagesRead"] == 0
    broker.produce(feed.topic, [row(20)])
    assert feed.run({"name": "fourth"}, startFrom={"position": "Latest"}).figures["messagesRead"] == 1
    wrong = {"position": "Offsets", "offsets": ["absent,0:7"]}
    assert "names topic absent, which is none of the source's" in feed.run({"name": "fifth"}, startFrom=wrong).message
    beyond = {"position": "Offsets", "offsets": [f"{feed.topic},0:700"]}
    assert "ends at offset 16, and the ingest is at 700" in feed.run({"name": "sixth"}, startFrom=beyond).message


def test_a_topic_that_was_made_again_is_seen_though_its_name_is_the_same(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [row(i) for i in range(10)])
    feed.run()
    broker.delete(feed.topic)
    broker.topic(feed.topic, 1)
    broker.produce(feed.topic, [row(i) for i in range(50, 70)])
    stopped = feed.run()
    assert stopped.error_class == "DataLoss"
    assert (
        f"an unknown number of messages is lost: topic {feed.topic} was deleted and made again: its id was"
        in stopped.message
    )
    assert feed.run(onDataLoss="Continue").figures["messagesRead"] == 20
    assert len(feed.rows()) == 30


BAD = {
    "no json": b"{",
    "two objects": b'{"id":"a"}{"id":"b"}',
    "a list": b'[{"id":"a"}]',
    "null": b"null",
    "nothing": b"",
    "blank": b"  ",
    "another type": b'{"id":"a","n":"text"}',
    "no utf-8": b'{"id":"\xff"}',
    "a field twice": b'{"id":"a","id":"b"}',
    "another column": b'{"id":"a"},"w":{}',
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_undecodable_message_is_named(feed: Feed, bad: bytes) -> None:
    feed.broker.produce(feed.topic, [*(row(i) for i in range(7)), bad, *(row(i) for i in range(5))], partition=1)
    failed = feed.run()
    assert (failed.outcome, failed.error_class) == ("Failed", "InvalidData")
    assert f"the message of topic {feed.topic}, partition 1, offset 7 cannot be read as json: " in failed.message
    assert not list(feed.folder.rglob("*.parquet"))


def test_objects_may_have_line_breaks_and_other_fields(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [b'{\n "id": "k1",\r\n "n": 1\n}', b'{"id":"k2"}', b'{"id":"k3","more":{"a":[1]}}'])
    assert feed.run().figures["messagesRead"] == 3
    feed.broker.produce(feed.topic, [b'{"id":"k4","late":true}'])
    assert feed.run().outcome == "Succeeded"
    assert [each["n"] for each in feed.rows()] == [1, None, None, None]
    assert feed.rows("id", "late")[3]["late"] is True


def test_raw_messages_are_kept_as_they_are(broker: Broker, tmp_path: Path) -> None:
    key = {"recordKey": ["_kafka_partition", "_kafka_offset"], "index": None}
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), key, form="raw")
    broker.produce(feed.topic, [b"\x00\xff", b""])
    done = feed.run(metadata=["partition", "offset"])
    assert done.outcome == "Succeeded", done.message
    assert [each["value"] for each in feed.rows("_kafka_offset", "value")] == [b"\x00\xff", b""]


def test_avro_with_a_schema_file(broker: Broker, tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": ["null", "long"]}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="avro")

    def record(**values: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), values)
        return out.getvalue()

    broker.produce(feed.topic, [record(id="k1", n=1), record(id="k2", n=None)])
    file = {"avro": {"schemaFile": f"file://{tmp_path}/order.avsc"}}
    assert feed.run(**file).figures["messagesRead"] == 2
    assert [each["n"] for each in feed.rows()] == [1, None]
    broker.produce(feed.topic, [record(id="k3", n=3), record(id="k4", n=4) + b"x"])
    assert "offset 3 cannot be read as avro: it is no record of its schema" in feed.run(**file).message
    gone = {"avro": {"schemaFile": f"file://{tmp_path}/absent.avsc"}}
    assert "kafka.avro.schemaFile" in feed.run(**gone).message


def test_a_password_and_tls_come_from_the_environment(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.broker.produce(feed.topic, [row(1)])
    secure: dict[str, Any] = {
        "brokers": feed.broker.secure_address,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    assert "needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD in the Secret" in feed.run(**secure).message
    monkeypatch.setenv("KAFKA_SASL_USERNAME", USER)
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "wrong-and-secret")
    monkeypatch.setenv("KAFKA_CA", feed.broker.certificate.decode())
    denied = feed.run(**secure)
    assert denied.error_class == "AccessDenied", denied.message
    assert "wrong-and-secret" not in denied.to_json()
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", PASSWORD)
    assert feed.run(**secure).figures["messagesRead"] == 1
    assert all(PASSWORD not in path.read_text() for path in feed.folder.rglob("*.json"))
    assert PASSWORD.encode() not in b"".join(p.read_bytes() for p in feed.location.rglob("*") if p.is_file())


def test_a_topic_that_is_not_there_and_brokers_that_are_not(feed: Feed) -> None:
    absent = feed.run(topics=["absent-topic"])
    assert absent.error_class == "InvalidRequest"
    assert f"topic absent-topic does not exist at {feed.broker.address}: create it" in absent.message


@pytest.mark.parametrize(("version", "own"), [(6, STREAMER_KEY), (9, STREAMER_KEY_V2)])
def test_a_table_that_hudi_streamer_has_fed_goes_on_where_it_was_and_is_given_back(
    broker: Broker, tmp_path: Path, version: int, own: str
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(), {"tableVersion": version})
    broker.produce(feed.topic, [row(i) for i in range(10)], partition=0)
    broker.produce(feed.topic, [row(i) for i in range(10, 20)], partition=1)
    feed.run({"name": "before"})
    theirs = {own: f"{feed.topic},0:8,1:7"}
    feed.open().upsert(pa.table({"id": ["k0"], "n": [0]}), extra_metadata=theirs)
    assert feed.run().figures["messagesRead"] == 5
    commits = load_timeline(feed.open().context).commits
    extra = commit_metadata(feed.open().context, commits[-1]).extra_metadata
    assert extra[own] == f"{feed.topic},0:10,1:10"
    # Theirs is newer again: it is where they have gone on.
    feed.open().upsert(pa.table({"id": ["k0"], "n": [0]}), extra_metadata={own: f"{feed.topic},0:10,1:9"})
    assert feed.run().figures["messagesRead"] == 1


RESETS = {STREAMER_KEY: "deltastreamer.checkpoint.reset_key", STREAMER_KEY_V2: "streamer.checkpoint.reset.key.v2"}


@pytest.mark.parametrize("sets", [False, True], ids=["runs", "sets"])
@pytest.mark.parametrize(("version", "theirs"), [(6, STREAMER_KEY), (9, STREAMER_KEY_V2), (9, STREAMER_KEY)])
def test_where_a_job_of_hudi_streamer_was_told_to_begin_stays_known(
    broker: Broker, tmp_path: Path, version: int, theirs: str, *, sets: bool
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(), {"tableVersion": version})
    broker.produce(feed.topic, [row(i) for i in range(10)], partition=0)
    feed.run({"name": "before"})
    begin, ignored = f"{feed.topic},0:3,1:0", "deltastreamer.checkpoint.ignore_key"
    told = {theirs: f"{feed.topic},0:8,1:0", RESETS[theirs]: begin, ignored: "monday"}
    feed.open().upsert(pa.table({"id": ["k0"], "n": [0]}), extra_metadata=told)
    if sets:
        assert hudictl(["checkpoint", "set", f"file://{feed.location}", "feed", f"{feed.topic},0:9"]) == 0
    own = STREAMER_KEY if version == 6 else STREAMER_KEY_V2
    for number in (10, 11):
        broker.produce(feed.topic, [row(number)], partition=0)
        assert feed.run().outcome == "Succeeded"
        commits = load_timeline(feed.open().context).commits
        extra = commit_metadata(feed.open().context, commits[-1]).extra_metadata
        assert (extra[own], extra[RESETS[own]], extra[ignored]) == (f"{feed.topic},0:{number + 1},1:0", begin, "monday")


def test_an_attempt_that_slept_commits_nothing(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [row(i) for i in range(5)])
    feed.run()
    held = current_positions(feed.open().context, "feed", feed.topic)
    broker.produce(feed.topic, [row(i) for i in range(5, 10)])
    feed.run()
    assert held is not None
    ingest = Ingest("feed", feed.topic, "insert", {})
    late = pa.table({"id": ["late"], "n": [1]})
    rows = Rows(late.schema, late.to_reader(), held.positions, 1)
    replayed = ingest.commit(feed.open().context, rows, held)
    assert replayed.replayed, "the name of the batch is taken"
    # Later, when the commit that took the name is long archived, the checkpoint itself tells.
    other = HeldPositions(held.positions, "20200101000000000")
    with pytest.raises(
        WriteConflictError, match="the rows go on from the checkpoint of 20200101000000000, and the newest is"
    ):
        ingest.commit(feed.open().context, Rows(late.schema, late.to_reader(), held.positions, 1), other)
    assert len(feed.rows()) == 10


def test_a_checkpoint_of_another_source_is_refused(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    broker.produce(feed.topic, [row(1)])
    feed.run()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_bytes(row(2))
    files = {"type": "Files", "format": "json", "path": f"file://{tmp_path}/in"}
    assert "is of Kafka, and its source is of type Files now: give the ingest another name" in (
        feed.run({"source": files}).message
    )


@pytest.mark.at_scale(2)
def test_a_compacted_topic_has_holes_and_is_read_to_its_end(broker: Broker, tmp_path: Path) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
    feed = Feed(tmp_path, broker, broker.topic(partitions=1, **config))
    for _ in range(5):
        broker.produce(feed.topic, [(f"k{i}".encode(), row(i)) for i in range(50)])
    until = time.monotonic() + 90
    while True:
        time.sleep(1.5)
        # Only a segment that is closed is compacted, and a message closes it.
        broker.produce(feed.topic, [(b"k0", row(0))])
        done = feed.run({"name": f"look-{feed.runs}"}, startFrom={"position": "Earliest"})
        if done.figures["messagesRead"] < 200:
            break
        assert time.monotonic() < until, "the topic was not compacted"
    held = current_positions(feed.open().context, f"look-{feed.runs - 1}", feed.topic)
    assert held is not None
    assert held.positions.topics[feed.topic].offsets[0] == 250 + feed.runs
    assert len(feed.rows()) == 50
