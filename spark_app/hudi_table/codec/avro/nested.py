"""Avro records of any shape to Arrow and back, record by record through fastavro: slow, for rows
that hold a list, a map or an enum (see `types.flat_fields`).

Dates and times pass as numbers, for Python's calendar has the years 1 to 9999 alone.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.avro.guard import parsed_schema
from hudi_table.codec.avro.names import for_fastavro
from hudi_table.codec.avro.schema import avro_to_arrow
from hudi_table.codec.logical_types.vectors import stored_schema


def decode_nested(content: pa.Buffer, starts: Any, schema: str) -> pa.Table:
    """All fields of the records that begin at `starts`, vectors as their bytes.

    Raises what fastavro raises for bytes that are no record, and pa.ArrowInvalid.
    """
    parsed = parsed_schema(schema)
    data = io.BytesIO(content)
    records = []
    for start in starts.tolist():
        data.seek(start)
        records.append(fastavro.schemaless_reader(data, parsed, None))
    return pa.Table.from_pylist(records, schema=stored_schema(avro_to_arrow(schema)))


def encode_nested(rows: pa.Table, avro_schema: str) -> pa.Array:
    """One large_binary value per row: its Avro record. Of a key that a stored map has twice the
    last one counts, as in Java."""
    parsed = fastavro.parse_schema(for_fastavro(json.loads(avro_schema)))
    numbers = rows.cast(pa.schema([field.with_type(_as_numbers(field.type)) for field in rows.schema]))
    found = []
    for record in numbers.to_pylist(maps_as_pydicts="lossy"):
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, record)
        found.append(sink.getvalue())
    return pa.array(found, pa.large_binary())


def _as_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers in place of dates and times."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_as_numbers(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_as_numbers(kind.item_type)))
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_numbers(kind.value_type)))
    if pt.is_date32(kind) or pt.is_time32(kind):
        return pa.int32()
    return pa.int64() if pt.is_timestamp(kind) or pt.is_time64(kind) else kind
