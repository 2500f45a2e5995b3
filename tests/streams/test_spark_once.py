"""A `Once` ingest whose messages are read in tasks of Spark: the table is the one that a single
process makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_table.model.job.jobspec import JobResult
from hudi_table.sources.checkpoints import current_positions
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
