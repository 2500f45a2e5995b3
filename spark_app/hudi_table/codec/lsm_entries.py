"""Entries of the archived timeline of table versions 8 and 9: rows of Parquet files, one for each instant.

Facts (measured on Hudi 1.0.2 and 1.1.1): columns instantTime, completionTime, action, `metadata` (the bytes of the completed file), `plan` (of the
requested one) and version. Rows of a file are in the order of time, after an upgrade in the reverse. The upgrade of 1.0.2 writes
`metadata` as an Avro record without a container and its schema: then the schema is that of its action.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table.codec.avro.container import is_container, read_container, read_record
from hudi_table.errors import CorruptTableError

_PAYLOADS = {
    "commit": ("hoodieCommitMetadata", "HoodieCommitMetadata"),
    "deltacommit": ("hoodieCommitMetadata", "HoodieCommitMetadata"),
    "replacecommit": ("hoodieReplaceCommitMetadata", "HoodieReplaceCommitMetadata"),
    "clean": ("hoodieCleanMetadata", "HoodieCleanMetadata"),
}
"""The field of an entry, and the schema of the record, by action; what other actions left is not read."""
Entry = dict[str, Any]
"""As `hudi_table.codec.archive_entries.Entry`, and `completionTime`."""
_TIMES = ["instantTime", "completionTime"]


def read_lsm_entries(data: bytes, *, path: str) -> list[Entry]:
    """The entries of a file, as those of version 6 and with `completionTime`, the newest last. Raises CorruptTableError that names the file."""
    rows = _read(data, [*_TIMES, "action", "metadata"], path)
    found = []
    for row in sorted(rows, key=lambda row: str(row["instantTime"])):
        try:
            found.append(_entry(row))
        except (ValueError, KeyError, TypeError, EOFError, IndexError) as error:
            raise CorruptTableError(
                f"archive file {path} cannot be read at instant {row['instantTime']}: {error}", path=path
            ) from error
    return found


def read_lsm_times(data: bytes, *, path: str) -> dict[str, str]:
    """When each instant of a file completed, by its time. Raises CorruptTableError that names the file."""
    return {str(row["instantTime"]): str(row["completionTime"]) for row in _read(data, _TIMES, path)}


def _read(data: bytes, columns: list[str], path: str) -> Iterator[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data), columns=columns).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTableError(f"archive file {path} is no Parquet file of instants: {error}", path=path) from error
    return iter(rows)


def _entry(row: dict[str, Any]) -> Entry:
    entry = {
        "commitTime": row["instantTime"],
        "actionType": row["action"],
        "actionState": "COMPLETED",
        "completionTime": row["completionTime"],
    }
    known, data = _PAYLOADS.get(row["action"]), row["metadata"]
    if known is None or not data:
        return entry
    field, schema = known
    (record,) = read_container(data) if is_container(data) else [read_record(schema, data)]
    return entry | {field: record}
