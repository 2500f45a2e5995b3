"""A table that its database empties: by choice that ends the ingest, empties the table here too, or
is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import CommitResult, open_table
from hudi_table.errors import UnavailableError
from hudi_table.model.job.jobspec import JobResult
from hudi_table.services import ingesting
from hudi_table.write.operations import WriteRequest
from tests.streams.test_debezium import WIDE, messages, orders, run
from tests.support.feeds import Feed
from tests.support.kafka import Broker

SAMPLE = messages("schema-orders")
PLACE = 17
"""Of the truncate. A row comes behind it."""
KINDS = [(kind, version) for kind in ("CopyOnWrite", "MergeOnRead") for version in (6, 9)]


@pytest.fixture(params=KINDS, ids=lambda each: f"{each[0]} {each[1]}")
def feed(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Feed:
    kind, version = request.param
    table = {"orderingFields": ["_event_lsn"], "type": kind, "tableVersion": version}
    return Feed(tmp_path, broker, broker.topic(partitions=1), table)


def taken(feed: Feed, what: str, source: dict[str, Any] | None = None) -> JobResult:
    return run(feed, source={**(source or WIDE), "debezium": {"onTruncate": what}})


def commits(feed: Feed) -> int:
    return len(feed.open().history())


@pytest.mark.thinned("values")
@pytest.mark.parametrize("cut", [0, 5, PLACE])
def test_all_rows_of_before_are_gone_with_the_commit_that_takes_the_truncate(feed: Feed, cut: int) -> None:
    feed.broker.produce(feed.topic, SAMPLE[:cut])
    if cut:
        assert taken(feed, "Delete").outcome == "Succeeded"
    feed.broker.produce(feed.topic, SAMPLE[cut:])
    done = taken(feed, "Delete")
    assert done.outcome == "Succeeded", done.message
    assert set(orders(feed)) == {6}
    assert done.figures["messagesRead"] == len([each for each in SAMPLE[cut:] if each[1] is not None])
    # It comes again, as of a connector that starts anew, and takes nothing of what came behind it.
    feed.broker.produce(feed.topic, SAMPLE[PLACE - 1 : PLACE + 1])
    assert taken(feed, "Delete").outcome == "Succeeded"
    assert set(orders(feed)) == {6}


@pytest.mark.thinned("values")
def test_a_row_that_comes_back_behind_a_truncate_is_there(feed: Feed) -> None:
    feed.broker.produce(feed.topic, SAMPLE[:PLACE])
    assert taken(feed, "Delete").outcome == "Succeeded"
    key, value = SAMPLE[PLACE + 1]
    assert value is not None
    again = (key, value.replace(b'"id": 6', b'"id": 5'))
    feed.broker.produce(feed.topic, [SAMPLE[PLACE], again])
    assert taken(feed, "Delete").outcome == "Succeeded"
    assert set(orders(feed)) == {5}


@pytest.mark.thinned("values")
def test_rows_of_before_go_by_as_a_stream_in_a_commit_of_their_own_which_a_further_attempt_does_not_repeat(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.broker.produce(feed.topic, SAMPLE[:PLACE])
    assert taken(feed, "Delete").outcome == "Succeeded"
    before = commits(feed)
    feed.broker.produce(feed.topic, SAMPLE[PLACE:])
    written, real = list[tuple[str, int]](), ingesting.commit_behind

    def ends_behind_the_deletes(ctx: Any, batches: Any, request: WriteRequest, *more: Any) -> CommitResult:
        table = pa.RecordBatchReader.from_stream(batches).read_all()
        written.append((request.operation, len(table)))
        if request.operation != "delete" and len(written) == 2:
            raise UnavailableError("the store is away")
        return real(ctx, table.to_reader(), request, *more)

    monkeypatch.setattr(ingesting, "commit_behind", ends_behind_the_deletes)
    assert taken(feed, "Delete").error_class == "Unavailable"
    assert orders(feed) == {}
    done = taken(feed, "Delete")
    assert done.outcome == "Succeeded", done.message
    assert written == [("delete", 3), ("upsert", 1), ("delete", 0), ("upsert", 1)]
    assert (set(orders(feed)), commits(feed)) == ({6}, before + 2)


@pytest.mark.thinned("values")
def test_it_is_passed_over_where_that_is_asked(feed: Feed) -> None:
    feed.broker.produce(feed.topic, SAMPLE)
    done = taken(feed, "Ignore")
    assert done.outcome == "Succeeded", done.message
    assert set(orders(feed)) == {1, 20, 5, 6}
    feed.broker.produce(feed.topic, SAMPLE[PLACE : PLACE + 1])
    assert taken(feed, "Ignore").outcome == "Succeeded"
    assert set(orders(feed)) == {1, 20, 5, 6}


@pytest.mark.thinned("values")
def test_it_ends_the_ingest_or_goes_to_the_error_table_unless_something_is_asked(feed: Feed) -> None:
    feed.broker.produce(feed.topic, SAMPLE)
    failed = run(feed)
    assert failed.error_class == "InvalidData"
    assert "offset 17 cannot be read as json: the table was truncated" in failed.message
    assert "give source.debezium.onTruncate Delete" in failed.message
    done = run(feed, {"onUndecodable": "Quarantine", "maxErrorRatio": 0.05})
    assert done.figures["recordsRefused"] == 1
    kept: pa.Table = open_table(f"file://{feed.location}_errors").scan(columns=["offset"]).to_arrow()
    assert kept["offset"].to_pylist() == [17]
    assert set(orders(feed)) == {1, 20, 5, 6}


def test_a_binlog_tells_truncates_too(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["_event_seq"]})
    sample = messages("maria-schema-orders")
    for part in (sample[:9], sample[9:]):
        broker.produce(feed.topic, part)
        done = taken(feed, "Delete")
        assert done.outcome == "Succeeded", done.message
    assert set(orders(feed)) == {6}


def test_a_truncate_amid_several_partitions_is_refused_for_rows_of_before_may_come_behind_it(
    broker: Broker, tmp_path: Path
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), {"orderingFields": ["_event_lsn"]})
    broker.produce(feed.topic, SAMPLE[:3], partition=0)
    assert taken(feed, "Delete").outcome == "Succeeded"
    broker.produce(feed.topic, [SAMPLE[PLACE]], partition=1)
    refused = taken(feed, "Delete")
    assert refused.error_class == "InvalidData"
    assert "its events lie in 2 partitions" in refused.message
    assert set(orders(feed)) == {1, 2, 3}
    broker.produce(feed.topic, [SAMPLE[3]], partition=0)
    work = {"onUndecodable": "Quarantine", "maxErrorRatio": 0.5}
    aside = run(feed, work, source={**WIDE, "debezium": {"onTruncate": "Delete"}})
    assert (aside.outcome, aside.figures["recordsRefused"]) == ("Succeeded", 1), aside.message
    assert orders(feed)[1][2] == "A…10000", "the others are as ever"
