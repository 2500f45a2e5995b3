"""Messages of a broker: rows of their own, and the change events of two databases; and records of a
stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.consume import Consumer
from hudi_table.sources.kinesis.stream import Stream
from tests.streams.conformance.on_store import OnStore
from tests.streams.conformance.part import Part, Row
from tests.support.kafka import PASSWORD, USER, Broker
from tests.support.kinesis import REGION, TestStream

NEW_PASSWORD = "an-other-se-cret"
QUARANTINE: dict[str, Any] = {"onUndecodable": "Quarantine", "maxErrorRatio": 1.0}


class Kafka(Part):
    """Messages of JSON in a topic."""

    label = "Kafka"
    part = "a Kafka broker"
    kind = "Kafka"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self.broker: Broker = request.getfixturevalue("broker")
        self.topic = self.broker.topic(partitions=1)
        security = {"protocol": "SaslTls", "mechanism": "PLAIN"}
        self.kafka = {"brokers": self.broker.secure_address, "topics": [self.topic], "security": security}
        super().__init__(request, folder, {"type": self.kind, "format": "json", "kafka": self.kafka})
        self.partition, self.gone, self.rotated = 0, False, False
        self.environment.setenv("KAFKA_SASL_USERNAME", USER)
        self.environment.setenv("KAFKA_SASL_PASSWORD", PASSWORD)
        self.environment.setenv("KAFKA_CA", self.broker.certificate.decode())
        for module in ("client", "brokers"):
            # Nobody waits so long for a broker that is known to be away.
            self.environment.setattr(f"hudi_table.sources.kafka.{module}.TIMEOUT_SECONDS", 4.0)

    def calls(self) -> list[tuple[Any, str]]:
        return [(Consumer, "read"), (Brokers, "_listed_offsets"), (Brokers, "described"), (Brokers, "_cluster")]

    def put(self, *rows: Row, **more: str) -> None:
        self._produce([self.message(row, more) for row in rows])

    def message(self, row: Row, more: dict[str, str]) -> bytes:
        """Of a row."""
        return json.dumps({"id": row[0], "v": row[1], **more}).encode()

    def _produce(self, values: list[bytes]) -> None:
        self.broker.produce(self.topic, [(b'"key"', value) for value in values], partition=self.partition)

    def grow(self) -> None:
        self.broker.add_partitions(self.topic, 2)
        self.partition = 1

    def forget(self) -> str:
        self.broker.forget(self.topic, 0, 2)
        return f"partition 0 of topic {self.topic} begins at offset 2, and the ingest is at 1"

    def onward(self) -> dict[str, Any]:
        return {"source": {"kafka": {**self.kafka, "onDataLoss": "Continue"}}}

    def leave(self) -> None:
        self.gone = True
        self.broker.kill()

    def come_back(self) -> None:
        self.broker.start()
        self.gone = False

    def rotate(self) -> None:
        self.rotated = True
        self.broker.rotate(NEW_PASSWORD)

    def renew(self) -> None:
        self.environment.setenv("KAFKA_SASL_PASSWORD", NEW_PASSWORD)

    def secrets(self) -> list[str]:
        return [PASSWORD, NEW_PASSWORD]

    def poison(self) -> str:
        self._produce([b"{"])
        return f"the message of topic {self.topic}, partition 0, offset 2 cannot be read as json"

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        return [], dict(QUARANTINE)

    def mend(self) -> None:
        if self.gone or self.rotated:
            self.broker.rotate(PASSWORD)


class ChangeEvents(Kafka):
    """Events as Debezium writes them, with their schemas."""

    kind = "Debezium"
    inserts = False
    connector: str

    def message(self, row: Row, more: dict[str, str]) -> bytes:
        columns = [_field("id", "string"), _field("v", "int64"), *(_field(name, "string") for name in more)]
        after = {"id": row[0], "v": row[1], **more}
        place = self.place(row[1])
        source = {"connector": self.connector, "name": "shop", "ts_ms": 1, "db": "shop", "table": "orders", **place}
        fields = [_field(name, "int64" if isinstance(value, int) else "string") for name, value in source.items()]
        schema = _struct(
            {**_struct(columns), "field": "before"}, {**_struct(columns), "field": "after"},
            {**_struct(fields), "field": "source"}, _field("op", "string"), _field("ts_ms", "int64"),
        )  # fmt: skip
        payload = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
        return json.dumps({"schema": schema, "payload": payload}).encode()

    def place(self, version: int) -> dict[str, Any]:
        """Where the event of a version stands in the log of the database."""
        raise NotImplementedError

    def poison(self) -> str:
        self._produce([b"{"])
        return f"topic {self.topic}, partition 0, offset 2"


class OfPostgres(ChangeEvents):
    """Those of PostgreSQL."""

    label = "Debezium, PostgreSQL"
    part = "a Kafka broker; PostgreSQL and its connector in the tests that are named beside"
    order = "_event_lsn"
    connector = "postgresql"

    def place(self, version: int) -> dict[str, Any]:
        return {"txId": version, "lsn": 1000 + version}


class OfMariaDB(ChangeEvents):
    """Those of MariaDB, from two files of its binlog."""

    label = "Debezium, MariaDB"
    part = "a Kafka broker; MariaDB and its connector in the tests that are named beside"
    order = "_event_seq"
    connector = "mariadb"

    def place(self, version: int) -> dict[str, Any]:
        return {"file": f"binlog.{version:06}", "pos": 9000 // version, "row": 0}


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, "optional": True, "field": name}


def _struct(*fields: Any) -> dict[str, Any]:
    listed = list(fields[0]) if len(fields) == 1 else list(fields)
    return {"type": "struct", "optional": True, "fields": listed}


class Kinesis(OnStore):
    """Records of JSON in one shard."""

    label = "Kinesis"
    part = "a stream of moto, which answers as AWS does"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)
        self.stream = TestStream(self.store.server)
        self.kinesis = {"stream": self.stream.name, "endpoint": self.store.server.endpoint, "region": REGION}
        self.feed.source = {"type": "Kinesis", "format": "json", "kinesis": self.kinesis}

    def calls(self) -> list[tuple[Any, str]]:
        return [(Stream, "_ask")]

    def put(self, *rows: Row, **more: str) -> None:
        self._put([json.dumps({"id": row[0], "v": row[1], **more}).encode() for row in rows])

    def _put(self, values: list[bytes]) -> None:
        self.stream.put(values, key="one")

    def grow(self) -> None:
        for name in self.stream.open_shards():
            self.stream.split(name)

    def forget(self) -> str:
        for name, shard in self.stream.state.shards.items():
            self.stream.trim(name, len(shard.records))
        self.stream.state.retention_period_hours = 0
        return "the stream keeps"

    def onward(self) -> dict[str, Any]:
        return {"source": {"kinesis": {**self.kinesis, "onDataLoss": "Continue"}}}

    def poison(self) -> str:
        self._put([b"{"])
        return f"the record of stream {self.stream.name}, shard shardId-"

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        return [], dict(QUARANTINE)
