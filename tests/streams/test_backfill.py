"""A range of a topic beside the ingest that follows it: exactly what lies in it, once, never over
newer rows, with a checkpoint of its own; on a real broker."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions
from hudi_table.model.names import STREAMER_KEY_V2
from hudi_table.sources.checkpoints import current_positions
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.kubelet import eventually
from tests.support.manifests import manifest

TABLE = {"orderingFields": ["at"], "mergeMode": "EventTime"}
OLD = {"name": "old", "mode": "Backfill"}
DAY = 86_400_000


def order(number: int, at: int, **more: Any) -> bytes:
    return json.dumps({"id": f"k{number}", "n": number, "at": at, **more}).encode()


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=2), table=TABLE)


def ends(feed: Feed, *offsets: int) -> dict[str, Any]:
    told = ",".join([feed.topic, *(f"{partition}:{offset}" for partition, offset in enumerate(offsets))])
    return {"position": "Offsets", "offsets": [told]}


def begins(feed: Feed, *offsets: int) -> dict[str, Any]:
    return ends(feed, *offsets)


def held(feed: Feed, ingest: str = "old") -> Positions:
    found = current_positions(feed.open().context, ingest, None)
    assert found is not None
    return found.positions


def test_exactly_the_messages_of_the_range_are_taken_and_its_end_is_told(feed: Feed) -> None:
    for partition in (0, 1):
        feed.broker.produce(feed.topic, [order(100 * partition + i, i) for i in range(50)], partition=partition)
    done = feed.run(work=OLD, startFrom=begins(feed, 10, 0), endAt=ends(feed, 40, 5), maxRows=7)
    assert done.outcome == "Succeeded", done.message
    assert sorted(each["n"] for each in feed.rows()) == [*range(10, 40), *range(100, 105)]
    found = held(feed)
    assert dict(found.topics[feed.topic].offsets) == {0: 40, 1: 5}
    assert found.ended.startswith("Offsets:")


def test_of_a_partition_that_the_end_does_not_name_nothing_is_read(feed: Feed) -> None:
    for partition in (0, 1):
        feed.broker.produce(feed.topic, [order(100 * partition + i, i) for i in range(10)], partition=partition)
    feed.run(work=OLD, endAt=ends(feed, 4))
    assert sorted(each["n"] for each in feed.rows()) == [0, 1, 2, 3]


def test_once_its_end_was_reached_nobody_asks_the_brokers_any_more(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [order(i, i) for i in range(10)], partition=0)
    end = ends(feed, 10)
    feed.run(work=OLD, endAt=end)
    again = feed.run(work=OLD, endAt=end, brokers="127.0.0.1:9")
    assert again.outcome == "NothingToDo", again.message
    feed.broker.produce(feed.topic, [order(i, i) for i in range(10, 15)], partition=0)
    more = feed.run(work=OLD, endAt=ends(feed, 12))
    assert (more.outcome, len(feed.rows())) == ("Succeeded", 12)


def test_a_range_of_time_ends_before_its_moment(feed: Feed) -> None:
    now = int(time.time() * 1000)
    producer = feed.broker.producer()
    for i in range(30):
        producer.produce(feed.topic, order(i, i), partition=i % 2, timestamp=now - 30 * DAY + i * DAY)
    producer.flush(30)
    begin, end = now - 25 * DAY, now - 10 * DAY
    done = feed.run(
        work=OLD,
        startFrom={"position": "Timestamp", "timestampMillis": begin},
        endAt={"position": "Timestamp", "timestampMillis": end},
    )
    assert done.outcome == "Succeeded", done.message
    assert sorted(each["n"] for each in feed.rows()) == [*range(5, 20)]
    assert held(feed).ended == f"Timestamp:{end}"


def test_a_moment_that_has_not_come_is_no_end_yet(feed: Feed) -> None:
    end = {"position": "Timestamp", "timestampMillis": int(time.time() * 1000) + DAY}
    feed.broker.produce(feed.topic, [order(i, i) for i in range(5)])
    feed.run(work=OLD, endAt=end)
    assert held(feed).ended == ""
    feed.broker.produce(feed.topic, [order(i, i) for i in range(5, 8)])
    assert feed.run(work=OLD, endAt=end).outcome == "Succeeded"
    assert len(feed.rows()) == 8


def test_its_rows_do_not_overwrite_newer_ones_and_the_ingest_beside_it_keeps_its_place(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [order(i % 10, i, text=f"v{i}") for i in range(40)], partition=0)
    feed.run(startFrom=begins(feed, 30))
    newest = {each["id"]: each["text"] for each in feed.rows("id", "text")}
    before = held(feed, "feed")
    feed.run(work=OLD, endAt=ends(feed, 40))
    assert {each["id"]: each["text"] for each in feed.rows("id", "text")} == newest
    assert held(feed, "feed").batch == before.batch
    timeline = load_timeline(feed.open().context)
    theirs = [commit_metadata(feed.open().context, commit).extra_metadata for commit in timeline.commits]
    assert all((STREAMER_KEY_V2 in extra) == (key_of("feed") in extra) for extra in theirs if extra)
    feed.broker.produce(feed.topic, [order(77, 99, text="new")], partition=0)
    assert feed.run().figures["messagesRead"] == 1


@pytest.mark.parametrize("runs", [True, False], ids=["begun", "not begun"])
def test_of_a_checkpoint_that_is_set_of_it_hudi_streamer_is_told_nothing(feed: Feed, *, runs: bool) -> None:
    feed.broker.produce(feed.topic, [order(i, i) for i in range(40)], partition=0)
    feed.run(startFrom=begins(feed, 30))
    theirs = f"{feed.topic},0:40,1:0"
    feed.open().upsert(feed.open().scan().to_arrow().slice(0, 1), extra_metadata={STREAMER_KEY_V2: theirs})
    if runs:
        feed.run(work=OLD, endAt=ends(feed, 20))
    base = f"file://{feed.location}"
    assert hudictl(["checkpoint", "set", base, "old", f"{feed.topic},0:25,1:0", "--yes"]) == 0
    assert held(feed).topics[feed.topic].offsets[0] == 25
    context = feed.open().context
    extras = [commit_metadata(context, each).extra_metadata for each in load_timeline(context).commits]
    assert [each[STREAMER_KEY_V2] for each in extras if STREAMER_KEY_V2 in each][-1] == theirs


def test_it_is_taken_beside_a_driver_that_follows_the_topic(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [order(i, i) for i in range(200)], partition=0)
    driver = feed.start(
        work={"mode": "Continuous", "commitIntervalSeconds": 0.5}, startFrom={"position": "Offsets", "offsets": [f"{feed.topic},0:200,1:0"]}
    )  # fmt: skip
    try:
        feed.broker.produce(feed.topic, [order(1000 + i, i) for i in range(20)], partition=1)
        eventually(lambda: feed.begun() and len(feed.rows()) == 20, "the driver has committed")
        for number in range(5):
            feed.broker.produce(feed.topic, [order(2000 + number, number)], partition=1)
            done = feed.run(work=OLD, endAt=ends(feed, 40 * (number + 1)))
            assert done.outcome in ("Succeeded", "Failed"), done.message
            if done.outcome == "Failed":
                assert done.error_class == "WriteConflict", done.message
                feed.run(work=OLD, endAt=ends(feed, 40 * (number + 1)))
        eventually(lambda: len(feed.rows()) == 225, "both have taken theirs")
    finally:
        driver.send_signal(signal.SIGTERM)
        driver.wait(60)


@pytest.mark.parametrize(
    ("work", "table", "kafka", "said"),
    [
        ({"mode": "Backfill"}, {}, {}, "needs kafka.endAt, and no other mode has it"),
        ({"mode": "Once"}, {}, {"endAt": 1}, "needs kafka.endAt, and no other mode has it"),
        (OLD | {"operation": "Insert"}, {}, {"endAt": 1}, "needs operation Upsert"),
        (OLD, {"orderingFields": []}, {"endAt": 1}, "needs operation Upsert, orderingFields"),
        (OLD, {"mergeMode": "CommitTime"}, {"endAt": 1}, "mergeMode EventTime"),
        (OLD, {}, {"endAt": 1, "startFrom": {"position": "Latest"}}, "does not begin at Latest"),
        (OLD, {}, {"endAt": {"position": "Offsets", "offsets": ["orders"]}}, "kafka.endAt.offsets is 'orders'"),
        (OLD, {}, {"endAt": {"position": "Offsets"}}, "needs kafka.endAt.offsets"),
        (OLD, {}, {"endAt": 1, "startFrom": 3}, "does not lie behind kafka.startFrom"),
        (
            OLD,
            {},
            {
                "startFrom": {"position": "Timestamp", "timestampMillis": 5},
                "endAt": {"position": "Timestamp", "timestampMillis": 5},
            },
            "does not lie behind kafka.startFrom",
        ),
        (OLD, {}, {"endAt": {"position": "Latest"}}, "kafka.endAt.position is 'Latest'"),
        (OLD, {}, {"endAt": {"position": "Offsets", "offsets": ["other,0:1"]}}, "names topic other, which is none"),
    ],
)
def test_what_could_overwrite_newer_rows_or_has_no_end_is_refused(
    feed: Feed, work: dict[str, Any], table: dict[str, Any], kafka: dict[str, Any], said: str
) -> None:
    feed.broker.produce(feed.topic, [order(i, i) for i in range(4)])
    if kafka.get("endAt") == 1:
        kafka = kafka | {"endAt": ends(feed, 1)}
    if kafka.get("startFrom") == 3:
        kafka = kafka | {"startFrom": begins(feed, 3)}
    feed.table = feed.table | table
    refused = feed.run(work=work, **kafka)
    assert (refused.outcome, refused.error_class) == ("Failed", "InvalidRequest"), refused.message
    assert said in refused.message
    assert not feed.location.exists()


def test_a_manifest_takes_the_range_and_says_that_it_is_in_the_table(feed: Feed, tmp_path: Path) -> None:
    feed.broker.produce(feed.topic, [order(i, i) for i in range(20)], partition=0)
    kafka = {"brokers": feed.broker.address, "topics": [feed.topic]}
    document = manifest(
        "orders",
        location=f"file://{feed.location}",
        recordKey=["id"],
        orderingFields=["at"],
        index={"type": "Bucket", "buckets": 2},
        ingest=[
            {
                "name": "old",
                "mode": "Backfill",
                "source": {"type": "Kafka", "format": "json", "kafka": {**kafka, "endAt": ends(feed, 15)}},
            }
        ],
    )
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(document))

    def applied() -> dict[str, Any]:
        return dict(LocalRuntime([path], tmp_path / "state", SystemClock(), lambda _: None).run()[0]["status"])

    first = applied()
    assert first["data"]["records"] == 15
    assert (first["ingest"][0]["pendingMessages"], len(first["runs"])) == (0, 1)
    feed.broker.produce(feed.topic, [order(i, i) for i in range(20, 25)], partition=0)
    again = applied()
    assert len(again["runs"]) == 1
    fresh = next(each for each in again["conditions"] if each["type"] == "Fresh")
    assert fresh["status"] == "True", fresh
