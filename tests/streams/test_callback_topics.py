"""Callbacks of HudiTables whose receiver is a topic of a real broker: order, repeats, a broker that
is killed, what is refused, and where the secrets are not."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.callbacks import topics
from hudi_table.callbacks.signatures import HEADER, is_signed
from hudi_table.table.timeline.active import load_timeline
from tests.support.courier_bench import CourierBench, hasten, table_in, waits_for
from tests.support.kafka import PASSWORD, USER, Broker, running_broker
from tests.support.manifests import manifest

KEY = "s1gn1ng-k3y-0001"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return table_in(tmp_path)


def topic_of(broker: Broker, topic: str, **changes: Any) -> dict[str, Any]:
    return {"name": "hook", "kafka": {"brokers": broker.address, "topic": topic}, "since": "earliest", **changes}


def secure(broker: Broker, topic: str) -> dict[str, Any]:
    kafka = {
        "brokers": broker.secure_address,
        "topic": topic,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    return topic_of(broker, topic, kafka=kafka, secretRef={"name": "hook"})


def secret(broker: Broker, **changes: str) -> dict[str, dict[str, str]]:
    held = {
        "signingKey": KEY, "KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": PASSWORD,
        "KAFKA_CA": broker.certificate.decode(),
    }  # fmt: skip
    return {"hook": held | changes}


def flights(folder: Path, *callbacks: dict[str, Any]) -> dict[str, Any]:
    return manifest("flights", location=f"file://{folder / 'flights'}", recordKey=["id"], orderingFields=["ts"], index={"type": "Bucket", "buckets": 1}, callbacks=list(callbacks))  # fmt: skip


def written(table: HudiTable, count: int) -> list[str]:
    """The instants of all writes that there are then."""
    for number in range(count):
        table.upsert(pa.table({"id": ["a"], "ts": pa.array([number], pa.int64())}))
    return [i.time for i in load_timeline(open_table(table.context.base_path).context).commits]


class Reader:
    """Who reads a topic from its beginning."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._client = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.address, "group.id": topic, "auto.offset.reset": "earliest"}
        )
        self._client.subscribe([topic])
        self.messages: list[Any] = []

    def instants(self) -> list[str]:
        """Of all events that have come, in their order."""
        while True:
            got = self._client.consume(100, 0.2)
            self.messages += [each for each in got if each.error() is None]
            if not got:
                return [json.loads(each.value())["data"]["instant"] for each in self.messages]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    return broker.topic(partitions=3)


@pytest.fixture
def reader(broker: Broker, topic: str) -> Iterator[Reader]:
    found = Reader(broker, topic)
    yield found
    found.close()


def test_every_commit_is_sent_once_in_order_in_one_partition(
    broker: Broker, topic: str, reader: Reader, tmp_path: Path, table: HudiTable
) -> None:
    made = written(table, 3)
    with CourierBench(tmp_path / "state", secrets={}) as bench:
        bench.apply(flights(tmp_path, topic_of(broker, topic)))
        waits_for(lambda: reader.instants() == made, "the first commits do not come")
        made = written(table, 23)
        waits_for(lambda: reader.instants() == made, "later commits do not come")
        waits_for(lambda: bench.callback().get("lastDelivered") == made[-1], "the status does not say so")
        assert bench.condition()[:2] == ("True", "Delivered")
    first = reader.messages[0]
    assert {each.partition() for each in reader.messages} == {first.partition()}
    assert first.key().decode() == json.loads(first.value())["source"]
    assert dict(first.headers()) == {"content-type": b"application/cloudevents+json; charset=UTF-8"}


def test_brokers_that_ask_for_tls_and_a_user_get_signed_events(
    broker: Broker, topic: str, reader: Reader, tmp_path: Path, table: HudiTable, caplog: pytest.LogCaptureFixture
) -> None:
    made = written(table, 2)
    caplog.set_level(logging.DEBUG)
    with CourierBench(tmp_path / "state", secrets=secret(broker)) as bench:
        bench.apply(flights(tmp_path, secure(broker, topic)))
        waits_for(lambda: reader.instants() == made, "the commits do not come")
        told = json.dumps(bench.status()) + repr(bench.events) + caplog.text
    sent = reader.messages[0]
    assert is_signed(KEY, sent.value(), dict(sent.headers())[HEADER].decode(), time.time())
    assert not [value for value in (PASSWORD, KEY) if value in told + str(sent.value())]


def test_a_broker_that_is_killed_is_told_of_and_no_commit_is_forgotten_or_overtaken(
    broker: Broker, topic: str, reader: Reader, tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "SECONDS", 2.0)
    with CourierBench(tmp_path / "state", secrets={}) as bench:
        made = written(table, 2)
        bench.apply(flights(tmp_path, topic_of(broker, topic)))
        waits_for(lambda: reader.instants() == made, "the first commits do not come")
        broker.kill()
        try:
            written(table, 2)
            waits_for(lambda: bench.condition()[:2] == ("False", "ReceiverFails"), "no condition", seconds=120)
            assert "do not answer" in bench.condition()[2]
        finally:
            broker.start()
        made = written(table, 1)
        waits_for(lambda: list(dict.fromkeys(reader.instants())) == made, "they do not come", seconds=120)
        waits_for(
            lambda: bench.condition()[:2] == ("True", "Delivered"), "it is not told that all is well", seconds=120
        )
        assert reader.instants() == sorted(reader.instants()), "none comes behind a later one"


def test_a_topic_that_is_not_there_and_a_wrong_password_are_told(
    broker: Broker, topic: str, tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(table, 1)
    monkeypatch.setattr(topics, "SECONDS", 2.0)
    with CourierBench(tmp_path / "state", secrets=secret(broker, KAFKA_SASL_PASSWORD="another password")) as bench:
        bench.apply(flights(tmp_path, topic_of(broker, "gone")))
        waits_for(
            lambda: "gone" in bench.condition()[2] or "topic" in bench.condition()[2], "it is not told", seconds=30
        )
        assert bench.condition()[:2] == ("False", "ReceiverFails")
        bench.apply(flights(tmp_path, secure(broker, topic)))
        waits_for(lambda: "refuse" in bench.condition()[2], "the password is not told of", seconds=120)
        assert "another password" not in json.dumps(bench.status())
        bench.apply(flights(tmp_path, {**secure(broker, topic), "secretRef": {"name": "none"}}))
        waits_for(lambda: bench.condition()[1] == "SigningKeyMissing", "the Secret is not missed")


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (["kafka.example.com"], "host localhost is not allowed; list it in callbacks.allowedHosts"),
        (["localhost"], "host localhost is at 127.0.0.1, an address of this machine"),
    ],
)
def test_brokers_that_are_not_listed_are_never_connected_to(
    broker: Broker, topic: str, reader: Reader, tmp_path: Path, table: HudiTable, allowed: list[str], words: str
) -> None:
    written(table, 1)
    port = broker.address.rpartition(":")[2]
    kafka = {"brokers": f"localhost:{port}", "topic": topic}
    with CourierBench(tmp_path / "state", allowed=allowed, secrets={}) as bench:
        bench.apply(flights(tmp_path, topic_of(broker, topic, kafka=kafka)))
        waits_for(lambda: bench.condition()[:2] == ("False", "HostNotAllowed"), "no condition")
        assert words in bench.condition()[2]
        assert bench.condition()[2].endswith("or correct kafka.brokers")
        assert reader.instants() == []


@pytest.mark.at_scale(2)
def test_a_cluster_does_not_lead_to_brokers_that_are_not_listed(
    tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(self: Broker) -> None:
        real(self)
        path = self.folder / "server.properties"
        told = path.read_text().replace(
            "advertised.listeners=PLAIN://127.0.0.1", "advertised.listeners=PLAIN://localhost"
        )
        path.write_text(told)

    real = Broker.make
    monkeypatch.setattr(Broker, "make", elsewhere)
    written(table, 1)
    with running_broker() as other, CourierBench(tmp_path / "state", secrets={}) as bench:
        bench.apply(flights(tmp_path, topic_of(other, "commits")))
        waits_for(lambda: bench.condition()[:2] == ("False", "HostNotAllowed"), "no condition", seconds=120)
        assert "host localhost is not allowed" in bench.condition()[2]
