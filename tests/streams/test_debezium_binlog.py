"""Change events of a real MariaDB, through a real broker, into tables: the table is what the
database was."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hudi_table.model.job.jobspec import JobResult
from tests.streams.test_debezium import messages
from tests.support.feeds import Feed
from tests.support.kafka import Broker

BEFORE_TRUNCATE = {
    1: ("ann", Decimal("12.3456"), "app"), 20: ("bob", Decimal("20.2500"), None), 5: ("eve", Decimal("5.0000"), "web"),
}  # fmt: skip
SHIFTED = {2: "zz", 3: "b!", 4: "c!"}
TYPES = ("CopyOnWrite", "MergeOnRead")


def feed_of(broker: Broker, folder: Path, kind: str, order: str = "_event_seq") -> Feed:
    return Feed(folder, broker, broker.topic(partitions=1), {"orderingFields": [order], "type": kind})


def run(feed: Feed) -> JobResult:
    kafka = {"brokers": feed.broker.address, "topics": [feed.topic]}
    source = {"type": "Debezium", "format": "json", "kafka": kafka, "columns": {"amount": "decimal(14,4)"}}
    return feed.run({"source": source})


def values(feed: Feed, *names: str) -> dict[int, Any]:
    found = {row["id"]: tuple(row[name] for name in names) for row in feed.rows("id", *names)}
    return {key: row[0] if len(row) == 1 else row for key, row in found.items()}


@pytest.mark.thinned("values")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("step", [3, 100])
def test_the_table_is_what_the_database_was_and_events_that_come_again_change_nothing(
    broker: Broker, tmp_path: Path, kind: str, step: int
) -> None:
    feed, sample = feed_of(broker, tmp_path, kind), messages("maria-schema-orders")[:17]
    for start in range(0, len(sample), step):
        feed.broker.produce(feed.topic, sample[start : start + step])
        done = run(feed)
        assert done.outcome == "Succeeded", done.message
    assert values(feed, "customer", "amount", "channel") == BEFORE_TRUNCATE
    # Of the first file of the binlog, the positions of which are beyond those in the second.
    feed.broker.produce(feed.topic, [sample[0], *sample[3:6]])
    assert run(feed).outcome == "Succeeded"
    assert values(feed, "customer", "amount", "channel") == BEFORE_TRUNCATE


@pytest.mark.parametrize("kind", TYPES)
def test_keys_that_one_statement_moves_are_all_there(broker: Broker, tmp_path: Path, kind: str) -> None:
    feed, sample = feed_of(broker, tmp_path, kind), messages("maria-schema-shift")
    feed.broker.produce(feed.topic, sample)
    assert run(feed).outcome == "Succeeded"
    assert values(feed, "v") == SHIFTED
    # A delete and a create of one position come again, in the order in which they are wrong.
    feed.broker.produce(feed.topic, [sample[8], sample[3]])
    assert run(feed).outcome == "Succeeded"
    assert values(feed, "v") == SHIFTED


def test_every_type_is_stored(broker: Broker, tmp_path: Path) -> None:
    feed = feed_of(broker, tmp_path, "CopyOnWrite")
    feed.broker.produce(feed.topic, messages("maria-schema-types"))
    done = run(feed)
    assert done.outcome == "Succeeded", done.message
    assert values(feed, "n", "tm", "s") == {1: (Decimal("-0.01"), "24:00:00", ""), 2: (None, None, None)}


def test_events_of_a_binlog_are_refused_where_lsns_order(broker: Broker, tmp_path: Path) -> None:
    feed = feed_of(broker, tmp_path, "CopyOnWrite", "_event_lsn")
    feed.broker.produce(feed.topic, messages("maria-schema-shift"))
    failed = run(feed)
    assert failed.error_class == "InvalidData"
    assert "connector mariadb, whose events are ordered by _event_seq: let orderingFields name it" in failed.message
