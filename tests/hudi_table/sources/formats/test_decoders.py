"""Decoders beside Python's own: what a message holds is in its row, whatever the others hold, and
the first bad one is named."""

from __future__ import annotations

import io
import json
import struct
from datetime import date, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.sources.formats.avro import AvroDecoder, RegistryDecoder
from hudi_table.sources.formats.decoder import UndecodableError, first_bad
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.formats.registry import Registry, _inlined
from hudi_table.write.checks.schema_policy import check_alone

KNOWN = pa.schema([("id", pa.string()), ("n", pa.int64())])
OBJECTS = st.fixed_dictionaries(
    {}, optional={"id": st.text(st.characters(codec="utf-8")), "n": st.integers(-(2**63), 2**63 - 1)}
)
FRAGMENTS = st.sampled_from(
    ['{"id":"a"}', '{"id":', '"b"}', '{"v":{"id":"a"}}', "}", '{"id":"a"}}\n{"v":{"id":"b"}', '","n":1}', '{"id":"\\', "", " ", "null", "1", '{"id":"a"},"v":{}', '{"n":2}']
)  # fmt: skip


def is_row(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and set(found) <= {"id", "n", "v"} and isinstance(found.get("id", ""), str)


@given(st.lists(OBJECTS, min_size=1, max_size=20), st.sampled_from([None, 1]))
def test_json_is_read_as_python_reads_it(objects: list[dict[str, Any]], indent: int | None) -> None:
    found = JsonDecoder().decode([json.dumps(each, indent=indent).encode() for each in objects], KNOWN)
    assert found.to_pylist() == [{"id": each.get("id"), "n": each.get("n")} for each in objects]


@given(st.lists(FRAGMENTS, min_size=1, max_size=6))
def test_no_message_is_read_with_a_part_of_another(texts: list[str]) -> None:
    """Pieces that together are JSON are none apart."""
    bad = next((place for place, text in enumerate(texts) if not is_row(text)), None)
    messages = [text.encode() for text in texts]
    if bad is None:
        found = JsonDecoder().decode(messages, KNOWN).select(["id", "n"]).to_pylist()
        assert found == [{"id": json.loads(text).get("id"), "n": json.loads(text).get("n")} for text in texts]
        return
    with pytest.raises(UndecodableError) as refused:
        JsonDecoder().decode(messages, KNOWN)
    assert refused.value.place == bad


def test_json_fills_the_types_of_the_table() -> None:
    known = pa.schema(
        [("d", pa.date32()), ("t", pa.time64("us")), ("x", pa.decimal128(6, 2)), ("f", pa.float32()), ("at", pa.timestamp("us", "UTC"))]
    )  # fmt: skip
    text = b'{"d":"2026-01-31","t":"12:30:00.5","x":"12.5","f":1,"at":"2026-01-31T01:00:00+01:00","new":[1]}'
    (row,) = JsonDecoder().decode([text], known).to_pylist()
    assert (row["d"], row["t"], row["x"]) == (date(2026, 1, 31), time(12, 30, 0, 500_000), Decimal("12.50"))
    assert (row["f"], row["at"].isoformat(), row["new"]) == (1.0, "2026-01-31T00:00:00+00:00", [1])
    with pytest.raises(UndecodableError):
        JsonDecoder().decode([b'{"d":"yesterday"}'], known)
    with pytest.raises(InvalidSchemaError, match="cannot be read from JSON"):
        JsonDecoder().decode([b"{}"], pa.schema([("m", pa.map_(pa.string(), pa.int64()))]))


def test_a_field_that_was_only_null_has_no_column_yet() -> None:
    assert JsonDecoder().decode([b'{"a":1,"b":null}'], None).column_names == ["a"]


@pytest.mark.parametrize("known", [None, pa.schema([("id", pa.int64()), ("o", pa.struct([("x", pa.int64())]))])])
def test_what_has_no_type_yet_is_left_out_however_deep_it_lies(known: pa.Schema | None) -> None:
    text = b'{"id":1,"o":{"x":1,"n":null,"e":{}},"l":[],"m":[null],"e":{},"d":[{"x":2,"y":[]}]}'
    found = JsonDecoder().decode([text, b'{"id":2}'], known)
    assert found.to_pylist() == [{"id": 1, "o": {"x": 1}, "d": [{"x": 2}]}, {"id": 2, "o": None, "d": None}]


def test_a_list_that_begins_with_null_is_read_in_a_column_that_is_new() -> None:
    found = JsonDecoder().decode([b'{"l":[null,1]}', b'{"l":[2]}', b'{"l":[null,null,3]}'], None)
    assert found.column("l").to_pylist() == [[None, 1], [2], [None, None, 3]]


@given(st.integers(1, 300), st.integers(0, 299))
def test_the_first_bad_one_is_found_in_few_looks(count: int, bad: int) -> None:
    bad %= count
    looks = []

    def fails(some: Any) -> str:
        looks.append(len(some))
        return "bad" if len(some) > bad else ""

    assert first_bad([b""] * count, fails) == (bad, "bad")
    assert len(looks) <= 10


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


FLAT = schema({"name": "id", "type": "string"}, {"name": "n", "type": ["null", "long"]})
NESTED = schema({"name": "id", "type": "string"}, {"name": "tags", "type": {"type": "array", "items": "string"}})


def record(text: str, value: dict[str, Any], number: int | None = None) -> bytes:
    out = io.BytesIO(b"" if number is None else b"\0" + struct.pack(">I", number))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(text)), value)
    return out.getvalue()


def test_messages_of_several_schemas_keep_their_order() -> None:
    asked = []

    def schema_of(number: int) -> str:
        asked.append(number)
        return {1: FLAT, 2: NESTED}[number]

    decoder = RegistryDecoder(schema_of)
    messages = [
        record(FLAT, {"id": "a", "n": 1}, 1),
        record(NESTED, {"id": "b", "tags": ["x"]}, 2),
        record(FLAT, {"id": "c", "n": None}, 1),
    ]
    for _ in range(3):
        found = decoder.decode(messages, None).to_pylist()
        assert [(row["id"], row["n"], row["tags"]) for row in found] == [
            ("a", 1, None),
            ("b", None, ["x"]),
            ("c", None, None),
        ]
    assert sorted(asked) == [1, 2], "a schema is asked for once"


def test_where_each_schema_is_judged_alone_one_does_not_hide_behind_the_others() -> None:
    less = schema({"name": "id", "type": "string"})
    decoder = RegistryDecoder({1: FLAT, 2: less}.__getitem__, check_alone)
    messages = [record(FLAT, {"id": "a", "n": 1}, 1), record(less, {"id": "b"}, 2)]
    assert len(decoder.decode(messages, None)) == 2, "the first rows make the table"
    known = decoder.decode(messages[:1], None).schema
    assert len(decoder.decode(messages[:1], known)) == 1
    with pytest.raises(InvalidSchemaError, match=r"schema 2 of the registry: .* missing: n \(int64\)"):
        decoder.decode(messages, known)


PRICED = schema({"name": "id", "type": "string"}, {"name": "price", "type": "long", "aliases": ["fee", "n"]})
TABLE = pa.schema([("id", pa.string()), ("n", pa.int64())])


def test_a_field_fills_the_column_that_its_alias_names() -> None:
    message = record(PRICED, {"id": "a", "price": 7})
    assert AvroDecoder(PRICED, resolves=True).decode([message], TABLE).to_pylist() == [{"id": "a", "n": 7}]
    assert AvroDecoder(PRICED).decode([message], TABLE).to_pylist() == [{"id": "a", "price": 7}]
    also = pa.schema([*TABLE, ("price", pa.int64())])
    assert AvroDecoder(PRICED, resolves=True).decode([message], also).to_pylist() == [{"id": "a", "price": 7}]


@pytest.mark.parametrize("known", [None, TABLE, TABLE.remove(1)], ids=["no table", "the old name", "neither name"])
def test_messages_of_the_old_name_and_of_the_new_one_fill_one_column_in_parts_too(known: pa.Schema | None) -> None:
    decoder = RegistryDecoder({1: FLAT, 2: PRICED}.__getitem__, resolves=True)
    messages = [record(PRICED, {"id": "a", "price": 7}, 2), record(FLAT, {"id": "b", "n": 8}, 1)]
    decoder.begin(messages)
    found = [decoder.decode([message], known).to_pylist()[0] for message in messages]
    assert found == [{"id": "a", "n": 7}, {"id": "b", "n": 8}]
    assert decoder.decode(messages, known).to_pylist() == found


@pytest.mark.parametrize(
    ("fields", "columns", "said"),
    [
        ({"price": ["n"], "n": []}, ["n"], "schema 1 of the registry: fields 'n' and 'price' both claim column 'n'"),
        ({"price": ["n"], "cost": ["n"]}, ["n"], "fields 'price' and 'cost' both claim column 'n'"),
        ({"price": ["n", "fee"]}, ["n", "fee"], "aliases of field 'price' name 2 columns of the table, n and fee"),
    ],
)
def test_where_it_is_not_clear_which_field_fills_which_column_nothing_is_read(
    fields: dict[str, list[str]], columns: list[str], said: str
) -> None:
    text = schema(*({"name": name, "type": "long", "aliases": aliases} for name, aliases in fields.items()))
    decoder = RegistryDecoder({1: text}.__getitem__, resolves=True)
    with pytest.raises(InvalidSchemaError, match=said):
        decoder.decode([record(text, dict.fromkeys(fields, 1), 1)], pa.schema([(name, pa.int64()) for name in columns]))


@pytest.mark.parametrize("text", [FLAT, NESTED])
@pytest.mark.parametrize("cut", [slice(0, -1), slice(0, None)], ids=["too short", "too long"])
def test_a_damaged_record_is_named(text: str, cut: slice) -> None:
    good = record(text, {"id": "a", "n": 1, "tags": ["y"]})
    bad = good[cut] if cut.stop else good + b"\0"
    with pytest.raises(UndecodableError, match="no record of its schema") as refused:
        AvroDecoder(text).decode([good, good, bad, good], None)
    assert refused.value.place == 2


UUID = {"name": "id", "type": {"type": "string", "logicalType": "uuid"}}
BESIDE: dict[str, tuple[Any, Any]] = {
    "an enum": ({"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
    "a list of them": ({"type": "array", "items": UUID["type"]}, ["0b9b9c6c-7a8e-4a56-9b5c-111111111112"]),
    "a map": ({"type": "map", "values": "int"}, {"a": 1}),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_a_uuid_is_its_text_whatever_stands_beside_it(beside: str) -> None:
    kind, value = BESIDE[beside]
    text, row = schema(UUID, {"name": "v", "type": kind}), {"id": "0b9b9c6c-7a8e-4a56-9b5c-111111111111", "v": value}
    found = AvroDecoder(text).decode([record(text, row)], None)
    assert found.to_pylist(maps_as_pydicts="strict") == [row]


def test_a_moment_beyond_the_years_of_a_calendar_is_read_beside_a_list_too() -> None:
    at = {"type": "long", "logicalType": "timestamp-millis"}
    tags = {"name": "tags", "type": {"type": "array", "items": "string"}}
    plain, text = schema({"name": "at", "type": "long"}, tags), schema({"name": "at", "type": at}, tags)
    messages = [record(plain, {"at": number, "tags": []}) for number in (0, 253_402_300_800_000)]
    found = AvroDecoder(text).decode(messages, None)
    assert found.column("at").cast("string").to_pylist() == ["1970-01-01 00:00:00.000Z", "10000-01-01 00:00:00.000Z"]


def test_what_has_no_id_or_an_unknown_one_is_named() -> None:
    def schema_of(number: int) -> str:
        if number == 1:
            return FLAT
        raise InvalidDataError(f"the registry has no schema {number}")

    good = record(FLAT, {"id": "a", "n": 1}, 1)
    for bad, said in (
        (b"\1abcd", "does not begin with a zero byte"),
        (b"", "zero byte"),
        (record(FLAT, {"id": "a", "n": 1}, 7), "no schema 7"),
    ):
        with pytest.raises(UndecodableError, match=said) as refused:
            RegistryDecoder(schema_of).decode([good, bad], None)
        assert refused.value.place == 1
    with pytest.raises(InvalidDataError, match="the schema file is no Avro schema of a record"):
        AvroDecoder('"long"')


def test_references_are_put_where_they_come_first() -> None:
    city = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "geo",
        "fields": [{"name": "from", "type": "City"}, {"name": "to", "type": ["null", "geo.City"]}],
    }
    whole = _inlined(order, {"geo.City": city}, set(), "")
    value = {"from": {"name": "a"}, "to": {"name": "b"}}
    text = json.dumps(whole)
    found = AvroDecoder(text).decode([record(text, value), record(text, {"from": {"name": "a"}, "to": None})], None)
    assert found.to_pylist() == [value, {"from": {"name": "a"}, "to": None}]
    assert all(field.nullable and all(child.nullable for child in field.type) for field in found.schema)


def test_a_registry_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match=r"give http\(s\)://host:port"):
        Registry("file:///etc/passwd", {})
