"""What of a `HudiTable` cannot change, as the API server judges it, which knows the manifest that
was there before."""

from __future__ import annotations

from hudi_operator.api.schema import Rule
from hudi_table.model.table.config import IndexType

_EXCHANGED = tuple(
    "[" + ", ".join(f"'{kind.value}'" for kind in IndexType if kind.can_become(one)) + "]"
    for one in (IndexType.SIMPLE, IndexType.GLOBAL_SIMPLE)
)
"""CEL: lists of indexes that a table may have one for the other."""

IDENTITY = (
    *(
        Rule(f"self.{name} == oldSelf.{name}", f"{name} cannot change: make a new table", name, None)
        for name in ("location", "type", "recordKey", "partitionBy", "paths", "orderingFields")
    ),
    Rule(
        "!has(oldSelf.index) || oldSelf.index.type != 'Bucket' || (has(self.index) && self.index.type == 'Bucket'"
        " && self.index.hashFields == oldSelf.index.hashFields"
        " && self.index.partitionBuckets == oldSelf.index.partitionBuckets)",
        "of a Bucket index only buckets can change: rows lie where it put them",
        "index",
        None,
    ),
    Rule(
        "!has(oldSelf.index) || oldSelf.index.type != 'ConsistentBucket' || (has(self.index) &&"
        " self.index.type == 'ConsistentBucket' && self.index.buckets == oldSelf.index.buckets &&"
        " self.index.hashFields == oldSelf.index.hashFields)",
        "of a ConsistentBucket index only minBuckets and maxBuckets can change: rows lie where it put them",
        "index",
        None,
    ),
    Rule(
        "!has(oldSelf.index) || !has(self.index) || self.index.type == oldSelf.index.type"
        + "".join(f" || (self.index.type in {kinds} && oldSelf.index.type in {kinds})" for kinds in _EXCHANGED),
        "index.type can change only among Simple, Bloom and PartitionedRecordIndex, and among GlobalSimple, GlobalBloom, RecordIndex and KeyState:"
        " keys of any other are found elsewhere; make a new table",
        "index",
        None,
    ),
    Rule(
        "!has(oldSelf.index) || !has(self.index) || !has(oldSelf.index.className) || !has(self.index.className)"
        " || self.index.className == oldSelf.index.className",
        "index.className cannot change: another index does not know the table's keys; make a new table",
        "index",
        None,
    ),
    Rule(
        "!has(oldSelf.mergeMode) || !has(self.mergeMode) || self.mergeMode == oldSelf.mergeMode",
        "mergeMode cannot change: rows that were merged stay as they are; make a new table",
        "mergeMode",
        None,
    ),
)
