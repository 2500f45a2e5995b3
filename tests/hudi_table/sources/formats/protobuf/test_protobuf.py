"""Messages of Protocol Buffers beside Google's runtime and protoc: whatever these read, rows hold;
what they refuse is refused at its place."""

from __future__ import annotations

import json
import struct
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.protobuf.decoder import ProtobufDecoder, ProtobufRegistryDecoder
from hudi_table.write.checks.schema_policy import check_alone
from tests.support.protoc import compiled, message_class, row
from tests.support.scale import scaled

SCALARS = [
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
]
RICH = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/empty.proto";
enum Size { SMALL = 0; LARGE = 5; TINY = -3; }
message Place { string city = 1; Point at = 2; repeated int32 codes = 3; message Point { double x = 1; double y = 2; } }
message Order {
""" + "".join(f"  {kind} a_{kind} = {n};\n  repeated {kind} r_{kind} = {n + 20};\n  optional {kind} o_{kind} = {n + 40};\n" for n, kind in enumerate(SCALARS, 1)) + """
  Size size = 61;
  repeated Size sizes = 62;
  optional Size maybe = 63;
  Place place = 64;
  repeated Place places = 65;
  oneof choice { int64 number = 66; string word = 67; Place where = 68; }
  map<string, int32> counts = 69;
  map<int32, Place> by_number = 70;
  map<string, Place.Point> points = 71;
  map<bool, string> yes = 80;
  map<uint64, string> large = 81;
  google.protobuf.Timestamp made = 72;
  google.protobuf.Duration took = 73;
  google.protobuf.Int64Value wrapped = 74;
  google.protobuf.StringValue text = 75;
  google.protobuf.Struct more = 76;
  google.protobuf.Empty nothing = 77;
  repeated google.protobuf.Timestamp times = 78;
  repeated int32 loose = 1000 [packed = false];
  google.protobuf.Value any = 16000;
}
"""  # fmt: skip
ORDER = message_class(compiled({"shop.proto": RICH}), "shop.Order")
DECODER = ProtobufDecoder(RICH, "Order")


def plain(value: Any) -> Any:
    """As `row` says it: moments in microseconds, entries of maps in order."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        found = [plain(each) for each in value]
        if found and isinstance(found[0], tuple):
            return sorted(found)
        keyed = bool(found) and isinstance(found[0], dict) and found[0].keys() == {"key", "value"}
        return sorted(found, key=lambda each: each["key"]) if keyed else found
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, datetime):
        return int(np.datetime64(value.replace(tzinfo=None), "us").astype(np.int64))
    return value


def rows(found: pa.Table) -> list[dict[str, Any]]:
    """With the text of JSON read."""
    said = found.to_pylist()
    for each in said:
        for name in ("more", "any"):
            each[name] = json.loads(each[name]) if each[name] is not None else None
    return [plain(each) for each in said]


def same(found: Any, expected: Any) -> bool:
    """Equal, a NaN to a NaN."""
    return repr(found) == repr(expected)


INTEGERS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), st.integers(0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), st.integers(0, 2**64 - 1)),
}
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **INTEGERS, "double": st.floats(), "float": st.floats(width=32), "bool": st.booleans(), "string": TEXT, "bytes": st.binary(max_size=8),
}  # fmt: skip
PLACE = st.fixed_dictionaries(
    {}, optional={"city": TEXT, "at": st.fixed_dictionaries({}, optional={"x": st.floats(allow_nan=False)}), "codes": st.lists(VALUES["int32"], max_size=3)}
)  # fmt: skip
SECONDS = st.fixed_dictionaries(
    {"seconds": st.integers(-62_135_596_800, 253_402_300_799), "nanos": st.integers(0, 999_999_999)}
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **{f"a_{kind}": VALUES[kind] for kind in SCALARS},
    **{f"r_{kind}": st.lists(VALUES[kind], max_size=4) for kind in SCALARS},
    **{f"o_{kind}": VALUES[kind] for kind in SCALARS},
    "size": st.sampled_from([0, 5, -3, 77]), "sizes": st.lists(st.sampled_from([0, 5, -3, 9]), max_size=3), "maybe": st.sampled_from([0, 5]),
    "place": PLACE, "places": st.lists(PLACE, max_size=3),
    "number": VALUES["int64"], "word": TEXT, "where": PLACE,
    "counts": st.dictionaries(TEXT, VALUES["int32"], max_size=3),
    "made": SECONDS, "took": SECONDS, "times": st.lists(SECONDS, max_size=3),
    "wrapped": st.fixed_dictionaries({}, optional={"value": VALUES["int64"]}), "text": st.fixed_dictionaries({"value": TEXT}),
    "nothing": st.just({}), "loose": st.lists(VALUES["int32"], max_size=3),
}  # fmt: skip
MESSAGES = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.none(), max_size=12).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)


def sent(values: dict[str, Any]) -> bytes:
    return bytes(ORDER(**values).SerializeToString())


@settings(max_examples=scaled(200, quick=80))
@given(st.lists(st.lists(MESSAGES, min_size=1, max_size=2), min_size=1, max_size=24))
def test_rows_hold_what_googles_runtime_reads(parts: list[list[dict[str, Any]]]) -> None:
    """Two encodings behind each other are one message, merged."""
    messages = [b"".join(map(sent, each)) for each in parts]
    assert same(rows(DECODER.decode(messages, None)), [plain(row(ORDER.FromString(each))) for each in messages])


@settings(max_examples=scaled(300, quick=120))
@given(
    st.lists(MESSAGES.map(sent), min_size=1, max_size=14),
    st.integers(0, 13),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.integers(0, 400),
)
def test_what_is_damaged_is_read_alike_or_refused_at_its_place(
    messages: list[bytes], which: int, changes: list[tuple[int, int]], cut: int
) -> None:
    which %= len(messages)
    damaged = bytearray(messages[which])
    for place, byte in changes:
        if damaged:
            damaged[place % len(damaged)] = byte
    messages[which] = bytes(damaged[: max(0, len(damaged) - cut % 5)])
    try:
        expected = [plain(row(ORDER.FromString(each))) for each in messages]
    except (DecodeError, UnicodeDecodeError, ValueError):
        with pytest.raises(UndecodableError) as refused:
            DECODER.decode(messages, None)
        assert refused.value.place == which
        return
    found = refusal(messages)
    if found is None:
        assert same(rows(DECODER.decode(messages, None)), expected)
        return
    # A moment that no calendar has is a number to Google's runtime.
    assert any(word in found.why for word in ("Timestamp", "Duration", "JSON", "deep"))
    assert found.place == which


def refusal(messages: list[bytes]) -> UndecodableError | None:
    try:
        DECODER.decode(messages, None)
    except UndecodableError as error:
        return error
    return None


def test_types_are_those_that_tables_have() -> None:
    types = {field.name: str(field.type) for field in DECODER.decode([b""], None).schema}
    assert types["a_uint64"] == "decimal128(20, 0)"
    assert (types["a_uint32"], types["a_sint32"], types["a_bytes"]) == ("int64", "int32", "binary")
    assert (types["size"], types["made"], types["took"]) == ("string", "timestamp[us, tz=UTC]", "int64")
    assert (types["counts"], types["wrapped"], types["nothing"]) == ("map<string, int32>", "int64", "bool")
    assert types["by_number"].startswith("list<item: struct<key: int32, value: struct<city: string")


def test_maps_and_json_hold_the_last_of_what_comes_twice() -> None:
    first, second = ORDER(), ORDER()
    first.counts.update({"a": 1, "b": 2})
    first.by_number[3].city = "x"
    first.yes.update({True: "a", False: "b"})
    first.large[2**64 - 1] = "l"
    second.yes[True] = "c"
    second.counts["a"] = 9
    second.by_number[3].city = "y"
    second.points["p"].x = 1.5
    first.more.update({"a": [1, "b", None, True, {"c": 2.5}]})
    first.any.number_value = 7
    message = first.SerializeToString() + second.SerializeToString()
    (found,) = rows(DECODER.decode([message], None))
    assert found["counts"] == [("a", 9), ("b", 2)]
    assert found["by_number"] == [{"key": 3, "value": {"city": "y", "at": None, "codes": []}}]
    assert found["yes"] == [{"key": False, "value": "b"}, {"key": True, "value": "c"}]
    assert found["large"] == [{"key": 2**64 - 1, "value": "l"}]
    assert found["points"] == [("p", {"x": 1.5, "y": 0.0})]
    assert (found["more"], found["any"]) == ({"a": [1, "b", None, True, {"c": 2.5}]}, 7)


def test_fields_that_are_unknown_are_passed_over_groups_among_them() -> None:
    group = b"\xf3\x3f" + b"\x08\x01" + b"\xf4\x3f"  # field 1022, begun and ended
    others = b"\xf8\x3f\x05" + b"\xfa\x3f\x03abc" + b"\xfd\x3f\0\0\0\0" + b"\xf9\x3f" + bytes(8)
    messages = [sent({"a_int32": n}) + group + others + sent({"a_string": "x"}) for n in range(20)]
    found = rows(DECODER.decode(messages, None))
    assert [(each["a_int32"], each["a_string"]) for each in found] == [(n, "x") for n in range(20)]


@pytest.mark.parametrize("many", [0, 30])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"\x00\x01", "no number"),
        (b"\x0b" * 200, "deeper than a hundred"),
        (b"\xf3\x3f\xfc\x3f", "a group ends"),
        (b"\xf4\x3f", "wire type 4"),
        (b"\x18", "a number leaves it"),
        (b"\x18" + b"\xff" * 10, "too long"),
        (b"\x72\xff\xff\xff\xff\x0f", "a field leaves it"),
        (b"\x72\x02\xff\xfe", "not UTF-8"),
        (b"\xba\x01\x02\x01\x80", "leaves its run"),
        (b"\xaa\x01\x03abc", "8 bytes a number"),
        (b"\x82\x04\x02\x08\x80", "a number leaves it"),
    ],
)
def test_a_message_that_is_none_is_named_with_its_reason(bad: bytes, words: str, many: int) -> None:
    messages = [sent({"a_int32": n}) for n in range(many)]
    with pytest.raises(UndecodableError, match=words) as refused:
        DECODER.decode([*messages, bad, *messages], None)
    assert refused.value.place == many
    with pytest.raises(DecodeError):
        ORDER.FromString(bad)


def framed(number: int, path: tuple[int, ...], message: bytes) -> bytes:
    head = b"\0" if path == (0,) else bytes([2 * len(path), *(2 * each for each in path)])
    return b"\0" + struct.pack(">I", number) + head + message


TWO = 'syntax = "proto3"; message A { string id = 1; message In { int64 n = 1; } } message B { string id = 1; int32 n = 2; }'
WIDER = 'syntax = "proto3"; import "city.proto"; message A { string id = 1; geo.City city = 2; }'
CITY = 'syntax = "proto3"; package geo; message City { string name = 1; }'


def test_messages_of_several_definitions_and_places_keep_their_order() -> None:
    texts = {1: (TWO, {}), 2: (WIDER, {"city.proto": CITY})}
    asked = []

    def texts_of(number: int) -> tuple[str, dict[str, str]]:
        asked.append(number)
        if number not in texts:
            raise InvalidDataError(f"there is no schema {number}")
        return texts[number]

    decoder = ProtobufRegistryDecoder(texts_of)
    messages = [
        framed(1, (1,), b"\x0a\x01a\x10\x07"), framed(1, (0,), b"\x0a\x01b"), framed(2, (0,), b"\x0a\x01c\x12\x03\x0a\x01x"),
        framed(1, (0, 0), b"\x08\x05"), framed(1, (1,), b"\x0a\x01e"),
    ]  # fmt: skip
    assert decoder.decode(messages, None).to_pylist() == [
        {"id": "a", "n": 7, "city": None}, {"id": "b", "n": None, "city": None}, {"id": "c", "n": None, "city": {"name": "x"}},
        {"id": None, "n": 5, "city": None}, {"id": "e", "n": 0, "city": None},
    ]  # fmt: skip
    decoder.decode(messages, None)
    assert asked == [1, 2], "a definition is asked for once"
    for bad, words in [
        (framed(1, (2,), b""), "no message at 2"),
        (framed(9, (0,), b""), "there is no schema 9"),
        (b"\1abc", "does not begin with a zero byte"),
        (b"\0\0\0\0\1", "path of its message"),
        (b"\0\0\0\0\1\xff\xff\xff\xff\xff", "path of its message"),
        (framed(1, (1,), b"\x0a\x05a"), "a field leaves it"),
    ]:
        with pytest.raises(UndecodableError, match=words) as refused:
            decoder.decode([*messages, bad], None)
        assert refused.value.place == len(messages)


def test_where_each_definition_is_judged_alone_one_does_not_hide_behind_the_others() -> None:
    texts = {1: (TWO, {}), 2: (WIDER, {"city.proto": CITY})}
    decoder = ProtobufRegistryDecoder(texts.__getitem__, check_alone)
    messages = [framed(2, (0,), b"\x0a\x01c\x12\x03\x0a\x01x"), framed(1, (1,), b"\x0a\x01a\x10\x07")]
    known = decoder.decode(messages[:1], None).schema
    assert len(decoder.decode(messages[:1], known)) == 1
    with pytest.raises(InvalidSchemaError, match=r"schema 1 of the registry: .* added: n \(int32\); missing: city"):
        decoder.decode(messages, known)


def test_the_path_of_a_message_may_have_numbers_of_several_bytes() -> None:
    text = 'syntax = "proto3"; ' + " ".join(f"message M{n} {{ string m{n} = 1; }}" for n in range(130))
    decoder = ProtobufRegistryDecoder(lambda number: (text, {}))
    for number, path in [(63, b"\x7e"), (64, b"\x80\x01"), (129, b"\x82\x02")]:
        message = b"\0\0\0\0\1\x02" + path + b"\x0a\x01a"
        assert decoder.decode([message], None).to_pylist() == [{f"m{number}": "a"}]
