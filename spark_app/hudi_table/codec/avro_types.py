"""The types of flat Avro record fields, as the columnar codec sees them: a shape on the wire and a type in Arrow."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_table.codec.avro_schema import avro_to_arrow

FLAT = ("boolean", "int", "long", "float", "double", "string", "bytes", "fixed")


@dataclass(frozen=True, slots=True)
class AvroField:
    """One field: `wire` is one of `FLAT`, `size` the bytes of a fixed, `null_branch` the number of null in the union
    (None: no union), `branches` how many there are. `type` is the Arrow type."""

    name: str
    wire: str
    type: pa.DataType
    size: int = 0
    null_branch: int | None = None
    nullable: bool = False


@functools.lru_cache(maxsize=64)
def flat_fields(avro_schema: str) -> tuple[AvroField, ...] | None:
    """The fields of a record schema; None if one is nested, an enum or a union of several types.

    Raises what `avro_to_arrow` raises.
    """
    arrow = avro_to_arrow(avro_schema)
    named: dict[str, Any] = {}
    found = [_flat(column, arrow.field(column["name"]), named) for column in json.loads(avro_schema)["fields"]]
    return None if any(field is None for field in found) else tuple(field for field in found if field is not None)


def _flat(column: dict[str, Any], field: pa.Field, named: dict[str, Any]) -> AvroField | None:
    kind, null_branch = column["type"], None
    if isinstance(kind, list):
        if len(kind) != 2 or "null" not in kind:
            return None
        null_branch = kind.index("null")
        kind = kind[1 - null_branch]
    if isinstance(kind, dict) and kind.get("type") == "fixed":
        for name in (kind["name"], f"{kind.get('namespace', '')}.{kind['name']}"):
            named[name] = kind
    if isinstance(kind, str) and kind in named:
        kind = named[kind]
    wire = kind if isinstance(kind, str) else kind.get("type")
    if wire not in FLAT:
        return None
    size = kind["size"] if wire == "fixed" else 0
    return AvroField(column["name"], wire, field.type, size, null_branch, field.nullable)
