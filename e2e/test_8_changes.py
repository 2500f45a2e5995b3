"""The demo of streams in the cluster: two tables follow a PostgreSQL through Debezium and Kafka."""

from __future__ import annotations

import secrets
from pathlib import Path

import pyarrow as pa
import yaml

from e2e.support.broker import ADDRESS, Broker
from e2e.support.database import running_database
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, ROOT, Resource
from e2e.support.tables import flights
from examples.streaming.shop import TABLES, Shop

EXAMPLE = ROOT / "examples" / "streaming"
PREFIX = f"shop-{secrets.token_hex(3)}"
ORDERS = 200
"""So many are taken while the shop is open."""


def followed(manifest: Path) -> Document:
    """The table of the demo, in the cluster's store, from the cluster's broker."""
    document: Document = yaml.safe_load(manifest.read_text())
    name = f"{PREFIX}-{document['metadata']['name']}"
    document["metadata"] = {"name": name, "namespace": NAMESPACE}
    spec = document["spec"]
    spec |= {"location": f"s3://lake/{name}", "storage": flights("any")["spec"]["storage"]}
    spec["spark"] = {"driver": {"cpuRequest": "100m", "memory": "1Gi"}}
    (ingest,) = spec["ingest"]
    kafka = ingest["source"]["kafka"]
    kafka |= {"brokers": ADDRESS, "topics": [topic.replace("shop.", f"{PREFIX}.") for topic in kafka["topics"]]}
    return document


def in_table(lake: Lake, name: str) -> pa.Table | None:
    """What another engine finds there, by `id`; None while there is no table."""
    place = f"{PREFIX}-{name}"
    if not lake.has_table(place):
        return None
    return lake.rows(f"s3://lake/{place}").select(TABLES[name]).sort_by("id")


def count(lake: Lake, name: str) -> int:
    found = in_table(lake, name)
    return found.num_rows if found is not None else 0


def is_as_in_the_database(lake: Lake, shop: Shop, name: str) -> bool:
    wanted, found = shop.rows(name), in_table(lake, name)
    return found is not None and found.cast(wanted.schema).equals(wanted)


def test_rows_that_change_in_a_database_arrive_in_two_tables(kube: Kube, lake: Lake, broker: Broker) -> None:
    tables = [Resource(kube, "huditable", f"{PREFIX}-{name}") for name in TABLES]
    with running_database(kube) as database:
        shop = Shop(database.uri)
        shop.open()
        with database.followed(PREFIX, *TABLES):
            kube.apply(*map(followed, EXAMPLE.glob("*.yaml")))
            eventually(lambda: is_as_in_the_database(lake, shop, "customers"), "what was there first is taken")
            shop.trade()
            eventually(lambda: count(lake, "orders") >= ORDERS, "what comes is taken")
            shop.close()
            assert shop.count("orders") >= ORDERS
            for name in TABLES:
                eventually(lambda name=name: is_as_in_the_database(lake, shop, name), f"{name} as in the database")  # type: ignore[misc]
    for table in tables:
        table.delete()
