"""How a table's version lays its timeline out: where its files lie, and how what stands in them is encoded.

Everything of the library asks here for a place or an encoding; how files are called is told by `model/timeline/instants.py`, which does
no I/O. So the layout of another table version is a second implementation beside this one. Nothing is read or written here.

Facts (table version 6): the files of the active timeline lie in `.hoodie/` itself; completed writes are JSON, plans and reports of all
other actions Avro containers, whose codec is imported with the first of them: a table may have none.
"""

from __future__ import annotations

from typing import Any

from hudi_table.model.names import HOODIE
from hudi_table.model.timeline.commits import CommitMetadata

TIMELINE_FOLDER = HOODIE
"""Where the files of the active timeline lie, relative to the base path."""


def timeline_path(name: str) -> str:
    """The path of a timeline file, relative to the base path."""
    return f"{TIMELINE_FOLDER}/{name}"


def encode_commit(metadata: CommitMetadata) -> bytes:
    """What stands in the file of a completed write."""
    return metadata.to_json()


def decode_commit(data: bytes) -> CommitMetadata:
    """The inverse of `encode_commit`. Raises ValueError, TypeError or AttributeError for what is no commit metadata."""
    return CommitMetadata.from_json(data)


def encode_record(schema_name: str, record: dict[str, Any]) -> bytes:
    """What stands in the file of a plan, or of a completed action that is no write. `schema_name`: that of the record in Hudi."""
    from hudi_table.codec.avro.container import write_container

    return write_container(schema_name, record)


def decode_records(data: bytes) -> list[dict[str, Any]]:
    """The inverse of `encode_record`. Raises ValueError for what is no container."""
    from hudi_table.codec.avro.container import read_container

    return read_container(data)
