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
from hudi_table.sources.formats.json import JsonDecoder
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


LARGE = 12_345_678_901_234_567_890


def in_json(*values: str, known: pa.Schema | None = None) -> pa.Table:
    return JsonDecoder().decode([f'{{"v":{value}}}'.encode() for value in values], known)


@pytest.mark.parametrize("form", ["{}", "[1,{}]", '{{"w":{{"x":[{}]}}}}'])
def test_whole_numbers_beyond_64_bits_keep_their_digits(form: str) -> None:
    numbers = [LARGE, LARGE + 1, -LARGE, 5]
    found = in_json(*(form.format(number) for number in numbers)).column("v").to_pylist()
    assert found == [json.loads(form.format(number), parse_int=Decimal) for number in numbers]


def test_whole_numbers_that_a_double_does_not_hold_are_refused_beside_fractions() -> None:
    for values in (["1", str(2**53 + 1), "1.5"], ["1", str(LARGE), "1e5"]):
        with pytest.raises(UndecodableError, match=r"say its type in source\.columns, such as") as refused:
            in_json(*values)
        assert refused.value.place == 2
    with pytest.raises(UndecodableError, match=r"requires precision 21; say its type in source\.columns"):
        in_json(f"{LARGE}0")


def test_numbers_of_a_double_stay_doubles() -> None:
    """By an exponent, by the type that is said, or because a text only looks like a number."""
    assert in_json("1e300", "1.5").column("v").to_pylist() == [1e300, 1.5]
    said = pa.schema([("v", pa.float64())])
    assert in_json(str(LARGE), "1.5", known=said).column("v").to_pylist() == [float(LARGE), 1.5]
    mixed = [f'{{"v":6.5e23,"at":{2**60},"w":"a, \\"{LARGE}"}}'.encode(), b'{"v":1.5}']
    assert JsonDecoder().decode(mixed, None).column("v").to_pylist() == [6.5e23, 1.5]
