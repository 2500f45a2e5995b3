"""The simple bucket index: a hash of the key is the file group.

Facts (measured on Hudi 0.15.0): the bucket stands in the first 8 digits of the file id, one group
per bucket and partition. Keys with `:` hash differently in 0.15 and 1.x: the rule is recorded with
the table. The number of buckets may depend on the partition (Hudi 1.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from hudi_table.codec.hashes.javahash import bucket_ids
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.index.base import Codes, InTasks, Keys, Lookup, Routed, Slot
from hudi_table.index.bucket_signs import SAMPLED, refuse_rings
from hudi_table.index.hashing.base import HashIndex
from hudi_table.index.hashing.hash_fields import hash_fields
from hudi_table.model.counts import counted
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.model.table.partition_buckets import Rules, buckets_in, render_rules
from hudi_table.model.timeline.conflict_keys import bucket_conflict_key, file_conflict_key
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.hashing_config import stored_rules
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView


@dataclass(frozen=True, slots=True)
class BucketIndex(HashIndex):
    """`buckets` groups per partition, unless `rules` give it another number; `hash_fields` is a
    subset of `record_key`."""

    buckets: int
    record_key: tuple[str, ...]
    hash_fields: tuple[str, ...]
    colon_rule: str = "0.15"
    rules: Rules = ()

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> BucketIndex:
        """The index of a table. Raises InvalidOptionError."""
        fields, colon_rule = hash_fields(config, spec, options)
        return cls(spec.buckets or 0, config.record_key, fields, colon_rule, spec.partition_buckets)

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Every row to its partition's bucket; codes are in the order of first need, no slot is
        unused."""
        del lookup
        counts = np.array([self.buckets_in(path) for path in keys.partition_paths], dtype=np.int32)
        most = int(counts.max(initial=1))
        numbers = self._numbers(keys.record_keys, counts[keys.partitions] if self.rules else self.buckets)
        combined = keys.partitions.astype(np.int64) * most + numbers
        used, codes = np.unique(combined, return_inverse=True)
        slots = tuple(Slot(keys.partition_paths[int(value) // most], bucket=int(value) % most) for value in used)
        return Routed(slots, codes.astype(np.int32))

    def buckets_in(self, partition: str) -> int:
        """How many buckets a partition has."""
        return buckets_in(partition, self.rules, self.buckets)

    def slots_in(self, partition: str) -> list[Slot]:
        """All places of a partition where rows can go."""
        return [Slot(partition, bucket=number) for number in range(self.buckets_in(partition))]

    def buckets_of(self, record_keys: pa.Array, partition: str) -> Codes:
        """The bucket number of every record key of one partition."""
        return self._numbers(record_keys, self.buckets_in(partition))

    def _numbers(self, record_keys: pa.Array, counts: int | Codes) -> Codes:
        numbers: Codes = bucket_ids(
            record_keys,
            counts,
            record_key_fields=self.record_key,
            hash_fields=self.hash_fields,
            colon_rule=self.colon_rule,
        )
        return numbers

    @property
    def java_hashed(self) -> bool:
        """Whether the Java hash of a key without `:` tells its bucket: a key of several fields is
        taken apart first."""
        return len(self.record_key) == 1

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks hash, and an engine may do so itself where the partition does not matter."""
        del partitions
        return InTasks(self, buckets=None if self.rules else self)

    def conflict_key(self, partition: str, file_id: str, *, exists: bool) -> str | None:
        """The bucket: two writers that fill it first give it other file ids."""
        del exists
        bucket = bucket_of_file_id(file_id)
        return file_conflict_key(partition, file_id) if bucket is None else bucket_conflict_key(partition, bucket)

    def check_fits(self, ctx: TableContext, timeline: Timeline, *, from_options: bool) -> None:
        """Refuse other numbers of buckets than those that Hudi stored for the partitions, or by
        which files were written."""
        stored = stored_rules(ctx, timeline)
        if stored is not None and stored != (self.rules, self.buckets):
            rules, number = stored
            raise InvalidOptionError(
                f"Hudi gave the table's partitions other numbers of buckets, {render_rules(rules)} and else {number}, than the "
                f"{render_rules(self.rules) or 'same for all'} and else {self.buckets} of this write; set hoodie.bucket.index.partition.expressions "
                "and hoodie.bucket.index.num.buckets accordingly",
                base_path=ctx.base_path,
            )
        if from_options:
            slices = FileSystemView(ctx, timeline).latest_slices()
            refuse_rings(ctx)
            for item in islice(slices, SAMPLED):
                self._check_bucket(ctx, item)

    def _check_bucket(self, ctx: TableContext, item: FileSlice) -> None:
        if item.base is None:
            return
        with ctx.storage.open_read(item.base.path) as source:
            footer = read_footer(source, path=item.base.path)
        if footer.min_key is None or footer.max_key is None:
            return
        expected = self.buckets_of(pa.array([footer.min_key, footer.max_key], pa.string()), item.partition).tolist()
        if any(number != bucket_of_file_id(item.file_id) for number in expected):
            raise InvalidOptionError(
                f"the options name {counted(self.buckets_in(item.partition), 'bucket')} over {', '.join(self.hash_fields)}, which put key "
                f"{footer.min_key!r} into bucket {expected[0]}, but it lies in file group {item.file_id}; give the number of "
                "buckets and the hash fields that the table was written with",
                base_path=ctx.base_path,
            )

    def groups(self, slices: Iterable[FileSlice], *, replacing: bool = False) -> dict[Slot, FileSlice]:
        """Slot of every group. Raises CorruptTableError for two ids of one bucket, or an id that is
        no bucket's."""
        del replacing
        groups: dict[Slot, FileSlice] = {}
        for item in slices:
            bucket = bucket_of_file_id(item.file_id)
            where = f"partition {item.partition!r}"
            count = self.buckets_in(item.partition)
            if bucket is None or bucket >= count:
                raise CorruptTableError(
                    f"file group {item.file_id} in {where} belongs to none of the {counted(count, 'bucket')} of the "
                    "table's bucket index; another writer used another index, rewrite the table to change it"
                )
            slot = Slot(item.partition, bucket=bucket)
            if slot in groups:
                raise CorruptTableError(
                    f"bucket {bucket} of {where} has two file groups, {groups[slot].file_id} and {item.file_id}; "
                    "one of two writers did not follow the bucket index, remove or merge one of them first"
                )
            groups[slot] = item
        return groups
