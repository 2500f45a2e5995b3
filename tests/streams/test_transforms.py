"""Transforms on the way from a real broker into a table, without a JVM."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=1))


def steps(*sql: str) -> dict[str, Any]:
    return {"transform": [{"sql": each} for each in sql]}


def test_a_select_makes_key_and_columns_of_the_messages(feed: Feed) -> None:
    sql = "select concat_ws('-', id, cast(n as int)) id, cast(n as double) n, _kafka_offset at from source where n > 1"
    feed.broker.produce(feed.topic, [row(i) for i in range(5)])
    done = feed.run(steps(sql), metadata=["offset"])
    assert (done.figures["messagesRead"], done.figures["recordsInserted"]) == (5, 3), done.message
    assert feed.rows("id", "n", "at")[0] == {"id": "k2-2", "n": 2.0, "at": 2}
    # JSON writes whole numbers and others: they are read as they come, and cast as is said.
    feed.broker.produce(feed.topic, [b'{"id":"k9","n":9.5}'])
    assert feed.run(steps(sql), metadata=["offset"]).outcome == "Succeeded"
    assert feed.rows("id", "n", "at")[-1] == {"id": "k9-9", "n": 9.5, "at": 5}


def test_messages_that_a_condition_leaves_out_are_read_all_the_same(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(i) for i in range(5)])
    assert feed.run(steps("select * from source where n > 100")).figures["recordsInserted"] == 0
    assert feed.run(steps("select * from source where n > 100")).outcome == "NothingToDo"
    feed.broker.produce(feed.topic, [row(200)])
    assert feed.run(steps("select * from source where n > 100")).figures["recordsInserted"] == 1


def test_the_latest_of_a_key_wins_behind_a_transform(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(n % 50, version=n) for n in range(20_000)])
    done = feed.run(steps("select id, n, version * 2 v from source where n >= 0"))
    assert done.outcome == "Succeeded", done.message
    assert {each["id"]: each["v"] for each in feed.rows("id", "v")} == {f"k{n}": 2 * (19_950 + n) for n in range(50)}
    refused = feed.run(steps("select distinct * from source"))
    assert "transform 1 groups, sorts, unites or nests" in refused.message


def test_tombstones_go_through_a_transform_that_hands_them_on(feed: Feed) -> None:
    sql = "select *, n * 2 m from source where n >= 0 or _hoodie_is_deleted"
    feed.broker.produce(feed.topic, [(b"k1", row(1)), (b"k2", row(2)), (b"k1", None), (b"k3", None)])
    assert feed.run(steps(sql), tombstones="Delete").outcome == "Succeeded"
    assert feed.rows("id", "m") == [{"id": "k2", "m": 4}]
    feed.broker.produce(feed.topic, [(b"k2", None)])
    assert feed.run(steps(sql), tombstones="Delete").figures["recordsDeleted"] == 1
    refused = feed.run(steps("select * from source where n >= 0"), tombstones="Delete")
    assert (refused.error_class, "may leave out rows that delete others" in refused.message) == ("InvalidRequest", True)


def test_what_is_wrong_is_told_before_a_message_is_read(feed: Feed) -> None:
    """The brokers are not even asked: there are none."""
    for chain, words in [
        (steps("select hash(n) id from source"), "uses HASH"),
        (steps("select * from other"), "may read only source"),
        ({"transform": [{"sql": "select 1", "flatten": {}}]}, "one of them"),
        ({"transform": [{"function": "mine"}]}, "no transform function 'mine'"),
    ]:
        refused = feed.run(chain, brokers="127.0.0.1:1")
        assert (refused.error_class, words in refused.message) == ("InvalidRequest", True), refused.message


def test_what_fails_in_a_row_leaves_no_table_and_no_checkpoint(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1), row(0)])
    failed = feed.run(steps("select id, 1 / n r from source"))
    assert (failed.error_class, "division by zero" in failed.message) == ("InvalidData", True)
    assert not list(feed.folder.rglob("hoodie.properties"))
    absent = feed.run(steps("select id, colour from source"))
    assert (absent.error_class, "colour" in absent.message) == ("InvalidRequest", True)
    assert feed.run(steps("select id, n from source")).figures["recordsInserted"] == 2


def test_a_declared_column_is_there_though_no_message_has_it(feed: Feed) -> None:
    work = steps("select id, cast(price as double) price, day from source")
    work["source"] = {
        "type": "Kafka", "format": "json", "columns": {"price": "decimal(10,2)", "day": "date"},
        "kafka": {"brokers": feed.broker.address, "topics": [feed.topic]},
    }  # fmt: skip
    feed.broker.produce(feed.topic, [b'{"id":"a"}'])
    assert feed.run(work).outcome == "Succeeded"
    feed.broker.produce(feed.topic, [b'{"id":"b","price":1.25,"day":"2024-02-29"}'])
    assert feed.run(work).outcome == "Succeeded"
    first, second = feed.rows("id", "price", "day")
    assert (first["price"], second["price"], str(second["day"])) == (None, 1.25, "2024-02-29")


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.at_scale(2)
def test_once_with_a_select_and_ten_thousand_rows_spends_two_seconds_at_most(
    feed: Feed, figure: Callable[[float, str], None]
) -> None:
    """From the start of a process to its end, on one processor: what else the machine does is no
    matter."""
    feed.broker.produce(feed.topic, [row(i, text="x" * 100) for i in range(10_000)])
    took = []
    for _ in range(3):
        began = spent()
        driver = feed.start(steps("select *, n * 2 m from source where n >= 0") | {"name": f"feed{feed.runs}"})
        assert driver.wait(60) == 0, feed.log()
        took.append(spent() - began)
        assert feed.result().figures["messagesRead"] == 10_000
    figure(round(min(took), 2), "processor seconds of a Once ingest of 10,000 rows with a transform")
    assert min(took) <= 2.0, took
