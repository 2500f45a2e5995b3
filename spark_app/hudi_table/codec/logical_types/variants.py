"""Variants: columns of type `VARIANT`, structs of two binary fields as Parquet encodes
semi-structured values.

Facts (Hudi 1.2.0, and Arrow's canonical extension types): the Avro type is a record `variant`
without a namespace and with the logical type of that name, whose fields `metadata` and `value` are
both required; Parquet holds the same group. Arrow marks such a struct by the extension
`arrow.parquet.variant`, which pyarrow leaves in a field's metadata where no such type is
registered. Shredded variants, with a `typed_value`, are none that Hudi 1.2 writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

EXTENSION: Final = "arrow.parquet.variant"
_NAME: Final = b"ARROW:extension:name"
MARK: Final[Mapping[bytes, bytes]] = {_NAME: EXTENSION.encode(), b"ARROW:extension:metadata": b""}
"""Metadata of a field that holds variants."""
VARIANT: Final = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
_PARTS: Final = {field.name for field in VARIANT}


def is_variant(field: pa.Field) -> bool:
    """Whether a field is marked as one that holds variants which are not shredded."""
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        marked, kind = kind.extension_name == EXTENSION, kind.storage_type
    else:
        marked = (field.metadata or {}).get(_NAME) == EXTENSION.encode()
    return bool(marked and pt.is_struct(kind) and {part.name for part in kind} == _PARTS and all(map(_is_bytes, kind)))


def variant_field(field: pa.Field) -> pa.Field:
    """The field as a table holds it."""
    return pa.field(field.name, VARIANT, field.nullable, dict(MARK))


def avro_variant() -> dict[str, Any]:
    """The Avro type of a column of variants."""
    parts = [{"name": name, "type": "bytes", "doc": f"Variant {name} component"} for name in ("metadata", "value")]
    return {"type": "record", "name": "variant", "namespace": "", "fields": parts, "logicalType": "variant"}


def _is_bytes(field: pa.Field) -> bool:
    kind = field.type
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind))
