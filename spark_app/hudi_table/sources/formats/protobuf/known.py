"""Definitions that come with Protocol Buffers, and with Confluent's registry: a text may import
them without referring to them. Those whose meaning has a type of its own are read in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from hudi_table.sources.formats.protobuf.text import ProtoFile, parsed

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS: Mapping[str, str] = {
    f"google.protobuf.{name}Value": kind
    for name, kind in {
        "Double": "double", "Float": "float", "Int64": "int64", "UInt64": "uint64", "Int32": "int32",
        "UInt32": "uint32", "Bool": "bool", "String": "string", "Bytes": "bytes",
    }.items()
}  # fmt: skip
"""Messages of one field, `value`: the scalar that each holds."""
_SECONDS = "{ int64 seconds = 1; int32 nanos = 2; }"
_GOOGLE = {
    "any": "message Any { string type_url = 1; bytes value = 2; }",
    "duration": f"message Duration {_SECONDS}",
    "timestamp": f"message Timestamp {_SECONDS}",
    "empty": "message Empty {}",
    "field_mask": "message FieldMask { repeated string paths = 1; }",
    "wrappers": " ".join(f"message {name.rpartition('.')[2]} {{ {kind} value = 1; }}" for name, kind in WRAPPERS.items()),
    "struct": """
        message Struct { map<string, Value> fields = 1; }
        message Value {
          oneof kind {
            NullValue null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
            Struct struct_value = 5; ListValue list_value = 6;
          }
        }
        enum NullValue { NULL_VALUE = 0; }
        message ListValue { repeated Value values = 1; }""",
    "descriptor": "",
}  # fmt: skip
_TYPES = {
    "date": "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "timeofday": "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    "money": "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "latlng": "message LatLng { double latitude = 1; double longitude = 2; }",
}
_CONFLUENT = {
    "meta.proto": "package confluent;",
    "type/decimal.proto": "package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}


@cache
def built_in() -> Mapping[str, ProtoFile]:
    """Import → file. Options, for which `descriptor.proto` and `confluent/meta.proto` are imported,
    are passed over, so that nothing of them is needed."""
    texts = {f"google/protobuf/{name}.proto": f"package google.protobuf; {text}" for name, text in _GOOGLE.items()}
    texts |= {f"google/type/{name}.proto": f"package google.type; {text}" for name, text in _TYPES.items()}
    texts |= {f"confluent/{name}": text for name, text in _CONFLUENT.items()}
    return {name: parsed(f'syntax = "proto3"; {text}') for name, text in texts.items()}
