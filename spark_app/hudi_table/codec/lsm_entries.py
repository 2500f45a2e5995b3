"""Entries of the archived timeline of table versions 8 and 9: rows of Parquet files, one for each
instant.

Facts (measured on Hudi 1.0.2 and 1.1.1): columns instantTime, completionTime, action, `metadata`
(the bytes of the completed file), `plan` (of the requested one) and version. Rows of a file are in
the order of time, after an upgrade in the reverse. The upgrade of 1.0.2 writes `metadata` as an
Avro record without a container and its schema: then the schema is that of its action. The files are
compressed by gzip, and their footers hold the Avro schema of a row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
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
    "rollback": ("hoodieRollbackMetadata", "HoodieRollbackMetadata"),
    "savepoint": ("hoodieSavePointMetadata", "HoodieSavepointMetadata"),
}
"""The field of an entry, and the schema of the record, by action; what other actions left is not
read."""
Entry = dict[str, Any]
"""As `hudi_table.codec.archive_entries.Entry`, and `completionTime`."""
_TIMES = ["instantTime", "completionTime"]
LSM_SCHEMA = pa.schema([
    pa.field("instantTime", pa.string()),
    pa.field("completionTime", pa.string()),
    pa.field("action", pa.string()),
    pa.field("metadata", pa.binary()),
    pa.field("plan", pa.binary()),
    pa.field("version", pa.int32(), nullable=False),
])  # fmt: skip
"""Of a file's rows. `version` is 1."""
_TEXT = {"type": "string", "avro.java.string": "String"}
_FOOTER = {
    "parquet.avro.schema": json.dumps({
        "type": "record",
        "name": "HoodieLSMTimelineInstant",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            *({"name": name, "type": ["null", _TEXT], "default": None} for name in LSM_SCHEMA.names[:3]),
            *({"name": name, "type": ["null", "bytes"], "default": None} for name in LSM_SCHEMA.names[3:5]),
            {"name": "version", "type": "int", "default": 1},
        ],
    }, separators=(",", ":")),
    "writer.model.name": "avro",
}  # fmt: skip


def read_lsm_entries(data: bytes, *, path: str) -> list[Entry]:
    """The entries of a file, as those of version 6 and with `completionTime`, the newest last.
    Raises CorruptTableError that names the file."""
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


@dataclass(frozen=True, slots=True)
class LsmFooter:
    """The least and the greatest instant of a file, and of the moments at which they completed;
    None where its footer does not tell."""

    instants: tuple[str, str] | None
    completions: tuple[str, str] | None


def read_lsm_footer(source: Any, *, path: str) -> LsmFooter:
    """What the footer of a file tells of its rows, by the statistics of its row groups. Raises
    CorruptTableError that names the file."""
    footer = _footer(source, path)
    return LsmFooter(*(_bounds(footer, name) for name in _TIMES))


def _bounds(footer: pq.FileMetaData, name: str) -> tuple[str, str] | None:
    names = footer.schema.names
    ends: list[str] = []
    for number in range(footer.num_row_groups):
        told = footer.row_group(number).column(names.index(name)).statistics if name in names else None
        if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
            return None
        ends += [end.decode() if isinstance(end, bytes) else str(end) for end in (told.min, told.max)]
    # What has no text counts by another column.
    least, greatest = min(ends, default=""), max(ends, default="")
    return (least, greatest) if least else None


def lsm_file(rows: pa.Table) -> bytes:
    """A file of the archive. `rows` have LSM_SCHEMA and are in the order of time."""
    sink = io.BytesIO()
    writer = pq.ParquetWriter(
        sink, LSM_SCHEMA, compression="gzip", use_dictionary=["action", "version"], store_schema=False,
        write_statistics=LSM_SCHEMA.names[:3],
    )  # fmt: skip
    writer.write_table(rows)
    writer.add_key_value_metadata(_FOOTER)
    writer.close()
    return sink.getvalue()


def read_lsm_rows(data: bytes, *, path: str) -> pa.Table:
    """The rows of a file as they are, with LSM_SCHEMA, in the order of time. Raises
    CorruptTableError that names the file."""
    return _table(data, LSM_SCHEMA.names, path).cast(LSM_SCHEMA).sort_by("instantTime")


def lsm_bytes(data: bytes, *, path: str) -> int:
    """How many bytes the rows of a file take in memory, about. Raises CorruptTableError that names
    the file."""
    footer = _footer(io.BytesIO(data), path)
    return sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))


def read_lsm_times(data: bytes, *, path: str) -> dict[str, str]:
    """When each instant of a file completed, by its time. Raises CorruptTableError that names the
    file."""
    return {str(row["instantTime"]): str(row["completionTime"]) for row in _read(data, _TIMES, path)}


def _footer(source: Any, path: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTableError(f"archive file {path} is no Parquet file of instants: {error}", path=path) from error


def _read(data: bytes, columns: list[str], path: str) -> Iterator[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table(data, columns, path).to_pylist()
    return iter(rows)


def _table(data: bytes, columns: list[str], path: str) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(data), columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTableError(f"archive file {path} is no Parquet file of instants: {error}", path=path) from error


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
