"""Change events of a real PostgreSQL, through a real broker, into tables: the table is what the
database was."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from hudi_table.model.job.jobspec import JobResult
from tests.support.feeds import Feed
from tests.support.kafka import Broker

DATA = Path(__file__).parents[1] / "data" / "debezium"
COLUMNS = {
    "id": "bigint", "customer": "string", "amount": "string", "created": "timestamp", "note": "string", "remark": "string", "big": "string",
    "channel": "string",
}  # fmt: skip
Message = tuple[bytes | None, bytes | None]


def messages(name: str) -> list[Message]:
    found = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    return [(_bytes(each["key"]), _bytes(each["value"])) for each in found]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


LARGE = {4: "A…10000", 6: "small"}
"""Behind so many events, the large value of the first row: the fourth leaves it alone, the fifth
changes it."""
WIDE = {"columns": {"amount": "decimal(14,4)"}}
"""The database widens this column as it goes."""


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["_event_lsn"]})


def run(feed: Feed, work: dict[str, Any] | None = None, source: dict[str, Any] | None = None) -> JobResult:
    kafka = {"brokers": feed.broker.address, "topics": [feed.topic]}
    return feed.run(
        {"source": {"type": "Debezium", "format": "json", "kafka": kafka, **(source or {})}, **(work or {})}
    )


def orders(feed: Feed) -> dict[int, tuple[Any, ...]]:
    return {
        each["id"]: (each["customer"], each["amount"], each["big"])
        for each in feed.rows("id", "customer", "amount", "big")
    }


BEFORE_TRUNCATE = {
    1: ("ann", Decimal("12.3456"), "small"), 20: ("bob", Decimal("20.2500"), None), 5: ("eve", Decimal("5.0000"), None),
}  # fmt: skip


def test_the_table_is_what_the_database_was_in_one_commit(feed: Feed) -> None:
    feed.broker.produce(feed.topic, messages("schema-orders")[:17])
    done = run(feed)
    assert done.outcome == "Succeeded", done.message
    assert done.figures["messagesRead"] == 14
    assert orders(feed) == BEFORE_TRUNCATE


@pytest.mark.parametrize("step", [1, 3])
def test_the_table_is_what_the_database_was_in_many_commits(feed: Feed, step: int) -> None:
    """Large values that a change leaves alone are then in the table alone."""
    sample = messages("schema-orders")[:17]
    for start in range(0, len(sample), step):
        feed.broker.produce(feed.topic, sample[start : start + step])
        done = run(feed, source=WIDE)
        assert done.outcome in ("Succeeded", "NothingToDo"), done.message
        if start + step in LARGE:
            big = open_table(f"file://{feed.location}").scan(columns=["id", "big"]).to_arrow().to_pylist()
            assert {each["id"]: each["big"] for each in big}[1] == LARGE[start + step]
    assert orders(feed) == BEFORE_TRUNCATE


def test_a_column_that_the_database_gets_or_renames_stops_the_ingest_as_the_policy_says(feed: Feed) -> None:
    sample = messages("schema-orders")[:17]
    said = []
    for each in sample:
        feed.broker.produce(feed.topic, [each])
        refused = run(feed, {"schemaPolicy": "Refuse"}, source=WIDE)
        if refused.error_class:
            said.append((refused.error_class, refused.message.partition("correct the source. ")[2]))
            assert run(feed, {"schemaPolicy": "AddColumns"}, source=WIDE).outcome == "Succeeded"
    assert said[0] == ("InvalidSchema", "added: channel (string)"), "deletes and what is left alone are no difference"
    assert said[1] == ("InvalidSchema", "added: remark (string); missing: note (string)")
    assert {each for each, _ in said} == {"InvalidSchema"}
    assert orders(feed) == BEFORE_TRUNCATE


def test_events_that_come_again_behind_newer_ones_change_nothing(feed: Feed) -> None:
    """A connector that starts again repeats what it had not confirmed."""
    sample = messages("schema-orders")[:17]
    feed.broker.produce(feed.topic, sample)
    run(feed, source=WIDE)
    feed.broker.produce(feed.topic, [sample[0], sample[3], sample[4]])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    assert orders(feed) == BEFORE_TRUNCATE
    feed.broker.produce(feed.topic, sample)
    run(feed, source=WIDE)
    assert orders(feed) == BEFORE_TRUNCATE


def test_a_column_that_the_database_widens_past_the_tables_is_refused_until_its_type_is_said(feed: Feed) -> None:
    sample = messages("schema-orders")[:17]
    feed.broker.produce(feed.topic, sample[:11])
    assert run(feed).outcome == "Succeeded"
    feed.broker.produce(feed.topic, sample[11:])
    failed = run(feed)
    assert failed.error_class == "InvalidSchema"
    assert "column 'amount' is decimal128(14, 4) in the data and decimal128(12, 2) in the table" in failed.message


def test_messages_without_schemas_need_types_and_give_the_same_rows(feed: Feed) -> None:
    feed.broker.produce(feed.topic, messages("plain-orders")[:17])
    assert "it has no schema: let the connector write schemas" in run(feed).message
    done = run(feed, source={"columns": COLUMNS})
    assert done.outcome == "Succeeded", done.message
    assert {key: (row[0], row[2]) for key, row in orders(feed).items()} == {
        key: (row[0], row[2]) for key, row in BEFORE_TRUNCATE.items()
    }


def test_every_type_is_stored(feed: Feed) -> None:
    feed.broker.produce(feed.topic, messages("schema-types"))
    assert "is infinite: source.debezium.infinite AsNull makes it null" in run(feed).message
    done = run(feed, source={"debezium": {"infinite": "AsNull"}})
    assert done.outcome == "Succeeded", done.message
    first, second = open_table(f"file://{feed.location}").scan().to_arrow().sort_by("id").to_pylist()
    assert (first["n102"], first["ta"], str(first["d"]), first["i4"]) == (
        Decimal("99.99"),
        ["x", None],
        "2026-02-03",
        4,
    )
    assert (second["f4"], second["d"]) == (float("inf"), None)


def test_transforms_and_expectations_go_with_change_events(feed: Feed) -> None:
    feed.broker.produce(feed.topic, messages("schema-orders")[:17])
    work = {
        "transform": [{"sql": "select *, upper(customer) loud from source"}],
        "expectations": [{"name": "paid", "sql": "amount > 0", "onFail": "Fail"}],
    }
    done = run(feed, work)
    assert done.outcome == "Succeeded", done.message
    assert {each["loud"] for each in feed.rows("id", "loud")} == {"ANN", "BOB", "EVE"}
    without = run(feed, {"transform": [{"sql": "select id, customer, _hoodie_is_deleted from source"}]})
    assert "does not hand on _change_operation_type, _event_lsn as it is" in without.message


@pytest.mark.parametrize(
    ("table", "work", "words"),
    [
        ({"orderingFields": []}, {}, "need operation Upsert and orderingFields _event_lsn"),
        ({}, {"operation": "Insert"}, "need operation Upsert and orderingFields _event_lsn"),
        ({"partitionBy": [{"field": "channel"}]}, {}, "partitionBy channel is none of recordKey"),
    ],
)
def test_a_table_that_would_lose_order_or_deletes_is_refused_before_a_broker_is_asked(
    feed: Feed, table: dict[str, Any], work: dict[str, Any], words: str
) -> None:
    feed.table |= table
    refused = run(feed, {**work}, {"kafka": {"brokers": "127.0.0.1:1", "topics": ["t"]}})
    assert (refused.error_class, words in refused.message) == ("InvalidRequest", True), refused.message
