"""Definitions beside protoc: what it takes is read as it reads it, what it refuses is refused, and
what no column can hold is told by name."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.sources.formats.protobuf.decoder import ProtobufDecoder, file_of
from hudi_table.sources.formats.protobuf.known import WRAPPERS, built_in
from hudi_table.sources.formats.protobuf.text import ProtoTextError
from tests.support.protoc import compiled

OLD = """
// A comment; message Not { }
syntax = "proto2"; /* another */ package a.b;
option java_package = "x";
import public "c/d.proto"; import "google/protobuf/timestamp.proto";
message M {
  option deprecated = true;
  required int32 id = 1; optional string name = 0x10 [default = "a; // no comment ]", deprecated = true];
  repeated Inner many = 3; optional .a.b.M.Inner whole = 4; optional Kind kind = 5 [default = B];
  oneof pick { option (x) = 1; string s = 6; Other o = 7; }
  map < string , .c.Far > far = 8;
  reserved 20 to 30, 40; reserved "old"; extensions 100 to max;
  message Inner { optional Deep d = 1; message Deep { optional Kind k = 1; enum Kind { X = 1; } } }
  enum Kind { option allow_alias = true; A = 0; B = 1; C = 1; D = -0x2 [deprecated = true]; reserved 9; }
  optional google.protobuf.Timestamp at = 9;
  optional int32 message = 10; optional int32 optional = 11; optional string reserved = 12;
  extend M { optional int32 more = 101; }
};
message Other { optional M.Kind kind = 01; }
extend M { optional int32 most = 102; }
service S { rpc Get (M) returns (stream Other) { option (y) = { a: 1 b { c: "}" } }; } }
"""
FAR = 'syntax = "proto3"; package c; message Far { optional int32 n = 1; int32 m = 2; Far2 f = 3; } message Far2 { bool b = 1; }'
NEW = """
edition = "2023"; package e;
message P { int32 seen = 1; int32 unseen = 2 [features.field_presence = IMPLICIT]; repeated int32 many = 3; }
"""
UNSEEN = """edition = "2023"; option features.field_presence = IMPLICIT;
message P { int32 unseen = 1; int32 seen = 2 [features.field_presence = EXPLICIT]; }"""


@pytest.mark.parametrize(
    "texts",
    [
        {"m.proto": OLD.replace("option (x) = 1;", "").replace("option (y) = { a: 1 b { c: \"}\" } };", ""), "c/d.proto": FAR},
        {"m.proto": NEW},
        {"m.proto": UNSEEN},
        {"m.proto": 'message P { optional group = 1; } message group { }'.replace("optional group = 1", "optional int32 g = 1")},
    ],
)  # fmt: skip
def test_a_definition_is_read_as_protoc_reads_it(texts: dict[str, str]) -> None:
    pool = compiled(texts)
    text = texts["m.proto"]
    file = file_of((text, {name: each for name, each in texts.items() if name != "m.proto"}))
    checked = 0
    for name, message in file.messages.items():
        found = pool.FindMessageTypeByName(name)
        fields = [f for f in found.fields if not f.is_extension]
        assert [(f.name, f.number) for f in fields] == [(f.name, f.number) for f in message.fields]
        for theirs, ours in zip(fields, message.fields, strict=True):
            assert (theirs.is_repeated, theirs.containing_oneof is not None and not is_synthetic(theirs)) == (ours.repeated, bool(ours.oneof))  # fmt: skip
            assert ours.presence == (theirs.has_presence and not theirs.is_repeated), ours
            if not ours.key and theirs.message_type is not None:
                assert theirs.message_type.full_name == ours.kind
            if theirs.enum_type is not None:
                assert theirs.enum_type.full_name == ours.kind
                values = {number: value.name for number, value in theirs.enum_type.values_by_number.items()}
                assert file.enums[ours.kind].keys() == values.keys()
            checked += 1
    assert checked
    assert list(file.top) == [pool.FindMessageTypeByName(name).full_name for name in file.top]


def is_synthetic(field: Any) -> bool:
    """protoc puts each `optional` field of proto3 into a oneof of its own."""
    return field.containing_oneof.name == f"_{field.name}"


def test_what_is_passed_over_holds_nothing_of_a_message() -> None:
    file = file_of((OLD, {"c/d.proto": FAR}))
    assert file.at((0, 0, 0)).name == "a.b.M.Inner.Deep"
    assert file.at((1,)).name == "a.b.Other"
    assert file.enums["a.b.M.Kind"] == {0: "A", 1: "B", -2: "D"}
    with pytest.raises(ProtoTextError, match="no message at 0/7"):
        file.at((0, 7))


def test_what_is_built_in_has_the_fields_that_protoc_knows() -> None:
    texts = {"m.proto": "".join(f'import "{name}";\n' for name in built_in() if name.startswith("google/protobuf"))}
    pool = compiled({"m.proto": 'syntax = "proto3";\n' + texts["m.proto"]})
    for name, file in built_in().items():
        for message in file.messages.values() if name.startswith("google/protobuf") else ():
            found = pool.FindMessageTypeByName(message.name)
            assert {(f.name, f.number) for f in found.fields} == {(f.name, f.number) for f in message.fields}
    assert {name for file in built_in().values() for name in file.messages} >= WRAPPERS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "message M { int32 = 1; }", "message M {", "message M { int32 a = 0; }", "message M { int32 a = 536870912; }",
        'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }', 'syntax = "proto3"; message M { int32 a = 1; int32 a = 2; }',
        'syntax = "proto3"; message M { N n = 1; }', "message M { } message M { }", 'import "none.proto"; message M { }',
        'syntax = "proto3"; message M { map<double, int32> a = 1; }', "banana", 'syntax = "proto3"; message M { int32 a = 08; }',
        'syntax = "proto3"; message M { int32 a = 1 }', 'syntax = "proto3"; enum E { A = 9999999999; } message M { E e = 1; }',
        'import none; message M { }', 'syntax = "proto3"; message M { int32 a = "1"; }', 'syntax = "proto3"; message M { 5 a = 1; }',
    ],
)  # fmt: skip
def test_what_protoc_refuses_is_refused(text: str) -> None:
    with pytest.raises(ProtoTextError):
        file_of((text, {}))
    with pytest.raises(ValueError, match="protoc refuses"):
        compiled({"m.proto": text})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('syntax = "proto3"; message M { M m = 1; }', "message M holds itself"),
        ('syntax = "proto3"; message M { map<string, N> n = 1; } message N { repeated M m = 1; }', "message M holds itself"),
        ("message M { optional group G = 1 { } }", "field G is a group"),
        ('syntax = "proto3"; message M { }', "has no field"),
        ("", "has no message"),
        (
            'syntax = "proto3"; ' + "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }} " for n in range(40)) + "message M40 { bool b = 1; }",
            "more than 5000 fields",
        ),
        (
            'syntax = "proto3"; ' + "".join(f"message M{n} {{ M{n + 1} a = 1; }} " for n in range(60)) + "message M60 { bool b = 1; }",
            "more than 50 deep",
        ),
        ("message M {" * 100 + "}" * 100, "more than 64 deep"),
        ("message M { optional int32 a = " + "9" * 10_000 + "; }", "is not expected"),
    ],
)  # fmt: skip
def test_what_no_column_can_hold_is_told(text: str, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        ProtobufDecoder(text)


def test_a_message_is_chosen_by_its_name() -> None:
    text = (
        'syntax = "proto3"; package p; message A { int32 a = 1; } message B { int32 b = 1; message C { int32 c = 1; } }'
    )
    for name, column in [(None, "a"), ("B", "b"), ("p.B", "b"), ("B.C", "c"), ("p.B.C", "c")]:
        assert ProtobufDecoder(text, name).decode([b"\x08\x01"], None).to_pylist() == [{column: 1}]
    with pytest.raises(InvalidDataError, match="has no message D"):
        ProtobufDecoder(text, "D")
