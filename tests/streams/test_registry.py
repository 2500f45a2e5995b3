"""Avro messages whose schemas a real registry has. It takes long to start: in the long tests."""

from __future__ import annotations

import io
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_table.errors import HudiError
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.topic_keys import columns_of
from hudi_table.table.store.clock import SystemClock
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.registry import running_registry

CITY = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]}
RENAMED = {
    **FIRST,
    "fields": [{"name": "id", "type": "string"}, {"name": "count", "type": "long", "aliases": ["n"]}],
}
WIDER = {**FIRST, "fields": [*FIRST["fields"], {"name": "city", "type": ["null", "geo.City"], "default": None}]}
MONEY = {
    **FIRST,
    "fields": [
        *FIRST["fields"],
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def message(number: int, schema: Any, **values: Any) -> bytes:
    out = io.BytesIO()
    named: dict[str, Any] = {}
    fastavro.parse_schema(CITY, named)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named), values)
    return b"\0" + struct.pack(">I", number) + out.getvalue()


@pytest.mark.at_scale(2)
def test_schemas_come_from_the_registry_and_may_grow_and_refer_to_others(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="avro")
    with running_registry() as registry:
        avro = {"avro": {"registry": registry.url}}
        first = registry.register("orders-value", FIRST)
        registry.register("city", CITY)
        references = [{"name": "geo.City", "subject": "city", "version": 1}]
        wider = registry.register("orders-value", WIDER, references=references)
        broker.produce(
            feed.topic, [message(first, FIRST, id="a", n=1), message(wider, WIDER, id="b", n=2, city={"name": "x"})]
        )
        done = feed.run(**avro)
        assert done.outcome == "Succeeded", done.message
        assert [each["city"] for each in feed.rows("id", "city")] == [None, {"name": "x"}]
        money = registry.register("prices-value", MONEY)
        broker.produce(feed.topic, [message(money, MONEY, id="c", n=3, price=Decimal("1.50"), tags=["t"])])
        assert feed.run(**avro).outcome == "Succeeded"
        assert str(feed.rows("id", "price")[2]["price"]) == "1.50"
        broker.produce(feed.topic, [message(first, FIRST, id="d", n=4), message(9_999, FIRST, id="e", n=5)])
        failed = feed.run(**avro)
        assert failed.error_class == "InvalidData"
        assert "offset 4 cannot be read as avro: the schema registry at" in failed.message
        assert "has no schema 9999" in failed.message
        assert keys_of(broker, registry.url, feed.topic) == f"the first messages of topic {feed.topic} have no key"
        registry.register(f"{feed.topic}-key", MONEY)
        assert keys_of(broker, registry.url, feed.topic) == ("id", "n", "price", "tags")
        framed = b"\0" + struct.pack(">I", first)
        other = broker.topic(partitions=1)
        broker.produce(other, [(framed + b"\x02a\x02", b"{}")])
        assert keys_of(broker, registry.url, other) == ("id", "n"), "by the id before the first key"
    away = feed.run(**avro)
    assert (away.error_class, "does not answer" in away.message) == ("Unavailable", True)


@pytest.mark.at_scale(2)
@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_schema_that_lacks_a_column_does_not_hide_behind_another_of_its_commit(
    broker: Broker, tmp_path: Path, engine: str
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="avro", engine=engine)
    wider = {**FIRST, "fields": [*FIRST["fields"], {"name": "city", "type": "string"}]}
    strict = {"schemaPolicy": "Refuse"}
    with running_registry() as registry:
        avro = {"avro": {"registry": registry.url}}
        ids = [registry.register("orders-value", FIRST), registry.register("other-value", wider)]
        broker.produce(feed.topic, [message(ids[1], wider, id="a", n=1, city="x")])
        assert feed.run(strict, **avro).outcome == "Succeeded"
        broker.produce(feed.topic, [message(ids[0], FIRST, id="b", n=2), message(ids[1], wider, id="c", n=3, city="y")])
        refused = feed.run(strict, **avro)
        assert refused.error_class == "InvalidSchema", refused.message
        assert f"schema {ids[0]} of the registry: the columns" in refused.message
        assert "missing: city (string)" in refused.message
        assert feed.run({"schemaPolicy": "AddColumns"}, **avro).outcome == "Succeeded"
        assert [each["city"] for each in feed.rows("id", "city")] == ["x", None, "y"]


@pytest.mark.at_scale(2)
@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_messages_of_the_old_and_of_the_new_name_of_a_field_come_in_one_commit(
    broker: Broker, tmp_path: Path, engine: str
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="avro", engine=engine)
    with running_registry() as registry:
        avro = {"avro": {"registry": registry.url}}
        old, new = registry.register("orders-value", FIRST), registry.register("orders-value", RENAMED)
        for number in (0, 2):
            key = "abcd"[number : number + 2]
            broker.produce(
                feed.topic,
                [message(new, RENAMED, id=key[1], count=number + 1), message(old, FIRST, id=key[0], n=number)],
            )
            done = feed.run({"schemaPolicy": "Evolve"}, **avro)
            assert done.outcome == "Succeeded", done.message
        assert [(each["id"], each["n"]) for each in feed.rows("id", "n")] == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
        schema = feed.open().schema()
        assert schema is not None
        assert "count" not in schema.names


@pytest.mark.at_scale(2)
@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_first_commit_has_one_column_of_both_names_of_a_field_whichever_partitions_they_lie_in(
    broker: Broker, tmp_path: Path, engine: str
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), form="avro", engine=engine)
    with running_registry() as registry:
        avro = {"avro": {"registry": registry.url}}
        old, new = registry.register("orders-value", FIRST), registry.register("orders-value", RENAMED)
        broker.produce(feed.topic, [message(old, FIRST, id="a", n=0)], partition=0)
        broker.produce(feed.topic, [message(new, RENAMED, id="b", count=1)], partition=1)
        done = feed.run({"schemaPolicy": "Evolve"}, **avro)
        assert done.outcome == "Succeeded", done.message
        schema = feed.open().schema()
        assert schema is not None
        assert "count" not in schema.names
        assert [(each["id"], each["n"]) for each in feed.rows("id", "n")] == [("a", 0), ("b", 1)]


@pytest.mark.at_scale(2)
def test_a_key_that_was_renamed_finds_the_rows_of_its_old_name_and_so_does_a_tombstone(
    broker: Broker, tmp_path: Path
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="avro")
    key = {"type": "record", "name": "Key", "fields": [{"name": "order", "type": "string", "aliases": ["id"]}]}
    value = {**FIRST, "fields": [*key["fields"], FIRST["fields"][1]]}
    with running_registry() as registry:
        avro = {"avro": {"registry": registry.url}, "tombstones": "Delete", "keyFormat": "avro"}
        old, new = registry.register("orders-value", FIRST), registry.register("renamed-value", value)
        keys = registry.register("renamed-key", key)
        broker.produce(feed.topic, [message(old, FIRST, id=name, n=1) for name in "abc"])
        assert feed.run({"schemaPolicy": "Evolve"}, **avro).outcome == "Succeeded"
        broker.produce(feed.topic, [message(new, value, order="b", n=2), (message(keys, key, order="c"), None)])
        done = feed.run({"schemaPolicy": "Evolve"}, **avro)
        assert done.outcome == "Succeeded", done.message
        assert feed.rows("id", "n") == [{"id": "a", "n": 1}, {"id": "b", "n": 2}]


def keys_of(broker: Broker, url: str, topic: str) -> tuple[str, ...] | str:
    """The columns of a topic's key, or the words that tell why they are not known."""
    kafka = {"brokers": broker.address, "topics": [topic], "avro": {"registry": url}}
    settings = KafkaSettings.of({"type": "Debezium", "format": "avro", "kafka": kafka})
    found = columns_of(settings, {}, SystemClock(), (topic,))[topic]
    if isinstance(found, HudiError):
        return str(found).partition(":")[0]
    return found


EVENTS = Path(__file__).parents[1] / "data" / "debezium"


@pytest.mark.at_scale(2)
def test_change_events_in_avro_make_the_table_that_the_database_was(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["_event_lsn"]})
    schemas = json.loads((EVENTS / "avro-schemas.json").read_text())
    lines = [json.loads(line)["value"] for line in (EVENTS / "avro-orders.jsonl").read_text().splitlines()]
    events = [None if line is None else bytes.fromhex(line) for line in lines]
    with running_registry() as registry:
        ids = {number: registry.register(f"events-{number}", schema) for number, schema in schemas.items()}
        moved = [
            None
            if event is None
            else event[:1] + struct.pack(">I", ids[str(int.from_bytes(event[1:5], "big"))]) + event[5:]
            for event in events
        ]
        broker.produce(feed.topic, moved[:5])
        kafka = {"brokers": broker.address, "topics": [feed.topic], "avro": {"registry": registry.url}}
        done = feed.run({"source": {"type": "Debezium", "format": "avro", "kafka": kafka}})
        assert done.outcome == "Succeeded", done.message
        rows = feed.rows("id", "amount", "extra")
        assert [(row["id"], str(row["amount"]), row["extra"]) for row in rows] == [(6, "6.0000", None)]
