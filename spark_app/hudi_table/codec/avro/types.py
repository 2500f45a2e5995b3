"""The types of flat Avro record fields, as the columnar codec sees them: a shape on the wire and a
type in Arrow."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_table.codec.avro.schema import avro_to_arrow, full_name
from hudi_table.codec.logical_types.vectors import stored_schema
from hudi_table.model.json_text import parse_json

FLAT = ("boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "record")


@dataclass(frozen=True, slots=True)
class AvroField:
    """One field: `wire` is one of `FLAT`, `size` the bytes of a fixed, `null_branch` the number of
    null in the union (None: no union), `children` the fields of a record. `type` is the Arrow
    type."""

    name: str
    wire: str
    type: pa.DataType
    size: int = 0
    null_branch: int | None = None
    nullable: bool = False
    children: tuple[AvroField, ...] = ()


@functools.lru_cache(maxsize=64)
def flat_fields(avro_schema: str) -> tuple[AvroField, ...] | None:
    """The fields of a record schema, vectors as their bytes; None if one is or holds a list, a map,
    an enum or a union of several types.

    Raises what `avro_to_arrow` raises.
    """
    arrow = stored_schema(avro_to_arrow(avro_schema))
    record = parse_json(avro_schema)
    return _fields(record, arrow, {}, full_name(record, "")[1])


_Named = dict[str, tuple[dict[str, Any], str]]
"""Definition and inner namespace of each named type, by full name."""


def _fields(record: dict[str, Any], arrow: Any, named: _Named, space: str) -> tuple[AvroField, ...] | None:
    """The fields of a record whose Arrow fields are those of `arrow`, a schema or a struct type."""
    found = [_flat(column, arrow.field(column["name"]), named, space) for column in record["fields"]]
    return None if any(field is None for field in found) else tuple(field for field in found if field is not None)


def _flat(column: dict[str, Any], field: pa.Field, named: _Named, space: str) -> AvroField | None:
    kind, null_branch = column["type"], None
    if isinstance(kind, list):
        if len(kind) != 2 or "null" not in kind:
            return None
        null_branch = kind.index("null")
        kind = kind[1 - null_branch]
    inner = space
    if isinstance(kind, str):
        kind, inner = named.get(f"{space}.{kind}") or named.get(kind) or (kind, space)
    elif kind.get("type") in ("fixed", "record"):
        full, inner = full_name(kind, space)
        named[full] = named[kind["name"]] = (kind, inner)
    wire = kind if isinstance(kind, str) else kind.get("type")
    if wire not in FLAT:
        return None
    children = _fields(kind, field.type, named, inner) if wire == "record" else ()
    if children is None or (wire == "record" and not children):
        return None
    size = kind["size"] if wire == "fixed" else 0
    return AvroField(column["name"], wire, field.type, size, null_branch, field.nullable, children)
