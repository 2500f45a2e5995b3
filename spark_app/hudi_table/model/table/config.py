"""What a table is: key, partitioning, ordering, index and merge mode, from and to
`hoodie.properties`.

Facts: version 6 stores neither index type nor bucket count; we store `hoodie.index.type`,
`hoodie.bucket.index.num.buckets`, `hoodie.bucket.index.hash.field` and the composite-key rule as
extra keys, which Hudi 0.15.0 and 1.1.1 keep. `hoodie.table.checksum` is the CRC32 of
`<database>.<table>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, MetadataPartition
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE, Images
from hudi_table.model.table.merge_settings import LaterMerge


class TableType(StrEnum):
    """How updates are stored; the value is the one of the resource, `hudi_name` the one of the
    properties."""

    COPY_ON_WRITE = "CopyOnWrite"
    MERGE_ON_READ = "MergeOnRead"

    @property
    def hudi_name(self) -> str:
        """`COPY_ON_WRITE` or `MERGE_ON_READ`."""
        return self.name


class MergeMode(StrEnum):
    """Which of two rows with one key wins."""

    COMMIT_TIME = "CommitTime"
    EVENT_TIME = "EventTime"

    @property
    def hudi_name(self) -> str:
        """`COMMIT_TIME_ORDERING` or `EVENT_TIME_ORDERING`."""
        return f"{self.name}_ORDERING"


class IndexType(StrEnum):
    """How a key finds its file group; `hudi_name` is the value of `hoodie.index.type`."""

    BUCKET = "Bucket"
    CONSISTENT_BUCKET = "ConsistentBucket"
    SIMPLE = "Simple"
    GLOBAL_SIMPLE = "GlobalSimple"
    BLOOM = "Bloom"
    GLOBAL_BLOOM = "GlobalBloom"
    RECORD_INDEX = "RecordIndex"
    PARTITIONED_RECORD_INDEX = "PartitionedRecordIndex"
    KEY_STATE = "KeyState"
    CUSTOM = "Custom"
    """An index of another package, which `IndexSpec.class_name` names."""

    @property
    def hudi_name(self) -> str:
        """`BUCKET` (for both kinds of buckets), `SIMPLE`, `GLOBAL_BLOOM`, …; `CUSTOM`, which Hudi
        has no type for: its `hoodie.index.class` overrides the type."""
        return "BUCKET" if self.hashes else _HUDI_NAMES.get(self, self.name)

    @property
    def engine(self) -> str | None:
        """The value of `hoodie.index.bucket.engine`; None for an index without buckets."""
        return {IndexType.BUCKET: "SIMPLE", IndexType.CONSISTENT_BUCKET: "CONSISTENT_HASHING"}.get(self)

    @property
    def hashes(self) -> bool:
        """Whether the hash of a key is its place, and nothing is looked up."""
        return self.has_fixed_buckets or self.has_rings

    @property
    def has_fixed_buckets(self) -> bool:
        """Whether a partition has a number of buckets that only a resize changes: clustering would
        move the rows."""
        return self is IndexType.BUCKET

    @property
    def has_rings(self) -> bool:
        """Whether the buckets of a partition stand on a stored hash ring, and clustering splits and
        merges them."""
        return self is IndexType.CONSISTENT_BUCKET

    @property
    def is_custom(self) -> bool:
        """Whether another package offers the index."""
        return self is IndexType.CUSTOM

    @property
    def asks_files(self) -> bool:
        """Whether files are asked for the keys, so that rows may lie wherever they are."""
        return self in (IndexType.SIMPLE, IndexType.GLOBAL_SIMPLE, IndexType.BLOOM, IndexType.GLOBAL_BLOOM)

    @property
    def metadata_partition(self) -> str | None:
        """What of the metadata table it finds keys in: `record_index`, `partitioned_record_index`,
        or None."""
        return _LOOKED_UP_IN.get(self)

    @property
    def keeps_state(self) -> bool:
        """Whether each writing process keeps for itself where keys are, and the table says but that
        it does."""
        return self is IndexType.KEY_STATE

    @property
    def stored_name(self) -> str:
        """What tables store as `hoodie.index.type`: the index by which every writer finds the same
        keys."""
        return (IndexType.GLOBAL_SIMPLE if self.keeps_state else self).hudi_name

    def with_state(self) -> IndexType:
        """The index that finds the same keys in a state, where there is one; else this one."""
        return IndexType.KEY_STATE if self is IndexType.GLOBAL_SIMPLE else self

    @property
    def may_keep_partition(self) -> bool:
        """Whether `hoodie.record.index.update.partition.path` says if a key moves to the partition
        of its new row."""
        return self is IndexType.RECORD_INDEX

    @classmethod
    def named(cls, name: str, engine: str = "SIMPLE") -> IndexType:
        """The type of Hudi's names, in any case. Raises KeyError for one that is not known."""
        hudi_name = _LATER_NAMES.get(name.upper(), name.upper())
        for kind in cls:
            if (kind.hudi_name, kind.engine or engine.upper()) == (hudi_name, engine.upper()):
                return kind
        raise KeyError(name)

    @property
    def is_global(self) -> bool:
        """Whether a key is unique across partitions."""
        return self in _GLOBAL

    def can_become(self, other: IndexType) -> bool:
        """Whether a table may have the other one instead: they find the same keys in the same
        files, so nothing is rewritten."""
        return self is other or any({self, other} <= kinds for kinds in _EXCHANGED)

    @property
    def needs_filters(self) -> bool:
        """Whether base files are to carry a bloom filter over their keys."""
        return self in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)


_GLOBAL = frozenset({IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM, IndexType.RECORD_INDEX, IndexType.KEY_STATE})
_EXCHANGED = (
    frozenset({IndexType.SIMPLE, IndexType.BLOOM, IndexType.PARTITIONED_RECORD_INDEX}),
    _GLOBAL,
)
_LOOKED_UP_IN: dict[IndexType, str] = {
    IndexType.RECORD_INDEX: str(MetadataPartition.RECORD_INDEX),
    IndexType.PARTITIONED_RECORD_INDEX: PARTITIONED_RECORD_INDEX,
}
_HUDI_NAMES = {IndexType.PARTITIONED_RECORD_INDEX: "RECORD_LEVEL_INDEX", IndexType.KEY_STATE: "FLINK_STATE"}
_LATER_NAMES = {"GLOBAL_RECORD_LEVEL_INDEX": "RECORD_INDEX"}
"""Names of Hudi 1.1 for types of 0.15."""


class PartitionType(StrEnum):
    """How a partition field becomes a path segment."""

    SIMPLE = "Simple"
    TIMESTAMP = "Timestamp"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition field. `format` (Java pattern such as `yyyy/MM`), `input` (Hudi's
    `hoodie.keygen.timebased.timestamp.type`: `EPOCHMILLISECONDS`, `UNIX_TIMESTAMP`,
    `EPOCHMICROSECONDS`, `DATE_STRING`, `SCALAR`), `input_format` and `timezone` belong to
    `Timestamp`.

    `unit` says what a `SCALAR` counts (`days`, `microseconds`, …). `timezone` '': the table stores
    none, as Hudi leaves it by default. `input_timezone`: zone of a `DATE_STRING` that names none,
    if it is another than `timezone`."""

    field: str
    type: PartitionType = PartitionType.SIMPLE
    format: str | None = None
    input: str | None = None
    input_format: str | None = None
    timezone: str = "UTC"
    unit: str = ""
    input_timezone: str = ""


PartitionFields: TypeAlias = (
    "str | Mapping[str, Any] | PartitionField | Sequence[str | Mapping[str, Any] | PartitionField]"
)
"""Partition fields as callers give them: one or several names, fields in the resource's shape, or
values of the class."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """Index type and, for buckets, their number and the hash fields (default: the record key
    fields).

    Of a ConsistentBucket index `buckets` are those that a partition begins with; splits and merges
    keep to `buckets_min` and `buckets_max` (default: no change of the number). Of a Bucket index
    `partition_buckets` are pairs of a regular expression and the number of buckets of the
    partitions in whose path it is found; the first that is found counts. Of a custom index
    `class_name` is the name under which a package offers it, `settings` are its own (name, value)
    pairs.
    """

    type: IndexType
    buckets: int | None = None
    hash_fields: tuple[str, ...] = ()
    class_name: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    buckets_min: int | None = None
    buckets_max: int | None = None
    partition_buckets: tuple[tuple[str, int], ...] = ()


class KeyEncoding(StrEnum):
    """How a complex key of one field is written: as `v`, as `field:v`, or as its files show
    alone."""

    RAW = "Raw"
    FIELD_PREFIXED = "FieldPrefixed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A table's identity. Everything but `index` and `extra` is immutable once the table exists.

    `key_encoding`: how keys of one complex field are written. `payload_class`: which of Hudi's
    classes merges rows, '' for the plain one of `merge_mode`. `later_merge`: how log entries merge,
    of a table whose version tells it by modes alone. `extra` holds every property that is not
    modelled, so that rewriting the file loses nothing.
    """

    name: str
    type: TableType
    record_key: tuple[str, ...]
    partition_by: tuple[PartitionField, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    merge_mode: MergeMode = MergeMode.COMMIT_TIME
    payload_class: str = ""
    later_merge: LaterMerge | None = None
    index: IndexSpec | None = None
    database: str = ""
    key_generator: str = ""
    key_encoding: str = KeyEncoding.RAW
    hive_style: bool = False
    url_encode: bool = False
    populate_meta_fields: bool = True
    timezone: str = "UTC"
    version: int = 6
    archive_folder: str = "archived"
    metadata_partitions: tuple[str, ...] = ()
    create_schema: str | None = None
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def cdc(self) -> Images | None:
        """What writes log of each change; None without change data capture, and for a mode that is
        not known."""
        mode = self.extra.get(CDC_MODE, Images.DATA_BEFORE_AFTER).strip().lower()
        enabled = stored_boolean(self.extra.get(CDC_ENABLED))
        return Images(mode) if enabled and mode in set(Images) else None

    @property
    def needs_filters(self) -> bool:
        """Whether the stored index wants a bloom filter in every base file."""
        return self.index is not None and self.index.type.needs_filters

    @property
    def compared_fields(self) -> tuple[str, ...]:
        """The ordering fields by which rows are compared, in turn. From version 8 on merging by
        commit time ignores them, among rows of one batch, too (measured on Hudi 1.1.1)."""
        return self.ordering_fields if self.later_merge is None else self.later_merge.ordering

    @property
    def nested_ordering(self) -> str:
        """The first of these that is a field of a struct, `a.b`, which this release does not
        compare; '' without one."""
        return next((name for name in self.compared_fields if "." in name), "")

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Names of the partition fields."""
        return tuple(p.field for p in self.partition_by)
