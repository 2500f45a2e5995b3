"""Contents of log blocks: rows in Avro, Parquet or HFiles, change data, and lists of deleted keys.

Facts (table version 6, measured on Hudi 0.15.0): an Avro block holds the ints 3 and the number of
records, then per record an int length and its Avro binary; its schema, meta columns included, is in
the block's header. A Parquet block is a whole Parquet file. A delete block holds the ints 3 and a
length, then one Avro HoodieDeleteRecordList whose ordering values are wrapped by their Java class;
the integer 0 says that the delete is unconditional. Of several ordering fields (version 9, measured
on 1.1.1) the values are wrapped once more, as an array.
"""

from __future__ import annotations

import functools
import io
import json
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec.avro.decode import MalformedError, decode_flat
from hudi_table.codec.avro.encode import encode_flat, join, varints
from hudi_table.codec.avro.nested import decode_nested, encode_nested
from hudi_table.codec.avro.schema import avro_to_arrow
from hudi_table.codec.avro.types import flat_fields
from hudi_table.codec.conform import conform
from hudi_table.codec.log.blocks import (
    COMPACTED_BLOCK_TIMES,
    INSTANT_TIME,
    IS_PARTIAL,
    SCHEMA,
    BlockType,
    LogBlock,
    read_content,
    sealed_block,
    unreadable,
)
from hudi_table.codec.log.hfile import read_hfile
from hudi_table.codec.logical_types.vectors import as_stored, as_vectors
from hudi_table.codec.parquet_writer import BaseFileWriter
from hudi_table.errors import InvariantError, UnsupportedTableError

CONTENT_VERSION = 3
_TWO_INTS = struct.Struct(">ii")
_INT = struct.Struct(">i")
_WRAPPERS = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "BytesWrapper": pa.binary(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.date32(),
    "DecimalWrapper": pa.decimal128(30, 15),
    "TimeMicrosWrapper": pa.time64("us"),
    "TimestampMicrosWrapper": pa.timestamp("us", tz="UTC"),
}
_NUMBERS = ("IntWrapper", "LongWrapper", "FloatWrapper", "DoubleWrapper")
_BRANCHES = {name: number for number, name in enumerate(_WRAPPERS, start=1)}
_WRAPPERS["LocalDateWrapper"] = pa.date32()  # inside an array alone
# Both come behind the others: one in the union of a delete, one in that of an array's items.
_BRANCHES["ArrayWrapper"] = _BRANCHES["LocalDateWrapper"] = len(_BRANCHES) + 1
_VOID = pa.scalar(bytes([2 * _BRANCHES["IntWrapper"], 0]), pa.large_binary())


@dataclass(frozen=True, slots=True)
class DeletedKeys:
    """Deleted keys of one block, as parallel arrays. `ordering` is null where the delete is
    unconditional; its type is the Java class that was written. Of classes that one block mixes the
    most frequent one counts, numbers as the widest of theirs, and the others are null. `then_by`:
    the values of further ordering fields."""

    keys: pa.Array
    partitions: pa.Array
    ordering: pa.Array
    then_by: tuple[pa.Array, ...] = ()


def read_rows(source: Any, block: LogBlock, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of an Avro, Parquet, HFile or change data block, in the types of its schema; `columns`
    in their order, absent ones left out.

    Raises CorruptTableError that names the file and the place, UnsupportedTableError for a block
    without rows.
    """
    if block.type not in (BlockType.AVRO, BlockType.PARQUET, BlockType.HFILE, BlockType.CDC):
        raise UnsupportedTableError(f"{block.where} is a {block.type.name} block, which holds no rows", path=block.path)
    content = pa.py_buffer(read_content(source, block)) if block.type is not BlockType.HFILE else None
    try:
        if content is None:
            rows = _hfile_rows(source, block, columns)
        elif block.type is BlockType.PARQUET:
            rows = _parquet_rows(content)
        else:
            rows = _records(content, *_frames(memoryview(content)), _schema_of(block), columns)
        if block.schema is not None:
            rows = as_vectors(rows, avro_to_arrow(block.schema))
    except (MalformedError, pa.ArrowInvalid, EOFError, ValueError, TypeError, IndexError, struct.error) as error:
        raise unreadable(block, error) from error
    if columns is None:
        return rows
    return rows.select([name for name in columns if name in rows.schema.names])


def read_deletes(source: Any, block: LogBlock) -> DeletedKeys:
    """The keys of a delete block. Raises CorruptTableError, and UnsupportedTableError for
    Java-serialised lists (versions 1, 2)."""
    content = read_content(source, block)
    if len(content) == 0:
        return _deleted([])
    try:
        version, length = _TWO_INTS.unpack(content[:8])
        if version != CONTENT_VERSION:
            raise UnsupportedTableError(
                f"{block.where} lists deletes in version {version}, which only Java can read: compact the table with Hudi",
                path=block.path,
            )
        found: Any = fastavro.schemaless_reader(
            io.BytesIO(content[8 : 8 + length]), _delete_schema(), None, return_record_name=True
        )
        return _deleted(found["deleteRecordList"])
    except (ValueError, EOFError, IndexError, KeyError, TypeError, struct.error) as error:
        raise unreadable(block, error) from error


def avro_block(
    rows: pa.Table,
    avro_schema: str,
    instant: str,
    kind: BlockType = BlockType.AVRO,
    *,
    compacted: Sequence[str] = (),
    partial: bool = False,
) -> bytes:
    """A block of rows that have the columns of `avro_schema`, meta columns included where it names
    them.

    `compacted`: instants whose blocks it replaces, for a log compaction. `partial`: the rows hold
    changed columns alone.
    """
    rows = as_stored(conform(rows, avro_to_arrow(avro_schema)))
    fields = flat_fields(avro_schema)
    records = encode_nested(rows, avro_schema) if fields is None else encode_flat(rows, fields)
    lengths = pc.binary_length(records).to_numpy().astype(">i4").view(np.uint8)
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * 4
    ahead = pa.Array.from_buffers(
        pa.large_binary(), len(rows), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(lengths.tobytes())]
    )
    data = _joined(join(ahead, records)) if len(rows) else b""
    content = _TWO_INTS.pack(CONTENT_VERSION, len(rows)) + data
    header = {INSTANT_TIME: instant, SCHEMA: avro_schema, **_more(compacted, partial=partial)}
    return sealed_block(kind, header, content)


def parquet_block(
    rows: pa.Table,
    avro_schema: str,
    instant: str,
    *,
    compacted: Sequence[str] = (),
    partial: bool = False,
    codec: str = "zstd",
    level: int | None = 1,
) -> bytes:
    """The same rows as a Parquet block, which is written as a base file by `codec` and `level`."""
    sink = io.BytesIO()
    rows = conform(rows, avro_to_arrow(avro_schema))
    with BaseFileWriter(sink, rows.schema, avro_schema=avro_schema, codec=codec, level=level) as writer:
        writer.write(rows)
    header = {INSTANT_TIME: instant, SCHEMA: avro_schema, **_more(compacted, partial=partial)}
    return sealed_block(BlockType.PARQUET, header, sink.getvalue())


def delete_block(
    keys: pa.Array,
    partition: str,
    instant: str,
    ordering: pa.Array | None = None,
    *,
    compacted: Sequence[str] = (),
) -> bytes:
    """A block of deletes; without `ordering`, or where it is null, they are unconditional. A struct
    has the values of several ordering fields. `compacted`: see `avro_block`."""
    text = partition.encode()
    place = b"\x02" + varints(np.array([len(text)]))[0].as_py() + text
    keys = keys.cast(pa.large_string()).view(pa.large_binary())
    lengths = varints(pc.binary_length(keys).to_numpy().astype(np.int64), b"\x02")
    items = join(lengths, keys, pa.scalar(place, pa.large_binary()), _orderings(ordering, len(keys)))
    count = varints(np.array([len(keys)]))[0].as_py() if len(keys) else b""
    body = count + (_joined(items) if len(keys) else b"") + b"\x00"
    header = {INSTANT_TIME: instant, **_more(compacted)}
    return sealed_block(BlockType.DELETE, header, _TWO_INTS.pack(CONTENT_VERSION, len(body)) + body)


def _more(compacted: Sequence[str], *, partial: bool = False) -> dict[int, str]:
    times = {COMPACTED_BLOCK_TIMES: ",".join(sorted(compacted, reverse=True))} if compacted else {}
    return times | ({IS_PARTIAL: "true"} if partial else {})


def _orderings(ordering: pa.Array | None, rows: int) -> pa.Array:
    """Wrapped ordering values; null becomes the integer 0."""
    if ordering is None:
        return pa.repeat(_VOID, rows)
    if not pt.is_struct(ordering.type):
        return _wrapped_items(*_wrapped(ordering))
    fields = ordering.flatten()
    items = [
        _wrapped_items("LocalDateWrapper", *found[1:]) if found[0] == "DateWrapper" else _wrapped_items(*found)
        for found in map(_wrapped, fields)
    ]
    # Branch 1 is the array, beside null; its only block has one item for each field.
    head = bytes([2 * _BRANCHES["ArrayWrapper"], 2]) + varints(np.array([len(items)]))[0].as_py()
    whole = join(pa.scalar(head, pa.large_binary()), *items, pa.scalar(b"\x00", pa.large_binary()))
    return pc.if_else(fields[0].is_valid(), whole, _VOID)


def _wrapped_items(wrapper: str, values: pa.Array, avro: str) -> pa.Array:
    """The values in Avro, each behind the branch of its wrapper."""
    space = "w"
    schema = json.dumps({"type": "record", "name": space, "fields": [{"name": "value", "type": avro}]})
    fields = flat_fields(schema)
    if fields is None:
        raise InvariantError(f"an ordering column of type {values.type} cannot be in a delete block")
    present = values.drop_null()
    branch = pa.scalar(bytes([2 * _BRANCHES[wrapper]]), pa.large_binary())
    encoded = join(branch, encode_flat(pa.table({"value": present}), fields))
    valid = np.asarray(values.is_valid())
    places = pa.array(np.maximum(np.cumsum(valid) - 1, 0))
    if not len(present):
        return pa.repeat(_VOID, len(values))
    return pc.if_else(values.is_valid(), encoded.take(places), _VOID)


def _wrapped(ordering: pa.Array) -> tuple[str, pa.Array, str]:
    """(wrapper, values, Avro type) as Hudi's payloads hand the ordering value over: timestamps as
    plain longs."""
    kind = ordering.type
    if pt.is_date32(kind):
        return "DateWrapper", ordering.view(pa.int32()), "int"
    if pt.is_timestamp(kind) or pt.is_int64(kind) or pt.is_time64(kind):
        return "LongWrapper", ordering.view(pa.int64()), "long"
    if pt.is_integer(kind) or pt.is_time32(kind):
        return "IntWrapper", ordering.cast(pa.int32()) if pt.is_integer(kind) else ordering.view(pa.int32()), "int"
    if pt.is_float32(kind):
        return "FloatWrapper", ordering, "float"
    if pt.is_float64(kind):
        return "DoubleWrapper", ordering, "double"
    if pt.is_boolean(kind):
        return "BooleanWrapper", ordering, "boolean"
    if pt.is_binary(kind):
        return "BytesWrapper", ordering, "bytes"
    if pt.is_string(kind):
        return "StringWrapper", ordering, "string"
    if pt.is_decimal(kind):
        return "DecimalWrapper", _decimal_bytes(ordering), "bytes"
    raise InvariantError(f"an ordering column of type {kind} cannot be in a delete block")


def beyond_delete_block(ordering: pa.Array) -> Any:
    """Which ordering values a delete block does not hold, as a numpy mask: decimals of more than 15
    digits before or behind the point (Hudi's `DecimalWrapper`)."""
    beyond = np.zeros(len(ordering), dtype=bool)
    kind, held = ordering.type, _WRAPPERS["DecimalWrapper"]
    if not pt.is_decimal(kind):
        return beyond
    if kind.precision - kind.scale > held.precision - held.scale:
        large = pc.greater_equal(pc.abs(ordering), pa.scalar(10 ** (held.precision - held.scale)))
        beyond |= np.asarray(pc.fill_null(large, False))
    if kind.scale > held.scale:
        cut = pc.round(ordering, held.scale, round_mode="towards_zero")
        beyond |= np.asarray(pc.fill_null(pc.not_equal(ordering, cut), False))
    return beyond


def _decimal_bytes(values: pa.Array) -> pa.Array:
    """Two's complement, big-endian, of the values at scale 15: as wide as the type allows, which
    every reader takes."""
    wide = values.cast(pa.decimal128(30, 15))
    raw = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, 16)[wide.offset : wide.offset + len(wide)]
    turned = pa.py_buffer(np.ascontiguousarray(raw[:, ::-1]))
    found = pa.Array.from_buffers(pa.binary(16), len(wide), [None, turned]).cast(pa.binary())
    return pc.if_else(wide.is_valid(), found, None)


def _deleted(records: Sequence[dict[str, Any]]) -> DeletedKeys:
    wrapped = [_wrapped_values(record["orderingVal"]) for record in records]
    first, *more = (
        _unwrapped([values[place] if place < len(values) else None for values in wrapped])
        for place in range(max(map(len, wrapped), default=1))
    )
    return DeletedKeys(
        pa.array([record["recordKey"] for record in records], pa.string()),
        pa.array([record["partitionPath"] for record in records], pa.string()),
        first,
        tuple(more),
    )


def _wrapped_values(value: Any) -> list[Any]:
    """The wrapped ordering values of a delete, nothing where it is unconditional."""
    name = "" if value is None else value[0].rpartition(".")[2]
    if name == "ArrayWrapper":
        return list(value[1]["wrappedValues"] or ()) or [None]
    return [None if name == "IntWrapper" and value[1]["value"] == 0 else value]


def _unwrapped(values: Sequence[Any]) -> pa.Array:
    found: list[Any] = [(one[0].rpartition(".")[2], one[1]["value"]) if one else ("", None) for one in values]
    classes = Counter(name for name, _ in found if name)
    kept = max(classes, key=classes.__getitem__, default="")
    alike = [name for name in _NUMBERS if name in classes] if kept in _NUMBERS else [kept]
    kind = _WRAPPERS.get(alike[-1], pa.null())
    none = None if alike[-1] == "IntWrapper" else ("IntWrapper", 0)  # beside wider numbers it stands for null
    make = float if pt.is_floating(kind) else lambda value: value
    plain = [make(one[1]) if one[0] in alike and one != none else None for one in found]
    array = pa.array(plain, _plain_type(kind))
    return array if array.type == kind else array.view(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type in which fastavro hands values over: dates and timestamps are plain numbers."""
    if pt.is_date32(kind):
        return pa.int32()
    return pa.int64() if pt.is_timestamp(kind) else kind


def _schema_of(block: LogBlock) -> str:
    if block.schema is None:
        raise MalformedError("its header holds no schema")
    return block.schema


def _hfile_rows(source: Any, block: LogBlock, columns: Sequence[str] | None) -> pa.Table:
    """The values of an HFile are records without a frame, the columns of the key in them."""
    values = read_hfile(source, block).read()["value"].combine_chunks().cast(pa.large_binary())
    _, offsets, data = values.buffers()
    places = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return _records(data or pa.py_buffer(b""), places[:-1], places[1:], _schema_of(block), columns)


def _records(content: pa.Buffer, starts: Any, stops: Any, schema: str, columns: Sequence[str] | None) -> pa.Table:
    """Avro records that lie at `starts` to `stops`."""
    fields = flat_fields(schema)
    if fields is not None:
        wanted = {field.name for field in fields} if columns is None else set(columns)
        return decode_flat(content, starts, stops, fields, wanted)
    return decode_nested(content, starts, schema)


def _frames(content: memoryview) -> tuple[Any, Any]:
    """Where each record starts and stops: one step a record, since only a length tells where the
    next one is."""
    version, count = _TWO_INTS.unpack_from(content, 0)
    if version != CONTENT_VERSION or count < 0:
        raise MalformedError(f"its content has version {version} and {count} records")
    at, end = _TWO_INTS.size, len(content)
    if count > (end - at) // _INT.size:
        raise MalformedError(f"it claims {count} records, and has no room for them")
    places, unpack = [], _INT.unpack_from
    for _ in range(count):
        places.append(at)
        at += 4 + unpack(content, at)[0]
    ends = np.array([*places, at], dtype=np.int64)
    starts, stops = ends[:-1] + 4, ends[1:]
    outside = np.flatnonzero((stops < starts) | (stops > end))
    if len(outside):
        raise MalformedError(f"record {outside[0]} leaves the block")
    return starts, stops


def _parquet_rows(content: pa.Buffer) -> pa.Table:
    return pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us").read().replace_schema_metadata()


def _joined(values: pa.Array | pa.ChunkedArray) -> bytes:
    """The values one after the other."""
    if isinstance(values, pa.ChunkedArray):
        return b"".join(_joined(chunk) for chunk in values.chunks)
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data: bytes = values.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0])).to_pybytes()
    return data


@functools.cache
def _delete_schema() -> Any:
    text = resources.files("hudi_table.codec").joinpath("avsc", "HoodieDeleteRecordList.avsc").read_text("utf-8")
    return fastavro.parse_schema(json.loads(text))
