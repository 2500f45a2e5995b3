"""Topics of a broker in the cluster become tables that follow them: by one HudiTableSet, with a
driver for each, which keep at work until the set says something else; and by Spark, with an
executor that stays from commit to commit."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from e2e.support.broker import ADDRESS, Broker
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, OWNER, Resource, executors
from e2e.support.tables import flights, on_one_executor
from hudi_operator.api.names import API_VERSION

SET = f"shop-{secrets.token_hex(3)}"
"""Another each time, so that a part of the suite can be repeated on one cluster."""
TOPICS = (f"{SET}.orders", f"{SET}.returns")


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": number, "text": f"row {number}"} for number in range(first, first + count)]


def the_set(interval: str = "1s", **spec: Any) -> Document:
    storage = flights("any")["spec"]["storage"]
    source = {"type": "Kafka", "format": "json", "kafka": {"brokers": ADDRESS, "topics": ["{topic}"]}}
    table = {
        "location": "s3://lake/{set}/{table}",
        "storage": storage,
        "type": "MergeOnRead",
        "recordKey": ["id"],
        "index": {"type": "Bucket", "buckets": 2},
        "ingest": [{"name": "feed", "mode": "Continuous", "commitInterval": interval, "source": source}],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "HudiTableSet",
        "metadata": {"name": SET, "namespace": NAMESPACE},
        "spec": {
            "selector": {"topicPattern": rf"{SET}\..*"},
            "template": {"name": "{set}-{table}", "spec": table},
            "prune": True,
            "pruneAfter": "1s",
            **spec,
        },
    }


def holds(lake: Lake, name: str, count: int) -> bool:
    """Whether another engine finds so many rows there, each once."""
    if not lake.keys("lake", f"{SET}/{name}/.hoodie/hoodie.properties"):
        return False
    found = lake.rows(f"s3://lake/{SET}/{name}").column("id").to_pylist()
    assert len(found) == len(set(found))
    return sorted(found) == list(range(count))


def driver(table: Resource) -> str:
    """The pod that follows the topic; '' while there is none, or two."""
    found = [pod["metadata"]["name"] for pod in table.pods() if pod["status"]["phase"] == "Running"]
    return found[0] if len(found) == 1 else ""


def test_topics_become_tables_that_follow_them_as_the_set_says(kube: Kube, lake: Lake, broker: Broker) -> None:
    broker.make(*TOPICS)
    for topic in TOPICS:
        broker.send(topic, rows(0, 50))
    kube.apply(the_set())
    tables = {name: Resource(kube, "huditable", f"{SET}-{name}") for name in ("orders", "returns")}
    for name in tables:
        eventually(lambda name=name: holds(lake, name, 50), f"{name} has its rows")  # type: ignore[misc]
    Resource(kube, "huditableset", SET).until("Ready")
    first = eventually(lambda: driver(tables["orders"]), "one driver follows orders")
    broker.send(TOPICS[0], rows(50, 50))
    eventually(lambda: holds(lake, "orders", 100), "what comes is taken")
    assert driver(tables["orders"]) == first

    kube.apply(the_set(interval="2s"))
    eventually(lambda: driver(tables["orders"]) not in ("", first), "another driver has taken its place")
    broker.send(TOPICS[0], rows(100, 50))
    eventually(lambda: holds(lake, "orders", 150), "what comes then is taken")

    # One that is selected no more goes; its topic, its files and the other table stay.
    kube.apply(the_set(interval="2s", selector={"topicPattern": rf"{SET}\.orders"}))
    eventually(lambda: tables["returns"].now() is None, "its table is gone")
    assert holds(lake, "returns", 50)
    broker.send(TOPICS[0], rows(150, 10))
    eventually(lambda: holds(lake, "orders", 160), "the other goes on")


def test_the_tables_go_with_their_set_and_their_drivers_with_them(kube: Kube, lake: Lake) -> None:
    table = Resource(kube, "huditable", f"{SET}-orders")
    uid = table.uid()
    Resource(kube, "huditableset", SET).delete()
    eventually(lambda: table.now() is None, "the table is gone")
    eventually(lambda: not kube.items("pods", "-n", NAMESPACE, "-l", f"{OWNER}={uid}"), "its driver is gone")
    assert holds(lake, "orders", 160), "its files stay"


@pytest.mark.usefixtures("spark_operators")
def test_a_driver_on_spark_follows_a_topic_with_executors_until_it_is_to_rest(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    name, topic = f"spark-{SET}", f"spark-{SET}"
    broker.make(topic)
    broker.send(topic, rows(0, 50))
    spec = the_set()["spec"]["template"]["spec"]
    (ingest,) = spec["ingest"]
    ingest["engine"] = "Spark"
    ingest["source"]["kafka"]["topics"] = [topic]
    spec["location"] = f"s3://lake/{SET}/{name}"
    # Few rows for few logs are the driver's work; base files are that of the executors.
    spec["type"] = "CopyOnWrite"
    spec["spark"] = on_one_executor("SparkOperator")
    manifest = {
        "apiVersion": API_VERSION,
        "kind": "HudiTable",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
    kube.apply(manifest)
    eventually(lambda: holds(lake, name, 50), "its rows are there", 900)
    (first,) = executors(kube)
    broker.send(topic, rows(50, 50))
    eventually(lambda: holds(lake, name, 100), "what comes is taken")
    assert executors(kube) == [first], "the executor stays for the next commit"
    kube.need("delete", "pod", first, "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false")
    broker.send(topic, rows(100, 50))
    eventually(lambda: holds(lake, name, 150), "what comes while another executor starts is taken", 900)
    table = Resource(kube, "huditable", name)
    spec["suspend"] = True
    kube.apply(manifest)
    eventually(lambda: not executors(kube), "it rests, and nothing of Spark runs")
    assert holds(lake, name, 150)
    table.delete()
    eventually(lambda: table.now() is None, "the table is gone")
