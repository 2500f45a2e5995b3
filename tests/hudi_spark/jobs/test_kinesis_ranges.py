"""Ranges of a stream of Kinesis beside the ingest that follows it: what arrived in one is taken
once, with a checkpoint of its own. The streams are moto's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hudi_table.sources.checkpoints import all_checkpoints
from tests.support.feeds import row
from tests.support.kinesis import KinesisFeed, TestStream, as_of_aws, environment_of
from tests.support.s3 import S3Server, running_s3

pytestmark = pytest.mark.s3

ORDERED = {"orderingFields": ["n"], "mergeMode": "EventTime"}


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with as_of_aws(), running_s3() as found:
        yield found


@pytest.fixture
def feed(store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KinesisFeed:
    for name, value in environment_of(store).items():
        monkeypatch.setenv(name, value)
    return KinesisFeed(tmp_path, TestStream(store), table=dict(ORDERED))


def ranged(feed: KinesisFeed, until: datetime, since: datetime | None = None, **work: Any) -> Any:
    """A run of mode Backfill."""
    within = {"until": until.isoformat(), **({"since": since.isoformat()} if since is not None else {})}
    source = feed.spec().work["source"]
    return feed.run(work={"name": "old", "mode": "Backfill", "source": {**source, "range": within}, **work})


def test_records_of_a_range_are_taken_once_beside_the_ingest_that_follows(feed: KinesisFeed) -> None:
    marks = []
    for number in range(3):
        feed.stream.put([row(i) for i in range(10 * number, 10 * number + 10)])
        time.sleep(0.05)
        marks.append(datetime.now(UTC))
        time.sleep(0.05)
    done = ranged(feed, marks[1], marks[0])
    assert done.outcome == "Succeeded", done.message
    assert feed.numbers() == list(range(10, 20))
    assert ranged(feed, marks[1], marks[0]).outcome == "NothingToDo"
    keys = [key for key, _, _ in all_checkpoints(feed.open().context)]
    assert keys == ["lakeops.ingest.old"], "Hudi Streamer's key is of the ingest beside it"
    assert feed.run().outcome == "Succeeded"
    assert feed.numbers() == list(range(30))


def test_a_range_goes_with_upserts_that_newer_rows_win_and_begins_where_it_says(feed: KinesisFeed) -> None:
    now = datetime.now(UTC)
    feed.table = {}
    assert "mode Backfill needs operation Upsert, orderingFields" in ranged(feed, now).message
    feed.table = dict(ORDERED)
    assert "needs operation Upsert" in ranged(feed, now, operation="Insert").message
    source = feed.spec().work["source"]
    source["kinesis"]["startFrom"] = {"position": "Latest"}
    refused = feed.run(work={"mode": "Backfill", "source": {**source, "range": {"until": now.isoformat()}}})
    assert "leave kinesis.startFrom out" in refused.message


def test_a_range_that_was_read_needs_the_stream_no_more(feed: KinesisFeed) -> None:
    feed.stream.put([row(i) for i in range(10)])
    time.sleep(0.05)
    mark = datetime.now(UTC)
    time.sleep(0.05)
    feed.stream.put([row(i) for i in range(10, 40)])
    assert ranged(feed, mark).outcome == "Succeeded"
    for shard in feed.stream.open_shards():
        feed.stream.trim(shard, 40)
    assert ranged(feed, mark).outcome == "NothingToDo"
    assert feed.numbers() == list(range(10))
