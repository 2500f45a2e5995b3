"""Change events of a real PostgreSQL in Avro (`tests/data/debezium`), as rows: every kind of event
and every type."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.sources.formats.avro_envelopes import AvroEnvelopes
from hudi_table.sources.formats.debezium import DebeziumDecoder
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.dialects import LSN, MYSQL, OPERATION, POSTGRESQL, ROW, SEQUENCE
from tests.support.change_events import TYPES as SAMPLE
from tests.support.change_events import Snapshots

DATA = Path(__file__).parents[3] / "data" / "debezium"
SCHEMAS: dict[str, Any] = json.loads((DATA / "avro-schemas.json").read_text())


def messages(name: str) -> list[bytes]:
    lines = (DATA / f"avro-{name}.jsonl").read_text().splitlines()
    return [bytes.fromhex(value) for line in lines if (value := json.loads(line)["value"]) is not None]


def schema_of(number: int) -> str:
    if str(number) not in SCHEMAS:
        raise InvalidDataError(f"the schema registry has no schema {number}")
    return json.dumps(SCHEMAS[str(number)])


def decoder(columns: pa.Schema | None = None, **options: Any) -> DebeziumDecoder:
    return DebeziumDecoder(
        AvroEnvelopes(schema_of, POSTGRESQL), POSTGRESQL, ["id"], columns, **{"stored": Snapshots(), **options}
    )


def test_each_event_is_a_row_with_its_kind_and_its_place_in_the_log() -> None:
    found = decoder().decode(messages("orders")[:4], None)
    rows = found.to_pylist()
    assert [(row[OPERATION], row["id"], row["_hoodie_is_deleted"]) for row in rows] == ORDERS
    lsns = found[LSN].to_pylist()
    assert lsns == sorted(lsns)
    assert [row["extra"] for row in rows] == [None, None, 6, None], "a column that was added: two schemas"
    assert rows[0]["amount"] == Decimal("6.0000")
    assert rows[0]["created"] == datetime(2026, 3, 6, tzinfo=UTC)
    for row in rows:
        if row[OPERATION] == "d":
            assert {value for name, value in row.items() if name != "id" and name not in POSTGRESQL.own.names} == {None}


ORDERS = [("r", 6, False), ("c", 7, False), ("u", 7, False), ("d", 7, True)]

TYPES = SAMPLE | {"i4": 4}


def test_every_type_has_its_value() -> None:
    first = decoder().decode(messages("types")[:1], None).to_pylist()[0]
    assert {name: first[name] for name in TYPES} == TYPES
    number = int.from_bytes(bytes.fromhex("112210f47de98115"), "big")
    assert Decimal(first["n"]) == Decimal(number).scaleb(-14)
    assert (first["p"]["x"], first["p"]["y"]) == (1.0, 2.0)


def test_what_is_no_event_of_a_row_is_refused_with_its_place_and_says_why() -> None:
    sample = messages("orders")
    for bad, words in (
        (sample[4], "the table was truncated"),
        (b"\0\0\0\0\x63" + sample[0][5:], "has no schema 99"),
        (b"\0\0\0\0\x07\x0c", "schema 7 of the registry is none of a change event that can be stored"),
        (sample[0][:-1], "it is no record of its schema"),
        (b"{}", "it does not begin with a zero byte and the id of a schema"),
    ):
        with pytest.raises(UndecodableError, match=words) as caught:
            decoder().decode([*sample[:2], bad, sample[3]], None)
        assert caught.value.place == 2, words


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
"""As other converters say it: Avro's types alone."""
EVENT = {
    "type": "record", "name": "Envelope", "namespace": "shop",
    "fields": [
        {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": [
            {"name": "id", "type": "int"}, {"name": "price", "type": ["null", MONEY]},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        ]}]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [
            {"name": "connector", "type": "string"}, {"name": "ts_ms", "type": "long"}, {"name": "file", "type": "string"},
            {"name": "pos", "type": "long"}, {"name": "row", "type": "int"},
        ]}},
        {"name": "op", "type": "string"},
    ],
}  # fmt: skip


def test_events_of_a_binlog_and_types_of_avro_alone_are_read() -> None:
    row = {"id": 1, "price": Decimal("-12.50"), "day": date(2026, 2, 3), "at": datetime(2026, 2, 3, 4, tzinfo=UTC)}
    source = {"connector": "mysql", "ts_ms": 5, "file": "binlog.000009", "pos": 12, "row": 3}
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out, fastavro.parse_schema(EVENT), {"before": None, "after": row, "source": source, "op": "c"}
    )
    events = AvroEnvelopes(lambda number: json.dumps(EVENT), MYSQL)
    message = b"\0" + struct.pack(">I", 1) + out.getvalue()
    found = DebeziumDecoder(events, MYSQL, ["id"], None, stored=Snapshots()).decode([message], None).to_pylist()[0]
    assert {name: found[name] for name in row} == {
        **row,
        "at": datetime(2026, 2, 3, 4, tzinfo=UTC).replace(tzinfo=None),
    }
    assert (found[SEQUENCE], found[ROW]) == ("0000000009.000000000000012.0000000003", 3)
