"""Definitions of Protocol Buffers by protoc itself, their messages by Google's runtime, and what a
message is as a row."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

WRAPPED = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_JSON = tuple(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))


def compiled(texts: Mapping[str, str]) -> DescriptorPool:
    """What protoc makes of texts, by the names under which they are imported. Raises ValueError if
    it refuses them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = Path(folder, "set")
        built_in = Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["", f"-I{folder}", f"-I{built_in}", "--include_imports"]
        if protoc.main([*arguments, f"--descriptor_set_out={out}", *texts]):
            raise ValueError("protoc refuses it")
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = DescriptorPool()
    for file in found.file:
        pool.Add(file)
    return pool


def message_class(pool: DescriptorPool, name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def row(message: Any) -> dict[str, Any]:
    """A message as a row is to be."""
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _field(message: Any, field: FieldDescriptor) -> Any:
    held = getattr(message, field.name)
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        pairs = [(_scalar(name, key), _value(held[name], value)) for name in held]
        if key.type == FieldDescriptor.TYPE_STRING:
            return sorted(pairs)
        return sorted(({"key": name, "value": each} for name, each in pairs), key=lambda each: each["key"])
    if field.is_repeated:
        return [_value(each, field) for each in held]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(held, field)


def _value(held: Any, field: FieldDescriptor) -> Any:
    kind = field.message_type
    if kind is None:
        return _scalar(held, field)
    if kind.full_name == "google.protobuf.Timestamp":
        return held.seconds * 1_000_000 + held.nanos // 1000
    if kind.full_name == "google.protobuf.Duration":
        return held.seconds * 1_000_000 + held.nanos // 1000
    if kind.full_name in WRAPPED:
        return _scalar(held.value, kind.fields_by_name["value"])
    if kind.full_name in _JSON:
        return json.loads(json_format.MessageToJson(held))
    return row(held) if kind.fields else True


def _scalar(held: Any, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(held)
        return known.name if known is not None else str(held)
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
        return Decimal(held)
    return held
