"""Kafka Connect with Debezium's connector for PostgreSQL, in one process: it writes each change of
a database to topics of a broker.

Its jars are pinned in requirements/connect.sha256 and fetched by `make setup-connect`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.support.kafka import Broker, java_of
from tests.support.postgres import Server
from tests.support.server_process import HOST, ServerProcess, free_ports

JARS = Path(__file__).resolve().parents[2] / ".cache" / "connect" / "jars"
_WORKER = """
bootstrap.servers={broker}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
plugin.discovery=service_load
listeners=http://127.0.0.1:{port}
"""


@contextlib.contextmanager
def following(broker: Broker, database: Server, tables: str, **config: str) -> Iterator[None]:
    """A connector that follows tables of a database (`public.orders,public.lines`): their topics
    are `shop.public.orders` and so on (`topic.prefix`). Gone at the end, with its slot."""
    if not JARS.is_dir():
        pytest.fail("the jars of Kafka Connect are not there: make setup-connect")
    place = urlparse(database.uri)
    connector = {
        "name": "shop",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "database.hostname": HOST,
        "database.port": str(place.port),
        "database.user": str(place.username),
        "database.password": str(place.password),
        "database.dbname": place.path.strip("/"),
        "topic.prefix": "shop",
        "table.include.list": tables,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "poll.interval.ms": "100",
        **config,
    }
    with tempfile.TemporaryDirectory(prefix="connect-") as name:
        folder, (port,) = Path(name), free_ports(1)
        worker = _WORKER.format(broker=broker.address, folder=folder, port=port)
        (folder / "worker.properties").write_text(worker)
        (folder / "shop.json").write_text(json.dumps({"name": connector.pop("name"), "config": connector}))
        (folder / "shop.json").chmod(0o600)
        process = ServerProcess("Kafka Connect", folder / "log")
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [*java_of(f"{JARS}/*"), main, str(folder / "worker.properties"), str(folder / "shop.json")]
        try:
            process.start(command, lambda _: _streams(port), cwd=folder, env=os.environ | {"TZ": "UTC"})
            yield
        finally:
            process.kill()
            # A slot that nobody reads keeps the database's log for ever.
            database.execute(
                "select pg_terminate_backend(active_pid) from pg_replication_slots where active",
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots",
            )


def _streams(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/connectors/shop/status", timeout=2) as answer:
            status: Mapping[str, list[Mapping[str, str]]] = json.load(answer)
    except OSError:
        return False
    states = [task["state"] for task in status["tasks"]]
    if "FAILED" in states:
        raise RuntimeError(status["tasks"][0]["trace"])
    return states == ["RUNNING"]
