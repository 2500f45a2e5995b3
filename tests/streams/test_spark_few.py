"""An ingest of engine Spark whose messages are few: its driver reads them itself, and the table is
the one that tasks make."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hudi_spark.jobs.ingests.kafka import tasks
from tests.streams.test_spark_once import Pair, wait_for
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker

LOGS: dict[str, Any] = {"type": "MergeOnRead", "orderingFields": ["n"]}


def driver(pair: Pair) -> Feed:
    pair.tasks.in_tasks = False
    return pair.tasks


@pytest.mark.parametrize("index", ["Bucket", "ConsistentBucket"])
def test_few_messages_that_go_to_logs_of_buckets_start_no_spark(broker: Broker, tmp_path: Path, index: str) -> None:
    pair = Pair(broker, tmp_path, table={**LOGS, "index": {"type": index, "buckets": 2}})
    feed = driver(pair)
    for first in (0, 200):
        broker.produce(
            pair.topic, [row(i, at="2026-01-02T03:04:05Z", deep={"a": [i]}) for i in range(first, first + 300)]
        )
        pair.here.run()
        assert feed.start().wait(120) == 0, feed.log()
        assert "starting Spark" not in feed.log()
        assert feed.result().figures["messagesRead"] == 300
        pair.assert_equal()
    assert feed.start().wait(120) == 0
    assert feed.result().outcome == "NothingToDo"
    assert "starting Spark" not in feed.log()


@pytest.mark.parametrize("table", [LOGS, {}], ids=["MergeOnRead", "CopyOnWrite"])
def test_spark_does_the_selects_and_the_writes_of_base_files_of_what_its_driver_read(
    broker: Broker, tmp_path: Path, table: dict[str, Any]
) -> None:
    pair = Pair(broker, tmp_path, table=table)
    driver(pair)
    work = {
        "onUndecodable": "Quarantine",
        "maxErrorRatio": 0.2,
        "expectations": [{"name": "sound", "sql": "fare <> 7", "onFail": "Quarantine"}],
        "transform": [{"sql": "SELECT id, n, fare * 2 AS twice FROM source WHERE fare > 3"}],
    }
    for first in (0, 20):
        broker.produce(pair.topic, [*(row(i, fare=i % 30) for i in range(first, first + 40)), b"{"])
        done = pair.run(work)
        assert [each.outcome for each in done] == ["Succeeded"] * 2, done[1].message
        assert done[0].figures["recordsRefused"] == done[1].figures["recordsRefused"] > 0
        pair.assert_equal()
    # What nothing comes of holds its place all the same.
    broker.produce(pair.topic, [row(0, fare=1)])
    assert [each.figures["messagesRead"] for each in pair.run(work)] == [1, 1]
    assert [each.outcome for each in pair.run(work)] == ["NothingToDo"] * 2


def test_of_messages_of_one_key_the_last_one_counts_whoever_reads_them(broker: Broker, tmp_path: Path) -> None:
    pair = Pair(broker, tmp_path)
    driver(pair)
    for turn in (1, 2):
        broker.produce(pair.topic, [(b"a", row(i % 7, turn=turn * i)) for i in range(1_000)], partition=1)
        pair.run(maxRows=600)
        pair.assert_equal()
    assert {each["turn"] for each in pair.tasks.rows("id", "turn")} == {2 * i for i in range(993, 1_000)}


def test_tasks_read_what_is_too_much_for_the_driver_and_it_goes_on_where_they_end(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(broker, tmp_path, table=LOGS)
    feed = driver(pair)
    asked: list[int] = []
    read_ranges = tasks.SparkWay._read_ranges

    def told(self: Any, spark: Any, ranges: Any, wanted: Any) -> Any:
        asked.append(sum(each.stop - each.start for each in ranges))
        return read_ranges(self, spark, ranges, wanted)

    monkeypatch.setattr(tasks.SparkWay, "_read_ranges", told)
    monkeypatch.setattr(tasks, "HERE_ROWS", 50)
    for count, by_tasks in ((40, []), (60, [60]), (50, [])):
        broker.produce(pair.topic, [row(i, text="x" * 100) for i in range(count)])
        pair.run()
        assert asked == by_tasks
        asked.clear()
        pair.assert_equal()
    # Nobody knows how large messages are before the first of them are read.
    monkeypatch.setattr(tasks, "HERE_BYTES", 2_000)
    broker.produce(pair.topic, [row(i, text="x" * 100) for i in range(50)])
    done = feed.run()
    assert (done.figures["commits"], done.figures["messagesRead"], len(asked)) == (2, 50, 1), done.message


def test_a_driver_follows_a_topic_without_spark_while_little_comes(broker: Broker, tmp_path: Path) -> None:
    feed = driver(Pair(broker, tmp_path, table=LOGS))
    broker.produce(feed.topic, [row(i) for i in range(10)])
    follower = feed.start({"mode": "Continuous", "commitIntervalSeconds": 0.3})
    wait_for(lambda: feed.begun() and len(feed.rows()) == 10)
    broker.produce(feed.topic, [row(i) for i in range(5, 20)])
    wait_for(lambda: len(feed.rows()) == 20)
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(60) == 0, feed.log()
    assert feed.result().figures["messagesRead"] == 25
    assert "starting Spark" not in feed.log()


@pytest.mark.parametrize("in_tasks", [False, True], ids=["few", "many"])
def test_spark_runs_a_statement_that_nothing_else_runs(broker: Broker, tmp_path: Path, in_tasks: bool) -> None:
    feed = Pair(broker, tmp_path).tasks
    feed.in_tasks = in_tasks
    sql = "select trim(id) id, n, regexp_replace(text, '[0-9]+', '#') text, split(text, '-')[1] part, text rlike '^a' a from source"
    assert (
        "uses REGEXP_REPLACE" in Feed(tmp_path / "here", broker, feed.topic).run({"transform": [{"sql": sql}]}).message
    )
    for turn in (1, 2):
        broker.produce(feed.topic, [row(i % 5, text=f"a{turn}-{i}") for i in range(20)], partition=0)
        done = feed.run({"transform": [{"sql": sql}]})
        assert (done.outcome, done.figures["messagesRead"]) == ("Succeeded", 20), done.message
        # Of messages of one key the last one counts, behind the statement, too.
        found = feed.rows("id", "text", "part", "a")
        assert found == [{"id": f"k{i}", "text": "a#-#", "part": f"{15 + i}", "a": True} for i in range(5)]
    refused = feed.run({"transform": [{"sql": "select id, avg(n) n from source group by id"}]})
    assert (refused.error_class, "transform 1 groups" in refused.message) == ("InvalidRequest", True), refused.message


@pytest.mark.parametrize("in_tasks", [False, True], ids=["few", "many"])
def test_tombstones_go_through_a_statement_of_spark_and_flatten(broker: Broker, tmp_path: Path, in_tasks: bool) -> None:
    feed = Pair(broker, tmp_path, partitions=1).tasks
    feed.in_tasks = in_tasks
    work = {
        "transform": [
            {"flatten": {}},
            {"sql": "select *, lpad(deep_a, 3, '0') padded from source where n >= 0 or _hoodie_is_deleted"},
        ]
    }
    events = [(b"k1", row(1, deep={"a": "x"})), (b"k2", row(2, deep={"a": "y"})), (b"k1", None), (b"k3", None)]
    broker.produce(feed.topic, events)
    assert feed.run(work, tombstones="Delete").outcome == "Succeeded"
    assert feed.rows("id", "padded") == [{"id": "k2", "padded": "00y"}]
    broker.produce(feed.topic, [(b"k2", None)])
    assert feed.run(work, tombstones="Delete").figures["recordsDeleted"] == 1
    lost = {"transform": [{"sql": "select * from source lateral view inline(array(struct(1))) x as y"}]}
    assert "may leave out rows that delete others" in feed.run(lost, tombstones="Delete").message
