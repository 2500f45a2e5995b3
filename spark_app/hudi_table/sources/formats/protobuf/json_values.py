"""`Struct`, `Value` and `ListValue` of Protocol Buffers as JSON text, one by one: they hold each
other, which no column can.

Facts: a number that is none (NaN, infinite) has no JSON, and a `Value` that is not set is null.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pyarrow as pa

from hudi_table.sources.formats.protobuf.wire import LONG, SIZED, VARINT, Bytes, MalformedError, Tokens, walked

STRUCT, VALUE, LIST = (f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
JSON = frozenset({STRUCT, VALUE, LIST})
DEPTH_MAX = 50


def json_texts(data: Bytes, found: Tokens, kind: str) -> pa.Array:
    """The text of each occurrence. Raises MalformedError."""
    read = {STRUCT: _struct, VALUE: _value, LIST: _list}[kind]
    texts = []
    for row, at, stop in zip(found.rows.tolist(), found.values.tolist(), found.ends.tolist(), strict=True):
        texts.append(json.dumps(read(data, at, stop, row, 0), ensure_ascii=False, separators=(",", ":")))
    return pa.array(texts, pa.string())


def _struct(data: Bytes, at: int, stop: int, row: int, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, tag, begin, end in walked(data, at, stop, row):
        if tag == 1 << 3 | SIZED:
            key, value = "", None
            for _, inner, start, behind in walked(data, begin, end, row):
                if inner == 1 << 3 | SIZED:
                    key = _text(data, start, behind, row)
                elif inner == 2 << 3 | SIZED:
                    value = _value(data, start, behind, row, depth + 1)
            found[key] = value
    return found


def _list(data: Bytes, at: int, stop: int, row: int, depth: int) -> list[Any]:
    return [
        _value(data, begin, end, row, depth + 1)
        for _, tag, begin, end in walked(data, at, stop, row)
        if tag == 1 << 3 | SIZED
    ]


def _value(data: Bytes, at: int, stop: int, row: int, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise MalformedError(row, f"values of it lie more than {DEPTH_MAX} deep in each other")
    found: Any = None
    for _, tag, begin, end in walked(data, at, stop, row):
        number, wire = tag >> 3, tag & 7
        if number == 1 and wire == VARINT:
            found = None
        elif number == 2 and wire == LONG:
            (found,) = struct.unpack("<d", data[begin:end].tobytes())
            if not math.isfinite(found):
                raise MalformedError(row, f"a value of it is {found}, which JSON cannot hold")
            found = int(found) if found.is_integer() and abs(found) < 1 << 53 else found
        elif number == 3 and wire == SIZED:
            found = _text(data, begin, end, row)
        elif number == 4 and wire == VARINT:
            found = begin != 0
        elif number == 5 and wire == SIZED:
            found = _struct(data, begin, end, row, depth)
        elif number == 6 and wire == SIZED:
            found = _list(data, begin, end, row, depth)
    return found


def _text(data: Bytes, at: int, stop: int, row: int) -> str:
    try:
        return data[at:stop].tobytes().decode()
    except UnicodeDecodeError:
        raise MalformedError(row, "a text of it is not UTF-8") from None
