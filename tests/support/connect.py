"""Kafka Connect with Debezium's connectors for PostgreSQL and MariaDB, in one process: it writes
each change of a database to topics of a broker.

Its jars are pinned in requirements/connect.sha256 and connect-mariadb.sha256, and fetched by
`make setup-connect`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tests.support import mariadb, postgres
from tests.support.kafka import Broker, java_of
from tests.support.server_process import HOST, START_SECONDS_MAX, ServerProcess, free_ports

_CACHE = Path(__file__).resolve().parents[2] / ".cache"
JARS, MARIADB_JARS = _CACHE / "connect" / "jars", _CACHE / "connect-mariadb" / "jars"
BINLOG = ("--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=1")
"""Settings of a MariaDB that is followed."""
_WORKER = """
bootstrap.servers={broker}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
plugin.discovery=service_load
listeners=http://127.0.0.1:{port}
"""
_END_OF_MAP = b"\x78"
"""The last byte of a map as Java serializes it."""
_MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


class Connector:
    """One connector in a process of its own. It goes on where it has been when it is started
    again, and repeats what it had not noted yet."""

    def __init__(self, folder: Path, jars: Path) -> None:
        if not jars.is_dir():
            pytest.fail("the jars of Kafka Connect are not there: make setup-connect")
        (self._port,) = free_ports(1)
        self._folder, self._jars = folder, jars
        self._process = ServerProcess("Kafka Connect", folder / "log")

    def make(self, broker: Broker, config: Mapping[str, str]) -> None:
        """Its files, before it starts first."""
        worker = _WORKER.format(broker=broker.address, folder=self._folder, port=self._port)
        (self._folder / "worker.properties").write_text(worker)
        (self._folder / "shop.json").write_text(json.dumps({"name": "shop", "config": dict(config)}))
        (self._folder / "shop.json").chmod(0o600)

    def start(self) -> None:
        """Start it, and wait until it runs."""
        files = [str(self._folder / name) for name in ("worker.properties", "shop.json")]
        command = [*java_of(f"{self._jars}/*"), _MAIN, *files]
        self._process.start(command, lambda _: self._streams(), cwd=self._folder, env=os.environ | {"TZ": "UTC"})

    def settle(self) -> None:
        """Wait until its snapshot is over, and it has noted so."""
        until = time.monotonic() + START_SECONDS_MAX
        while not self._has_noted():
            assert time.monotonic() < until, "the connector notes nothing"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, but not before it has noted where it is behind its snapshot, nor while it
        does: it empties that file first. Else it would begin anew, by a snapshot, which knows of no
        deletes."""
        self._process.stop_when(self._has_noted)
        self._process.kill()

    def end(self) -> None:
        """End it for good."""
        self._process.kill()

    def _has_noted(self) -> bool:
        path = self._folder / "offsets"
        noted = path.read_bytes() if path.exists() else b""
        return noted[-1:] == _END_OF_MAP and b"snapshot" not in noted

    def _streams(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._port}/connectors/shop/status", timeout=2) as answer:
                status: Mapping[str, list[Mapping[str, str]]] = json.load(answer)
        except OSError:
            return False
        states = [task["state"] for task in status["tasks"]]
        if "FAILED" in states:
            raise RuntimeError(status["tasks"][0]["trace"])
        return states == ["RUNNING"]


@contextlib.contextmanager
def following(
    broker: Broker, database: postgres.Server | mariadb.Server, tables: str, **config: str
) -> Iterator[Connector]:
    """A connector that follows tables of a database (`public.orders,public.lines`): their topics
    are `shop.public.orders` and so on (`topic.prefix`). Gone at the end, with its slot."""
    with tempfile.TemporaryDirectory(prefix="connect-") as name:
        is_postgres = isinstance(database, postgres.Server)
        of_database = _of_postgres(database) if isinstance(database, postgres.Server) else _of_mariadb(database, name)
        connector = Connector(Path(name), JARS if is_postgres else MARIADB_JARS)
        connector.make(
            broker,
            {
                "tasks.max": "1",
                "database.hostname": HOST,
                "topic.prefix": "shop",
                "table.include.list": tables,
                "topic.creation.default.replication.factor": "1",
                "topic.creation.default.partitions": "1",
                "poll.interval.ms": "100",
                **of_database,
                **config,
            },
        )
        try:
            connector.start()
            yield connector
        finally:
            connector.end()
            if isinstance(database, postgres.Server):
                # A slot that nobody reads keeps the database's log for ever.
                database.execute(
                    "select pg_terminate_backend(active_pid) from pg_replication_slots where active",
                    "select pg_drop_replication_slot(slot_name) from pg_replication_slots",
                )


def _of_postgres(database: postgres.Server) -> dict[str, str]:
    place = urlparse(database.uri)
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "database.port": str(place.port),
        "database.user": str(place.username),
        "database.password": str(place.password),
        "database.dbname": place.path.strip("/"),
    }


def _of_mariadb(database: mariadb.Server, folder: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.port": str(database.port),
        "database.user": mariadb.USER,
        "database.password": mariadb.PASSWORD,
        "database.server.id": "5401",
        "database.include.list": mariadb.DATABASE,
        "database.ssl.mode": "disable",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": f"{folder}/history",
    }
