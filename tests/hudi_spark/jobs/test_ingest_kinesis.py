"""An ingest from Kinesis beside moto's streams: every record once, whatever ends a run, however the
shards are split and merged, and what is lost or cannot be read is told."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_spark.jobs.ingests import kinesis
from hudi_table import create_table, write_hudi
from hudi_table.errors import UnavailableError
from hudi_table.sources.kinesis.stream import Stream
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import row
from tests.support.kinesis import KinesisFeed, TestStream, as_of_aws, environment_of
from tests.support.registry import guarded_registry
from tests.support.s3 import S3Server, running_s3
from tests.support.scale import scaled

pytestmark = pytest.mark.s3

INSERTS = {"operation": "Insert"}
"""Without a look for their keys: a record that is taken twice is there twice."""
QUARANTINE = {"onUndecodable": "Quarantine", "maxErrorRatio": 1.0}
AGGREGATED = b"\xf3\x89\x9a\xc2" + b"\x0a\x02p1" + b"0" * 16


@pytest.fixture(scope="module")
def refused() -> set[str]:
    """Access keys that the store refuses."""
    return set()


@pytest.fixture(scope="module")
def answers() -> list[str]:
    """Errors that reads of shards end with, one after the other."""
    return []


@pytest.fixture(scope="module")
def places() -> list[str]:
    """Errors that questions for a place in a shard end with, one after the other."""
    return []


@pytest.fixture(scope="module")
def store(refused: set[str], answers: list[str], places: list[str]) -> Iterator[S3Server]:
    def with_refusals(app: Any) -> Any:
        def answer(environ: Any, start_response: Any) -> Iterable[bytes]:
            said = environ.get("HTTP_AUTHORIZATION", "")
            error = "UnrecognizedClientException" if any(f"Credential={key}/" in said for key in refused) else ""
            if environ.get("HTTP_X_AMZ_TARGET", "").endswith("GetRecords") and answers:
                error = answers.pop()
            if environ.get("HTTP_X_AMZ_TARGET", "").endswith("GetShardIterator") and places:
                error = places.pop()
            if "kinesis" in said and error:
                start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
                return [json.dumps({"__type": error, "message": "no"}).encode()]
            found: Iterable[bytes] = app(environ, start_response)
            return found

        return answer

    with as_of_aws(), running_s3(with_refusals) as found:
        yield found


@pytest.fixture(autouse=True)
def keys(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of(store).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def feed(store: S3Server, tmp_path: Path) -> KinesisFeed:
    return KinesisFeed(tmp_path, TestStream(store), work=dict(INSERTS))


def test_everything_is_taken_once_and_then_what_came(feed: KinesisFeed) -> None:
    feed.stream.put([row(i) for i in range(20)])
    first = feed.run()
    assert (first.outcome, first.figures["messagesRead"]) == ("Succeeded", 20), first.message
    assert feed.run().outcome == "NothingToDo"
    feed.stream.put([row(i) for i in range(20, 25)])
    assert feed.run().figures["messagesRead"] == 5
    assert feed.numbers() == list(range(25))


def test_a_stream_without_a_record_makes_no_table(feed: KinesisFeed) -> None:
    assert feed.run().outcome == "NothingToDo"
    assert not feed.location.exists()


def test_a_commit_has_so_many_rows_and_bytes_at_the_most(feed: KinesisFeed) -> None:
    feed.stream.put([row(i) for i in range(30)])
    assert feed.run(maxRows=10).figures["commits"] >= 3
    feed.stream.put([row(i, text="x" * 1000) for i in range(30, 40)])
    assert feed.run(maxBytes=1).figures["commits"] >= 2
    assert feed.numbers() == list(range(40))


def test_what_is_known_of_a_record_becomes_columns(feed: KinesisFeed) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    feed.stream.put([row(1)], key="a customer")
    feed.run(metadata=["stream", "shard", "sequence", "timestamp", "key"])
    (found,) = feed.rows("n", "_kinesis_stream", "_kinesis_shard", "_kinesis_sequence", "_kinesis_timestamp", "_kinesis_key")  # fmt: skip
    assert (found["_kinesis_stream"], found["_kinesis_key"]) == (feed.stream.name, "a customer")
    held = feed.checkpoint()["shards"][found["_kinesis_shard"]]
    assert held["after"] == found["_kinesis_sequence"]
    assert found["_kinesis_timestamp"] >= before


def test_it_begins_where_it_is_told_to(feed: KinesisFeed, tmp_path: Path) -> None:
    feed.stream.put([row(1)])
    time.sleep(1.1)
    moment = int(time.time() * 1000)
    time.sleep(0.1)
    feed.stream.put([row(2)])
    feed.run(startFrom={"position": "Timestamp", "timestampMillis": moment})
    assert feed.numbers() == [2]
    other = KinesisFeed(tmp_path / "other", feed.stream, work=dict(INSERTS))
    other.folder.mkdir()
    refused = other.run(startFrom={"position": "Latest"})
    assert refused.error_class == "InvalidRequest"
    assert "would never see a row" in refused.message
    other.run(startFrom={"position": "Timestamp", "timestampMillis": moment})
    third = KinesisFeed(other.folder, feed.stream, work={**INSERTS, "name": "late"}, runs=10)
    third.run(startFrom={"position": "Latest"})
    feed.stream.put([row(3)])
    assert third.run(startFrom={"position": "Latest"}).figures["messagesRead"] == 1


def test_a_shard_that_was_split_is_read_before_what_came_of_it(feed: KinesisFeed) -> None:
    """The latest of a key wins: of one key no older record may come behind a newer one."""
    feed.work["operation"] = "Upsert"
    stream, number = feed.stream, 0
    for turn in range(4):
        stream.put([row(0, version=number + i) for i in range(50)], key="one")
        number += 50
        if turn % 2 == 0:
            for name in stream.open_shards():
                stream.split(name)
        else:
            first, second = sorted(stream.open_shards(), key=lambda name: stream.state.shards[name].starting_hash)[:2]
            stream.merge(first, second)
    stream.put([row(0, version=number)], key="one")
    while feed.run(maxRows=7).outcome == "Succeeded":
        pass
    assert [each["version"] for each in feed.rows("n", "version")] == [number]
    held = feed.checkpoint()["shards"]
    closed = set(stream.state.shards) - set(stream.open_shards())
    assert {name for name, each in held.items() if each.get("ended")} == closed


def test_no_record_is_passed_over_or_doubled_while_shards_are_split_and_merged(feed: KinesisFeed) -> None:
    draw, sent, stream = random.Random(5), 0, feed.stream
    for _ in range(scaled(6, quick=3)):
        stream.put([row(i) for i in range(sent, sent + 40)])
        sent += 40
        name = draw.choice(stream.open_shards())
        stream.split(name)
        stream.put([row(i) for i in range(sent, sent + 40)])
        sent += 40
        if draw.random() < 0.5:
            order = sorted(stream.open_shards(), key=lambda each: stream.state.shards[each].starting_hash)
            stream.merge(*order[:2])
        if draw.random() < 0.7:
            feed.run(maxRows=draw.choice([5, 30, 1000]))
    feed.run()
    assert feed.numbers() == list(range(sent))


def test_shards_that_retention_took_leave_the_checkpoint(feed: KinesisFeed) -> None:
    feed.stream.put([row(1)], key="one")
    (name, *_) = [n for n, s in feed.stream.state.shards.items() if s.records]
    children = feed.stream.split(name)
    feed.run()
    del feed.stream.state.shards[name]
    feed.stream.put([row(2)], key="one")
    assert feed.run().outcome == "Succeeded"
    assert set(children) < set(feed.checkpoint()["shards"])
    assert name not in feed.checkpoint()["shards"]


@pytest.mark.parametrize("how", ["retention", "gone", "again"])
def test_what_is_lost_ends_the_ingest_unless_it_is_to_go_on(feed: KinesisFeed, how: str) -> None:
    feed.stream.put([row(1), row(2)], key="one")
    feed.run()
    feed.stream.put([row(3)], key="one")
    name = next(n for n, s in feed.stream.state.shards.items() if s.records)
    if how == "retention":
        feed.stream.trim(name, 3)
        feed.stream.state.retention_period_hours = 0
    elif how == "gone":
        feed.stream.split(name)
        del feed.stream.state.shards[name]
    else:
        feed.stream.client.delete_stream(StreamName=feed.stream.name)
        feed.stream.create()
    feed.stream.put([row(4)], key="one")
    lost = feed.run()
    assert lost.error_class == "DataLoss", lost.message
    words = {
        "retention": "the stream keeps",
        "gone": "is gone, and was not read",
        "again": "was deleted and made again",
    }
    assert words[how] in lost.message
    assert feed.run(onDataLoss="Continue").outcome == "Succeeded"
    assert feed.numbers() == [1, 2, 4]


@pytest.mark.parametrize("error", ["InvalidArgumentException", "ResourceNotFoundException"])
def test_a_record_that_its_shard_does_not_know_is_lost_by_its_name(
    feed: KinesisFeed, places: list[str], error: str
) -> None:
    feed.stream.put([row(1)], key="one")
    feed.run()
    feed.stream.put([row(2)], key="one")
    places.extend([error] * 2)
    lost = feed.run()
    places.clear()
    assert lost.error_class == "DataLoss", lost.message
    assert f"of stream {feed.stream.name} no longer knows its record" in lost.message
    assert feed.run().outcome == "Succeeded", "it is there again"
    assert feed.numbers() == [1, 2]


def test_a_record_that_cannot_be_read_ends_the_ingest_or_goes_to_the_error_table(feed: KinesisFeed) -> None:
    feed.stream.put([row(1), b"{", row(2)], key="one")
    failed = feed.run()
    assert failed.error_class == "InvalidData"
    assert f"the record of stream {feed.stream.name}, shard shardId-" in failed.message
    done = feed.run(work=QUARANTINE)
    assert (done.figures["recordsRefused"], feed.numbers()) == (1, [1, 2])
    (error,) = feed.errors()
    assert (error["value"], error["key"], error["stream"]) == (b"{", "one", feed.stream.name)
    assert feed.run(work=QUARANTINE).outcome == "NothingToDo"
    checks = {"expectations": [{"name": "positive", "sql": "n > 0", "onFail": "Quarantine"}], "maxErrorRatio": 1.0}
    feed.stream.put([row(-5), row(5)], key="one")
    feed.run(work={**QUARANTINE, **checks})
    assert (feed.numbers(), len(feed.errors())) == ([1, 2, 5], 2)


def test_records_that_a_producer_made_one_of_are_refused_by_name(feed: KinesisFeed) -> None:
    feed.stream.put([row(1), AGGREGATED], key="one")
    failed = feed.run()
    assert failed.error_class == "InvalidData"
    assert "holds several records of the Kinesis Producer Library" in failed.message
    feed.run(work=QUARANTINE)
    assert (feed.numbers(), len(feed.errors())) == ([1], 1)


def test_records_are_avro_or_raw_too(feed: KinesisFeed, tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "o",
        "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}],
    }
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    feed.form = "avro"
    feed.stream.put([b"\x04k7\x0e"])
    done = feed.run(avro={"schemaFile": f"file://{tmp_path}/order.avsc"})
    assert (done.outcome, feed.rows()) == ("Succeeded", [{"id": "k7", "n": 7}]), done.message
    lacks = feed.run()
    assert "format avro needs kinesis.avro.registry or kinesis.avro.schemaFile" in lacks.message


def test_records_of_json_with_the_id_of_a_schema_have_the_types_that_it_says(
    feed: KinesisFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "number"}}}
    monkeypatch.setenv("SCHEMA_REGISTRY_USERNAME", "reader")
    monkeypatch.setenv("SCHEMA_REGISTRY_PASSWORD", "se-cret")
    feed.stream.put([b'\0\0\0\0\x07{"id": "2026-01-31T00:00:00Z", "n": 7}'])
    with guarded_registry({7: {"schemaType": "JSON", "schema": json.dumps(schema)}}, "reader", "se-cret") as url:
        done = feed.run(json={"registry": url})
        assert (done.outcome, feed.rows()) == ("Succeeded", [{"id": "2026-01-31T00:00:00Z", "n": 7.0}]), done.message
        feed.stream.put([row(8)])
        bare = feed.run(json={"registry": url})
        assert "it does not begin with a zero byte and the id of a schema" in bare.message
        monkeypatch.setenv("SCHEMA_REGISTRY_PASSWORD", "wrong")
        feed.stream.put([b'\0\0\0\0\x07{"id": "b", "n": 9}'])
        refused = feed.run(json={"registry": url})
        assert refused.error_class in ("AccessDenied", "InvalidData")


def test_a_stream_that_is_not_there_and_keys_that_are_refused_are_told(
    feed: KinesisFeed, refused: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = feed.run(stream="nothing")
    assert (absent.error_class, "there is no stream nothing in region us-east-1" in absent.message) == ("InvalidRequest", True)  # fmt: skip
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    lacks = feed.run(region=None)
    assert (lacks.error_class, "correct kinesis.region" in lacks.message) == ("InvalidRequest", True)
    feed.stream.put([row(1)])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "old-key")
    refused.add("old-key")
    denied = feed.run()
    assert (denied.error_class, "they need kinesis:DescribeStreamSummary" in denied.message) == ("AccessDenied", True)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "new-key")
    assert feed.run().outcome == "Succeeded"


def test_reads_that_others_leave_no_room_for_and_iterators_that_are_too_old_are_done_again(
    feed: KinesisFeed, answers: list[str]
) -> None:
    feed.stream.put([row(i) for i in range(10)])
    answers += ["ProvisionedThroughputExceededException"] * 7 + ["ExpiredIteratorException"] * 2
    assert feed.run(maxRows=3).outcome == "Succeeded"
    assert (answers, feed.numbers()) == ([], list(range(10)))
    answers.append("InternalFailure")
    feed.stream.put([row(10)])
    assert feed.run().error_class == "InvalidRequest"
    assert feed.run().outcome == "Succeeded"


def test_a_run_that_ends_at_any_request_loses_and_doubles_nothing(
    feed: KinesisFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run ends at another request to the stream or the store, before it took effect or
    behind that."""
    left, sent, whole = [0], 0, 0

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] != 0:
                return call(*args, **more)
            if sent % 2:
                call(*args, **more)
            raise UnavailableError("the test ends it")

        return asked

    for owner, name in ((Stream, "_ask"), (LocalStorage, "put"), (LocalStorage, "put_if_absent")):
        monkeypatch.setattr(owner, name, failing(getattr(owner, name)))
    for point in range(1, 40):
        feed.stream.put([row(i) for i in range(sent, sent + 7)])
        sent += 7
        if point % 9 == 0:
            feed.stream.split(feed.stream.open_shards()[0])
        left[0] = point
        whole += feed.run(maxRows=5).outcome == "Succeeded"
    left[0] = 0
    feed.run()
    assert feed.numbers() == list(range(sent))
    assert whole < 39


def test_hudi_streamers_checkpoint_is_taken_over_and_written(feed: KinesisFeed) -> None:
    feed.stream.put([row(i) for i in range(10)])
    feed.run(maxRows=4)
    context = feed.open().context
    (*_, last) = load_timeline(context).commits
    extra = commit_metadata(context, last).extra_metadata
    text = extra.get("streamer.checkpoint.key.v2") or extra["deltastreamer.checkpoint.key"]
    assert text.startswith(f"{feed.stream.name},shardId-")
    other = KinesisFeed(feed.folder / "other", feed.stream, work=dict(INSERTS))
    other.folder.mkdir()
    table = create_table(f"file://{other.location}", pa.schema([("id", pa.string()), ("n", pa.int64())]), record_key="id", index={"type": "Simple"})  # fmt: skip
    key = next(key for key in ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key") if key in extra)
    write_hudi(table, pa.table({"id": ["x"], "n": pa.array([99], pa.int64())}), extra_metadata={key: text})
    feed.stream.put([row(10)])
    done = other.run()
    assert (done.outcome, other.numbers()) == ("Succeeded", [10, 99]), done.message


def test_a_quiet_stream_gets_a_commit_before_its_positions_are_too_old(
    feed: KinesisFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.stream.put([row(1)])
    feed.run()
    assert feed.run().outcome == "NothingToDo"
    monkeypatch.setattr(kinesis, "REFRESH", 10**9)
    time.sleep(0.1)
    assert feed.run().figures["commits"] == 1
