"""`kubectl hudi lag`: which streams are asked stands in the resource of a cluster, what they hold
comes from a real broker."""

from __future__ import annotations

from pathlib import Path

from tests.support.api_server import ApiServer
from tests.support.kafka import running_broker
from tests.support.manifests import ingest
from tests.support.shell import Shell, made


def test_the_brokers_that_the_resource_names_are_asked(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    with running_broker() as broker:
        topic = broker.topic(partitions=2)
        broker.produce(topic, [b"{}"] * 3, partition=1)
        source = {"type": "Kafka", "format": "json", "kafka": {"brokers": broker.address, "topics": [topic]}}
        made(server, shell.namespace, location=f"file://{tmp_path / 'lake'}", ingest=[ingest(), ingest(name="other", source=source)])  # fmt: skip
        items = shell.document("lag", "flights")["items"]
        assert [(each["ingest"], each["stream"], each["partition"], each["end"]) for each in items] == [
            ("other", topic, "0", "0"),
            ("other", topic, "1", "3"),
        ]
        head, *rows = shell.good("lag", "flights", "other").splitlines()
        assert (head.split()[:3], len(rows)) == (["INGEST", "STREAM", "PARTITION"], 2)
        wrong = shell.hudi("lag", "flights", "feed")
        assert (
            "flights has no ingest 'feed' from Kafka, Debezium or Kinesis; those from streams are other" in wrong.stderr
        )


def test_a_table_without_streams_has_no_lag_by_partition(server: ApiServer, shell: Shell) -> None:
    made(server, shell.namespace)
    done = shell.hudi("lag", "flights")
    assert (done.returncode, done.stdout) == (1, "")
    assert "flights has no ingest from Kafka, Debezium or Kinesis; it has none" in done.stderr
