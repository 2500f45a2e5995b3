"""JSON with the id of its schema before it: what a JSON Schema says of types decides, the rest is
read as other JSON is."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.formats.json_schema import PARTS_MAX, JsonRegistryDecoder, columns_of
from hudi_table.write.checks.schema_policy import check_alone

MOMENT = pa.timestamp("us", "UTC")
ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "n": {"type": "integer"},
        "price": {"type": "number"},
        "paid": {"type": "boolean"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
    },
}


def said(schema: Any, named: Mapping[str, Any] | None = None) -> dict[str, pa.DataType]:
    """Column → type."""
    return {each.name: each.type for each in columns_of((schema, named or {}), "schema 7")}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def framed(value: Any, number: int = 7) -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"\0" + struct.pack(">I", number) + text


def decoder(*schemas: Any, judged: bool = False, columns: pa.Schema | None = None) -> JsonRegistryDecoder:
    """Of the schemas 7, 8 and so on."""
    documents: dict[int, Any] = {7 + place: (schema, {}) for place, schema in enumerate(schemas)}

    def documents_of(number: int) -> Any:
        if number not in documents:
            raise InvalidDataError(f"the schema registry at http://r has no schema {number}")
        return documents[number]

    return JsonRegistryDecoder(documents_of, check_alone if judged else None, columns)


def test_a_schema_tells_the_types_of_columns() -> None:
    assert said(ORDER) == {
        "id": pa.string(), "n": pa.int64(), "price": pa.float64(), "paid": pa.bool_(), "at": MOMENT, "day": pa.date32(),
    }  # fmt: skip


NUMBER = pa.float64()
CITY = pa.struct([("name", pa.string()), ("size", pa.int64())])


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": ["null", "string"]}, pa.string()),
        ({"type": ["integer", "null"]}, pa.int64()),
        ({"type": ["integer", "number"]}, NUMBER),
        ({"type": ["integer", "string"]}, None),
        ({"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}, MOMENT),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}, {"enum": [None]}]}, NUMBER),
        ({"oneOf": [{"type": "string"}, {"type": "string", "format": "date"}]}, pa.string()),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, None),
        ({"oneOf": [{"type": "integer"}, {}]}, None),
        ({"oneOf": [of(a={"type": "integer"}), of(b={"type": "string"})]}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ({"allOf": [of(a={"type": "integer"}), of(b={"type": "string"})]}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ({"allOf": [{"type": "integer"}, {"type": "string"}]}, None),
        ({"type": "array", "items": {"type": "integer"}}, pa.list_(pa.int64())),
        ({"type": "array", "items": of(at={"type": "string", "format": "date"})}, pa.list_(pa.struct([("at", pa.date32())]))),
        ({"type": "array"}, None),
        ({"type": "array", "items": [{"type": "integer"}]}, None),
        ({"type": "object"}, None),
        ({"properties": {"a": {"type": "boolean"}}}, pa.struct([("a", pa.bool_())])),
        ({"type": "string", "format": "uuid"}, pa.string()),
        ({"type": "null"}, None),
        (True, None),
        ({"enum": ["a", "b"]}, None),
        ({"$ref": "#/definitions/city"}, CITY),
        ({"$ref": "#/definitions/a~1b%20c"}, pa.bool_()),
        ({"$ref": "#town"}, CITY),
        ({"$ref": "#/definitions/tree"}, pa.struct([("value", pa.int64())])),
    ],
)  # fmt: skip
def test_parts_of_a_schema_and_those_that_say_nothing(part: Any, kind: pa.DataType | None) -> None:
    city = of(name={"type": "string"}, size={"type": "integer"})
    tree = of(value={"type": "integer"}, child={"$ref": "#/definitions/tree"})
    definitions = {"city": city, "a/b c": {"type": "boolean"}, "town": {"$anchor": "town", **city}, "tree": tree}
    assert said({**of(x=part), "definitions": definitions}).get("x") == kind


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("city.json", {"city.json": CITY}),
        ("city.json", {"https://example.com/geo/city.json": CITY}),
        ("https://example.com/geo/city.json#", {"https://example.com/geo/city.json": CITY}),
        ("city.json", {"anything": {"$id": "https://example.com/geo/city.json"}}),
        ("city.json#/$defs/inner", {"city.json": {"$defs": {"inner": CITY}}}),
    ],
)
def test_other_documents_are_found_by_the_name_of_a_reference_and_by_their_id(
    reference: str, named: dict[str, Any]
) -> None:
    city = of(name={"type": "string"}, size={"type": "integer"})
    documents = {
        name: city if each is CITY else {**city, **each, **({"$defs": {"inner": city}} if "$defs" in each else {})}
        for name, each in named.items()
    }
    root = {"$id": "https://example.com/geo/order.json", **of(city={"$ref": reference})}
    assert said(root, documents) == {"city": CITY}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "it is of type string"),
        ({"type": "array"}, "it is of type array"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "it is of type double"),
        (of(x={"$ref": "city.json"}), "it refers to 'city.json', which the registry does not name for it"),
        (of(x={"$ref": "#/definitions/none"}), "it refers to '#/definitions/none', which is not there"),
    ],
)
def test_a_schema_of_no_object_and_one_that_cannot_be_followed_are_refused(schema: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match="schema 7 is no JSON Schema of an object that can be stored") as refused:
        said(schema)
    assert words in refused.value.message


def test_a_schema_that_would_fill_the_memory_is_refused() -> None:
    links = {f"l{n}": of(a={"$ref": f"#/$defs/l{n + 1}"}, b={"$ref": f"#/$defs/l{n + 1}"}) for n in range(40)}
    with pytest.raises(InvalidDataError, match=f"it has more than {PARTS_MAX:,} parts"):
        said({"$ref": "#/$defs/l0", "$defs": {**links, "l40": {"type": "integer"}}})


def test_what_holds_itself_directly_or_by_others_says_nothing_there_and_ends() -> None:
    one, other = {"$ref": "#/$defs/other"}, {"$ref": "#/$defs/one"}
    assert said({**of(x={"$ref": "#/$defs/one"}, y={"type": "integer"}), "$defs": {"one": one, "other": other}}) == {
        "y": pa.int64()
    }
    assert said({"$ref": "#"}) == {}


def test_values_are_read_in_the_types_of_the_schema_and_not_as_they_look() -> None:
    text = {
        "id": "2026-01-31T00:00:00Z",
        "n": 1,
        "price": 2,
        "at": "2026-01-31T12:00:00.123456789+02:00",
        "day": "2026-01-31",
    }
    table = decoder(ORDER).decode([framed(text)], None)
    (row,) = table.to_pylist()
    assert (row["id"], row["price"], table.schema.field("price").type) == (text["id"], 2.0, pa.float64())
    assert (row["at"], row["day"]) == (datetime(2026, 1, 31, 10, 0, 0, 123456, UTC), date(2026, 1, 31))
    assert (row["paid"], table.schema.field("paid").type) == (None, pa.bool_()), "null in all, and its type is said"
    assert JsonDecoder().decode([framed(text)[5:]], None).schema.field("id").type != pa.string()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31t12:00:00z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.5-01:30", datetime(2026, 1, 31, 13, 30, 0, 500000, UTC)),
        (None, None),
    ],
)
def test_moments_of_rfc_3339(text: str | None, moment: datetime | None) -> None:
    schema = of(at=ORDER["properties"]["at"], deep=of(at=ORDER["properties"]["at"]))  # type: ignore[index]
    (row,) = decoder(schema).decode([framed({"at": text, "deep": {"at": text}})], None).to_pylist()
    assert (row["at"], row["deep"]["at"]) == (moment, moment)


def test_dates_lie_in_lists_and_objects_too() -> None:
    schema = of(days={"type": "array", "items": ORDER["properties"]["day"]}, of=of(day=ORDER["properties"]["day"]))  # type: ignore[index]
    rows = [
        {"days": ["2026-01-31", None], "of": {"day": "2026-02-01", "more": 1}},
        {"days": None, "of": None},
        {"days": []},
    ]
    table = decoder(schema).decode([framed(each) for each in rows], None)
    assert table.to_pylist() == [
        {"days": [date(2026, 1, 31), None], "of": {"day": date(2026, 2, 1), "more": 1}},
        {"days": None, "of": None},
        {"days": [], "of": None},
    ]


def test_properties_that_the_schema_does_not_name_are_columns_by_their_looks() -> None:
    table = decoder(of(id={"type": "string"})).decode([framed({"id": "a", "more": 1.5, "deep": {"x": True}})], None)
    assert table.to_pylist() == [{"id": "a", "more": 1.5, "deep": {"x": True}}]
    known = pa.schema([("id", pa.string()), ("more", pa.decimal128(6, 2)), ("gone", pa.int64())])
    table = decoder(of(id={"type": "string"})).decode([framed({"id": "a", "more": 1.5})], known)
    assert table.schema == known
    assert table.column("gone").null_count == 1


@pytest.mark.parametrize(
    ("have", "kind"),
    [
        (pa.int32(), pa.int32()), (pa.decimal128(9, 2), pa.decimal128(9, 2)), (pa.float64(), pa.float64()),
        (pa.string(), pa.int64()), (pa.bool_(), pa.int64()),
    ],
)  # fmt: skip
def test_a_table_keeps_types_that_hold_the_schemas_and_else_the_difference_is_told(
    have: pa.DataType, kind: pa.DataType
) -> None:
    table = decoder(of(n={"type": "integer"})).decode([framed({"n": 1})], pa.schema([("n", have)]))
    assert table.schema.field("n").type == kind


def test_types_that_the_manifest_says_hold_whatever_the_schema_says() -> None:
    asked = pa.schema([("price", pa.decimal128(9, 2)), ("n", pa.string()), ("absent", pa.int32())])
    of_text = decoder(of(price={"type": "number"}, n={"type": "string"}), columns=asked)
    table = of_text.decode([framed({"price": 1.5, "n": "x"})], asked)
    assert {field.name: field.type for field in table.schema} == {field.name: field.type for field in asked}
    with pytest.raises(UndecodableError, match="changed from string to number"):
        decoder(of(n={"type": "integer"}), columns=asked).decode([framed({"n": 1})], asked)


def test_moments_go_to_a_column_of_text_where_the_table_has_one() -> None:
    schema = of(at=ORDER["properties"]["at"])  # type: ignore[index]
    table = decoder(schema).decode([framed({"at": "2026-01-31T12:00:00Z"})], pa.schema([("at", pa.string())]))
    assert table.to_pylist() == [{"at": "2026-01-31T12:00:00Z"}]


def test_messages_of_several_schemas_are_one_table_in_their_order() -> None:
    wider = of(id={"type": "string"}, n={"type": "number"}, city={"type": "string"})
    messages = [framed({"id": "a", "n": 1}), framed({"id": "b", "n": 1.5, "city": "x"}, 8), framed({"id": "c", "n": 3})]
    table = decoder(of(id={"type": "string"}, n={"type": "integer"}), wider).decode(messages, None)
    assert table.to_pylist() == [
        {"id": "a", "n": 1.0, "city": None},
        {"id": "b", "n": 1.5, "city": "x"},
        {"id": "c", "n": 3.0, "city": None},
    ]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b'{"id": "a"}', "it does not begin with a zero byte and the id of a schema"),
        (b"\0\0\0", "it does not begin with a zero byte and the id of a schema"),
        (framed({"n": 1.5}), "couldn't parse"),
        (framed({"n": "x"}), "changed from number to string"),
        (framed({"at": "yesterday"}), "'yesterday' is no date and time of RFC 3339"),
        (framed({"at": "2026-13-01T00:00:00z"}), "2026-13-01T00:00:00Z"),
        (framed(b"[1]"), "changed from object to array"),
        (framed(b""), "JSON"),
        (framed({"id": "a"}, 99), "has no schema 99"),
    ],
)
def test_the_first_message_that_is_bad_is_named(bad: bytes, words: str) -> None:
    good = [framed({"id": "a", "n": 1, "at": "2026-01-31T00:00:00Z"})] * 3
    with pytest.raises(UndecodableError) as refused:
        decoder(ORDER).decode([*good, bad, *good], None)
    # One that has no id is found before any is read.
    assert refused.value.place == 3
    assert words in refused.value.why


def test_each_schema_alone_is_judged_where_none_may_differ() -> None:
    known = pa.schema([("id", pa.string()), ("n", pa.int64())])
    same, wider = of(id={"type": "string"}, n={"type": "integer"}), of(id={"type": "string"}, n={"type": "integer"}, city={"type": "string"})  # fmt: skip
    message = framed({"id": "a", "n": 1})
    assert decoder(same, judged=True).decode([message], known).num_rows == 1
    with pytest.raises(InvalidSchemaError, match=r"schema 7 of the registry: .*added: city \(string\)"):
        decoder(wider, judged=True).decode([message], known)
    with pytest.raises(InvalidSchemaError, match=r"missing: n \(int64\)"):
        decoder(of(id={"type": "string"}), judged=True).decode([framed({"id": "a"})], known)
    with pytest.raises(InvalidSchemaError, match=r"added: more \(bool\)"):
        decoder(same, judged=True).decode([framed({"id": "a", "n": 1, "more": True})], known)


def test_plain_json_says_what_a_zero_byte_means() -> None:
    with pytest.raises(UndecodableError, match=r"give json\.registry") as refused:
        JsonDecoder().decode([b'{"id": "a"}', framed({"id": "a"})], None)
    assert refused.value.place == 1


VALUES: dict[str, Any] = {
    "id": st.text(st.characters(codec="utf-8")),
    "n": st.integers(-(2**63), 2**63 - 1),
    "price": st.floats(allow_nan=False, allow_infinity=False),
    "paid": st.booleans(),
    "day": st.dates(date(1, 1, 1)).map(date.isoformat),
}
OBJECTS = st.fixed_dictionaries({}, optional={name: st.none() | each for name, each in VALUES.items()})


@given(st.lists(OBJECTS, min_size=1, max_size=10), st.lists(OBJECTS, max_size=10))
def test_it_is_read_as_python_reads_it(flat: list[dict[str, Any]], deep: list[dict[str, Any]]) -> None:
    schema = {**ORDER, "properties": {**ORDER["properties"], "of": {"type": "array", "items": ORDER}}}  # type: ignore[dict-item]
    rows = [{**each, "of": deep} for each in flat]
    table = decoder(schema).decode([framed(each) for each in rows], None)

    def read(row: dict[str, Any]) -> dict[str, Any]:
        found = {name: row.get(name) for name in VALUES}
        return {**found, "day": date.fromisoformat(found["day"]) if found["day"] else None}

    names = [*VALUES, "of"]
    wanted = [{**read(row), "of": [read(each) for each in deep]} for row in flat]
    got = [{**row, "of": [{name: each[name] for name in VALUES} for each in row["of"]]} for row in table.select(names).to_pylist()]  # fmt: skip
    assert got == wanted
