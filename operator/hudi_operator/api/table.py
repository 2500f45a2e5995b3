"""`HudiTable`: one table, what is ingested into it and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.bootstrap import BootstrapSpec
from hudi_operator.api.fields.callbacks import CallbackSpec
from hudi_operator.api.fields.identity import IDENTITY
from hudi_operator.api.fields.indexes import TableIndexSpec
from hudi_operator.api.fields.locks import FOLDER, LockProvider, LockSpec
from hudi_operator.api.fields.maintenance import MaintenanceSpec, ServiceMode
from hudi_operator.api.fields.patterns import (
    COLUMN_LENGTH_MAX,
    ENDPOINT,
    LOCATION,
    OBJECT_NAME,
    QUANTITY,
)
from hudi_operator.api.fields.readers import ReaderSpec, cannot_read, cel_cannot_read
from hudi_operator.api.fields.refused import REFUSED
from hudi_operator.api.fields.spark import SparkSpec
from hudi_operator.api.ingests.ingest import IngestMode, IngestOperation, IngestSpec
from hudi_operator.api.ingests.source import SourceType
from hudi_operator.api.locations import overlap
from hudi_operator.api.schema import Rule, prop
from hudi_table.model.table.config import IndexType, MergeMode, PartitionType, TableType
from hudi_table.model.table.layouts import MERGE_SETTINGS, VERSIONS

KAFKA_ORDERS = frozenset({"_kafka_offset", "_kafka_timestamp"})


class Codec(StrEnum):
    """Compression of base files."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    UNCOMPRESSED = "uncompressed"


class DeletionPolicy(StrEnum):
    """What becomes of the table when its resource is deleted: it stays; it stays, and leaves the
    catalogs that it was entered in (there are none yet); it is deleted with all its files."""

    RETAIN = "Retain"
    UNREGISTER = "Unregister"
    PURGE = "Purge"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret of the same namespace."""

    name: str = prop("name of the Secret", pattern=OBJECT_NAME, max_length=253)


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """The object store that holds the table and, unless it is a local path, its sources."""

    endpoint: str | None = prop(
        "URL of an S3-compatible server, as http(s)://host:port", None, pattern=ENDPOINT, max_length=512
    )
    region: str | None = prop("region of the bucket", None, max_length=64)
    credentials_secret_ref: SecretRef | None = prop(
        "Secret whose keys are the environment variables of the store's credentials, such as AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY; absent: what the environment of operator and jobs provides",
        None,
    )


@dataclass(frozen=True, slots=True)
class PartitionFieldSpec:
    """One partition field."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.type != 'Timestamp' || has(self.format)",
            "a Timestamp field needs a format, such as yyyy/MM",
            "format",
            lambda p: p.type is not PartitionType.TIMESTAMP or p.format is not None,
        ),
        Rule(
            "self.type == 'Timestamp' || !(has(self.format) || has(self.input) || has(self.inputFormat))",
            "format, input and inputFormat belong to type Timestamp",
            "type",
            lambda p: p.type is PartitionType.TIMESTAMP or not (p.format or p.input or p.input_format),
        ),
    )

    field: str = prop("column whose values name the partition", min_length=1, max_length=COLUMN_LENGTH_MAX)
    type: PartitionType = prop("Simple uses the value, Timestamp formats it", PartitionType.SIMPLE)
    format: str | None = prop("Java date pattern of the partition path, such as yyyy/MM", None, max_length=64)
    input: str | None = prop(
        "what the column holds if it is not a timestamp or date: DATE_STRING, UNIX_TIMESTAMP, EPOCHMILLISECONDS, "
        "EPOCHMICROSECONDS or SCALAR",
        None,
        pattern="^(DATE_STRING|UNIX_TIMESTAMP|EPOCHMILLISECONDS|EPOCHMICROSECONDS|SCALAR)$",
        max_length=32,
    )
    input_format: str | None = prop("Java date pattern of a DATE_STRING column", None, max_length=64)
    timezone: str = prop("time zone of the partition path", "UTC", min_length=1, max_length=64)


@dataclass(frozen=True, slots=True)
class PathStyle:
    """How partition values become folders."""

    hive_style: bool = prop("write field=value instead of value", False)
    url_encode: bool = prop("percent-encode characters that folders should not have", False)


@dataclass(frozen=True, slots=True)
class FilesSpec:
    """Base files."""

    target_size: str = prop("size that a base file grows to, such as 120Mi", "120Mi", pattern=QUANTITY, max_length=16)
    small_file_limit: str = prop("files below this size take new rows", "100Mi", pattern=QUANTITY, max_length=16)
    codec: Codec = prop("compression", Codec.ZSTD)


_COPIES = "!has(self.bootstrap) || (self.bootstrap.mode == 'FullRecord' && !has(self.bootstrap.pattern))"


def _takes_events(table: HudiTableSpec) -> bool:
    """Whether change events keep their order and their deletes in a table."""
    return (
        table.ordering_fields in (("_event_lsn",), ("_event_seq",))
        and table.merge_mode in (None, MergeMode.EVENT_TIME)
        and all(each.field in table.record_key for each in table.partition_by)
        and all(each.operation is IngestOperation.UPSERT for each in table.ingest)
    )


def _within(inner: str, outer: str) -> str:
    """CEL: whether a location is another one, or lies below it. What spells the same place in two
    ways is left to the operator."""
    return f"({inner} + '/').startsWith({outer}.endsWith('/') ? {outer} : {outer} + '/')"


@dataclass(frozen=True, slots=True)
class HudiTableSpec:
    """A Hudi table, what is ingested into it and how it is kept."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *IDENTITY,
        *REFUSED,
        Rule(
            "!has(self.mergeMode) || self.mergeMode != 'EventTime' || size(self.orderingFields) > 0",
            "mergeMode EventTime needs orderingFields",
            "orderingFields",
            lambda t: t.merge_mode is not MergeMode.EVENT_TIME or bool(t.ordering_fields),
        ),
        Rule(
            f"size(self.orderingFields) <= 1 || !has(self.tableVersion) || self.tableVersion in {list(MERGE_SETTINGS)}",
            f"several orderingFields are compared in tables of version {MERGE_SETTINGS[0]}: give tableVersion {MERGE_SETTINGS[0]}, or one field",
            "orderingFields",
            lambda t: len(t.ordering_fields) <= 1 or t.table_version in (None, *MERGE_SETTINGS),
        ),
        Rule(
            f"!has(self.tableVersion) || self.tableVersion in {list(VERSIONS)}",
            f"tableVersion is one of {', '.join(map(str, VERSIONS))}",
            "tableVersion",
            lambda t: t.table_version is None or t.table_version in VERSIONS,
        ),
        Rule(
            f"!has(self.tableVersion) || !({cel_cannot_read()})",
            "tableVersion is one that an engine of readers cannot read, by docs/reference/readers.md: leave the one or the other out",
            "readers",
            lambda t: t.table_version not in VERSIONS or not cannot_read(t.readers, t.table_version),
        ),
        Rule(
            f"!has(self.lock) || self.lock.provider != 'FileSystem' || self.location.startsWith('file:') || '{FOLDER}' in self.lock.options",
            f"a lock of FileSystem is for tables on local disks, or names a folder by {FOLDER}: use provider Storage",
            "lock",
            lambda t: (
                t.lock is None
                or t.lock.provider is not LockProvider.FILE_SYSTEM
                or t.location.startswith("file:")
                or FOLDER in t.lock.options
            ),
        ),
        Rule(
            f"!has(self.bootstrap) || (!{_within('self.bootstrap.path', 'self.location')} &&"
            f" !{_within('self.location', 'self.bootstrap.path')})",
            "bootstrap.path must not lie in the table's own location, nor the table in it",
            "bootstrap",
            lambda t: t.bootstrap is None or not overlap(t.bootstrap.path, t.location),
        ),
        Rule(
            f"{_COPIES} || !has(self.index) || self.index.type in {[kind.value for kind in IndexType if kind.asks_files]}",
            "rows of a bootstrap in place stay where they are: give an index of Simple, GlobalSimple, Bloom or GlobalBloom, or mode FullRecord without pattern",
            "index",
            lambda t: t.bootstrap is None or not t.bootstrap.in_place or t.index is None or t.index.type.asks_files,
        ),
        Rule(
            "self.ingest.all(i, i.mode != 'Backfill') || "
            "(size(self.orderingFields) > 0 && (!has(self.mergeMode) || self.mergeMode == 'EventTime'))",
            "an ingest of mode Backfill needs orderingFields and mergeMode EventTime: its rows are older than those beside it",
            "ingest",
            lambda t: (
                all(i.mode is not IngestMode.BACKFILL for i in t.ingest)
                or (bool(t.ordering_fields) and t.merge_mode in (None, MergeMode.EVENT_TIME))
            ),
        ),
        Rule(
            "!has(self.index) || self.index.hashFields.all(f, f in self.recordKey)",
            "index.hashFields must be fields of recordKey",
            "index",
            lambda t: t.index is None or set(t.index.hash_fields) <= set(t.record_key),
        ),
        Rule(
            "!has(self.index) || self.index.type != 'ConsistentBucket' || self.type == 'MergeOnRead'",
            "a ConsistentBucket index goes with type MergeOnRead alone, as in Hudi",
            "index",
            lambda t: t.index is None or not t.index.type.has_rings or t.type is TableType.MERGE_ON_READ,
        ),
        Rule(
            f"self.ingest.all(i, !has(i.source.path) || (!{_within('i.source.path', 'self.location')} &&"
            f" !{_within('self.location', 'i.source.path')}))",
            "a source's path must not lie in the table's own location, nor the table in a source's path",
            "ingest",
            lambda t: not any(i.source.path and overlap(i.source.path, t.location) for i in t.ingest),
        ),
        Rule(
            f"self.ingest.all(i, !has(i.source.hudi) || (!{_within('i.source.hudi.location', 'self.location')} &&"
            f" !{_within('self.location', 'i.source.hudi.location')}))",
            "the table of a source of type Hudi must be another one, that does not lie in this one, nor around it",
            "ingest",
            lambda t: not any(i.source.hudi and overlap(i.source.hudi.location, t.location) for i in t.ingest),
        ),
        Rule(
            f"self.ingest.all(i, !has(i.source.sql) || i.source.sql.tables.all(t, !{_within('t.location', 'self.location')} &&"
            f" !{_within('self.location', 't.location')}))",
            "a statement must not read the table that it is answered into, nor one that lies in it or around it: each answer would ask it again",
            "ingest",
            lambda t: (
                not any(
                    i.source.sql and any(overlap(each.location, t.location) for each in i.source.sql.tables)
                    for i in t.ingest
                )
            ),
        ),
        Rule(
            "self.orderingFields.all(f, f in ['_kafka_offset', '_kafka_timestamp']) || self.ingest.all(i, "
            "!has(i.source.kafka) || i.source.kafka.tombstones != 'Delete')",
            "a tombstone has no value of orderingFields: with tombstones Delete they are empty, or _kafka_offset or _kafka_timestamp",
            "orderingFields",
            lambda t: set(t.ordering_fields) <= KAFKA_ORDERS or not any(i.source.deletes for i in t.ingest),
        ),
        Rule(
            "self.ingest.all(i, i.source.type != 'Debezium') || ((self.orderingFields == ['_event_lsn'] || self.orderingFields == ['_event_seq']) && "
            "(!has(self.mergeMode) || self.mergeMode == 'EventTime') && "
            "self.partitionBy.all(p, p.field in self.recordKey) && self.ingest.all(i, i.operation == 'Upsert'))",
            "a source of type Debezium needs operation Upsert, orderingFields _event_lsn (PostgreSQL) or _event_seq (MySQL, MariaDB), and partition fields of recordKey: an event that "
            "deletes holds the key alone, and events may come again",
            "ingest",
            lambda t: not any(i.source.type is SourceType.DEBEZIUM for i in t.ingest) or _takes_events(t),
        ),
        Rule(
            "self.type == 'MergeOnRead' || self.maintenance.compaction.mode == 'Disabled'",
            "a CopyOnWrite table has nothing to compact",
            "maintenance",
            lambda t: t.type is TableType.MERGE_ON_READ or t.maintenance.compaction.mode is ServiceMode.DISABLED,
        ),
        Rule(
            "!has(self.index) || self.index.type != 'Bucket' || self.maintenance.clustering.mode == 'Disabled'",
            "clustering would move the rows of a Bucket index: change index.buckets instead",
            "maintenance",
            lambda t: (
                t.index is None
                or not t.index.type.has_fixed_buckets
                or t.maintenance.clustering.mode is ServiceMode.DISABLED
            ),
        ),
    )

    location: str = prop(
        "base path of the table, as a URI such as s3://lake/flights or file:///data/flights",
        pattern=LOCATION,
        max_length=1024,
    )
    record_key: tuple[str, ...] = prop(
        "columns that identify a row", min_items=1, max_items=16, item_max_length=COLUMN_LENGTH_MAX
    )
    storage: StorageSpec = prop("the object store", StorageSpec)
    lock: LockSpec | None = prop(
        "the lock that other engines take to write the table; absent: none, and one engine writes at a time", None
    )
    type: TableType = prop("how updates are stored", TableType.COPY_ON_WRITE)
    partition_by: tuple[PartitionFieldSpec, ...] = prop("partition fields; empty: one partition", (), max_items=8)
    paths: PathStyle = prop("how partition values become folders", PathStyle)
    ordering_fields: tuple[str, ...] = prop(
        "the columns that decide which of two rows with one key is newer, in turn; more than one needs table version 9",
        (),
        max_items=8,
        item_max_length=COLUMN_LENGTH_MAX,
    )
    table_version: int | None = prop(
        "Hudi's table version, 6, 8 or 9; absent: what the table has, 9 for a new one; another one than it has asks for an upgrade",
        None,
        minimum=6,
        maximum=9,
    )
    readers: tuple[ReaderSpec, ...] = prop(
        "engines that read the table: what one of them is known not to read is refused", (), max_items=16
    )
    merge_mode: MergeMode | None = prop("which row wins; absent: EventTime with orderingFields, else CommitTime", None)
    index: TableIndexSpec | None = prop("absent: what the table stores; Simple for a new table", None)
    files: FilesSpec = prop("base files", FilesSpec)
    ingest: tuple[IngestSpec, ...] = prop("ways of rows into the table", (), max_items=16, list_key="name")
    bootstrap: BootstrapSpec | None = prop(
        "a folder of Parquet files that becomes the table, once, before anything else writes it; absent: the first rows make the table",
        None,
    )
    callbacks: tuple[CallbackSpec, ...] = prop("receivers of its commits", (), max_items=8, list_key="name")
    maintenance: MaintenanceSpec = prop("upkeep", MaintenanceSpec)
    spark: SparkSpec = prop("how jobs run", SparkSpec)
    options: dict[str, str] = prop(
        "known hoodie.* options; an unknown one is refused by name", dict, max_items=256, item_max_length=4096
    )
    deletion_policy: DeletionPolicy = prop("what deleting the resource does to the table", DeletionPolicy.RETAIN)
    suspend: bool = prop("start no new run", False)
