"""A PostgreSQL in the cluster, and a connector that writes each of its changes to topics."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from e2e.support.broker import build, provide
from e2e.support.kube import Kube
from e2e.support.operator import ROOT

IMAGE: Final = "localhost/hudi-e2e-database:dev"
CONNECT_IMAGE: Final = "localhost/hudi-e2e-connect:dev"
FOLDER: Final = ROOT / "e2e" / "database"
USER: Final = "hudi"


@dataclass(frozen=True, slots=True)
class Database:
    """The one that runs, at a port of this machine; `uri` holds its password."""

    kube: Kube
    uri: str
    password: str

    @contextmanager
    def followed(self, prefix: str, *tables: str) -> Iterator[None]:
        """A connector writes changes of these tables to topics `<prefix>.public.<table>`, until the
        context ends."""
        provide(CONNECT_IMAGE, "setup-connect", ROOT / ".cache" / "connect")
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "plugin.name": "pgoutput",
            "publication.autocreate.mode": "filtered",
            "database.hostname": "database.storage.svc",
            "database.port": "5432",
            "database.user": USER,
            "database.password": self.password,
            "database.dbname": "postgres",
            "topic.prefix": prefix,
            "table.include.list": ",".join(f"public.{name}" for name in tables),
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1",
            "poll.interval.ms": "100",
        }
        _keep_secret(self.kube, "connect", "connector.json", json.dumps({"name": "shop", "config": config}))
        self.kube.apply_file(FOLDER / "connect.yaml")
        try:
            self.kube.rollout("deployment/connect", "storage")
            yield
        finally:
            self.kube.need("delete", "-f", str(FOLDER / "connect.yaml"), "--timeout=3m")


@contextmanager
def running_database(kube: Kube) -> Iterator[Database]:
    """A server, gone at the end with what it holds."""
    build(IMAGE, FOLDER / "Dockerfile", FOLDER)
    password = secrets.token_hex(20)
    _keep_secret(kube, "database", "password", password)
    kube.apply_file(FOLDER / "database.yaml")
    try:
        kube.rollout("deployment/database", "storage")
        with kube.forwarded("service/database", "storage", 5432) as port:
            yield Database(kube, f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres", password)
    finally:
        kube.need("delete", "-f", str(FOLDER / "database.yaml"), "--timeout=3m")


def _keep_secret(kube: Kube, name: str, key: str, text: str) -> None:
    metadata = {"name": name, "namespace": "storage"}
    kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}})
