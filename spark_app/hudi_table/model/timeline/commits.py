"""Commit metadata: what stands in the file of a completed commit, deltacommit or replacecommit, in
version 6 as JSON, from 8 on as Avro.

Facts (measured on Hudi 0.15.0): compact JSON with only some keys is accepted by Hudi; unknown keys
are ignored; `prevCommit` is the string "null" for a new file group; a non-partitioned table uses
the partition key "". Keys that we do not model are kept in `extra` so that reading and writing
loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hudi_table.model.json_text import parse_json
from hudi_table.model.timeline.seals import sealed, unsealed

SCHEMA_KEY = "schema"
LATEST_SCHEMA = "latest_schema"
"""The columns with their ids, in commits of a table whose columns Hudi has renamed or dropped."""
CDC_STATS = "cdcStats"


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What became of one file. Counts are rows, sizes are bytes; `path` is relative to the base
    path."""

    file_id: str
    path: str
    partition_path: str
    prev_commit: str = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    file_size_in_bytes: int = 0
    total_write_errors: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cdc_files(self) -> tuple[str, ...]:
        """Change data logs that the same task wrote, relative to the base path."""
        return tuple(self.extra.get(CDC_STATS) or ())


MIN_EVENT_TIME, MAX_EVENT_TIME = "minEventTime", "maxEventTime"
"""Of the rows that a task wrote, in milliseconds since 1970."""
_STAT_KEYS = {
    f.name: "".join(word if i == 0 else word.capitalize() for i, word in enumerate(f.name.split("_")))
    for f in fields(WriteStat)
    if f.name != "extra"
}
_TEXTS = frozenset({"file_id", "path", "partition_path", "prev_commit"})
_STAT_DEFAULTS: dict[str, Any] = {
    CDC_STATS: None,
    "tempPath": None,
    "totalLogRecords": 0,
    "totalLogFilesCompacted": 0,
    "totalLogSizeCompacted": 0,
    "totalUpdatedRecordsCompacted": 0,
    "totalLogBlocks": 0,
    "totalCorruptLogBlock": 0,
    "totalRollbackBlocks": 0,
    MIN_EVENT_TIME: None,
    MAX_EVENT_TIME: None,
    "runtimeStats": None,
}


TAKEN_BACK = "hoodie.lakeops.taken.back"
"""Extra metadata of a commit of nothing: the instant of the rollback of the write in whose place it
stands, so that this cannot be published any more."""


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Body of a completed instant. `operation_type` is Hudi's enum name (`UPSERT`, …).

    `replaced` maps partition path to the file ids that a replacecommit hides; None for other
    actions.
    """

    operation_type: str
    stats: tuple[WriteStat, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] | None = None
    compacted: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> set[str]:
        """Every data file of the commit, relative to the base path."""
        return {path for stat in self.stats for path in (stat.path, *stat.cdc_files)}

    @property
    def replaced_groups(self) -> tuple[tuple[str, str], ...]:
        """(partition, file id) of every file group that it hides."""
        return tuple((partition, file_id) for partition, ids in (self.replaced or {}).items() for file_id in ids)

    @property
    def is_taken_back(self) -> bool:
        """Whether it stands in the place of a write that was rolled back."""
        return TAKEN_BACK in self.extra_metadata

    def taken_back(self, rollback: str) -> CommitMetadata:
        """What stands in its place once that rollback has taken all of it back."""
        columns = {key: text for key, text in self.extra_metadata.items() if key in (SCHEMA_KEY, LATEST_SCHEMA)}
        return replace(
            self,
            stats=(),
            extra_metadata={**columns, TAKEN_BACK: rollback},
            replaced=None if self.replaced is None else {},
        )

    @property
    def avro_schema(self) -> str | None:
        """The table's Avro schema as JSON text, if this commit carries one."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    @property
    def event_times(self) -> tuple[int, int] | None:
        """The smallest and the largest event time of its rows, in milliseconds since 1970; None if
        none is recorded."""
        least = [found for stat in self.stats if isinstance(found := stat.extra.get(MIN_EVENT_TIME), int)]
        most = [found for stat in self.stats if isinstance(found := stat.extra.get(MAX_EVENT_TIME), int)]
        return (min(least), max(most)) if least and most else None

    def to_document(self) -> dict[str, Any]:
        """The fields of a body, by their names in JSON, which Avro shares."""
        partitions: dict[str, list[dict[str, Any]]] = {}
        for stat in self.stats:
            body: dict[str, Any] = {**_STAT_DEFAULTS, **stat.extra}
            body |= {key: getattr(stat, name) for name, key in _STAT_KEYS.items()}
            partitions.setdefault(stat.partition_path, []).append(body)
        document: dict[str, Any] = {
            **self.extra,
            "partitionToWriteStats": partitions,
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra_metadata),
            "operationType": self.operation_type,
        }
        if self.replaced is not None:
            document["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in self.replaced.items()}
        return document

    def to_json(self) -> bytes:
        """Compact UTF-8 JSON as Hudi 0.15 reads it."""
        return sealed(json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False).encode())

    @classmethod
    def from_json(cls, body: bytes) -> CommitMetadata:
        """Parse a body; an empty one is a commit of no files. Raises ValueError if it is not such a
        document."""
        document = parse_json(unsealed(body)) if body.strip() else {}
        if not isinstance(document, dict):
            raise ValueError("commit metadata is not a JSON object")
        return cls.from_document(document)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> CommitMetadata:
        """Of the fields of a body, by their names in JSON, which Avro shares. Takes them out of
        `document`."""
        stats = [
            _stat(partition, raw)
            for partition, raws in (document.pop("partitionToWriteStats", None) or {}).items()
            for raw in raws
        ]
        replaced = document.pop("partitionToReplaceFileIds", None)
        return cls(
            operation_type=document.pop("operationType", None) or "UNKNOWN",
            stats=tuple(stats),
            extra_metadata={k: v for k, v in (document.pop("extraMetadata", None) or {}).items() if v is not None},
            replaced=None if replaced is None else {p: tuple(ids) for p, ids in replaced.items()},
            compacted=bool(document.pop("compacted", False)),
            extra=document,
        )


def _stat(partition: str, raw: dict[str, Any]) -> WriteStat:
    known = {name: raw.pop(key, None) for name, key in _STAT_KEYS.items()}
    values = {name: value for name, value in known.items() if value is not None}
    for name, value in values.items():
        if not isinstance(value, str if name in _TEXTS else int) or isinstance(value, bool):
            raise ValueError(f"{_STAT_KEYS[name]} of a write stat is {value!r}")
    values.setdefault("file_id", "")
    values.setdefault("path", "")
    values["partition_path"] = known["partition_path"] if known["partition_path"] is not None else partition
    return WriteStat(**values, extra=raw)
