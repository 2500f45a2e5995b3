"""Messages of Protocol Buffers from a real broker into a table: by a definition in a file, and by
those that a real registry has."""

from __future__ import annotations

import json
import struct
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.protoc import compiled, message_class
from tests.support.registry import SchemaRegistry, running_registry

CITY = 'syntax = "proto3"; package geo; message City { string name = 1; }'
FIRST = """syntax = "proto3"; package shop;
message Header { string of = 1; }
message Order { string id = 1; int64 n = 2; message Line { string id = 1; double price = 2; } }"""
WIDER = """syntax = "proto3"; package shop; import "geo/city.proto"; import "google/protobuf/timestamp.proto";
message Header { string of = 1; }
message Order {
  string id = 1; int64 n = 2; geo.City city = 3; google.protobuf.Timestamp at = 4; repeated string tags = 5;
  message Line { string id = 1; double price = 2; }
}"""


def test_messages_of_a_definition_in_a_file_make_a_table(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="protobuf")
    (tmp_path / "order.proto").write_text(FIRST)
    order = message_class(compiled({"order.proto": FIRST}), "shop.Order")
    sent = [order(id=f"k{n}", n=n).SerializeToString() for n in range(30)]
    broker.produce(feed.topic, sent)
    file = {"protobuf": {"schemaFile": f"file://{tmp_path}/order.proto", "message": "Order"}}
    done = feed.run(**file)
    assert done.outcome == "Succeeded", done.message
    assert sorted(feed.rows("id", "n"), key=lambda each: each["n"]) == [{"id": f"k{n}", "n": n} for n in range(30)]
    broker.produce(feed.topic, [sent[0], b"\x0a\x09k"])
    refused = feed.run(**file)
    assert refused.error_class == "InvalidData"
    assert "offset 31 cannot be read as protobuf: it is no message of its schema: a field leaves it" in refused.message
    for wrong, words in [
        ({"schemaFile": f"file://{tmp_path}/absent.proto"}, "kafka.protobuf.schemaFile"),
        ({"schemaFile": f"file://{tmp_path}/order.proto", "message": "Orders"}, "it has no message Orders"),
        ({}, "needs kafka.protobuf.registry or kafka.protobuf.schemaFile"),
    ]:
        assert words in feed.run(protobuf=wrong).message


def test_messages_that_cannot_be_read_go_to_the_error_table(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="protobuf", work={"onUndecodable": "Quarantine", "maxErrorRatio": 0.5})  # fmt: skip
    (tmp_path / "order.proto").write_text(FIRST)
    order = message_class(compiled({"order.proto": FIRST}), "shop.Order")
    good = [order(id=f"k{n}", n=n).SerializeToString() for n in range(12)]
    broker.produce(feed.topic, [*good[:6], b"\x0a\x09k", *good[6:], b"\xff"])
    done = feed.run(protobuf={"schemaFile": f"file://{tmp_path}/order.proto", "message": "Order"})
    assert done.outcome == "Succeeded", done.message
    assert len(feed.rows("id")) == 12


def registered(registry: SchemaRegistry, subject: str, text: str, **more: Any) -> int:
    body = json.dumps({"schema": text, "schemaType": "PROTOBUF", **more}).encode()
    asked = urllib.request.Request(
        f"{registry.url}/subjects/{subject}/versions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return int(json.load(answer)["id"])


def framed(number: int, path: tuple[int, ...], message: Any) -> bytes:
    head = bytes([2 * len(path), *(2 * each for each in path)]) if path != (0,) else b"\0"
    return b"\0" + struct.pack(">I", number) + head + bytes(message.SerializeToString())


@pytest.mark.at_scale(2)
def test_definitions_come_from_the_registry_and_may_grow_refer_to_others_and_lie_in_others(
    broker: Broker, tmp_path: Path
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), form="protobuf")
    old, new = compiled({"a.proto": FIRST}), compiled({"a.proto": WIDER, "geo/city.proto": CITY})
    with running_registry() as registry:
        kafka = {"protobuf": {"registry": registry.url}}
        first = registered(registry, "orders-value", FIRST)
        registered(registry, "city", CITY)
        references = [{"name": "geo/city.proto", "subject": "city", "version": 1}]
        wider = registered(registry, "orders-value", WIDER, references=references)
        grown = message_class(new, "shop.Order")(id="b", n=2, city={"name": "x"}, at={"seconds": 7}, tags=["t", "u"])
        broker.produce(
            feed.topic,
            [framed(first, (1,), message_class(old, "shop.Order")(id="a", n=1)), framed(wider, (1,), grown)],
        )
        done = feed.run(**kafka)
        assert done.outcome == "Succeeded", done.message
        a, b = sorted(feed.rows("id", "n", "city", "at", "tags"), key=lambda each: each["id"])
        assert (a["n"], a["city"], a["at"]) == (1, None, None)
        assert (b["city"], b["at"].timestamp(), b["tags"]) == ({"name": "x"}, 7.0, ["t", "u"])
        broker.produce(feed.topic, [framed(wider, (1, 0), message_class(new, "shop.Order.Line")(id="c", price=2.5))])
        assert feed.run(**kafka).outcome == "Succeeded"
        assert feed.rows("id", "price")[2] == {"id": "c", "price": 2.5}
        avro = registry.register(
            "avro-value", {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
        )
        broker.produce(feed.topic, [framed(avro, (0,), message_class(old, "shop.Header")(of="x"))])
        failed = feed.run(**kafka)
        assert failed.error_class == "InvalidData"
        assert f"schema {avro} of the registry is of type AVRO, and the format is protobuf" in failed.message
