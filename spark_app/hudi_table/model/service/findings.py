"""What an examination of a table found: values of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is: rows are wrong, missing or will be (`error`); somebody should look
    (`warning`); worth knowing (`info`)."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Check(StrEnum):
    """What was looked for; the names are stable."""

    ORPHAN_FILE = "OrphanFile"
    UNNAMED_FILE = "UnnamedFile"
    MISSING_FILE = "MissingFile"
    WRONG_SIZE = "WrongSize"
    INVALID_PARQUET = "InvalidParquet"
    DAMAGED_LOG = "DamagedLog"
    DAMAGED_DATA = "DamagedData"
    PARTITION_METADATA = "PartitionMetadata"
    WRONG_BUCKET = "WrongBucket"
    DUPLICATE_BUCKET = "DuplicateBucket"
    DUPLICATE_KEY = "DuplicateKey"
    WRONG_KEY = "WrongKey"
    UNREADABLE_INSTANT = "UnreadableInstant"
    PENDING_INSTANT = "PendingInstant"
    ARCHIVED_INSTANT = "ArchivedInstant"
    PROPERTIES = "Properties"
    LEFTOVER = "Leftover"
    METADATA_TABLE = "MetadataTable"
    INCOMPLETE = "Incomplete"


QUARANTINED_CHECKS = frozenset({Check.ORPHAN_FILE, Check.INVALID_PARQUET})
"""Findings whose file may be put aside, as long as no visible slice uses it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `path` is the evidence, relative to the base path ('' for the table as a
    whole); `advice` the next step."""

    check: Check
    severity: Severity
    path: str
    message: str
    advice: str
