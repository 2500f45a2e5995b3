"""The `index` of a `HudiTable`: how a key finds its file group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudi_operator.api.fields.patterns import COLUMN_LENGTH_MAX
from hudi_operator.api.schema import Rule, prop
from hudi_table.model.table.config import IndexType


@dataclass(frozen=True, slots=True)
class PartitionBucketsSpec:
    """How many buckets some partitions have."""

    partitions: str = prop(
        "regular expression that is found in the partition path, such as ^2026-",
        min_length=1,
        max_length=256,
        pattern="^[^;]+$",
    )
    buckets: int = prop("file groups of each of them", minimum=1, maximum=100_000)


def _in_range(index: TableIndexSpec) -> bool:
    least, most = index.min_buckets or index.buckets or 1, index.max_buckets or index.buckets or 1
    return index.buckets is None or least <= index.buckets <= most


@dataclass(frozen=True, slots=True)
class TableIndexSpec:
    """How a key finds its file group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(self.type in ['Bucket', 'ConsistentBucket']) || has(self.buckets)",
            "types Bucket and ConsistentBucket need buckets: the number of file groups of each partition",
            "buckets",
            lambda i: not i.type.hashes or i.buckets is not None,
        ),
        Rule(
            "self.type in ['Bucket', 'ConsistentBucket'] || (!has(self.buckets) && size(self.hashFields) == 0)",
            "buckets and hashFields belong to types Bucket and ConsistentBucket",
            "type",
            lambda i: i.type.hashes or (i.buckets is None and not i.hash_fields),
        ),
        Rule(
            "self.type == 'ConsistentBucket' || (!has(self.minBuckets) && !has(self.maxBuckets))",
            "minBuckets and maxBuckets belong to type ConsistentBucket",
            "type",
            lambda i: i.type.has_rings or (i.min_buckets is None and i.max_buckets is None),
        ),
        Rule(
            "!has(self.buckets) || ((!has(self.minBuckets) || self.minBuckets <= self.buckets) && "
            "(!has(self.maxBuckets) || self.buckets <= self.maxBuckets))",
            "buckets must lie from minBuckets to maxBuckets",
            "buckets",
            _in_range,
        ),
        Rule(
            "self.type == 'Bucket' || size(self.partitionBuckets) == 0",
            "partitionBuckets belong to type Bucket",
            "type",
            lambda i: i.type.has_fixed_buckets or not i.partition_buckets,
        ),
        Rule(
            "self.type == 'Custom' ? has(self.className) : (!has(self.className) && !has(self.settings))",
            "className and settings belong to type Custom, which needs className: the name under which a package offers the index",
            "className",
            lambda i: i.class_name is not None if i.type.is_custom else not (i.class_name or i.settings),
        ),
    )

    type: IndexType = prop(
        "Bucket hashes the key to a fixed number of buckets, ConsistentBucket to buckets that split and merge as clustering finds them "
        "too large or too small (MergeOnRead only); Simple and GlobalSimple look it up in the base files, Bloom and GlobalBloom ask their "
        "bloom filters first, RecordIndex and PartitionedRecordIndex (a key in each partition; Hudi 0.15 must not write to such a table) ask the "
        "metadata table and open none; KeyState, as GlobalSimple, keeps the places of all keys on the writing process's disk, for an ingest in mode "
        "Continuous: a process reads all keys once when it begins, unless options name the folder of the one before it "
        "(hoodie.lakeops.key.state.folder), and tasks of Spark keep none, they search the files; Custom asks an index of a package. A MergeOnRead "
        "table that merges by EventTime takes no index by which keys move to another partition: not GlobalSimple, GlobalBloom, KeyState"
    )
    buckets: int | None = prop(
        "file groups of each partition of a Bucket index; of a ConsistentBucket index, with which a partition begins",
        None,
        minimum=1,
        maximum=100_000,
    )
    min_buckets: int | None = prop(
        "file groups that merges leave each partition of a ConsistentBucket index; absent: buckets",
        None,
        minimum=1,
        maximum=100_000,
    )
    max_buckets: int | None = prop(
        "file groups up to which those of a ConsistentBucket index split, in each partition; absent: buckets",
        None,
        minimum=1,
        maximum=100_000,
    )
    hash_fields: tuple[str, ...] = prop(
        "fields of recordKey that a Bucket or ConsistentBucket index hashes; empty: all",
        (),
        max_items=16,
        item_max_length=COLUMN_LENGTH_MAX,
    )
    partition_buckets: tuple[PartitionBucketsSpec, ...] = prop(
        "other numbers of buckets by partition, of a Bucket index; the first expression that is found counts. Hudi 0.15 must not write "
        "to such a table",
        (),
        max_items=64,
    )
    class_name: str | None = prop(
        "of a Custom index: postgres, or the name of an entry point hudi_table.indexes in the jobs' image",
        None,
        min_length=1,
        max_length=256,
    )
    settings: dict[str, str] | None = prop(
        "settings of a Custom index; no secrets", None, max_items=32, item_max_length=1024
    )
