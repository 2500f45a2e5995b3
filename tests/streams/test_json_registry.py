"""JSON messages whose schemas a real registry has. It takes long to start: in the long tests."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.errors import HudiError
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.topic_keys import columns_of
from hudi_table.table.store.clock import SystemClock
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.registry import running_registry

CITY = {"type": "object", "properties": {"name": {"type": "string"}, "since": {"type": "string", "format": "date"}}}
FIRST = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["id"],
}
WIDER = {
    **FIRST,
    "properties": {
        "id": {"type": "string"},
        "n": {"type": "integer"},
        "price": {"type": ["null", "number"]},
        "at": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "city": {"$ref": "city.json"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


def message(number: int, **values: Any) -> bytes:
    return b"\0" + struct.pack(">I", number) + json.dumps(values).encode()


@pytest.mark.at_scale(2)
@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_schemas_come_from_the_registry_tell_types_and_refer_to_others(
    broker: Broker, tmp_path: Path, engine: str
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), engine=engine)
    with running_registry() as registry:
        kafka = {"json": {"registry": registry.url}}
        first = registry.register("orders-value", FIRST, schemaType="JSON")
        registry.register("city", CITY, schemaType="JSON")
        references = [{"name": "city.json", "subject": "city", "version": 1}]
        wider = registry.register("orders-value", WIDER, schemaType="JSON", references=references)
        avro = registry.register("others-value", AVRO)
        city = {"name": "x", "since": "2026-01-31"}
        broker.produce(
            feed.topic,
            [
                message(first, id="2026-01-31T00:00:00Z", n=1),
                message(wider, id="b", n=2, price=3, at="2026-01-31T12:00:00.123456789+02:00", city=city, tags=["t"]),
                message(wider, id="c", n=None, price=None, at=None, city=None, more=True),
            ],
        )
        done = feed.run(**kafka)
        assert done.outcome == "Succeeded", done.message
        rows = feed.rows("id", "n", "price", "at", "city", "tags", "more")
        assert [each["id"] for each in rows] == ["2026-01-31T00:00:00Z", "b", "c"]
        assert (rows[1]["price"], rows[1]["at"]) == (3.0, datetime(2026, 1, 31, 10, 0, 0, 123456, UTC))
        assert (rows[1]["city"], rows[1]["tags"]) == ({"name": "x", "since": date(2026, 1, 31)}, ["t"])
        assert [each["more"] for each in rows] == [None, None, True], "not named by the schema, and a column"
        types = {field.name: field.type for field in feed.open().scan().to_arrow().schema}
        assert (types["n"], types["price"], types["at"]) == (pa.int64(), pa.float64(), pa.timestamp("us", "UTC"))

        broker.produce(feed.topic, [message(wider, id="d", n=4, city={"name": "y", "since": "2026-02-01"})])
        again = feed.run(**kafka)
        assert (again.outcome, feed.rows("id", "city")[3]["city"]["since"]) == ("Succeeded", date(2026, 2, 1)), again.message  # fmt: skip

        broker.produce(feed.topic, [message(first, id="e", n=5, new=1)])
        refused = feed.run({"schemaPolicy": "Refuse"}, **kafka)
        assert refused.error_class == "InvalidSchema", refused.message
        assert f"schema {first} of the registry: the columns" in refused.message
        assert feed.run(**kafka).outcome == "Succeeded"

        bad = [
            (message(first, id="f", n="x"), "changed from number to string"),
            (message(avro, id="f"), f"schema {avro} of the registry is of type AVRO, and the format is json"),
            (message(9_999, id="f"), "has no schema 9999"),
            (b'{"id": "f", "n": 1}', "it does not begin with a zero byte and the id of a schema"),
        ]
        broker.produce(feed.topic, [each for each, _ in bad] + [message(first, id="f", n=6)])
        failed = feed.run(**kafka)
        assert failed.error_class == "InvalidData"
        assert "cannot be read as json" in failed.message
        quarantine = {"onUndecodable": "Quarantine", "maxErrorRatio": 1.0}
        assert feed.run(quarantine, **kafka).outcome == "Succeeded"
        reasons = errors(feed)
        assert [[each for each in reasons if words in each] != [] for _, words in bad] == [True] * len(bad), reasons
        assert feed.rows("id", "n")[-1] == {"id": "f", "n": 6}
        unframed = feed.run()
        assert unframed.outcome == "NothingToDo"
    broker.produce(feed.topic, [message(77, id="g", n=7)])
    away = feed.run(**kafka)
    assert (away.error_class, "does not answer" in away.message) == ("Unavailable", True)
    plain = feed.run()
    assert (plain.error_class, "give json.registry" in plain.message) == ("InvalidData", True)


def errors(feed: Feed) -> list[str]:
    from hudi_table.api import open_table

    found: list[str] = open_table(f"file://{feed.location}_errors").scan().to_arrow().column("reason").to_pylist()
    return found


@pytest.mark.at_scale(2)
def test_keys_of_tombstones_are_framed_too_and_tell_the_columns_of_a_key(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1))
    key = {"type": "object", "properties": {"id": {"type": "string"}}}
    with running_registry() as registry:
        kafka: dict[str, Any] = {"json": {"registry": registry.url}, "keyFormat": "json", "tombstones": "Delete"}
        # Subjects are named by the record here: whoever reads goes by the id.
        number, of_key = registry.register("shop.Order", FIRST, schemaType="JSON"), registry.register("shop.Key", key, schemaType="JSON")  # fmt: skip
        broker.produce(feed.topic, [(message(of_key, id=name), message(number, id=name, n=1)) for name in "ab"])
        assert feed.run(**kafka).outcome == "Succeeded"
        broker.produce(feed.topic, [(message(of_key, id="a"), None)])
        done = feed.run(**kafka)
        assert (done.outcome, feed.rows("id")) == ("Succeeded", [{"id": "b"}]), done.message
        source = {"brokers": broker.address, "topics": [feed.topic], **kafka}
        settings = KafkaSettings.of({"type": "Kafka", "format": "json", "kafka": source})
        found = columns_of(settings, {}, SystemClock(), (feed.topic,))[feed.topic]
        assert not isinstance(found, HudiError), found
        assert found == ("id",)
