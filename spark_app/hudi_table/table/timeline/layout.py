"""What stands in the files of a timeline.

Where they lie a table's `Layout` tells (`model/table/layouts.py`); `model/timeline/instants.py`
says how they are called. Nothing is read or written here.

Facts: in table version 6 completed writes are JSON, in versions 8 and 9 Avro containers with the
same fields; their bytes tell which. Plans and reports of all other actions are Avro containers
everywhere. Their codec is imported with the first of them: a table may have none.
"""

from __future__ import annotations

import functools
from typing import Any

from hudi_table.model.names import HOODIE
from hudi_table.model.table.layouts import Layout
from hudi_table.model.timeline.commits import CommitMetadata

TIMELINE_FOLDER = HOODIE
"""Where the files of the active timeline lie in table version 6, relative to the base path."""
_SMALL_COMMITS, _SMALL_BYTES = 256, 8_192
"""What has been parsed of small commits is kept: how many, of how many bytes at most."""


def encode_commit(layout: Layout, metadata: CommitMetadata) -> bytes:
    """What stands in the file of a completed write of a table of this layout."""
    if not layout.avro_commits:
        return metadata.to_json()
    schema = "HoodieCommitMetadata" if metadata.replaced is None else "HoodieReplaceCommitMetadata"
    return encode_record(schema, metadata.to_document())


def decode_commit(data: bytes) -> CommitMetadata:
    """What stands in the file of a completed write, ours or Hudi's. Raises ValueError, TypeError or
    AttributeError for what is no commit metadata."""
    return _small_commit(data) if len(data) <= _SMALL_BYTES else _commit(data)


def _commit(data: bytes) -> CommitMetadata:
    if not data.startswith(b"Obj\x01"):
        return CommitMetadata.from_json(data)
    (record,) = decode_records(data)
    return CommitMetadata.from_document(record)


# Each step of a write asks for the same few commits, whose bytes are remembered.
_small_commit = functools.lru_cache(maxsize=_SMALL_COMMITS)(_commit)


def encode_record(schema_name: str, record: dict[str, Any]) -> bytes:
    """What stands in the file of a plan, or of a completed action that is no write. `schema_name`:
    that of the record in Hudi."""
    from hudi_table.codec.avro.container import write_container

    return write_container(schema_name, record)


def decode_records(data: bytes) -> list[dict[str, Any]]:
    """The inverse of `encode_record`. Raises ValueError for what is no container."""
    from hudi_table.codec.avro.container import read_container

    return read_container(data)
