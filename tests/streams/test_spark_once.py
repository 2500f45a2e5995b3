"""A `Once` ingest whose messages are read in tasks of Spark: the table is the one that a single
process makes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import psutil
import pytest

from hudi_table.api import open_table
from hudi_table.errors import HudiError
from hudi_table.model.job.jobspec import JobResult
from hudi_table.model.job.positions import Skipped, SkipReason
from hudi_table.sources.checkpoints import current_positions
from tests.streams.test_debezium import BEFORE_TRUNCATE, WIDE, messages, orders
from tests.streams.test_debezium import run as run_events
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker


class Pair:
    """One topic into two tables, by each engine."""

    def __init__(self, broker: Broker, folder: Path, partitions: int = 2, **more: Any) -> None:
        self.topic = broker.topic(partitions=partitions)
        self.here = Feed(folder / "here", broker, self.topic, **more)
        self.tasks = Feed(folder / "tasks", broker, self.topic, **more, engine="Spark")
        for feed in (self.here, self.tasks):
            feed.folder.mkdir()

    def run(self, work: dict[str, Any] | None = None, **kafka: Any) -> tuple[JobResult, JobResult]:
        return self.here.run(work, **kafka), self.tasks.run(work, **kafka)

    def assert_equal(self, *columns: str) -> None:
        tables = [feed.open().scan(columns=list(columns) or None).to_arrow() for feed in (self.here, self.tasks)]
        meta = [name for name in tables[0].column_names if name.startswith("_hoodie_")]
        mine, other = (table.drop_columns(meta) for table in tables)
        assert set(mine.column_names) == set(other.column_names)
        assert {f.name: f.type for f in mine.schema} == {f.name: f.type for f in other.schema}
        by_id = [("id", "ascending")]
        assert other.select(mine.column_names).sort_by(by_id).to_pylist() == mine.sort_by(by_id).to_pylist()


@pytest.fixture
def pair(broker: Broker, tmp_path: Path) -> Pair:
    return Pair(broker, tmp_path)


def positions(feed: Feed) -> dict[int, int]:
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    return dict(held.positions.topics[feed.topic].offsets)


def test_both_engines_make_the_same_table_of_a_topic(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [row(i, at="2026-01-02T03:04:05Z", deep={"a": [i]}) for i in range(300)])
    here, tasks = pair.run()
    assert tasks.outcome == "Succeeded", tasks.message
    assert tasks.figures["messagesRead"] == here.figures["messagesRead"] == 300
    pair.assert_equal()
    broker.produce(pair.topic, [row(i, at="2026-01-02T03:04:06Z", new=i / 2) for i in range(250, 400)])
    pair.run()
    pair.assert_equal()
    assert positions(pair.here) == positions(pair.tasks)
    assert pair.tasks.run().outcome == "NothingToDo"


def test_both_engines_refuse_columns_alike(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [row(i) for i in range(20)])
    pair.run({"schemaPolicy": "Refuse"})
    broker.produce(pair.topic, [row(i, city="x") for i in range(20, 40)])
    here, tasks = pair.run({"schemaPolicy": "Refuse"})
    assert (here.error_class, tasks.error_class) == ("InvalidSchema", "InvalidSchema"), tasks.message
    assert tasks.message == here.message
    assert positions(pair.tasks) == positions(pair.here)
    pair.run({"schemaPolicy": "AddColumns"})
    pair.assert_equal()


def test_a_value_is_of_one_type_whichever_task_reads_it(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [row(i, x=i, at="2026-01-02") for i in range(10)], partition=0)
    broker.produce(pair.topic, [row(i, x=i / 4, at="today") for i in range(10, 20)], partition=1)
    pair.run()
    pair.assert_equal()
    assert pair.tasks.rows("id", "at")[0]["at"] == "2026-01-02"


def test_of_messages_of_one_key_the_last_one_is_in_the_table(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [(b"a", row(number % 7, turn=number)) for number in range(40_000)], partition=1)
    pair.run()
    pair.assert_equal()
    # Now it is known how large a message is, so that tasks share the partition.
    broker.produce(pair.topic, [(b"a", row(number % 7, turn=-number)) for number in range(40_000)], partition=1)
    pair.run(maxRows=25_000)
    pair.assert_equal()
    assert {each["turn"] for each in pair.tasks.rows("id", "turn")} == {-number for number in range(39_993, 40_000)}


def test_a_batch_is_no_larger_than_asked_for(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [row(i) for i in range(100)])
    done = pair.tasks.run(maxRows=40)
    assert (done.figures["commits"], done.figures["messagesRead"]) == (3, 100), done.message
    broker.produce(pair.topic, [row(i, text="x" * 10_000) for i in range(40)])
    assert pair.tasks.run(maxBytes=100_000).figures["commits"] >= 3
    assert len(pair.tasks.rows()) == 100


def test_a_tombstone_deletes_and_metadata_stand_beside_the_values(broker: Broker, tmp_path: Path) -> None:
    pair = Pair(broker, tmp_path, partitions=1)
    asked: dict[str, Any] = {"tombstones": "Delete", "metadata": ["topic", "partition", "offset", "timestamp", "key"]}
    broker.produce(
        pair.topic, [(b"k1", row(1)), (b"k2", row(2)), (b"k1", None), (b"k2", None), (b"k2", b'{"id":"k2","n":22}')]
    )
    _, tasks = pair.run(**asked)
    assert tasks.outcome == "Succeeded", tasks.message
    pair.assert_equal()
    assert [each["n"] for each in pair.tasks.rows()] == [22]
    broker.produce(pair.topic, [(b"k2", None)])
    assert pair.run(**asked)[1].figures["recordsDeleted"] == 1
    pair.assert_equal()


def test_what_cannot_be_read_or_does_not_hold_is_refused_alike(broker: Broker, pair: Pair) -> None:
    for partition in (0, 1):
        good = [row(100 * partition + i, fare=i) for i in range(60)]
        broker.produce(pair.topic, [*good[:20], b"{", *good[20:]], partition=partition)
    failed = pair.run()
    assert [each.error_class for each in failed] == ["InvalidData"] * 2
    assert all("offset 20 cannot be read as json" in each.message for each in failed), failed[1].message
    work = {
        "onUndecodable": "Quarantine",
        "maxErrorRatio": 0.05,
        "expectations": [{"name": "sound", "sql": "fare <> 7", "onFail": "Quarantine"}],
        "transform": [{"sql": "SELECT id, n, fare * 2 AS twice FROM source WHERE fare > 3"}],
    }
    done = pair.run(work)
    assert done[1].outcome == "Succeeded", done[1].message
    assert [each.figures["recordsRefused"] for each in done] == [4, 4]
    pair.assert_equal()
    kept = [open_table(f"file://{feed.location}_errors").scan().to_arrow() for feed in (pair.here, pair.tasks)]
    columns = ["topic", "partition", "offset", "rule", "reason", "value"]
    order = [("partition", "ascending"), ("offset", "ascending")]
    mine, other = (table.select(columns).sort_by(order).to_pylist() for table in kept)
    assert other == mine
    many = {**work, "maxErrorRatio": 0.0}
    broker.produce(pair.topic, [b"{"] * 11, partition=0)
    assert all("maxErrorRatio 0.0 lets through" in each.message for each in pair.run(many))


def test_records_of_avro_are_read_by_a_schema_file(broker: Broker, tmp_path: Path) -> None:
    pair = Pair(broker, tmp_path, form="avro")
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]
    schema = {
        "type": "record",
        "name": "r",
        "fields": [*fields, {"name": "tags", "type": {"type": "array", "items": "string"}}],
    }
    (tmp_path / "r.avsc").write_text(json.dumps(schema))
    for number in range(20):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"id": f"k{number}", "n": number, "tags": ["x"]})
        broker.produce(pair.topic, [out.getvalue()])
    _, tasks = pair.run(avro={"schemaFile": f"file://{tmp_path}/r.avsc"})
    assert tasks.figures["messagesRead"] == 20, tasks.message
    pair.assert_equal()


def test_a_commit_of_tasks_says_what_it_passes_over(broker: Broker, pair: Pair) -> None:
    feed = pair.tasks
    feed.engine = "Local"
    broker.produce(pair.topic, [row(i) for i in range(10)], partition=0)
    feed.run()
    broker.produce(pair.topic, [row(i) for i in range(10, 25)], partition=0)
    broker.forget(pair.topic, 0, 20)
    feed.engine = "Spark"
    assert feed.run(onDataLoss="Continue").outcome == "Succeeded"
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    assert held.positions.skipped == (Skipped(SkipReason.DELETED, pair.topic, 0, 10, 20),)


def test_change_events_of_a_database_make_the_same_table(broker: Broker, tmp_path: Path) -> None:
    pair = Pair(broker, tmp_path, partitions=1, table={"orderingFields": ["_event_lsn"]})
    sample = messages("schema-orders")
    source = {**WIDE, "debezium": {"onTruncate": "Delete"}}
    for step in (slice(0, 3), slice(3, 4), slice(4, 17)):
        broker.produce(pair.topic, sample[step])
        for feed in (pair.here, pair.tasks):
            done = run_events(feed, source=source)
            assert done.outcome == "Succeeded", done.message
        pair.assert_equal()
    assert orders(pair.tasks) == BEFORE_TRUNCATE
    # The database empties its table.
    broker.produce(pair.topic, sample[17:])
    for feed in (pair.here, pair.tasks):
        done = run_events(feed, source=source)
        assert (done.outcome, done.figures["messagesRead"]) == ("Succeeded", 2), done.message
    pair.assert_equal()
    assert orders(pair.tasks).keys() == {6}


def test_partitions_and_topics_that_come_later_are_read_from_their_beginning(broker: Broker, pair: Pair) -> None:
    broker.produce(pair.topic, [row(i) for i in range(10)])
    pair.run()
    broker.add_partitions(pair.topic, 4)
    broker.produce(pair.topic, [row(i) for i in range(10, 20)], partition=3)
    pair.run()
    pair.assert_equal()
    assert positions(pair.tasks) == positions(pair.here)
    # What one engine has read the other one goes on from.
    broker.produce(pair.topic, [row(i) for i in range(20, 30)])
    pair.here.engine, pair.tasks.engine = "Spark", "Local"
    assert [each.figures["recordsInserted"] for each in pair.run()] == [10, 10]
    pair.assert_equal()


def test_a_driver_follows_a_topic_in_tasks_and_ends_when_told(broker: Broker, pair: Pair) -> None:
    feed = pair.tasks
    broker.produce(pair.topic, [row(i) for i in range(10)])
    driver = feed.start({"mode": "Continuous", "commitIntervalSeconds": 2})
    wait_for(lambda: feed.begun() and len(feed.rows()) == 10)
    broker.produce(pair.topic, [row(i) for i in range(5, 20)])
    wait_for(lambda: len(feed.rows()) == 20)
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(60) == 0, feed.log()
    assert feed.result().figures["messagesRead"] == 25
    broker.produce(pair.topic, [row(i) for i in range(20, 30)])
    killed = feed.start({"mode": "Continuous", "commitIntervalSeconds": 1})
    wait_for(lambda: len(feed.rows()) == 30)
    killed.kill()
    killed.wait()
    broker.produce(pair.topic, [row(i) for i in range(25, 40)])
    assert feed.run().figures["messagesRead"] == 15
    assert [each["n"] for each in feed.rows()] == sorted(range(40), key=lambda n: f"k{n}")


def test_executors_read_a_topic_and_one_that_dies_is_replaced(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=4), engine="Spark", master="local-cluster[2,1,1024]")
    broker.produce(feed.topic, [row(i) for i in range(40)])
    driver = feed.start({"mode": "Continuous", "commitIntervalSeconds": 1})
    wait_for(lambda: feed.begun() and len(feed.rows()) == 40)
    first = executors_of(driver.pid)
    assert len(first) == 2
    os.kill(min(first), signal.SIGKILL)
    broker.produce(feed.topic, [row(i) for i in range(40, 80)])
    wait_for(lambda: len(feed.rows()) == 80)
    wait_for(lambda: len(executors_of(driver.pid)) == 2)
    assert executors_of(driver.pid) != first
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(60) == 0, feed.log()
    assert feed.result().figures["messagesRead"] == 80
    assert [each["n"] for each in feed.rows()] == sorted(range(80), key=lambda n: f"k{n}")


def executors_of(driver: int) -> set[int]:
    """The processes of Spark's executors that descend from this one."""
    found = set()
    for child in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("CoarseGrainedExecutorBackend" in word for word in child.cmdline()):
                found.add(child.pid)
    return found


def wait_for(met: Callable[[], bool]) -> None:
    until = time.monotonic() + 240
    while not _is_met(met):
        assert time.monotonic() < until
        time.sleep(0.5)


def _is_met(met: Callable[[], bool]) -> bool:
    with contextlib.suppress(HudiError):
        return met()
    return False
