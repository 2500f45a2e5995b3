"""Entries of the archived timeline: log blocks of `HoodieArchivedMetaEntry` records.

Facts (table version 6, measured on Hudi 0.15.0): an Avro block in content version 3 whose header
holds the schema alone, no instant; one record for each state of an instant. The schema in `avsc/`
is that of Hudi 0.15.0, without comments, as Hudi itself writes it into the header.
"""

from __future__ import annotations

import functools
import io
import json
import struct
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import fastavro

from hudi_table.codec.avro.guard import parsed_schema
from hudi_table.codec.log.blocks import SCHEMA, BlockType, LogBlock, check_content, scan_blocks, sealed_block
from hudi_table.codec.log.rows import CONTENT_VERSION
from hudi_table.errors import CorruptTableError

Entry = dict[str, Any]
"""One record: `commitTime`, `actionType`, `actionState`, `stateTransitionTime`, and the payload of
its action."""

_TWO_INTS = struct.Struct(">ii")
_INT = struct.Struct(">i")


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """One block. Fields that an entry leaves out take their defaults, those that the schema does
    not know are dropped."""
    text, schema = _own_schema()
    sink = io.BytesIO()
    sink.write(_TWO_INTS.pack(CONTENT_VERSION, len(entries)))
    for entry in entries:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, schema, entry)
        sink.write(_INT.pack(record.tell()))
        sink.write(record.getvalue())
    return sealed_block(BlockType.AVRO, {SCHEMA: text}, sink.getvalue())


def read_entries(data: bytes, *, path: str) -> Iterator[Entry]:
    """The records of an archive file, in its order, by the schema that it was written with.

    Raises CorruptTableError that names the file.
    """
    source = io.BytesIO(data)
    if not data:
        raise CorruptTableError(f"archive file {path} has no bytes: what it held of the history is lost", path=path)
    for block in scan_blocks(source, path=path):
        try:
            if block.type is not BlockType.AVRO or block.schema is None:
                raise ValueError(f"it holds a {block.type.name} block")
            check_content(block, memoryview(data)[block.content_offset : block.content_offset + block.content_length])
            yield from _records(memoryview(data), block)
        except (ValueError, EOFError, KeyError, IndexError, TypeError, struct.error) as error:
            raise CorruptTableError(
                f"archive file {path} cannot be read at byte {block.offset}: {error}", path=path
            ) from error


def _records(data: memoryview, block: LogBlock) -> Iterator[Entry]:
    schema = _parsed(block.schema or "")
    at, stop = block.content_offset, block.content_offset + block.content_length
    version, count = _TWO_INTS.unpack_from(data, at)
    if version != CONTENT_VERSION or count < 0:
        raise ValueError(f"its content has version {version} and {count} records")
    at += _TWO_INTS.size
    for _ in range(count):
        (length,) = _INT.unpack_from(data, at)
        at += _INT.size
        if not 0 <= length <= stop - at:
            raise ValueError("a record leaves its block")
        record = fastavro.schemaless_reader(io.BytesIO(data[at : at + length]), schema, None)
        if not isinstance(record, dict):
            raise ValueError("a record is no record")
        yield record
        at += length


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    return parsed_schema(text)


@functools.cache
def _own_schema() -> tuple[str, Any]:
    """The schema as JSON text for headers, and parsed."""
    path = resources.files("hudi_table.codec").joinpath("avsc", "HoodieArchivedMetaEntry.avsc")
    document = json.loads(path.read_text("utf-8"))
    return json.dumps(document, separators=(",", ":")), fastavro.parse_schema(document)
