"""Change events of a real PostgreSQL (`tests/data/debezium`) as rows: every kind of event and every
type."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.sources.formats import values as values_module
from hudi_table.sources.formats.debezium import DebeziumDecoder
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.dialects import FILE, LSN, MYSQL, OPERATION, POSITION, POSTGRESQL, ROW, SEQUENCE
from hudi_table.sources.formats.envelopes import JsonEnvelopes
from hudi_table.sources.kafka import rows
from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.where import Where
from tests.support.change_events import TYPES, Snapshots

OWN = POSTGRESQL.own
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
    return DebeziumDecoder(
        JsonEnvelopes(columns, POSTGRESQL), POSTGRESQL, ["id"], columns, **{"stored": Snapshots(), **options}
    )


def settled(
    some: DebeziumDecoder, messages: list[bytes], old_keys: list[bytes | None] | None = None, partitions: int = 1
) -> tuple[list[dict[str, Any]], Sequence[tuple[int, str]]]:
    """Rows with what their markers stand for, and the rows of which nothing says it."""
    rows = some.decode(messages, None)
    found = some.settled(rows, pa.array(old_keys or [None] * len(rows), pa.binary()), partitions)
    return found.rows.to_pylist(), found.bad


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


def test_a_marker_takes_the_value_of_the_change_before_or_that_of_the_table() -> None:
    sample = of_rows("schema-orders")
    with_before = settled(decoder(), sample[:4])
    assert with_before[0][3]["big"] == with_before[0][0]["big"] == "A…10000"
    kept = Snapshots(pa.table({"id": [1, 2], LSN: [5, 5], "big": ["kept", "other"]}))
    alone = settled(decoder(stored=kept), sample[3:4])
    assert (alone[0][0]["big"], alone[1]) == ("kept", [])
    found, refused = settled(decoder(), sample[2:4])
    assert (len(found), [row for row, _ in refused]) == (2, [1])
    assert "leaves the large value of big alone, and the table has none of that row to keep" in refused[0][1]


def test_every_type_has_its_value() -> None:
    first = decoder().decode(of_rows("schema-types")[:1], None).to_pylist()[0]
    assert {name: first[name] for name in TYPES if name != "n"} == {
        name: value for name, value in TYPES.items() if name != "n"
    }
    number = int.from_bytes(bytes.fromhex("112210f47de98115"), "big")
    assert Decimal(first["n"]) == Decimal(number).scaleb(-14)
    assert (first["p"]["x"], first["p"]["y"]) == (1.0, 2.0)


def test_what_is_infinite_is_refused_or_null_by_choice() -> None:
    sample = of_rows("schema-types")
    with pytest.raises(
        UndecodableError, match=r"d: the date of -2147472692 days is infinite: source.debezium.infinite AsNull"
    ) as caught:
        decoder().decode(sample, None)
    assert caught.value.place == 2
    found = decoder(infinite_is_null=True).decode(sample, None).to_pylist()[2]
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
        (of("schema-orders", 0, source={"connector": "mysql"}), None, "it is of connector mysql, whose events are ordered by _event_seq: let orderingFields name it"),
        (of("plain-orders", 0), None, "it has no schema: let the connector write schemas"),
        (with_after(other=1), ORDERS, "a field 'other' that source.columns does not name"),
        (with_after(id="x"), ORDERS, "id: 'x' is no whole number"),
        (with_after(created="2026-01-01"), ORDERS, "is no moment of ISO 8601 with a zone"),
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


def framed(place: int, form: str) -> bytes:
    """An event with its schema, written otherwise than a converter does."""
    found = json.loads(events("schema-orders")[place] or b"{}")
    parts = {name: json.dumps(found[name]) for name in ("schema", "payload")}
    return form.replace("SCHEMA", parts["schema"]).replace("PAYLOAD", parts["payload"]).encode()


@pytest.mark.parametrize(
    "form",
    ['{"payload":PAYLOAD,"schema":SCHEMA}', '{"schema":SCHEMA,"payload":PAYLOAD} ', ' {\n"schema" : SCHEMA , "payload" : PAYLOAD }'],
)  # fmt: skip
def test_an_event_is_the_same_in_whichever_way_its_parts_are_written(form: str) -> None:
    plain = of_rows("schema-orders")
    messages = [plain[0], framed(1, form), plain[2], framed(3, form)]
    assert decoder().decode(messages, None).to_pylist() == decoder().decode(plain[:4], None).to_pylist()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ('{"schema":SCHEMA,"payload":PAYLOAD', "Expecting"),
        ('{"schema":SCHEMA,"payload":PAYLOAD,"more":1}', "Extra data"),
        ('{"schema":SCHEMA,"payload":PAYLOAD}}', "Extra data"),
        ('{"schema":SCHEMA,"payload":null}', "it is no JSON object"),
        ('{"schema":SCHEMA}', "no change event"),
        ('{"schema":5,"payload":PAYLOAD}', "not subscriptable"),
    ],
)
def test_an_event_whose_parts_are_not_two_is_refused_with_its_place(form: str, words: str) -> None:
    plain = of_rows("schema-orders")
    with pytest.raises(UndecodableError, match=words) as caught:
        decoder().decode([*plain[:2], framed(2, form), plain[3]], None)
    assert caught.value.place == 2


def test_numbers_that_are_none_are_read_in_lists_too() -> None:
    columns = pa.schema(
        [("id", pa.int64()), ("many", pa.list_(pa.float64())), ("one", pa.float32()), ("said", pa.string())]
    )
    row = {"id": 1, "many": [1.5, "NaN", None, "-Infinity", "Infinity"], "one": "-Infinity", "said": '"one":"NaN"'}
    messages = [of("plain-orders", 0, after={**row, "many": [2.5], "one": 1}), of("plain-orders", 0, after=row)]
    found = decoder(columns).decode(messages, None).to_pylist()
    assert (found[0]["many"], found[0]["one"], found[1]["one"]) == ([2.5], 1.0, -math.inf)
    assert math.isnan(found[1]["many"][1])
    assert found[1]["many"][2:] == [None, -math.inf, math.inf]
    assert found[1]["said"] == '"one":"NaN"'


MARKED = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.binary()), ("c", pa.list_(pa.string()))])
MARKER = "__debezium_unavailable_value"


def change(key: int, op: str = "u", **values: Any) -> bytes:
    row = {"id": key, "a": MARKER, "b": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "c": [MARKER], **values}
    return of("plain-orders", 0, op=op, before=row if op == "d" else None, after=None if op == "d" else row)


def test_a_marker_takes_its_value_over_other_markers_and_keys_and_over_a_delete_that_comes_again() -> None:
    messages = [
        change(1, a="x", b="QQ==", c=["p", "q"]), change(2, a="y", b="QUI=", c=[]), change(1), change(1, a="z"), change(1),
        change(2, "d"), change(2), change(3, a=None, b="QQ==", c=["r"]), change(3),
    ]  # fmt: skip
    found, refused = settled(decoder(MARKED), messages)
    assert [row["a"] for row in found] == ["x", "y", "x", "z", "z", None, "y", None, None]
    assert [row["b"] for row in found][:5] == [b"A", b"AB", b"A", b"A", b"A"]
    assert [row["c"] for row in found][:5] == [["p", "q"], [], ["p", "q"], ["p", "q"], ["p", "q"]]
    # Null is sent as null, so that a marker never means it.
    assert [row for row, _ in refused] == [8]


def test_a_marker_takes_its_value_from_anywhere_in_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit is decoded in parts; were a part all that counts, the table would fill what an
    earlier part has changed."""
    monkeypatch.setattr(values_module, "CHUNK_BYTES", 1)
    values: list[bytes | None] = [change(1, a="x", b="QQ==", c=[]), change(2), change(1)]
    messages = Messages([("t", 0)], values, [np.zeros(3, np.int32)], [np.arange(3)], [np.zeros(3, np.int64)])
    events, settings = decoder(MARKED), KafkaSettings("b:1", ("t",), tombstones="Ignore", debezium=True)
    strict = rows.Decoding(settings, events, None, ("id",), None, events.settled)
    with pytest.raises(
        InvalidDataError, match=r"offset 1 cannot be read as json: it leaves the large value of a alone"
    ):
        strict.rows(messages, None, Where(messages))
    found = replace(strict, error_ratio=0.0).rows(messages, None, Where(messages))
    assert [each["a"] for each in found.table.to_pylist()] == ["x", "x"]
    assert (found.order.tolist(), [each.place for each in found.faults]) == ([0, 2], [1])


MARIA = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("amount", pa.string()), ("created", pa.timestamp("us", "UTC")), ("note", pa.string()), ("big", pa.string()), ("channel", pa.string())])  # fmt: skip


def of_binlog(columns: pa.Schema | None = None) -> DebeziumDecoder:
    return DebeziumDecoder(JsonEnvelopes(columns, MYSQL), MYSQL, ["id"], columns, stored=Snapshots())


@pytest.mark.parametrize(("name", "columns"), [("maria-schema-orders", None), ("maria-plain-orders", MARIA)])
def test_events_of_a_binlog_have_their_file_position_and_row_and_a_text_that_sorts_as_they_do(
    name: str, columns: pa.Schema | None
) -> None:
    found = of_binlog(columns).decode(of_rows(name), None)
    told = [(each[OPERATION], each["id"]) for each in found.to_pylist()]
    assert told == [
        ("r", 1), ("r", 2), ("c", 3), ("u", 1), ("u", 1), ("d", 2), ("c", 20), ("d", 3), ("u", 1), ("u", 1), ("c", 4), ("u", 4), ("d", 4), ("c", 5), ("c", 6),
    ]  # fmt: skip
    assert found.column_names[-len(MYSQL.own) :] == MYSQL.own.names
    order = found[SEQUENCE].to_pylist()
    assert order == sorted(order)
    assert order[4] == "0000000001.000000000007999.0000000000"
    assert len(set(found[FILE].to_pylist())) == 2


def test_keys_that_one_statement_moves_are_ordered_by_the_row_of_their_event() -> None:
    found = of_binlog().decode(of_rows("maria-schema-shift"), None).to_pylist()
    of_three = [(row[OPERATION], row[POSITION], row[ROW], row[SEQUENCE]) for row in found if row["id"] == 3][1:3]
    assert [(kind, place, row) for kind, place, row, _ in of_three] == [("d", 2592, 0), ("c", 2592, 1)]
    assert of_three[0][-1] < of_three[1][-1]


def test_every_type_of_mariadb_has_its_value() -> None:
    first, second, third = of_binlog().decode(of_rows("maria-schema-types"), None).to_pylist()
    assert {name: value for name, value in first.items() if name in MARIA_TYPES} == MARIA_TYPES
    assert (second["n"], second["tm"], second["da"], second["s"]) == (Decimal("-0.01"), "24:00:00", None, "")
    assert {value for name, value in third.items() if name not in ("id", *MYSQL.own.names)} == {None}


MARIA_TYPES = {
    "ti": -1, "tb": 1, "si": 65535, "i": 4294967295, "bi": -(2**63), "bu": 2**63 - 1, "f": 1.5, "n": Decimal("99.99"),
    "n0": Decimal(12345678901234567890123456789012345678), "b": True, "b8": b"\x05", "c": "c", "t": "té", "bn": b"\x01\xff\x00", "bl": b"\xff\x00",
    "da": date(2026, 2, 3), "tm": "04:05:06", "tm6": "-838:59:59.000001", "dt": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).replace(tzinfo=None),
    "dt6": datetime(2026, 2, 3, 4, 5, 6, 123_456, UTC).replace(tzinfo=None), "ts": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
    "ts6": datetime(2026, 2, 3, 4, 5, 6, 123_456, UTC), "y": 2026, "e": "a", "s": "x,z", "j": '{"a": 1}',
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"connector": "postgresql"}, "of connector postgresql, whose events are ordered by _event_lsn"),
        ({"connector": "sqlserver"}, "of connector sqlserver, and postgresql, mysql, mariadb alone are read"),
        ({"connector": "mysql", "pos": 5}, "its source has no file"),
        ({"connector": "mysql", "file": "binlog.000001"}, "its source has no pos"),
        ({"connector": "mysql", "file": "binlog", "pos": 5}, "'binlog' ends in no number of a binlog"),
    ],
)
def test_an_event_without_a_place_in_a_binlog_is_refused(source: dict[str, Any], words: str) -> None:
    with pytest.raises(UndecodableError, match=words):
        of_binlog().decode([of("maria-schema-orders", 0, source=source)], None)


def test_a_row_that_loses_to_that_of_the_table_needs_no_value() -> None:
    """An event that comes again: the table has a newer null by now."""
    place = json.loads(change(1))["source"]["lsn"]
    newer = pa.table({"id": [1], LSN: [place + 1], "a": pa.nulls(1, pa.string()), "b": [b"B"], "c": [["c"]]})
    found, refused = settled(decoder(MARKED, stored=Snapshots(newer)), [change(1)])
    assert (found[0]["a"], found[0]["b"], refused) == (None, b"B", [])
    older = newer.set_column(1, LSN, pa.array([place - 1]))
    _, refused = settled(decoder(MARKED, stored=Snapshots(older)), [change(1)])
    assert "leaves the large value of a alone" in refused[0][1]


def test_a_value_of_the_newest_snapshot_is_not_passed_by_for_one_before() -> None:
    place = json.loads(change(1))["source"]["lsn"]
    rows = {"id": [1], LSN: [place - 1], "b": [b"B"], "c": [["c"]]}
    gone = pa.table({**rows, "a": pa.nulls(1, pa.string())})
    before = pa.table({**rows, "a": ["x"]})
    snapshots = Snapshots(gone, before)
    assert settled(decoder(MARKED, stored=snapshots), [change(1)])[1]
    deleted = Snapshots(gone.slice(0, 0), before)
    found, refused = settled(decoder(MARKED, stored=deleted), [change(1)])
    assert (found[0]["a"], refused, deleted.asked) == ("x", [], 2)


VECTORS = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float64()))])


def vector(op: str, value: list[float] | None, **more: Any) -> bytes:
    return of("plain-orders", 0, op=op, after={"id": 1, "v": value}, **more)


def test_a_null_in_place_of_a_large_value_that_debezium_has_no_marker_for_is_refused() -> None:
    """It sends null where a change leaves the value alone, and where it is null."""
    large, small = [1.5] * 1000, [1.5]
    some = decoder(VECTORS)
    assert settled(some, [vector("c", small), vector("u", None)])[1] == []
    assert settled(some, [vector("c", None), vector("u", None)])[1] == []
    found, refused = settled(some, [vector("c", large), vector("u", None)])
    assert ([row for row, _ in refused], list(found[1])[-1]) == ([1], "_hoodie_is_deleted")
    assert "its v is null, and large in the row before" in refused[0][1]
    whole = vector("u", None, before={"id": 1, "v": large})
    assert settled(some, [vector("c", large), whole])[1] == [], "the replica identity is full"
    assert settled(some, [vector("c", large), vector("u", None), vector("u", small)])[1] == []
    place = json.loads(vector("u", None))["source"]["lsn"]
    rows = pa.table({"id": [1], LSN: [place - 1], "v": pa.array([large], VECTORS.field("v").type)})
    kept, gone = Snapshots(rows), Snapshots(rows.slice(0, 0), rows)
    assert settled(decoder(VECTORS, stored=kept), [vector("u", None)])[1]
    assert settled(decoder(VECTORS, stored=kept), [vector("c", None)])[1] == []
    assert settled(decoder(VECTORS, stored=gone), [vector("c", None)], [b'{"id":1}'])[1], "the key has changed"
