"""A value is stored as it came, or refused: no reader bends it to a type that others of its column
have."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.sources.formats.debezium import DebeziumDecoder
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.dialects import POSTGRESQL
from hudi_table.sources.formats.envelopes import JsonEnvelopes
from tests.support.change_events import Snapshots

DECIMAL = "org.apache.kafka.connect.data.Decimal"
MOMENT = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
NUMERIC = {"type": "bytes", "name": DECIMAL, "parameters": {"scale": "10", "connect.decimal.precision": "20"}}
LONG = base64.b64encode((12345678901234567891).to_bytes(9, "big")).decode()
CHANGES: list[tuple[str, dict[str, Any], Any, pa.DataType, Any]] = [
    ("a real becomes a double", {"type": "double"}, 0.1, pa.float32(), 0.1),
    ("a real becomes a double that no real holds", {"type": "double"}, 1e300, pa.float32(), 1e300),
    ("a number becomes a text", {"type": "string"}, "007", pa.int64(), "007"),
    ("a double becomes a text", {"type": "string"}, "1.10", pa.float64(), "1.10"),
    ("a truth value becomes a number", {"type": "int32"}, 2, pa.bool_(), 2),
    (
        "a date becomes a moment",
        MOMENT,
        1_577_880_000_000_000,
        pa.date32(),
        datetime(2020, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None),
    ),
    ("a double becomes a decimal", NUMERIC, LONG, pa.float64(), Decimal("1234567890.1234567891")),
]


def event(kind: dict[str, Any], value: Any) -> bytes:
    fields = [{"field": "id", "type": "int64"}, {"field": "v", "optional": True, **kind}]
    source = {"connector": "postgresql", "lsn": 10, "txId": 1, "ts_ms": 1}
    parts = [{"field": name, "type": "struct", "optional": True, "fields": fields} for name in ("before", "after")]
    payload = {"op": "u", "source": source, "before": None, "after": {"id": 1, "v": value}}
    return json.dumps({"schema": {"type": "struct", "fields": parts}, "payload": payload}).encode()


def changed(messages: list[bytes], kind: pa.DataType) -> pa.Table:
    """Of a table whose column has this type."""
    decoder = DebeziumDecoder(JsonEnvelopes(None, POSTGRESQL), POSTGRESQL, ["id"], None, stored=Snapshots())
    return decoder.decode(messages, pa.schema([("id", pa.int64()), ("v", kind)]))


@pytest.mark.parametrize(("kind", "value", "known", "stored"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_column_that_changes_its_type_in_the_database_keeps_its_values(
    kind: dict[str, Any], value: Any, known: pa.DataType, stored: Any
) -> None:
    assert changed([event(kind, value)], known).column("v").to_pylist() == [stored]


def test_a_column_that_the_database_narrows_keeps_the_type_of_the_table() -> None:
    assert changed([event({"type": "int32"}, 7)], pa.int64()).schema.field("v").type == pa.int64()


def test_decimals_beside_doubles_of_the_type_before_are_refused() -> None:
    with pytest.raises(UndecodableError, match="no type holds the digits of both"):
        changed([event({"type": "double"}, 1.5), event(NUMERIC, LONG)], pa.float64())
