"""Change events of a real PostgreSQL (`tests/data/debezium`) as rows: every kind of event and every type."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.sources.formats.debezium import LSN, OPERATION, OWN, DebeziumDecoder
from hudi_table.sources.formats.decoder import UndecodableError

DATA = Path(__file__).parents[3] / "data" / "debezium"
ORDERS = pa.schema(
    [
        ("id", pa.int64()), ("customer", pa.string()), ("amount", pa.string()), ("created", pa.timestamp("us", "UTC")),
        ("note", pa.string()), ("remark", pa.string()), ("big", pa.string()), ("channel", pa.string()),
    ]
)  # fmt: skip


def events(name: str) -> list[bytes | None]:
    """The values of a sample, in their order."""
    lines = (DATA / f"{name}.jsonl").read_text().splitlines()
    values = [json.loads(line)["value"] for line in lines]
    return [None if value is None else json.dumps(value).encode() for value in values]


def of_rows(name: str) -> list[bytes]:
    """Those that are of a row."""
    return [
        each
        for each in events(name)
        if each is not None and json.loads(each).get("payload", json.loads(each))["op"] != "t"
    ]


def decoder(columns: pa.Schema | None = None, **options: Any) -> DebeziumDecoder:
    return DebeziumDecoder(["id"], columns, **{"fills": True, **options})


@pytest.mark.parametrize(("name", "columns"), [("schema-orders", None), ("plain-orders", ORDERS)])
def test_each_event_is_a_row_with_its_kind_and_its_place_in_the_log(name: str, columns: pa.Schema | None) -> None:
    found = decoder(columns).decode(of_rows(name), None)
    told = [(each[OPERATION], each["id"], each["_hoodie_is_deleted"]) for each in found.to_pylist()]
    assert told == [
        ("r", 1, False), ("r", 2, False), ("c", 3, False), ("u", 1, False), ("u", 1, False), ("d", 2, True), ("c", 20, False),
        ("d", 3, True), ("u", 1, False), ("u", 1, False), ("c", 4, False), ("u", 4, False), ("d", 4, True), ("c", 5, False), ("c", 6, False),
    ]  # fmt: skip
    lsns = found[LSN].to_pylist()
    assert lsns == sorted(lsns)
    assert lsns[5] == lsns[6], "a key that changes is two events of one place"
    assert found.column_names[-len(OWN) :] == OWN.names


def test_of_a_delete_the_key_alone_is_taken() -> None:
    """What else stands in `before` is invented, such as a text that is empty."""
    found = decoder().decode(of_rows("schema-orders"), None).to_pylist()
    for row in found:
        if row[OPERATION] == "d":
            others = {name: value for name, value in row.items() if name != "id" and name not in OWN.names}
            assert set(others.values()) == {None}, others


def test_a_decimal_keeps_its_scale_while_the_database_changes_it() -> None:
    found = decoder().decode(of_rows("schema-orders"), None)
    amounts = [(row["id"], row["amount"]) for row in found.to_pylist() if row["amount"] is not None]
    assert amounts[:4] == [(1, Decimal("10.50")), (2, Decimal("20.25")), (3, Decimal("30.00")), (1, Decimal("11.75"))]
    assert (1, Decimal("12.3456")) in amounts


def test_a_column_has_the_type_that_is_asked_for_or_that_the_table_has_if_it_holds_every_value() -> None:
    first = of_rows("schema-orders")[:2]
    wide, narrow = pa.decimal128(20, 4), pa.decimal128(3, 1)
    assert decoder(pa.schema([("amount", wide)])).decode(first, None).schema.field("amount").type == wide
    assert decoder().decode(first, pa.schema([("amount", wide)])).schema.field("amount").type == wide
    assert decoder().decode(first, pa.schema([("amount", narrow)])).schema.field("amount").type == pa.decimal128(12, 2)
    with pytest.raises(InvalidDataError, match=r"column amount is .* and not .* as source\.columns says"):
        decoder(pa.schema([("amount", narrow)])).decode(first, None)


def test_a_marker_takes_the_value_of_the_change_before_or_stays_for_the_table() -> None:
    rows = of_rows("schema-orders")
    with_before = decoder().decode(rows[:4], None).to_pylist()
    assert with_before[3]["big"] == with_before[0]["big"] == "A…10000"
    alone = decoder().decode(rows[3:4], None).to_pylist()
    assert alone[0]["big"] == "__debezium_unavailable_value"
    with pytest.raises(
        UndecodableError, match="leaves the large value of big alone, which the table does not keep"
    ) as caught:
        decoder(fills=False).decode(rows[2:4], None)
    assert caught.value.place == 1


TYPES = {
    "id": 1, "i2": 1, "i4": 2, "i8": 3, "f4": 1.5, "f8": 2.5, "n102": Decimal("99.99"), "b": True, "t": "té", "vc": "vc",
    "c": "c    ", "by": b"\x01\xff", "d": date(2026, 2, 3), "tm": "04:05:06.789", "ts": datetime(2026, 2, 3, 4, 5, 6, 123_456, UTC).replace(tzinfo=None),
    "tsp3": datetime(2026, 2, 3, 4, 5, 6, 123_000, UTC).replace(tzinfo=None), "tz": datetime(2026, 2, 3, 2, 5, 6, 123_456, UTC), "iv": 93_600_000_000,
    "u": "550e8400-e29b-41d4-a716-446655440000", "j": '{"a":1}', "jb": '{"b": 2}', "ar": [1, 2], "ta": ["x", None], "inet": "10.0.0.1",
    "m": Decimal("12.34"), "e": "e", "x": "<a/>", "bt": b"\x05",
}  # fmt: skip


def test_every_type_has_its_value() -> None:
    first = decoder().decode(of_rows("schema-types")[:1], None).to_pylist()[0]
    assert {name: first[name] for name in TYPES if name != "n"} == {
        name: value for name, value in TYPES.items() if name != "n"
    }
    number = int.from_bytes(bytes.fromhex("112210f47de98115"), "big")
    assert Decimal(first["n"]) == Decimal(number).scaleb(-14)
    assert (first["p"]["x"], first["p"]["y"]) == (1.0, 2.0)


def test_what_is_infinite_is_refused_or_null_by_choice() -> None:
    rows = of_rows("schema-types")
    with pytest.raises(
        UndecodableError, match=r"d: the date of -2147472692 days is infinite: source.debezium.infinite AsNull"
    ) as caught:
        decoder().decode(rows, None)
    assert caught.value.place == 2
    found = decoder(infinite_is_null=True).decode(rows, None).to_pylist()[2]
    assert [found[name] for name in ("d", "ts", "tz")] == [None, None, None]
    assert (found["f4"], math.isnan(found["f8"])) == (math.inf, True)


def of(name: str, place: int, **changes: Any) -> bytes:
    """An event with other values in its payload."""
    found = json.loads(events(name)[place] or b"{}")
    found.get("payload", found).update(changes)
    return json.dumps(found).encode()


def with_after(**changes: Any) -> bytes:
    """The first event without a schema, with other values in its row."""
    found = json.loads(events("plain-orders")[0] or b"{}")
    found["after"].update(changes)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("message", "columns", "words"),
    [
        (b"{", None, "Expecting"),
        (b"[]", None, "it is no JSON object"),
        (b'{"id":1}', None, "no change event: it has no op and source"),
        (of("plain-orders", 17), ORDERS, "the table was truncated"),
        (of("plain-orders", 0, op="m"), ORDERS, "its op is 'm', which is of no row"),
        (of("plain-orders", 5, before=None), ORDERS, "give the table a replica identity"),
        (of("plain-orders", 5, before={"other": 1}), ORDERS, "it has no id"),
        (of("schema-orders", 0, source={"connector": "mysql"}), None, "it is of connector mysql"),
        (of("plain-orders", 0), None, "it has no schema: let the connector write schemas"),
        (with_after(other=1), ORDERS, "a field 'other' that source.columns does not name"),
        (with_after(id="x"), ORDERS, "id: 'x' is no whole number"),
        (with_after(created="2026-01-01"), ORDERS, "has no zone"),
        (with_after(), pa.schema([*ORDERS.remove(2), ("amount", pa.decimal128(10, 2))]), "'BBo=' is no decimal with a point"),
        (with_after(amount="1234"), pa.schema([*ORDERS.remove(2), ("amount", pa.decimal128(10, 2))]), "is no decimal with a point"),
        (with_after(), pa.schema([*ORDERS, ("at", pa.timestamp("us"))]), "source.columns: at is timestamp"),
    ],
)  # fmt: skip
def test_what_is_no_event_of_a_row_is_refused_and_says_why(
    message: bytes, columns: pa.Schema | None, words: str
) -> None:
    with pytest.raises(UndecodableError) as caught:
        decoder(columns).decode([message], None)
    assert words in str(caught.value)


def test_a_decimal_with_a_point_is_read_without_a_schema() -> None:
    columns = pa.schema([*ORDERS.remove(2), ("amount", pa.decimal128(10, 2))])
    assert decoder(columns).decode([with_after(amount="-12.50")], None)["amount"].to_pylist() == [Decimal("-12.50")]
