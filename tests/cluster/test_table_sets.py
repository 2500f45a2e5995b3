"""A HudiTableSet from a real broker to tables, on a real API server with the real operator: topics
become HudiTables and those take in rows; one that comes has a table by itself; one that goes leaves
its table; and the set takes its tables with it, or leaves them.

The broker asks for TLS and a password, which stand in the Secret of the template and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.names import API_VERSION, PLURALS, SET
from hudi_table.api import open_table
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.chart_operator import run_pod
from tests.support.connect import following
from tests.support.kafka import PASSWORD, USER, Broker, running_broker
from tests.support.manifests import manifest, spec
from tests.support.operator_process import operator
from tests.support.postgres import running_postgres
from tests.support.set_manifests import set_spec

APPEARS_SECONDS = 150.0
"""The machine is shared."""
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with running_broker() as running:
        yield running


@dataclass
class Shop:
    """A namespace with an operator, whose sets follow topics of a prefix of their own."""

    server: ApiServer
    namespace: str
    broker: Broker
    folder: Path
    ran: list[str] = field(default_factory=list)
    looks: int = 0

    def topic(self, name: str) -> str:
        return self.broker.topic(f"{self.namespace}.{name}", 1)

    def makes_secret(self, password: str = PASSWORD) -> None:
        values = {
            "KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": password, "KAFKA_CA": self.broker.certificate.decode(),
        }  # fmt: skip
        metadata = {"name": "kafka", "namespace": self.namespace}
        self.server.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})

    def applies(self, name: str = "shop", **changes: Any) -> None:
        source = {
            "type": "Kafka", "format": "json",
            "kafka": {
                "brokers": self.broker.secure_address, "topics": ["{topic}"], "keyFormat": "json",
                "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
            },
        }  # fmt: skip
        table = {
            "location": f"file://{self.folder}/lake/{{table}}",
            "storage": {"credentialsSecretRef": {"name": "kafka"}},
            "ingest": [{"name": "feed", "source": source}],
        }
        wanted = {"selector": {"topicPattern": f"{self.namespace}\\..*"}, "template": {"name": "{table}"}, **changes}
        document = manifest(name, "HudiTableSet", **set_spec(table, **wanted))
        self.server.apply({**document, "metadata": {"name": name, "namespace": self.namespace}})

    def patches(self, name: str = "shop", **changes: Any) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURALS['HudiTableSet']}/{name}"
        self.server.done("PATCH", path, {"spec": changes}, kubelet.MERGE)

    def looks_now(self) -> None:
        """Topics are listed each minute, and at once for another selector: here one that selects
        the same."""
        self.looks += 1
        self.patches(selector={"excludePattern": f"nobody-{self.looks}"})

    def set(self, name: str = "shop") -> dict[str, Any]:
        return self.server.get("hts", name, "-n", self.namespace)

    def says(self, kind: str, name: str = "shop") -> tuple[str, str, str]:
        found = self.set(name).get("status", {}).get("conditions", ())
        return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == kind), ("", "", ""))

    def tables(self) -> dict[str, dict[str, Any]]:
        found = self.server.get("ht", "-n", self.namespace)["items"]
        return {each["metadata"]["name"]: each for each in found}

    def has_tables(self, *names: str) -> None:
        kubelet.eventually(
            lambda: self.tables().keys() == set(names), f"not {names}: {self.tables().keys()}", APPEARS_SECONDS
        )

    def is_said(self, kind: str, reason: str, name: str = "shop") -> str:
        try:
            kubelet.eventually(lambda: self.says(kind, name)[1] == reason, f"{kind} is not {reason}", APPEARS_SECONDS)
        except AssertionError:
            print(self.everything())  # pytest shows it beside what went wrong
            raise
        return self.says(kind, name)[2]

    def takes_in(self, table: str, rows: int) -> None:
        """Pods of a table run until it has so many rows."""

        def settled() -> bool:
            for pod in kubelet.waiting(self.server, self.namespace):
                if pod["metadata"]["name"].startswith(f"{table}-") and pod["metadata"]["name"] not in self.ran:
                    self.ran.append(pod["metadata"]["name"])
                    run_pod(self.server, pod, self.folder / pod["metadata"]["name"])
            data = self.tables()[table].get("status", {}).get("data") or {}
            return bool(data.get("records") == rows)

        kubelet.eventually(settled, f"{table} has not {rows} rows", APPEARS_SECONDS)
        assert open_table(f"{self.folder}/lake/{table}").scan().count() == rows

    def deletes(self, name: str = "shop") -> None:
        done = self.server.kubectl("delete", "hts", name, "-n", self.namespace)
        assert done.returncode == 0, done.stderr

    def everything(self) -> str:
        """All that the API server tells of the namespace, but its Secrets."""
        kinds = "hts,ht,jobs,pods,events.events.k8s.io"
        return self.server.kubectl("get", kinds, "-n", self.namespace, "-o", "json").stdout


@pytest.fixture
def shop(server: ApiServer, namespace: str, broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    with operator(server, namespace, tmp_path / "operator.log"):
        yield Shop(server, namespace, broker, tmp_path)


def test_topics_become_tables_that_take_in_rows_and_go_with_their_set(shop: Shop) -> None:
    for name in ("orders", "users"):
        shop.topic(name)
    rows = [(b'{"id": "a", "day": 1}', b'{"id": "a", "day": 1}'), (b'{"id": "a", "day": 2}', b'{"id": "a", "day": 2}')]
    shop.broker.produce(f"{shop.namespace}.orders", rows)
    shop.broker.produce(f"{shop.namespace}.users", [b'{"id": "c"}'])
    shop.makes_secret()
    shop.applies(overrides=[{"topic": f"{shop.namespace}.orders", "spec": {"recordKey": ["{key}"]}}])
    shop.has_tables("orders", "users")
    orders = shop.tables()["orders"]
    assert orders["spec"]["recordKey"] == ["id", "day"], "the columns of the topic's key"
    assert orders["metadata"]["labels"][SET] == "shop"
    assert orders["spec"]["ingest"][0]["source"]["kafka"]["topics"] == [f"{shop.namespace}.orders"]
    shop.takes_in("orders", 2)
    shop.takes_in("users", 1)
    assert "2 topics with a table each" in shop.is_said("Ready", "TablesReady")
    header, row = shop.server.kubectl("get", "hts", "-n", shop.namespace).stdout.splitlines()
    assert header.split() == ["NAME", "TOPICS", "TABLES", "READY", "REASON", "AGE"]
    assert row.split()[:5] == ["shop", "2", "2", "True", "TablesReady"]
    shop.topic("items")
    shop.looks_now()
    shop.has_tables("items", "orders", "users")
    shop.broker.delete(f"{shop.namespace}.items")
    shop.looks_now()
    assert f"{shop.namespace}.items (items)" in shop.is_said("TopicsVanished", "TopicsVanished")
    assert "items" in shop.tables()
    shop.patches(template={"spec": {"files": {"targetSize": "60Mi"}}})
    kubelet.eventually(
        lambda: (
            {each["spec"]["files"]["targetSize"] for name, each in shop.tables().items() if name != "items"} == {"60Mi"}
        ),
        "tables do not follow the template",
    )
    told = shop.everything() + (shop.folder / "operator.log").read_text()
    assert "TableMade" in told
    assert PASSWORD not in told
    shop.deletes()
    shop.has_tables()


def test_what_cannot_be_done_is_said_and_what_is_somebody_elses_is_left_alone(shop: Shop) -> None:
    theirs = manifest("users", **spec(location=f"file://{shop.folder}/theirs", ingest=[]))
    shop.server.apply({**theirs, "metadata": {"name": "users", "namespace": shop.namespace}})
    for name in ("orders", "users"):
        shop.topic(name)
    shop.applies(prune=True, pruneAfter="1s")
    assert "there is no Secret 'kafka'" in shop.is_said("Ready", "InvalidSpec")
    shop.makes_secret("another password")
    shop.looks_now()
    assert shop.broker.secure_address in shop.is_said("Ready", "AccessDenied")
    shop.makes_secret()
    shop.looks_now()
    assert "is there that is not of this set" in shop.is_said("NameCollision", "NameCollision")
    shop.has_tables("orders", "users")
    assert SET not in shop.tables()["users"]["metadata"].get("labels", {})
    shop.patches(overrides=[{"topic": f"{shop.namespace}.users", "name": "people"}])
    shop.has_tables("orders", "people", "users")
    shop.broker.delete(f"{shop.namespace}.users")
    shop.looks_now()  # and a second time, seconds later, by itself: what is to be pruned is looked at sooner
    shop.has_tables("orders", "users")
    assert "TablePruned" in shop.everything()
    shop.patches(deletionPolicy="Orphan")
    kubelet.eventually(
        lambda: not shop.tables()["orders"]["metadata"].get("ownerReferences"), "the table keeps its owner"
    )
    shop.deletes()
    shop.applies("again", deletionPolicy="Orphan")
    assert "not of this set" in shop.is_said("NameCollision", "NameCollision", "again")
    assert shop.tables().keys() == {"orders", "users"}
    body = {"metadata": {"labels": {SET: "again"}}}
    path = f"/apis/{API_VERSION}/namespaces/{shop.namespace}/{PLURALS['HudiTable']}/orders"
    shop.server.done("PATCH", path, body, kubelet.MERGE)
    assert "orders" in shop.is_said("Ready", "TablesStarting", "again")
    assert shop.tables()["orders"]["metadata"]["labels"][SET] == "again"
    assert json.dumps(shop.tables()["users"]["spec"]).count("theirs") == 1


def test_the_tables_of_a_database_are_followed_and_a_new_one_comes_by_itself(shop: Shop) -> None:
    prefix, everything = shop.namespace, {"publication.autocreate.mode": "all_tables"}
    source = {"type": "Debezium", "format": "json", "kafka": {"brokers": shop.broker.address, "topics": ["{topic}"]}}
    with running_postgres("wal_level=logical") as database:
        database.execute(
            "create table orders (id bigint primary key, n int)",
            "create table lines (order_id bigint, position int, text text, primary key (order_id, position))",
            "create schema apart create table notes (id bigint primary key)",
            "insert into orders select i, i from generate_series(1, 3) i",
            "insert into lines select i, 1, 'x' from generate_series(1, 2) i",
            "insert into apart.notes values (1)",
        )
        with following(shop.broker, database, "public.*,apart.*", **{"topic.prefix": prefix}, **everything):
            table = {
                "location": f"file://{shop.folder}/lake/{{table}}",
                "recordKey": ["{key}"],
                "orderingFields": ["_event_lsn"],
                "ingest": [{"name": "changes", "source": source}],
            }
            selector = {"database": {"topicPrefix": prefix, "tablePattern": "public\\..*"}}
            document = manifest(
                "shop", "HudiTableSet", **set_spec(table, template={"name": "{table}"}, selector=selector)
            )
            shop.server.apply({**document, "metadata": {"name": "shop", "namespace": prefix}})
            shop.has_tables("lines", "orders")
            shop.takes_in("orders", 3)
            shop.takes_in("lines", 2)
            database.execute("create table items (code text primary key)", "insert into items values ('a'), ('b')")
            database.execute("delete from orders where id = 2")
            # Nobody touches the set.
            shop.has_tables("items", "lines", "orders")
            shop.takes_in("items", 2)
            shop.takes_in("orders", 2)
    tables = shop.tables()
    assert {name: each["spec"]["recordKey"] for name, each in tables.items()} == {
        "items": ["code"],
        "lines": ["order_id", "position"],
        "orders": ["id"],
    }
    assert "3 topics with a table each" in shop.is_said("Ready", "TablesReady")
