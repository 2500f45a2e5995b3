"""The simple bucket index: a hash of the key is the file group.

Facts (measured on Hudi 0.15.0): the bucket stands in the first 8 digits of the file id, one group per bucket and
partition. Keys with `:` hash differently in 0.15 and 1.x: the rule is recorded with the table. The number of buckets may depend on
the partition (Hudi 1.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.codec.hashes.javahash import bucket_ids
from hudi_table.errors import CorruptTableError
from hudi_table.index.base import Codes, Keys, Lookup, Routed, Slot
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.table.partition_buckets import Rules, buckets_in
from hudi_table.table.view.file_system_view import FileSlice


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """`buckets` groups per partition, unless `rules` give it another number; `hash_fields` is a subset of `record_key`."""

    buckets: int
    record_key: tuple[str, ...]
    hash_fields: tuple[str, ...]
    colon_rule: str = "0.15"
    rules: Rules = ()

    @property
    def reads_snapshot(self) -> bool:
        """False: the hash is all."""
        return False

    @property
    def is_global(self) -> bool:
        """False: buckets are per partition."""
        return False

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Every row to its partition's bucket; codes are in the order of first need, no slot is unused."""
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

    def groups(self, slices: Iterable[FileSlice]) -> dict[Slot, FileSlice]:
        """Slot of every group. Raises CorruptTableError for two ids of one bucket, or an id that is no bucket's."""
        found: dict[Slot, FileSlice] = {}
        for item in slices:
            bucket = bucket_of_file_id(item.file_id)
            where = f"partition {item.partition!r}"
            count = self.buckets_in(item.partition)
            if bucket is None or bucket >= count:
                raise CorruptTableError(
                    f"file group {item.file_id} in {where} belongs to none of the {count} buckets of the "
                    "table's bucket index; another writer used another index, rewrite the table to change it"
                )
            slot = Slot(item.partition, bucket=bucket)
            if slot in found:
                raise CorruptTableError(
                    f"bucket {bucket} of {where} has two file groups, {found[slot].file_id} and {item.file_id}; "
                    "one of two writers did not follow the bucket index, remove or merge one of them first"
                )
            found[slot] = item
        return found
