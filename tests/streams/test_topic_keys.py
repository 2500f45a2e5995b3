"""The columns of a topic's key, as a real broker has it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hudi_table.errors import HudiError, UnavailableError
from hudi_table.sources.kafka import topic_keys
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.topic_keys import columns_of
from hudi_table.table.store.clock import SystemClock
from tests.support.kafka import Broker

EVENTS = Path(__file__).parents[1] / "data" / "debezium"
FRAMED = {
    "schema": {
        "type": "struct",
        "fields": [{"type": "int32", "field": "order_id"}, {"type": "int32", "field": "position"}],
    },
    "payload": {"order_id": 1, "position": 2},
}


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator gives up sooner than a busy machine answers."""
    monkeypatch.setattr(topic_keys, "SECONDS", 120.0)


def settings(broker: Broker, **source: Any) -> KafkaSettings:
    kafka = {"brokers": broker.address, "topics": ["any"], **source.pop("kafka", {})}
    return KafkaSettings.of({"type": "Debezium", "format": "json", "kafka": kafka, **source})


def key(broker: Broker, *messages: tuple[bytes | None, bytes | None], **source: Any) -> tuple[str, ...]:
    """The columns of the key of a topic that holds these."""
    topic = broker.topic(partitions=2)
    broker.produce(topic, messages)
    until = time.monotonic() + 60
    found = columns_of(settings(broker, **source), {}, SystemClock(), (topic,))[topic]
    while isinstance(found, UnavailableError) and time.monotonic() < until:
        # A broker leads a new partition a moment after it has told of it; who asks asks again.
        time.sleep(0.2)
        found = columns_of(settings(broker, **source), {}, SystemClock(), (topic,))[topic]
    if isinstance(found, HudiError):
        raise found
    return found


def test_a_key_tells_its_columns_by_its_schema_or_by_its_names(broker: Broker) -> None:
    assert key(broker, (json.dumps(FRAMED).encode(), b"{}")) == ("order_id", "position")
    assert key(broker, (b'{"id": 7, "day": "x"}', b"{}")) == ("id", "day")
    plain = {"type": "Kafka", "kafka": {"keyFormat": "json"}}
    assert key(broker, (b'{"schema": "x", "id": 7}', b"{}"), **plain) == ("schema", "id")


def test_the_first_key_counts_behind_messages_that_have_none(broker: Broker) -> None:
    assert key(broker, (None, b'{"op": "t"}'), (b'{"id": 7}', None)) == ("id",)


def test_the_keys_that_debezium_writes_tell_the_primary_key(broker: Broker) -> None:
    lines = [json.loads(line) for line in (EVENTS / "schema-orders.jsonl").read_text().splitlines()]
    messages = [(json.dumps(line["key"]).encode(), b"{}") for line in lines if line["key"] is not None]
    assert key(broker, *messages[:3]) == ("id",)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "has no message yet that would tell its key"),
        ([(None, b"{}")], "have no key"),
        ([(b"7", b"{}")], "is a value that names no column"),
        ([(b'"a"', b"{}")], "is a value that names no column"),
        ([(b"\xff", b"{}")], "cannot be read as json"),
        ([(b'{"schema": {"type": "string"}, "payload": "a"}', b"{}")], "is a value that names no column"),
        ([(b'{"schema": [], "payload": "a"}', b"{}")], "cannot be read as json"),
    ],
)
def test_a_key_that_names_no_column_is_told_with_what_to_do(
    broker: Broker, messages: list[tuple[bytes | None, bytes]], words: str
) -> None:
    with pytest.raises(HudiError, match=words) as caught:
        key(broker, *messages)
    assert "name the columns in recordKey" in str(caught.value)


def test_keys_without_names_are_refused_by_their_format(broker: Broker) -> None:
    with pytest.raises(HudiError, match="keys of format raw name no columns"):
        key(broker, (b"a", b"{}"), type="Kafka")


def test_one_topic_that_is_gone_keeps_nobody_from_the_others(broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    broker.produce(topic, [(b'{"id": 1}', b"{}")])
    found = columns_of(settings(broker), {}, SystemClock(), ("gone", topic))
    assert found[topic] == ("id",)
    assert "topic gone does not exist" in str(found["gone"])


def test_brokers_that_do_not_answer_are_asked_once(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    away = settings(broker, kafka={"brokers": "127.0.0.1:1"})
    monkeypatch.setattr("hudi_table.sources.kafka.client.TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr("hudi_table.sources.kafka.brokers.TIMEOUT_SECONDS", 1.0)
    found = columns_of(away, {}, SystemClock(), ("a", "b"))
    assert found["a"] is found["b"]
    assert "do not answer" in str(found["a"])
