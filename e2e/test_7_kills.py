"""Drivers that follow a topic are killed, deleted and evicted again and again, while messages come:
each row is in the table once, rows of a key keep their order, and each driver has one successor.

`HUDI_TEST_SCALE` multiplies how often.
"""

from __future__ import annotations

import random
import secrets
from typing import Any

import pytest

from e2e.support.broker import ADDRESS, Broker
from e2e.support.drivers import Way, delete_by_force, evict, kill_process, watched
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE
from e2e.support.succession import END_SECONDS_MAX, PATIENCE, applied, assert_one_successor_each, end_next
from e2e.support.tables import flights, on_one_executor
from hudi_operator.api.names import API_VERSION
from tests.support.scale import scaled

KILLS, KILLS_ON_SPARK = scaled(6), scaled(1)
KEYS = 7
INGEST = "feed"
SPARK_APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"
WAYS: tuple[Way, ...] = (kill_process, delete_by_force, kill_process, evict)


def row(number: int) -> dict[str, Any]:
    """Of each of a few keys, the number tells the order."""
    return {"id": f"k{number % KEYS}", "number": number}


def newest_of(sent: int) -> dict[str, int]:
    return {f"k{number % KEYS}": number for number in range(sent)}


def table_of(name: str, topic: str, **more: Any) -> Document:
    source = {"type": "Kafka", "format": "json", "kafka": {"brokers": ADDRESS, "topics": [topic]}}
    ingest = {"name": INGEST, "mode": "Continuous", "commitInterval": "1s", "source": source, **more.pop("ingest", {})}
    rest = {"mode": "Disabled"}
    spec = {
        "location": f"s3://lake/{name}",
        "storage": flights("any")["spec"]["storage"],
        "maintenance": {"cleaning": rest, "archiving": rest},
        "spark": {"launcher": "Job", "driver": {"cpuRequest": "100m", "memory": "1Gi"}},
        "ingest": [ingest],
        **more,
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": API_VERSION, "kind": "HudiTable", "metadata": metadata, "spec": spec}


def inserting(name: str, topic: str) -> Document:
    """Takes rows in without a look for their keys: one that is taken twice is there twice."""
    once = {"operation": "Insert"}
    return table_of(name, topic, ingest=once, recordKey=["number"], index={"type": "Simple"})


def keeping_the_newest(name: str, topic: str, **more: Any) -> Document:
    """Without an ordering field: of each key the message of the latest offset wins."""
    return table_of(name, topic, type="MergeOnRead", recordKey=["id"], index={"type": "Bucket", "buckets": 2}, **more)


def versions(lake: Lake, name: str) -> dict[str, int]:
    found = rows_of(lake, name)
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each["number"] for each in found}


def rows_of(lake: Lake, name: str) -> list[dict[str, Any]]:
    """What another engine finds there; none while there is no table."""
    if not lake.has_table(name):
        return []
    found: list[dict[str, Any]] = lake.rows(f"s3://lake/{name}").to_pylist()
    return found


@pytest.mark.timeout(PATIENCE + KILLS * END_SECONDS_MAX)
def test_a_driver_that_is_killed_deleted_or_evicted_has_one_successor_and_each_row_is_there_once_in_order(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    topic = f"killed-{secrets.token_hex(3)}"
    once, newest = f"{topic}-once", f"{topic}-newest"
    broker.make(topic)
    draw, seen = random.Random(topic), dict[str, int]()
    with (
        watched(kube, INGEST) as sight,
        applied(kube, inserting(once, topic), keeping_the_newest(newest, topic)) as both,
    ):
        with broker.kept_busy(topic, row) as sent:
            for number in range(KILLS):
                end_next(lake, both[number % 2], WAYS[number // 2 % len(WAYS)], draw)
                found = versions(lake, newest)
                assert all(found.get(key, -1) >= version for key, version in seen.items()), "a key went back"
                seen = found
            for ends in both:
                eventually(ends.next_driver, f"a driver of {ends.table.name} is at work", PATIENCE)
        total = sent()
        eventually(lambda: len(rows_of(lake, once)) >= total, f"{once} has all {total} rows", PATIENCE)
        eventually(lambda: versions(lake, newest) == newest_of(total), f"{newest} has the newest of each key", PATIENCE)
        assert_once_and_in_order(rows_of(lake, once), total)
        for ends, what in zip(both, ("Job, Insert", "Job, Upsert"), strict=True):
            assert_one_successor_each(what, kube, lake, "jobs", ends, sight, total)


@pytest.mark.usefixtures("spark_operators")
def test_a_driver_of_a_spark_application_that_is_killed_has_one_successor(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    topic = name = f"killed-spark-{secrets.token_hex(3)}"
    broker.make(topic)
    draw, spark = random.Random(topic), on_one_executor("SparkOperator")
    manifest = keeping_the_newest(name, topic, spark=spark, ingest={"engine": "Spark"})
    with watched(kube, INGEST) as sight, applied(kube, manifest) as (ends,):
        with broker.kept_busy(topic, row) as sent:
            for _ in range(KILLS_ON_SPARK):
                end_next(lake, ends, kill_process, draw)
            eventually(ends.next_driver, "a driver is at work", PATIENCE)
        total = sent()
        eventually(lambda: versions(lake, name) == newest_of(total), "it has the newest of each key", PATIENCE)
        assert_one_successor_each("SparkApplication, Upsert", kube, lake, SPARK_APPLICATIONS, ends, sight, total)


def assert_once_and_in_order(rows: list[dict[str, Any]], total: int) -> None:
    """Each number once; of each key no number in an earlier commit than one before it."""
    ordered = sorted(rows, key=lambda each: each["number"])
    assert [each["number"] for each in ordered] == list(range(total))
    for key in range(KEYS):
        moments = [each["_hoodie_commit_time"] for each in ordered if each["id"] == f"k{key}"]
        assert moments == sorted(moments)
