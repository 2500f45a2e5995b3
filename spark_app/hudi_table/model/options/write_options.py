"""Options that a write acts on: their keys, and their values as Python types. `known` has what
becomes of each key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hudi_table.errors import InvalidOptionError
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, ShardLimits
from hudi_table.model.options import values
from hudi_table.model.options.known import (
    CODEC,
    COMPRESSION_LEVEL,
    EVENT_TIME_FIELD,
    TRACK_EVENT_TIME,
    boolean_option,
    check_options,
    choice_option,
    default_of,
    explicit_option,
    option_text,
    renamed,
)
from hudi_table.model.options.lock_settings import is_non_blocking

COLON_RULE = "hoodie.lakeops.bucket.colon.rule"
QUARANTINE = "hoodie.lakeops.txn.quarantine.seconds"
SUSPECT = "hoodie.lakeops.txn.suspect.seconds"
CUSTOM_MERGER = "hoodie.lakeops.merger"
CUSTOM_KEYS = "hoodie.lakeops.key.generator"
RECORD_SIZE = "hoodie.copyonwrite.record.size.estimate"
CLUSTERED_UPDATES = "hoodie.clustering.updates.strategy"
RESOLUTION = "hoodie.write.lock.conflict.resolution.strategy"
GIVES_WAY = "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution"
ROW_GROUP_ROWS = "hoodie.lakeops.row.group.rows"
REPAIR_KEYS = "hoodie.lakeops.repair.keys"
REPAIR_QUARANTINE = "hoodie.lakeops.repair.quarantine"
INDEXING_PARTITIONS = "hoodie.lakeops.indexing.partitions"
INDEXING_DROP = "hoodie.lakeops.indexing.drop"
UPGRADE_VERSION = "hoodie.lakeops.upgrade.version"
READERS = "hoodie.lakeops.readers"
WRITERS_STOPPED = "hoodie.lakeops.writers.stopped"
FAILED_WRITES = "hoodie.clean.failed.writes.policy"
BLOOM_ENABLED = "hoodie.parquet.bloom.filter.enabled"
OPERATION = "hoodie.datasource.write.operation"
RECONCILE = "hoodie.datasource.write.reconcile.schema"
PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
NULL_FOR_MISSING = "hoodie.write.set.null.for.missing.columns"
EVOLVES = "hoodie.lakeops.schema.evolve"
LOG_BLOCK_FORMAT = "hoodie.logfile.data.block.format"
OPERATION_FIELD = "hoodie.allow.operation.metadata.field"
DROP_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
SORT_MODE = "hoodie.bulkinsert.sort.mode"
DUPLICATE_POLICY = "hoodie.datasource.insert.dup.policy"

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


class DuplicatePolicy(StrEnum):
    """What becomes of rows of an insert whose key is stored already: they are written too, dropped,
    or the write fails."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class LogBlocks(StrEnum):
    """What rows of a log are written in."""

    AVRO = "avro"
    PARQUET = "parquet"


class FailedWrites(StrEnum):
    """Who takes back writes that died: every writer that begins, cleaning and an explicit rollback,
    or the latter alone."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


METADATA_ENABLE = "hoodie.metadata.enable"
RECORD_INDEX_ENABLE = "hoodie.metadata.global.record.level.index.enable"
PARTITIONED_RECORD_INDEX_ENABLE = "hoodie.metadata.record.level.index.enable"
PARTITION_SHARDS = "hoodie.metadata.record.level.index.min.filegroup.count"
"""File groups with which a record index by partition begins a data partition. Stored, it holds for
all writers."""
METADATA_INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "column_stats",
    "hoodie.metadata.index.partition.stats.enable": "partition_stats",
    "hoodie.metadata.index.bloom.filter.enable": "bloom_filters",
    RECORD_INDEX_ENABLE: "record_index",
    PARTITIONED_RECORD_INDEX_ENABLE: PARTITIONED_RECORD_INDEX,
}
"""What else the metadata table is built with, by the option that asks for it."""


def other_record_index(own: str | None, asked: Collection[str]) -> str | None:
    """The option that asks for another record index than the one that a table finds its keys by, if
    one does."""
    kinds = {RECORD_INDEX_ENABLE, PARTITIONED_RECORD_INDEX_ENABLE}
    others = (key for key in sorted(kinds) if METADATA_INDEXES[key] in asked and METADATA_INDEXES[key] != own)
    return None if own is None else next(others, None)


class SortMode(StrEnum):
    """How `bulk_insert` orders rows before it writes them."""

    NONE = "none"
    GLOBAL = "global"
    PARTITION = "partition"


def operation_option(argument: str | None, options: Mapping[str, str]) -> str:
    """The operation that an argument or `hoodie.datasource.write.operation` names. If neither does
    it is upsert, as in Hudi, or insert where the options say what an insert does with stored keys.
    Raises InvalidOptionError if they differ."""
    named = explicit_option(options, OPERATION)
    if not named:
        unnamed = default_of(OPERATION) if duplicate_policy(options) is DuplicatePolicy.NONE else Operation.INSERT.value
        return argument or unnamed
    if argument is not None and named.lower() != argument:
        raise InvalidOptionError(
            f"option {OPERATION}={named} contradicts the operation {argument!r}: leave one of the two out"
        )
    return named.lower()


def sort_mode_option(argument: str, options: Mapping[str, str], operation: str | None) -> str:
    """The sort mode that an argument names. Raises InvalidOptionError if
    `hoodie.bulkinsert.sort.mode` names another, and for an operation that does not sort."""
    chosen = operation_option(operation, options)
    if chosen != Operation.BULK_INSERT:
        raise InvalidOptionError(f"sort_mode is of operation bulk_insert, and this is {chosen}: leave it out")
    named = explicit_option(options, SORT_MODE)
    if named and _sort_mode(named) != argument:
        raise InvalidOptionError(
            f"option {SORT_MODE}={named} contradicts sort_mode {argument!r}: leave one of the two out"
        )
    return argument


def partitions_option(argument: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """The partitions that an argument or `hoodie.datasource.write.partitions.to.delete` names.
    Raises InvalidOptionError if they differ, and for a pattern."""
    named = tuple(
        name.strip() for name in (explicit_option(options, PARTITIONS_TO_DELETE) or "").split(",") if name.strip()
    )
    if any("*" in name for name in named):
        raise InvalidOptionError(f"option {PARTITIONS_TO_DELETE}: patterns are not taken; name the partitions")
    if named and argument and sorted(named) != sorted(argument):
        raise InvalidOptionError(
            f"option {PARTITIONS_TO_DELETE} contradicts the partitions that are given: leave one of the two out"
        )
    return tuple(argument) or named


def duplicate_policy(options: Mapping[str, str]) -> DuplicatePolicy:
    """What an insert does with stored keys. Of both options the policy wins, unless it is `none`
    (measured on Hudi 1.1.1). Raises InvalidOptionError."""
    policy = DuplicatePolicy(choice_option(options, DUPLICATE_POLICY).lower())
    if policy is DuplicatePolicy.NONE and boolean_option(options, DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return policy


def failed_writes(options: Mapping[str, str]) -> FailedWrites | None:
    """`hoodie.clean.failed.writes.policy`, None if it is not given. Raises InvalidOptionError for
    an unknown one."""
    value = explicit_option(options, FAILED_WRITES)
    if value is None:
        return None
    if value.upper() not in set(FailedWrites):
        raise InvalidOptionError(f"option {FAILED_WRITES!r}: {value!r} is none of {', '.join(FailedWrites)}")
    return FailedWrites(value.upper())


def prefers_writers(options: Mapping[str, str]) -> bool:
    """Whether of a writer and a clustering of its file groups the clustering gives way: the write
    is not refused for its plan."""
    return values.short_class(option_text(options, RESOLUTION) or "") == "PreferWriterConflictResolution"


def clustering_gives_way(options: Mapping[str, str]) -> bool:
    """Whether a clustering ends where a write of its file groups goes on."""
    return prefers_writers(options) or values.stored_boolean(option_text(options, GIVES_WAY))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options that a write acts on. Sizes are bytes, limits are rows.

    `duplicates`: what an insert does with keys that are stored. `early_conflicts`: who begins to
    write looks for others that write to the same file groups. `non_blocking`: several writers
    append to one file group at once. `bloom_enabled`: whether base files get a filter, None for
    what the table's index needs; `bloom_*` say which. `updates_clustered`: rows may go to file
    groups that a pending clustering rewrites, which then fails. `record_size` counts until a commit
    has shown the size of a row. `event_time`: the column whose least and largest value the commit
    records, None for nothing. `operation_column`: files have `_hoodie_operation`. `metadata`: the
    metadata table is built (True), dropped (False), or left as it is; `metadata_indexes` are its
    partitions that are wanted beside `files`, `metadata_refused` those that are not; `shards` and
    `partition_shards` say how many file groups a record index is built with, a global one and one
    by partition.
    """

    target_file_size: int
    small_file_limit: int
    record_size: int
    has_record_size: bool
    codec: str
    compression_level: int
    row_group_rows: int
    combine_before_insert: bool
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
    early_conflicts: bool
    non_blocking: bool
    duplicates: DuplicatePolicy
    log_blocks: LogBlocks
    null_for_missing: bool
    evolves: bool
    updates_clustered: bool
    failed_writes: FailedWrites | None = None
    event_time: str | None = None
    operation_column: bool = False
    metadata: bool | None = None
    metadata_indexes: tuple[str, ...] = ()
    metadata_refused: tuple[str, ...] = ()
    shards: ShardLimits = field(default_factory=ShardLimits)
    partition_shards: ShardLimits = field(default_factory=ShardLimits)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Check the options and read the values. Raises InvalidOptionError."""
        check_options(options)
        read = _Reader(renamed(options))
        indexes = {
            name: read.boolean(key)
            for key, name in METADATA_INDEXES.items()
            if explicit_option(options, key) is not None
        }
        if indexes.get("record_index") and indexes.get(PARTITIONED_RECORD_INDEX):
            raise InvalidOptionError(
                f"a record index is global or by partition: leave out {RECORD_INDEX_ENABLE} or {PARTITIONED_RECORD_INDEX_ENABLE}"
            )
        return cls(
            target_file_size=read.integer("hoodie.parquet.max.file.size", least=1),
            small_file_limit=read.integer("hoodie.parquet.small.file.limit", least=0),
            record_size=read.integer(RECORD_SIZE, least=1),
            has_record_size=RECORD_SIZE in options,
            codec=read.choice(CODEC, _CODECS, fold=_codec),
            compression_level=read.integer(COMPRESSION_LEVEL, least=1),
            row_group_rows=read.integer(ROW_GROUP_ROWS, least=1),
            # Hudi, too, makes rows of one key one where stored ones are dropped by this option, and not by the policy.
            combine_before_insert=read.boolean("hoodie.combine.before.insert") or read.boolean(DROP_DUPLICATES),
            allow_duplicate_inserts=read.boolean("hoodie.merge.allow.duplicate.on.inserts"),
            allow_empty_commit=read.boolean("hoodie.allow.empty.commit"),
            sort_mode=SortMode(read.choice(SORT_MODE, _SORT_MODES, fold=_sort_mode)),
            bloom_enabled=read.boolean(BLOOM_ENABLED) if BLOOM_ENABLED in options else None,
            bloom_type=read.choice("hoodie.bloom.index.filter.type", _BLOOM_TYPES, fold=str.upper),
            bloom_entries=read.integer("hoodie.index.bloom.num_entries", least=1),
            bloom_fpp=read.fraction("hoodie.index.bloom.fpp"),
            bloom_max_entries=read.integer("hoodie.bloom.index.filter.dynamic.max.entries", least=1),
            bloom_by_ranges=read.boolean("hoodie.bloom.index.prune.by.ranges"),
            bloom_by_metadata=read.boolean("hoodie.bloom.index.use.metadata"),
            duplicates=duplicate_policy(options),
            log_blocks=LogBlocks((option_text(options, LOG_BLOCK_FORMAT) or LogBlocks.AVRO).strip().lower()),
            conflict_retries=read.integer("hoodie.write.num.retries.on.conflict.failures", least=0),
            non_blocking=is_non_blocking(options),
            early_conflicts=read.boolean("hoodie.write.concurrency.early.conflict.detection.enable"),
            null_for_missing=read.boolean(NULL_FOR_MISSING) or read.boolean(RECONCILE) or read.boolean(EVOLVES),
            evolves=read.boolean(EVOLVES),
            updates_clustered=values.short_class(read.text(CLUSTERED_UPDATES)) == "AllowUpdate"
            or prefers_writers(options),
            failed_writes=failed_writes(options),
            event_time=read.text(EVENT_TIME_FIELD) if read.boolean(TRACK_EVENT_TIME) else None,
            operation_column=read.boolean(OPERATION_FIELD),
            metadata=read.boolean(METADATA_ENABLE) if METADATA_ENABLE in options else None,
            metadata_indexes=tuple(name for name, wanted in indexes.items() if wanted),
            metadata_refused=tuple(name for name, wanted in indexes.items() if not wanted),
            shards=shard_limits(options),
            partition_shards=shard_limits(options, by_partition=True),
        )


def shard_limits(options: Mapping[str, str], *, by_partition: bool = False) -> ShardLimits:
    """How many file groups a record index is built with, by Hudi's options. Raises
    InvalidOptionError."""
    kind = PARTITIONED_RECORD_INDEX_ENABLE if by_partition else RECORD_INDEX_ENABLE
    least, most = (f"{kind.removesuffix('enable')}{limit}.filegroup.count" for limit in ("min", "max"))
    for key in (least, most):
        explicit_option(options, key)
    read = _Reader(renamed(options))
    return ShardLimits(
        least=read.integer(least, least=1),
        most=read.integer(most, least=1),
        growth=read.number("hoodie.metadata.record.index.growth.factor", least=1.0),
        group_bytes=read.integer("hoodie.metadata.record.index.max.filegroup.size", least=1),
        by_partition=by_partition,
    )


_REPARTITIONING = ("partition_path_repartition", "partition_path_repartition_and_sort")
_SORT_MODES = frozenset(mode.value for mode in SortMode)


def _codec(value: str) -> str:
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(value.lower(), value.lower())


def _sort_mode(value: str) -> str:
    """Rows of one partition always meet, in the order in which they come: what Hudi's two modes of
    repartitioning do besides, to order Spark's own partitions by path, leaves no trace in a
    file."""
    known = {"global_sort": "global", "partition_sort": "partition"} | dict.fromkeys(_REPARTITIONING, "none")
    return known.get(value.lower(), value.lower())


@dataclass(frozen=True, slots=True)
class _Reader:
    options: Mapping[str, str]

    def text(self, key: str) -> str:
        return self.options.get(key, default_of(key)).strip()

    def integer(self, key: str, *, least: int) -> int:
        return values.whole(key, self.text(key), least)

    def fraction(self, key: str) -> float:
        return values.fraction(key, self.text(key))

    def number(self, key: str, *, least: float) -> float:
        return values.number(key, self.text(key), least)

    def boolean(self, key: str) -> bool:
        return values.boolean(key, self.text(key))

    def choice(self, key: str, allowed: frozenset[str], *, fold: Callable[[str], str]) -> str:
        value = fold(self.text(key))
        if value not in allowed:
            raise InvalidOptionError(f"option {key!r}: {value!r} is none of {', '.join(sorted(allowed))}")
        return value
