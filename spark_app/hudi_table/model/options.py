"""Options: the `hoodie.*` keys that a write accepts, their defaults and their values as Python types.

`data/hoodie-keys.tsv` lists the keys of Apache Hudi 1.1.1 with their defaults; a key in neither that list nor
`OWN_KEYS` is refused, with the nearest known one named. A known key that this release does not act on is
accepted, so that one set of options serves Hudi and us.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files

from hudi_table.errors import InvalidOptionError
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, ShardLimits

COLON_RULE = "hoodie.lakeops.bucket.colon.rule"
QUARANTINE = "hoodie.lakeops.txn.quarantine.seconds"
SUSPECT = "hoodie.lakeops.txn.suspect.seconds"
CUSTOM_MERGER = "hoodie.lakeops.merger"
CUSTOM_KEYS = "hoodie.lakeops.key.generator"
RECORD_SIZE = "hoodie.copyonwrite.record.size.estimate"
CLUSTERED_UPDATES = "hoodie.clustering.updates.strategy"
ROW_GROUP_ROWS = "hoodie.lakeops.row.group.rows"
COMPRESSION_LEVEL = "hoodie.lakeops.parquet.compression.level"
REPAIR_KEYS = "hoodie.lakeops.repair.keys"
REPAIR_QUARANTINE = "hoodie.lakeops.repair.quarantine"
INDEXING_PARTITIONS = "hoodie.lakeops.indexing.partitions"
WRITERS_STOPPED = "hoodie.lakeops.writers.stopped"
FAILED_WRITES = "hoodie.clean.failed.writes.policy"
INDEX_SETTINGS = "hoodie.lakeops.index."
"""What begins so is a setting of a custom index, which alone knows which ones there are."""

OWN_KEYS: Mapping[str, str] = {
    COLON_RULE: "0.15",
    QUARANTINE: "3600",
    SUSPECT: "900",
    CUSTOM_MERGER: "",
    CUSTOM_KEYS: "",
    ROW_GROUP_ROWS: "250000",
    COMPRESSION_LEVEL: "1",
    REPAIR_KEYS: "false",
    REPAIR_QUARANTINE: "false",
    INDEXING_PARTITIONS: "files",
    WRITERS_STOPPED: "false",
}
"""Keys of our own and their defaults."""

EARLIER_KEYS: Mapping[str, str] = {
    "hoodie.cleaner.policy": "hoodie.clean.policy",
    "hoodie.cleaner.commits.retained": "hoodie.clean.commits.retained",
    "hoodie.cleaner.hours.retained": "hoodie.clean.hours.retained",
    "hoodie.cleaner.fileversions.retained": "hoodie.clean.fileversions.retained",
    "hoodie.cleaner.incremental.mode": "hoodie.clean.incremental.enabled",
    "hoodie.cleaner.parallelism": "hoodie.clean.parallelism",
    "hoodie.cleaner.policy.failed.writes": "hoodie.clean.failed.writes.policy",
    "hoodie.cleaner.delete.bootstrap.base.file": "hoodie.clean.delete.bootstrap.base.file",
    "hoodie.clean.max.commits": "hoodie.clean.trigger.max.commits",
    "hoodie.clean.allow.multiple": "hoodie.clean.multiple.enabled",
    "hoodie.clean.async": "hoodie.clean.async.enabled",
    "hoodie.metadata.record.index.enable": "hoodie.metadata.global.record.level.index.enable",
    "hoodie.metadata.record.index.min.filegroup.count": "hoodie.metadata.global.record.level.index.min.filegroup.count",
    "hoodie.metadata.record.index.max.filegroup.count": "hoodie.metadata.global.record.level.index.max.filegroup.count",
}
"""Names that Hudi 0.15.0 has for keys of 1.1.1."""
_DROPPED_KEYS: Mapping[str, str] = {
    "hoodie.archive.merge.enable": "true",
    "hoodie.archive.merge.files.batch.size": "10",
    "hoodie.archive.merge.small.file.limit.bytes": "20971520",
}
"""Keys of Hudi 0.15.0 that 1.1.1 has no more, and their defaults there."""

BLOOM_ENABLED = "hoodie.parquet.bloom.filter.enabled"
_OUR_DEFAULTS: Mapping[str, str] = {
    "hoodie.parquet.compression.codec": "zstd",
    BLOOM_ENABLED: "false",
}
"""Where our default differs from Hudi's, and why: `docs/compatibility.md`."""

_CODECS = frozenset({"zstd", "snappy", "gzip", "lz4", "none"})
_BLOOM_TYPES = frozenset({"SIMPLE", "DYNAMIC_V0"})


class Operation(StrEnum):
    """What a write does; `hudi_name` is its name in commit metadata."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk_insert"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def hudi_name(self) -> str:
        """`INSERT`, `UPSERT`, …"""
        return self.name

    @property
    def replaces(self) -> bool:
        """Whether it hides whole file groups, so that its instant is a replacecommit."""
        return self in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION)

    @property
    def merges(self) -> bool:
        """Whether its rows meet stored rows by key."""
        return self in (Operation.UPSERT, Operation.DELETE)


class FailedWrites(StrEnum):
    """Who takes back writes that died: every writer that begins, cleaning and an explicit rollback, or the latter alone."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


METADATA_ENABLE = "hoodie.metadata.enable"
RECORD_INDEX_ENABLE = "hoodie.metadata.global.record.level.index.enable"
PARTITIONED_RECORD_INDEX_ENABLE = "hoodie.metadata.record.level.index.enable"
PARTITION_SHARDS = "hoodie.metadata.record.level.index.min.filegroup.count"
"""File groups with which a record index by partition begins a data partition. Stored, it holds for all writers."""
METADATA_INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "column_stats",
    "hoodie.metadata.index.bloom.filter.enable": "bloom_filters",
    RECORD_INDEX_ENABLE: "record_index",
    PARTITIONED_RECORD_INDEX_ENABLE: PARTITIONED_RECORD_INDEX,
}
"""What else the metadata table is built with, by the option that asks for it."""


class SortMode(StrEnum):
    """How `bulk_insert` orders rows before it writes them."""

    NONE = "none"
    GLOBAL = "global"
    PARTITION = "partition"


@cache
def known_keys() -> Mapping[str, str]:
    """Every accepted key and its default ('' or '(none)' if it has none)."""
    lines = files("hudi_table.model").joinpath("data/hoodie-keys.tsv").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t", 1) for line in lines if line and not line.startswith("#"))
    known = dict(pairs) | dict(OWN_KEYS) | dict(_DROPPED_KEYS) | dict(_OUR_DEFAULTS)
    return known | {earlier: known[key] for earlier, key in EARLIER_KEYS.items()}


def given(options: Mapping[str, str], key: str) -> str | None:
    """The value of a key under its name or an earlier one, None if neither is given. Raises InvalidOptionError if they differ."""
    names = [key, *(earlier for earlier, later in EARLIER_KEYS.items() if later == key)]
    values = {name: options[name].strip() for name in names if name in options}
    if len(set(values.values())) > 1:
        raise InvalidOptionError(
            "one option is given twice: " + ", ".join(f"{name}={value}" for name, value in values.items())
        )
    return next(iter(values.values()), None)


def renamed(options: Mapping[str, str]) -> dict[str, str]:
    """The options under their newest names, so that they can be laid over others. What is given under its newest name wins."""
    newest = {EARLIER_KEYS[key]: value for key, value in options.items() if key in EARLIER_KEYS}
    return newest | {key: value for key, value in options.items() if key not in EARLIER_KEYS}


def failed_writes(options: Mapping[str, str]) -> FailedWrites | None:
    """`hoodie.clean.failed.writes.policy`, None if it is not given. Raises InvalidOptionError for an unknown one."""
    value = given(options, FAILED_WRITES)
    if value is None:
        return None
    if value.upper() not in set(FailedWrites):
        raise InvalidOptionError(f"option {FAILED_WRITES!r}: {value!r} is none of {', '.join(FailedWrites)}")
    return FailedWrites(value.upper())


def check_keys(options: Mapping[str, str]) -> None:
    """Refuse unknown keys. Raises InvalidOptionError that names the nearest known key."""
    for key, value in options.items():
        if key not in known_keys() and not (key.startswith(INDEX_SETTINGS) and key != INDEX_SETTINGS):
            near = difflib.get_close_matches(key, known_keys(), n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]!r}?" if near else "; remove it"
            raise InvalidOptionError(f"unknown option {key!r}{hint}")
        if not isinstance(value, str):
            raise InvalidOptionError(f"option {key!r} must be a string, not {value!r}; write it as {str(value)!r}")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options that a write acts on. Sizes are bytes, limits are rows.

    `bloom_enabled`: whether base files get a filter, None for what the table's index needs; `bloom_*` say which.
    `updates_clustered`: rows may go to file groups that a pending clustering rewrites, which then fails. `record_size` counts until
    a commit has shown the size of a row. `metadata`: the metadata table is built (True), dropped (False), or left as it is;
    `metadata_indexes` are its partitions that are wanted beside `files`, `metadata_refused` those that are not; `shards` and
    `partition_shards` say how many file groups a record index is built with, a global one and one by partition.
    """

    target_file_size: int
    small_file_limit: int
    record_size: int
    record_size_given: bool
    codec: str
    compression_level: int
    row_group_rows: int
    combine_before_insert: bool
    combine_before_upsert: bool
    allow_duplicate_inserts: bool
    allow_empty_commit: bool
    sort_mode: SortMode
    bloom_enabled: bool | None
    bloom_type: str
    bloom_entries: int
    bloom_fpp: float
    bloom_max_entries: int
    bloom_by_ranges: bool
    bloom_by_metadata: bool
    conflict_retries: int
    null_for_missing: bool
    updates_clustered: bool
    failed_writes: FailedWrites | None = None
    metadata: bool | None = None
    metadata_indexes: tuple[str, ...] = ()
    metadata_refused: tuple[str, ...] = ()
    shards: ShardLimits = field(default_factory=ShardLimits)
    partition_shards: ShardLimits = field(default_factory=ShardLimits)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Check the keys and read the values. Raises InvalidOptionError."""
        check_keys(options)
        read = _Reader(renamed(options))
        indexes = {name: read.boolean(key) for key, name in METADATA_INDEXES.items() if given(options, key) is not None}
        if indexes.get("record_index") and indexes.get(PARTITIONED_RECORD_INDEX):
            raise InvalidOptionError(
                f"a record index is global or by partition: leave out {RECORD_INDEX_ENABLE} or {PARTITIONED_RECORD_INDEX_ENABLE}"
            )
        # Says by which search ranges are compared, and changes no result.
        read.boolean("hoodie.bloom.index.use.treebased.filter")
        return cls(
            target_file_size=read.integer("hoodie.parquet.max.file.size", least=1),
            small_file_limit=read.integer("hoodie.parquet.small.file.limit", least=0),
            record_size=read.integer(RECORD_SIZE, least=1),
            record_size_given=RECORD_SIZE in options,
            codec=read.choice("hoodie.parquet.compression.codec", _CODECS, fold=_codec),
            compression_level=read.integer(COMPRESSION_LEVEL, least=1),
            row_group_rows=read.integer(ROW_GROUP_ROWS, least=1),
            combine_before_insert=read.boolean("hoodie.combine.before.insert"),
            combine_before_upsert=read.boolean("hoodie.combine.before.upsert"),
            allow_duplicate_inserts=read.boolean("hoodie.merge.allow.duplicate.on.inserts"),
            allow_empty_commit=read.boolean("hoodie.allow.empty.commit"),
            sort_mode=SortMode(read.choice("hoodie.bulkinsert.sort.mode", _SORT_MODES, fold=_sort_mode)),
            bloom_enabled=read.boolean(BLOOM_ENABLED) if BLOOM_ENABLED in options else None,
            bloom_type=read.choice("hoodie.bloom.index.filter.type", _BLOOM_TYPES, fold=str.upper),
            bloom_entries=read.integer("hoodie.index.bloom.num_entries", least=1),
            bloom_fpp=read.fraction("hoodie.index.bloom.fpp"),
            bloom_max_entries=read.integer("hoodie.bloom.index.filter.dynamic.max.entries", least=1),
            bloom_by_ranges=read.boolean("hoodie.bloom.index.prune.by.ranges"),
            bloom_by_metadata=read.boolean("hoodie.bloom.index.use.metadata"),
            conflict_retries=read.integer("hoodie.write.num.retries.on.conflict.failures", least=0),
            null_for_missing=read.boolean("hoodie.write.set.null.for.missing.columns"),
            updates_clustered=read.choice(CLUSTERED_UPDATES, _UPDATE_STRATEGIES, fold=_short_class)
            == "SparkAllowUpdate",
            failed_writes=failed_writes(options),
            metadata=read.boolean(METADATA_ENABLE) if METADATA_ENABLE in options else None,
            metadata_indexes=tuple(name for name, wanted in indexes.items() if wanted),
            metadata_refused=tuple(name for name, wanted in indexes.items() if not wanted),
            shards=shard_limits(options),
            partition_shards=shard_limits(options, by_partition=True),
        )


def shard_limits(options: Mapping[str, str], *, by_partition: bool = False) -> ShardLimits:
    """How many file groups a record index is built with, by Hudi's options. Raises InvalidOptionError."""
    kind = PARTITIONED_RECORD_INDEX_ENABLE if by_partition else RECORD_INDEX_ENABLE
    least, most = (f"{kind.removesuffix('enable')}{limit}.filegroup.count" for limit in ("min", "max"))
    for key in (least, most):
        given(options, key)
    read = _Reader(renamed(options))
    return ShardLimits(
        least=read.integer(least, least=1),
        most=read.integer(most, least=1),
        growth=read.number("hoodie.metadata.record.index.growth.factor", least=1.0),
        group_bytes=read.integer("hoodie.metadata.record.index.max.filegroup.size", least=1),
        by_partition=by_partition,
    )


_UPDATE_STRATEGIES = frozenset({"SparkRejectUpdate", "SparkAllowUpdate"})


def _short_class(value: str) -> str:
    return value.rpartition(".")[2].removesuffix("Strategy")


_SORT_MODES = frozenset(mode.value for mode in SortMode)


def _codec(value: str) -> str:
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(value.lower(), value.lower())


def _sort_mode(value: str) -> str:
    return {"global_sort": "global", "partition_sort": "partition"}.get(value.lower(), value.lower())


@dataclass(frozen=True, slots=True)
class _Reader:
    options: Mapping[str, str]

    def text(self, key: str) -> str:
        return self.options.get(key, known_keys()[key]).strip()

    def integer(self, key: str, *, least: int) -> int:
        value = self.text(key)
        try:
            number = int(value)
        except ValueError:
            raise InvalidOptionError(f"option {key!r}: {value!r} is not a whole number") from None
        if number < least:
            raise InvalidOptionError(f"option {key!r}: {number} is less than {least}")
        return number

    def fraction(self, key: str) -> float:
        value = self.text(key)
        try:
            number = float(value)
        except ValueError:
            raise InvalidOptionError(f"option {key!r}: {value!r} is not a number") from None
        if not 0 < number < 1:
            raise InvalidOptionError(f"option {key!r}: {value} is not between 0 and 1")
        return number

    def number(self, key: str, *, least: float) -> float:
        value = self.text(key)
        try:
            found = float(value)
        except ValueError:
            raise InvalidOptionError(f"option {key!r}: {value!r} is not a number") from None
        if not least <= found < float("inf"):
            raise InvalidOptionError(f"option {key!r}: {value} is less than {least:g}, or no finite number")
        return found

    def boolean(self, key: str) -> bool:
        value = self.text(key).lower()
        if value not in ("true", "false"):
            raise InvalidOptionError(f"option {key!r}: {value!r} is neither 'true' nor 'false'")
        return value == "true"

    def choice(self, key: str, allowed: frozenset[str], *, fold: Callable[[str], str]) -> str:
        value = fold(self.text(key))
        if value not in allowed:
            raise InvalidOptionError(f"option {key!r}: {value!r} is none of {', '.join(sorted(allowed))}")
        return value
