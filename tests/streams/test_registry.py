"""Avro messages whose schemas a real registry has. It takes long to start: in the long tests."""

from __future__ import annotations

import io
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.registry import running_registry

CITY = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]}
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
    away = feed.run(**avro)
    assert (away.error_class, "does not answer" in away.message) == ("Unavailable", True)
