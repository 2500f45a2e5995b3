"""Avro object containers of one record: the bodies of rollback, clean and requested replacecommit
instants.

Facts (measured on Hudi 0.15.0): codec null, one record, `avro.schema` the only header key. The
schemas in `avsc/` are those of Hudi 0.15.0, without comments; of commits, which 0.15.0 keeps as
JSON, those of 1.0.2 and 1.1.1. The sync marker, any 16 bytes, is in ours a check sum. No other
codec is read: a few bytes could unpack to more than memory holds.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Iterable
from importlib import resources
from typing import Any

import fastavro

from hudi_table.codec.avro.guard import parsed_schema

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_SEALED = b"seal"
"""With which a sync marker begins that is a check sum; to other readers a marker is any 16
bytes."""


def _frame(**fields: Any) -> Any:
    columns = [{"name": name, "type": kind} for name, kind in fields.items()]
    return fastavro.parse_schema({"type": "record", "name": "Frame", "fields": columns})


_SYNC = {"type": "fixed", "name": "Sync", "size": _SYNC_BYTES}
_HEADER = _frame(
    magic={"type": "fixed", "name": "Magic", "size": 4}, meta={"type": "map", "values": "bytes"}, sync=_SYNC
)
_BLOCK = _frame(count="long", content="bytes", sync=_SYNC)


def read_container(data: bytes) -> list[dict[str, Any]]:
    """All records of a container. Raises ValueError if it is none."""
    source = io.BytesIO(data)
    try:
        header: Any = fastavro.schemaless_reader(source, _HEADER, None)
        schema = _schema_of(header)
        records, contents = [], [header["meta"]["avro.schema"]]
        while source.tell() < len(data):
            block: Any = fastavro.schemaless_reader(source, _BLOCK, None)
            if not 0 <= block["count"] <= len(block["content"]) or block["sync"] != header["sync"]:
                raise ValueError(f"a block of {len(block['content'])} bytes claims {block['count']} records")
            content = io.BytesIO(block["content"])
            contents.append(block["content"])
            records += [fastavro.schemaless_reader(content, schema, None) for _ in range(block["count"])]
        if header["sync"].startswith(_SEALED) and header["sync"] != _seal(contents):
            raise ValueError("its check sum is wrong: bytes of it have changed since it was written")
        return [record for record in records if isinstance(record, dict)]
    except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not an Avro container: {error}") from error


def is_container(data: bytes) -> bool:
    """Whether these bytes begin as a container does."""
    return data.startswith(_MAGIC)


def read_record(schema_name: str, data: bytes) -> dict[str, Any]:
    """A record of the named schema of `avsc/` that stands alone, without a container. Raises
    ValueError if it is none."""
    source = io.BytesIO(data)
    try:
        record = fastavro.schemaless_reader(source, _schema(schema_name), None)
    except (EOFError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no record of {schema_name}: {error}") from error
    if not isinstance(record, dict) or source.tell() < len(data):
        raise ValueError(f"no record of {schema_name}")
    return record


def write_container(schema_name: str, record: dict[str, Any]) -> bytes:
    """A container of one record of the named schema of `avsc/`; absent nullable fields take their
    defaults.

    The same record makes the same bytes: the marker between blocks is a check sum of schema and
    record, not a random number.
    """

    def written(sync: bytes) -> bytes:
        sink = io.BytesIO()
        fastavro.writer(sink, _schema(schema_name), [record], codec="null", sync_marker=sync)
        return sink.getvalue()

    source = io.BytesIO(written(bytes(_SYNC_BYTES)))
    header: Any = fastavro.schemaless_reader(source, _HEADER, None)
    block: Any = fastavro.schemaless_reader(source, _BLOCK, None)
    return written(_seal([header["meta"]["avro.schema"], block["content"]]))


def _seal(contents: Iterable[bytes]) -> bytes:
    """A sync marker that is a check sum of the schema and the records."""
    digest = hashlib.blake2b(digest_size=_SYNC_BYTES - len(_SEALED))
    for content in contents:
        digest.update(content)
    return _SEALED + digest.digest()


def _schema_of(header: Any) -> Any:
    """The schema that a header carries. Raises ValueError."""
    meta = header["meta"]
    if header["magic"] != _MAGIC or meta.get("avro.codec", b"null") != b"null":
        raise ValueError(f"it begins with {header['magic']!r}, codec {meta.get('avro.codec', b'null')!r}")
    return parsed_schema(meta["avro.schema"])


@functools.cache
def _schema(name: str) -> Any:
    text = resources.files("hudi_table.codec").joinpath("avsc", f"{name}.avsc").read_text("utf-8")
    return fastavro.parse_schema(json.loads(text))
