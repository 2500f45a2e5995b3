"""A table that Hudi Streamer and an ingest of ours feed in turns, from one topic: each goes on
where the other stopped."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.model.names import STREAMER_KEY
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.streamer import Streamer

pytestmark = pytest.mark.at_scale(2)
TURNS, MESSAGES, KEYS = 5, 60, 40
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
SIMPLE = {
    "hoodie.index.type": "SIMPLE",
    "hoodie.datasource.write.partitionpath.field": "city",
}


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (BUCKETS, {"index": {"type": "Bucket", "buckets": 2}}),
        (SIMPLE, {"index": {"type": "Simple"}, "partitionBy": [{"field": "city"}]}),
    ],
    ids=["buckets", "partitions"],
)
def test_hudi_streamer_and_an_ingest_take_turns(
    kind: str, theirs: dict[str, str], ours: dict[str, object], broker: Broker, tmp_path: Path,
    figure: Callable[[int, str], None],
) -> None:  # fmt: skip
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), {"type": kind, "orderingFields": ["n"], **ours})
    feed.location.parent.mkdir()
    fields = [{"name": name, "type": type_} for name, type_ in (("id", "string"), ("city", "string"), ("n", "long"))]
    table_type = {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}[kind]
    streamer = Streamer(tmp_path, broker.address, feed.topic, feed.location, fields, theirs, table_type)
    chance, newest = random.Random(f"{kind} {sorted(theirs)}"), {}

    for turn in range(TURNS):
        messages = []
        for number in range(turn * MESSAGES, (turn + 1) * MESSAGES):
            key = f"k{chance.randrange(KEYS)}"
            newest[key] = {"id": key, "city": f"c{int(key[1:]) % 3}", "n": number}
            messages.append((key, json.dumps(newest[key]).encode()))
        broker.produce(feed.topic, messages)
        if turn % 2:
            feed.run()
        else:
            streamer.run()
        assert feed.rows("id", "city", "n") == sorted(newest.values(), key=lambda row: str(row["id"]))

    context = feed.open().context
    held = (commit_metadata(context, each).extra_metadata.get(STREAMER_KEY) for each in load_timeline(context).commits)
    topic, *offsets = [text for text in held if text][-1].split(",")
    assert (topic, sum(int(place.partition(":")[2]) for place in offsets)) == (feed.topic, TURNS * MESSAGES)
    figure(TURNS, "turns of Hudi Streamer and an ingest")


def test_a_job_that_was_told_where_to_begin_is_given_back_by_the_same_command(broker: Broker, tmp_path: Path) -> None:
    index: dict[str, object] = {"index": {"type": "Bucket", "buckets": 2}}
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["n"], **index})
    feed.location.parent.mkdir()
    fields = [{"name": name, "type": type_} for name, type_ in (("id", "string"), ("n", "long"))]
    begin = f"{feed.topic},0:3"
    streamer = Streamer(tmp_path, broker.address, feed.topic, feed.location, fields, BUCKETS, checkpoint=begin)
    for turn in range(4):
        numbers = range(turn * 10, turn * 10 + 10)
        broker.produce(feed.topic, [json.dumps({"id": f"k{n:02}", "n": n}).encode() for n in numbers])
        if turn % 2:
            feed.run()
        else:
            streamer.run()
        context = feed.open().context
        newest = commit_metadata(context, load_timeline(context).commits[-1])
        inserts = sum(each.num_inserts for each in newest.stats)
        # What is read again would be an update.
        updates = sum(each.num_update_writes for each in newest.stats)
        assert (inserts, updates) == (10 if turn else 7, 0), turn
    assert [each["n"] for each in feed.rows("id", "n")] == list(range(3, 40))
