"""Records of the metadata table: Arrow columns, a kind of record each, to and from Avro values.

Facts (measured on Hudi 0.15.0 and 1.1.1). The record is HoodieMetadataRecord with the five meta
columns ahead; a base file fills only `_hoodie_file_name`, a log block none of them. `key` is
written empty, since it is the key of the HFile's entry. `type` is 1 for the list of partitions, 2
for files of a partition, 3 for column statistics, 4 for bloom filters, 5 for the record index, 6
for column statistics of a whole partition, whose path is the file name. Hudi 1.x appends fields,
which are passed over but for two of column statistics: whether the bounds are tight, and the type
of the column. It does not fill the position of a record. Smallest and largest values are wrapped by
their Java class: `codec.bounds`."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.decode import Cursor, MalformedError, Places
from hudi_table.codec.avro.encode import encode_flat, join, varints
from hudi_table.codec.avro.guard import load_schema
from hudi_table.codec.avro.schema import with_meta_text
from hudi_table.codec.avro.types import AvroField, flat_fields
from hudi_table.codec.bounds import BOUND, Union, read_bounds, written_bounds
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.names import META_COLUMNS

PARTITIONS, FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, PARTITION_STATS, SECONDARY_INDEX = range(1, 8)
"""The values of `type`."""

FILE_TYPE: Final = pa.struct([pa.field("size", pa.int64(), False), pa.field("deleted", pa.bool_(), False)])
BLOOM_TYPE: Final = pa.struct(
    [
        pa.field("type", pa.string(), False),
        pa.field("timestamp", pa.string(), False),
        pa.field("filter", pa.binary(), False),
        pa.field("deleted", pa.bool_(), False),
    ]
)
KIND_TYPE: Final = pa.struct([pa.field("ordinal", pa.int32(), False), pa.field("info", pa.string())])
"""The type of a column whose bounds are wrapped by that of its plain value: a number, and of a
decimal its precision and scale."""
STATS_TYPE: Final = pa.struct(
    [
        pa.field("file_name", pa.string()),
        pa.field("column", pa.string()),
        pa.field("min", BOUND),
        pa.field("max", BOUND),
        pa.field("value_count", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("total_size", pa.int64()),
        pa.field("total_uncompressed_size", pa.int64()),
        pa.field("deleted", pa.bool_(), False),
        pa.field("tight", pa.bool_(), False),
        pa.field("kind", KIND_TYPE),
    ]
)


def stats_with(values: Mapping[str, pa.Array], count: int) -> pa.StructArray:
    """So many STATS_TYPE values with these fields. What is not given is null, or false where that
    cannot be."""
    parts = [
        values[field.name]
        if field.name in values
        else pa.nulls(count, field.type)
        if field.nullable
        else pa.repeat(pa.scalar(False), count)
        for field in STATS_TYPE
    ]
    return pa.StructArray.from_arrays(parts, fields=list(STATS_TYPE))


LOCATION_TYPE: Final = pa.struct(
    [
        pa.field("partition", pa.string()),
        pa.field("file_id_high", pa.int64()),
        pa.field("file_id_low", pa.int64()),
        pa.field("file_index", pa.int32()),
        pa.field("file_id", pa.string()),
        pa.field("instant_millis", pa.int64()),
        pa.field("encoding", pa.int32(), False),
    ]
)
SECONDARY_TYPE: Final = pa.struct([pa.field("deleted", pa.bool_(), False)])
METADATA_SCHEMA: Final = pa.schema(
    [
        pa.field("type", pa.int32(), False),
        pa.field("files", pa.map_(pa.string(), pa.field("value", FILE_TYPE, False))),
        pa.field("bloom", BLOOM_TYPE),
        pa.field("stats", STATS_TYPE),
        pa.field("location", LOCATION_TYPE),
        pa.field("secondary", SECONDARY_TYPE),
    ]
)
_COLUMNS: Final = {
    "type": "type",
    "filesystemMetadata": "files",
    "BloomFilterMetadata": "bloom",
    "ColumnStatsMetadata": "stats",
    "recordIndexMetadata": "location",
    "SecondaryIndexMetadata": "secondary",
}
_STATS_NAMES: Final = {
    "fileName": "file_name",
    "columnName": "column",
    "minValue": "min",
    "maxValue": "max",
    "valueCount": "value_count",
    "nullCount": "null_count",
    "totalSize": "total_size",
    "totalUncompressedSize": "total_uncompressed_size",
    "isDeleted": "deleted",
    "isTightBound": "tight",
    "valueType": "kind",
}
_MAP: Final = "filesystemMetadata"
_STATS: Final = "ColumnStatsMetadata"
_NO_VALUE: Final = b"\x00"
_VALUE: Final = b"\x02"


def decode_metadata(values: pa.Array | pa.ChunkedArray, writer_schema: str, *, path: str = "") -> pa.Table:
    """The records in `values` (binary, a record each) that were written by `writer_schema`, in the
    columns of METADATA_SCHEMA.

    Raises CorruptTableError, UnsupportedTableError if the schema is not that of a metadata record.
    """
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    whole = whole.cast(pa.large_binary())
    _, places, data = whole.buffers()
    bounds = (
        np.frombuffer(places, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        if len(whole)
        else np.zeros(1, np.int64)
    )
    cursor = Cursor(data if data is not None else pa.py_buffer(b""), bounds[:-1].copy(), bounds[1:])
    decoded: dict[str, pa.Array] = {}
    try:
        for field in _plan(writer_schema):
            column = _COLUMNS.get(field["name"])
            if field["name"] == _MAP:
                decoded["files"] = _read_files(cursor, whole, bounds, field)
            elif field["name"] == _STATS:
                decoded["stats"] = _read_stats(cursor, field)
            else:
                values_read = cursor.column(_flat(field), column is not None)
                if column is not None and values_read is not None:
                    decoded[column] = _as_struct(values_read, METADATA_SCHEMA.field(column).type)
        if not np.array_equal(cursor.at, bounds[1:]):
            raise MalformedError("a record does not end where its value does")
    except (MalformedError, pa.ArrowInvalid, ValueError, EOFError, IndexError, TypeError, KeyError) as error:
        raise CorruptTableError(
            f"A metadata record of {path or 'an HFile'} cannot be read: {error}", path=path
        ) from error
    columns = [
        decoded[field.name] if field.name in decoded else pa.nulls(len(whole), field.type) for field in METADATA_SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=METADATA_SCHEMA)


def encode_metadata(records: pa.Table, schema: str, *, file_name: str | None = None) -> pa.Array:
    """The Avro values of `records` by a `metadata_schema`, one large_binary a row; columns that are
    absent are null.

    `file_name`: that of the base file which the records go into, None for a log block.
    """
    own = {field["name"]: field for field in _plan(schema) if field["name"] not in (*META_COLUMNS, "key")}
    parts = [pa.scalar(_meta_bytes(file_name) + _NO_VALUE, pa.large_binary())]
    for name, field in own.items():
        column = _COLUMNS.get(name, "")
        if column not in records.column_names:
            parts.append(pa.scalar(_NO_VALUE, pa.large_binary()))
            continue
        values = records.column(column).combine_chunks()
        if name == _MAP:
            parts.append(_files_bytes(values))
        elif name == _STATS:
            parts.append(_stats_bytes(values, field))
        else:
            flat = _flat(field)
            parts.append(encode_flat(pa.table({flat.name: _widened(values, flat.type)}), (flat,)))
    return join(*parts)


@functools.cache
def metadata_schema(name: str) -> str:
    """The schema of what `encode_metadata` makes, as JSON text, meta columns ahead. `name`: of the
    file that a layout names."""
    text = resources.files("hudi_table.codec").joinpath("avsc", f"{name}.avsc").read_text("utf-8")
    return with_meta_text(json.dumps(json.loads(text), separators=(",", ":")))


@functools.lru_cache(maxsize=16)
def _plan(schema: str) -> list[dict[str, Any]]:
    try:
        record = load_schema(schema, sized=True)
        fields: list[dict[str, Any]] = record["fields"]
        if not {"key", "type", _MAP} <= {field["name"] for field in fields}:
            raise KeyError("key, type, filesystemMetadata")
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedTableError(f"Metadata records have a schema without {error}: not one of Hudi's.") from error
    return fields


def _flat(field: dict[str, Any]) -> AvroField:
    return _flat_of(json.dumps(field, sort_keys=True))


@functools.lru_cache(maxsize=64)
def _flat_of(field: str) -> AvroField:
    found = flat_fields(f'{{"type":"record","name":"one","fields":[{field}]}}')
    if found is None:
        raise UnsupportedTableError(f"Metadata records have a field that is not known: {field[:80]}.")
    return found[0]


def _as_struct(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values under the names of `kind`; fields of later releases are left out."""
    if not pa.types.is_struct(kind):
        return values
    own = values.flatten()[: kind.num_fields]
    return pa.StructArray.from_arrays(own, fields=list(kind), mask=values.is_null())


def _widened(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Structs with the fields that a later schema appends, which are null."""
    if not pa.types.is_struct(kind) or kind.num_fields == values.type.num_fields:
        return values
    more = [kind.field(place) for place in range(values.type.num_fields, kind.num_fields)]
    parts = [*values.flatten(), *(pa.nulls(len(values), field.type) for field in more)]
    return pa.StructArray.from_arrays(parts, fields=[*values.type, *more], mask=values.is_null())


def _read_files(cursor: Cursor, values: pa.Array, bounds: Places, field: dict[str, Any]) -> pa.Array:
    """Maps of files: fastavro, a record at a time, since there is one record a partition."""
    rows = _rows_with(cursor, field)
    schema = _map_schema(json.dumps(field["type"][1]))
    names: list[str] = []
    sizes: list[int] = []
    deleted: list[bool] = []
    counts = np.zeros(len(values), np.int64)
    for row in rows.tolist():
        begin = int(cursor.at[row])
        source = io.BytesIO(values[row].as_py())
        source.seek(begin - int(bounds[row]))
        found: Any = fastavro.schemaless_reader(source, schema, None)
        cursor.at[row] = int(bounds[row]) + source.tell()
        names += found
        sizes += [item["size"] for item in found.values()]
        deleted += [item["isDeleted"] for item in found.values()]
        counts[row] = len(found)
    items = pa.StructArray.from_arrays(
        [pa.array(sizes, pa.int64()), pa.array(deleted, pa.bool_())], fields=list(FILE_TYPE)
    )
    places = np.zeros(len(values) + 1, np.int32)
    np.cumsum(counts, out=places[1:])
    kind = METADATA_SCHEMA.field("files").type
    absent = np.ones(len(places), bool)
    absent[rows] = absent[-1] = False
    ends = pa.array(places, mask=absent)
    return pa.MapArray.from_arrays(ends, pa.array(names, pa.string()), items, type=kind)


def _rows_with(cursor: Cursor, field: dict[str, Any]) -> Places:
    """The records that have a value of this field, a union that begins with null."""
    branches = cursor.branches()
    if not np.isin(branches, [0, 2]).all():
        raise MalformedError(f"field {field['name']} names a branch that its union has not")
    return np.flatnonzero(branches)


@functools.lru_cache(maxsize=8)
def _map_schema(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


def _read_stats(cursor: Cursor, field: dict[str, Any]) -> pa.Array:
    total = len(cursor.at)
    rows = _rows_with(cursor, field)
    inside = cursor.some(rows)
    record = field["type"][1]
    union = _union(json.dumps(record["fields"]))
    arrays = {}
    for child in record["fields"]:
        name = _STATS_NAMES.get(child["name"])
        if name in ("min", "max"):
            arrays[name] = read_bounds(inside, len(rows), union)
        else:
            column = inside.column(_flat(child), name is not None)
            if name is not None:
                arrays[name] = _as_struct(column, KIND_TYPE) if name == "kind" else column
    cursor.moved(rows, inside)
    absent = {"tight": pa.repeat(pa.scalar(False), len(rows)), "kind": pa.nulls(len(rows), KIND_TYPE)}
    arrays = absent | arrays
    values = pa.StructArray.from_arrays([arrays[child.name] for child in STATS_TYPE], fields=list(STATS_TYPE))
    places = np.full(total, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


@functools.lru_cache(maxsize=8)
def _union(fields: str) -> Union:
    return Union.of(json.loads(fields))


def _meta_bytes(file_name: str | None) -> bytes:
    """The five meta columns, of which only the last one is ever filled."""
    if file_name is None:
        return _NO_VALUE * len(META_COLUMNS)
    name = file_name.encode()
    length: bytes = varints(np.array([len(name)]))[0].as_py()
    return _NO_VALUE * (len(META_COLUMNS) - 1) + _VALUE + length + name


def _files_bytes(values: pa.MapArray) -> pa.Array:
    """Per row the branch and the map: a count, its items one after the other, 0; an empty map is a
    0."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = values.keys.slice(first, last - first).cast(pa.large_string()).view(pa.large_binary())
    items = values.items.slice(first, last - first)
    sizes, deleted = (items.field(place) for place in range(2))
    # The number -1 is written as the byte 1, as true is.
    flags = varints(-np.asarray(deleted.cast(pa.int8())).astype(np.int64))
    parts = join(varints(np.asarray(pc.binary_length(keys), np.int64)), keys, varints(np.asarray(sizes)), flags)
    bounds = np.frombuffer(parts.buffers()[1], np.int64)[: len(parts) + 1] if len(parts) else np.zeros(1, np.int64)
    places = pa.py_buffer(np.ascontiguousarray(bounds[offsets - first]))
    data = parts.buffers()[2] if len(parts) else pa.py_buffer(b"")
    joined = pa.Array.from_buffers(pa.large_binary(), len(values), [None, places, data])
    counts = np.diff(offsets)
    ahead = pc.if_else(pa.array(counts > 0), varints(counts, _VALUE), pa.scalar(_VALUE, pa.large_binary()))
    whole = join(ahead, joined, pa.scalar(_NO_VALUE, pa.large_binary()))
    return pc.if_else(values.is_valid(), whole, pa.scalar(_NO_VALUE, pa.large_binary()))


def _stats_bytes(values: pa.StructArray, field: dict[str, Any]) -> pa.Array:
    present = values.drop_null()
    columns = dict(zip((child.name for child in STATS_TYPE), present.flatten(), strict=True))
    parts: list[Any] = [pa.scalar(_VALUE, pa.large_binary())]
    for child in field["type"][1]["fields"]:
        name = _STATS_NAMES[child["name"]]
        if name in ("min", "max"):
            parts.append(written_bounds(columns[name]))
        else:
            flat = _flat(child)
            parts.append(encode_flat(pa.table({flat.name: columns[name]}), (flat,)))
    if not len(present):
        return pa.repeat(pa.scalar(_NO_VALUE, pa.large_binary()), len(values))
    places = np.cumsum(np.asarray(values.is_valid())) - 1
    found = join(*parts).take(pa.array(np.maximum(places, 0)))
    return pc.if_else(values.is_valid(), found, pa.scalar(_NO_VALUE, pa.large_binary()))
