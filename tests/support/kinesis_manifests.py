"""Specs of tables that are fed from Kinesis: what the definitions take, and what they refuse with
which words."""

from __future__ import annotations

from typing import Any

from tests.support.kafka_manifests import FILES, TOPICS, table
from tests.support.manifests import ingest


def kinesis(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is fed from Kinesis."""
    outer: dict[str, Any] = {
        name: changes.pop(name) for name in ("format", "path", "columns", "kafka") if name in changes
    }
    inner = {"stream": "orders"} | changes
    source: dict[str, Any] = {"type": "Kinesis", "format": "json", **outer, "kinesis": inner}
    return table(ingest=[ingest(source={k: v for k, v in source.items() if v is not None}, **(of_ingest or {}))])


KINESIS_GOOD = [
    kinesis(),
    kinesis({"mode": "Continuous", "commitInterval": "2s", "operation": "Insert"}, region="eu-central-1", maxRows=10),
    kinesis(
        {"onUndecodable": "Quarantine", "expectations": [{"name": "a", "sql": "n > 0", "onFail": "Drop"}]},
        endpoint="https://kinesis:4566", metadata=["stream", "shard", "sequence", "timestamp", "key"], every="30s",
    ),
    kinesis(startFrom={"position": "Timestamp", "timestamp": "2026-01-31T12:00:00Z"}, onDataLoss="Continue"),
    kinesis(format="avro", avro={"registry": "https://registry:8081"}, maxBytes="1Mi"),
    kinesis(format="protobuf", protobuf={"schemaFile": "s3://b/order.proto", "message": "shop.Order"}),
    kinesis(json={"registry": "https://registry:8081"}),
    kinesis(format="raw", startFrom={"position": "Latest"}),
]  # fmt: skip
KINESIS_BAD = [
    (table(ingest=[ingest(source={"type": "Kinesis", "format": "json"})]), "needs kinesis and format"),
    (table(ingest=[ingest(source={**FILES, "kinesis": {"stream": "orders"}})]), "no other has kinesis"),
    (kinesis(format=None), "needs kinesis and format"),
    (kinesis(format="csv"), "needs kinesis and format"),
    (kinesis(format="avro"), "format avro needs kinesis.avro"),
    (kinesis(avro={"registry": "https://registry:8081"}), "format avro needs kinesis.avro"),
    (kinesis(format="raw", json={"registry": "http://r"}), "kinesis.json belongs to format json"),
    (kinesis(format="protobuf"), "format protobuf kinesis.protobuf"),
    (kinesis(path="s3://b/p"), "path belongs to type Files"),
    (kinesis(kafka=TOPICS), "kafka to type Kafka or Debezium"),
    (kinesis(stream=""), "stream"),
    (kinesis(stream="a b"), "stream"),
    (kinesis(region="EU"), "region"),
    (kinesis(endpoint="kinesis"), "endpoint"),
    (kinesis(startFrom={"position": "Timestamp"}), "position Timestamp needs timestamp"),
    (kinesis(startFrom={"position": "Latest", "timestamp": "2026-01-31T12:00:00Z"}), "position Timestamp needs"),
    (kinesis(startFrom={"position": "Timestamp", "timestamp": "yesterday"}), "timestamp is a moment"),
    (kinesis(metadata=["headers"]), "metadata"),
    (kinesis(maxRows=0), "maxRows"),
    (kinesis(maxBytes="much"), "maxBytes"),
    (kinesis(every="soon"), "every"),
    (kinesis({"mode": "Backfill"}), "mode Backfill needs kafka.endAt"),
    (kinesis({"commitInterval": "5s"}), "commitInterval belongs to mode Continuous"),
]
