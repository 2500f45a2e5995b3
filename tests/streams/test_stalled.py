"""What an ingest refuses stands in the condition `Stalled` of its table, with its reason and the
words of the job: each table of one manifest is fed with something that it does not take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import create_table
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.table.store.clock import SystemClock
from tests.streams.test_debezium import WIDE, messages
from tests.streams.test_debezium_truncate import PLACE
from tests.support import polled
from tests.support.feeds import row
from tests.support.kafka import Broker
from tests.support.manifests import manifest
from tests.support.operated import QUICK, condition
from tests.support.postgres import PASSWORD, USER, Server, running_postgres

VALIDATORS = "hoodie.precommit.validators"
EVENTS = {"orderingFields": ["_event_lsn"]}
Document = dict[str, Any]


@dataclass(frozen=True)
class World:
    """What ingests read."""

    folder: Path
    broker: Broker
    server: Server

    def kafka(self, *sent: Any, source: Document | None = None, table: Document | None = None, **work: Any) -> Document:
        """A table that is fed with messages."""
        topic = self.broker.topic(partitions=1)
        self.broker.produce(topic, sent)
        asked = {"brokers": self.broker.address, "topics": [topic]}
        feed = {"type": "Kafka", "format": "json", "kafka": asked, **(source or {})}
        return {"ingest": [{"name": "feed", "source": feed, **work}], **(table or {})}

    def events(self, *sent: Any) -> Document:
        """One that follows a table of a database."""
        return self.kafka(*sent, source={"type": "Debezium", **WIDE}, table=EVENTS)

    def jdbc(self, **jdbc: Any) -> Document:
        url = f"postgresql://127.0.0.1:{self.server.port}/postgres"
        return self.of({"type": "Jdbc", "jdbc": {"url": url, **jdbc}})

    def sql(self, query: str) -> Document:
        tables = [{"name": "above", "location": f"file://{self.folder}/above"}]
        return self.of({"type": "Sql", "sql": {"query": query, "tables": tables}})

    @staticmethod
    def of(source: Document, **work: Any) -> Document:
        return {"ingest": [{"name": "feed", "source": source, **work}]}


def without_large(place: int) -> tuple[bytes | None, bytes]:
    """A change that leaves a large value alone, of a row that nobody has."""
    key, text = messages("schema-orders")[place]
    event = json.loads(text or b"")
    event["payload"]["after"]["big"] = UNAVAILABLE
    return key, json.dumps(event).encode()


def expecting(*names: str) -> Document:
    return {"expectations": [{"name": name, "sql": "n > 0", "onFail": "Quarantine"} for name in names]}


CASES: dict[str, tuple[Callable[[World], Document], str, str]] = {
    "tombstone": (
        lambda world: world.kafka((b"k1", row(1)), (b"k1", None)),
        "InvalidData", "offset 1 is a tombstone",
    ),
    "truncate": (
        lambda world: world.events(*messages("schema-orders")[: PLACE + 1]),
        "InvalidData", "onTruncate",
    ),
    "kept-nowhere": (lambda world: world.events(without_large(7)), "InvalidData", "leaves the large value of big alone"),
    "ratio": (
        lambda world: world.kafka(row(1), *[b"{"] * 11, onUndecodable="Quarantine", maxErrorRatio="0.1"),
        "InvalidData", "than maxErrorRatio 0.1 lets through",
    ),
    "decimal": (lambda world: world.jdbc(table="free"), "InvalidSchema", "column n is numeric without precision"),
    "infinite": (lambda world: world.jdbc(table="endless"), "InvalidData", "column d holds a date that is infinite"),
    "database": (lambda world: world.jdbc(table="nope"), "InvalidRequest", 'relation "nope" does not exist'),
    "statement": (lambda world: world.sql("SELECT gone FROM above"), "InvalidOption", "gone"),
    "package": (
        lambda world: world.of({"type": "Custom", "custom": {"name": "nobody"}}),
        "InvalidRequest", "no package offers a source 'nobody'",
    ),
    "transform": (
        lambda world: world.kafka(row(1), transform=[{"sql": "select reflect('a', 'b') as id from source"}]),
        "InvalidSpec", "spec.ingest[0].transform[0].sql",
    ),
    "expectations": (
        lambda world: world.kafka(row(1), **expecting("same", "same")),
        "InvalidSpec", "same",
    ),
    "validator": (
        lambda world: world.kafka(row(1), table={"options": {
            VALIDATORS: "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
            f"{VALIDATORS}.single.value.sql.queries": "select count(*) from <TABLE_NAME>#7",
        }}),
        "InvalidData", "7",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def stalled(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Mapping[str, Any]]]:
    """The condition of each table, after all of them were tried at once."""
    folder = tmp_path_factory.mktemp("stalled")
    create_table(str(folder / "above"), polled.SCHEMA, record_key="id").upsert(polled.rows_of([1]))
    with pytest.MonkeyPatch.context() as patch, running_postgres() as server:
        patch.setenv("DATABASE_USERNAME", USER)
        patch.setenv("DATABASE_PASSWORD", PASSWORD)
        server.execute(
            "create table free (id int, n numeric)", "insert into free values (1, 1)",
            "create table endless (id int, d date)", "insert into endless values (1, 'infinity')",
        )  # fmt: skip
        world = World(folder, broker, server)
        made = [
            manifest(
                name,
                location=f"file://{folder}/lake/{name}",
                recordKey=["id"],
                **{"index": {"type": "Bucket", "buckets": 2}, **make(world)},
            )
            for name, (make, _, _) in CASES.items()
        ]
        path = folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(made))
        lines: list[str] = []
        found = LocalRuntime([path], folder / "state", SystemClock(), lines.append, QUICK).run()
        yield {each["metadata"]["name"]: condition(each, "Stalled") for each in found}


@pytest.mark.parametrize("name", CASES)
def test_what_an_ingest_refuses_stalls_its_table_with_the_reason_and_the_words_of_the_job(
    stalled: Mapping[str, Mapping[str, Any]], name: str
) -> None:
    _, reason, words = CASES[name]
    found = stalled[name]
    assert (found.get("status"), found.get("reason")) == ("True", reason), found
    assert words in found["message"]
