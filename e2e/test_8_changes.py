"""The demo of streams in the cluster: two tables follow a PostgreSQL through Debezium and Kafka,
and go on to do so while their drivers are killed. `HUDI_TEST_SCALE` multiplies how often."""

from __future__ import annotations

import functools
import random
import secrets
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from e2e.support.broker import ADDRESS, Broker
from e2e.support.database import running_database
from e2e.support.drivers import kill_process, watched
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, ROOT
from e2e.support.succession import END_SECONDS_MAX, PATIENCE, applied, assert_one_successor_each, end_next
from e2e.support.tables import flights
from examples.streaming.shop import TABLES, Shop
from tests.support.scale import scaled

EXAMPLE = ROOT / "examples" / "streaming"
ORDERS = 200
"""So many are taken while the shop is open."""
KILLS = scaled(4)
REST = {"mode": "Disabled"}


def followed(manifest: Path, prefix: str) -> Document:
    """The table of the demo, in the cluster's store, from the cluster's broker; its timeline keeps
    every commit."""
    document: Document = yaml.safe_load(manifest.read_text())
    name = f"{prefix}-{document['metadata']['name']}"
    document["metadata"] = {"name": name, "namespace": NAMESPACE}
    spec = document["spec"]
    spec |= {"location": f"s3://lake/{name}", "storage": flights("any")["spec"]["storage"]}
    spec["spark"] = {"launcher": "Job", "driver": {"cpuRequest": "100m", "memory": "1Gi"}}
    spec.setdefault("maintenance", {}).update(cleaning=REST, archiving=REST)
    (ingest,) = spec["ingest"]
    kafka = ingest["source"]["kafka"]
    kafka |= {"brokers": ADDRESS, "topics": [topic.replace("shop.", f"{prefix}.") for topic in kafka["topics"]]}
    return document


def in_table(lake: Lake, place: str, name: str) -> pa.Table | None:
    """What another engine finds there, by `id`; None while there is no table."""
    if not lake.has_table(place):
        return None
    return lake.rows(f"s3://lake/{place}").select(TABLES[name]).sort_by("id")


def count(lake: Lake, place: str, name: str) -> int:
    found = in_table(lake, place, name)
    return found.num_rows if found is not None else 0


def is_as_in_the_database(lake: Lake, shop: Shop, place: str, name: str) -> bool:
    wanted, found = shop.rows(name), in_table(lake, place, name)
    return found is not None and found.cast(wanted.schema).equals(wanted)


@pytest.mark.timeout(PATIENCE + KILLS * END_SECONDS_MAX)
def test_rows_that_change_in_a_database_arrive_in_two_tables_though_drivers_are_killed(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    prefix = f"shop-{secrets.token_hex(3)}"
    draw, places = random.Random(prefix), {name: f"{prefix}-{name}" for name in TABLES}
    manifests = [followed(EXAMPLE / f"{name}.yaml", prefix) for name in TABLES]
    with running_database(kube) as database:
        shop = Shop(database.uri)
        shop.open()
        with database.followed(prefix, *TABLES), watched(kube, "changes") as sight, applied(kube, *manifests) as both:
            eventually(
                lambda: is_as_in_the_database(lake, shop, places["customers"], "customers"), "what was first is taken"
            )
            shop.trade()
            eventually(lambda: count(lake, places["orders"], "orders") >= ORDERS, "what comes is taken")
            for number in range(KILLS):
                end_next(lake, both[number % 2], kill_process, draw)
            for ends in both:
                eventually(ends.next_driver, f"a driver of {ends.table.name} is at work", PATIENCE)
            shop.close()
            assert shop.count("orders") >= ORDERS
            for name, place in places.items():
                same = functools.partial(is_as_in_the_database, lake, shop, place, name)
                eventually(same, f"{name} as in the database", PATIENCE)
            for ends in both:
                assert_one_successor_each(f"Job, {ends.table.name}", kube, lake, "jobs", ends, sight, shop.changes)
