"""Specs of sets of tables: what the definitions take, and what they refuse with which words."""

from __future__ import annotations

import copy
from typing import Any

SOURCE: dict[str, Any] = {
    "type": "Kafka",
    "format": "json",
    "kafka": {"brokers": "kafka:9092", "topics": ["{topic}"]},
}
TABLE: dict[str, Any] = {
    "location": "s3://lake/{topic}",
    "recordKey": ["id"],
    "ingest": [{"name": "feed", "source": SOURCE}],
}
EVENTS: dict[str, Any] = {
    "location": "s3://lake/{schema}/{table}",
    "recordKey": ["id"],
    "orderingFields": ["_event_lsn"],
    "ingest": [{"name": "feed", "source": {**SOURCE, "type": "Debezium"}}],
}


def set_spec(table: dict[str, Any] | None = None, /, template: Any = None, **changes: Any) -> dict[str, Any]:
    """A right spec of a set with some fields replaced, `table`: of the template's spec; None
    removes one."""
    wanted = {name: value for name, value in (TABLE | (table or {})).items() if value is not None}
    found: dict[str, Any] = {
        "selector": {"topicPattern": "orders-.*"},
        "template": {"spec": wanted, **(template or {})},
    }
    return copy.deepcopy({name: value for name, value in (found | changes).items() if value is not None})


def of_set(table: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    return "HudiTableSet", set_spec(table, **changes)


def _ingest(**kafka: Any) -> list[dict[str, Any]]:
    return [{"name": "feed", "source": {**SOURCE, "kafka": {"brokers": "kafka:9092", **kafka}}}]


FOLLOWS = "has kafka.topics ['{topic}']"
PLACES = "needs {topic}, {table} or {name}"
SET_GOOD = [
    of_set(),
    of_set(EVENTS, selector={"database": {"topicPrefix": "shop", "tablePattern": "public\\..*"}}),
    of_set(EVENTS, selector={"database": {"topicPrefix": "shop"}, "excludePattern": ".*-test"}),
    of_set({"location": "s3://lake/{namespace}/{name}"}, template={"name": "{set}-{table}", "labels": {"of": "{table}"}}),
    of_set({"ingest": [*_ingest(topics=["{topic}"]), {"name": "old", "source": {"type": "Files", "path": "s3://b/{table}", "format": "json"}}]}),
    of_set(
        overrides=[
            {"topic": "orders-eu", "spec": {"recordKey": ["id", "day"], "index": None}},
            {"topic": "orders-test", "skip": True},
            {"topic": "orders_us", "name": "orders-us-2"},
        ],
        maxTables=1000,
    ),
    of_set({**EVENTS, "recordKey": ["{key}"]}, selector={"database": {"topicPrefix": "shop"}}),
    of_set({"recordKey": ["tenant", "{key}"], "ingest": _ingest(topics=["{topic}"], keyFormat="json")}),
    of_set(prune=True, pruneAfter="30m", deletionPolicy="Orphan", suspend=True),
]  # fmt: skip
SET_BAD = [
    (of_set(selector=None), "selector"),
    (("HudiTableSet", {"selector": {"topicPattern": "a"}}), "template"),
    (of_set(selector={}), "give topicPattern or database"),
    (of_set(selector={"topicPattern": "a", "database": {"topicPrefix": "shop"}}), "give topicPattern or database"),
    (of_set(selector={"topicPattern": "orders-("}), "topicPattern is a regular expression"),
    (of_set(selector={"topicPattern": "a", "excludePattern": "*"}), "excludePattern is a regular expression"),
    (
        of_set(EVENTS, selector={"database": {"topicPrefix": "shop", "tablePattern": "["}}),
        "tablePattern is a regular expression",
    ),
    (of_set(EVENTS, selector={"database": {"topicPrefix": "a b"}}), "topicPrefix"),
    (of_set(selector={"database": {"topicPrefix": "shop"}}), "goes with an ingest of type Debezium"),
    (of_set({"ingest": []}), FOLLOWS),
    (of_set({"ingest": _ingest(topics=["orders"])}), FOLLOWS),
    (of_set({"ingest": _ingest(topicPattern="orders-.*")}), FOLLOWS),
    (of_set({"location": "s3://lake/orders"}), PLACES),
    (of_set({"location": "s3://lake/{schema}"}), PLACES),
    (of_set({"recordKey": []}), "recordKey"),
    (of_set({"location": "s3://lake/{topic}/*"}), "it is no pattern"),
    (of_set({"recordKey": ["{key}"]}), "needs keys that name columns"),
    (of_set(maxTables=0), "maxTables"),
    (of_set(pruneAfter="soon"), "pruneAfter"),
    (of_set(deletionPolicy="Retain"), "must be one of Delete, Orphan"),
]
