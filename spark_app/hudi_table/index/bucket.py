"""The simple bucket index: a hash of the key is the file group.

Facts (measured on Hudi 0.15.0): the bucket stands in the first 8 digits of the file id, one group per bucket and
partition. Keys with `:` hash differently in 0.15 and 1.x: the rule is recorded with the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.codec.javahash import bucket_ids
from hudi_table.errors import CorruptTableError
from hudi_table.index.base import Codes, Keys, Lookup, Routed, Slot
from hudi_table.model.names import bucket_of_file_id
from hudi_table.table.view import FileSlice


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """`buckets` groups per partition; `hash_fields` is a subset of `record_key`."""

    buckets: int
    record_key: tuple[str, ...]
    hash_fields: tuple[str, ...]
    colon_rule: str = "0.15"

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
        numbers = self.buckets_of(keys.record_keys)
        combined = keys.partitions.astype(np.int64) * self.buckets + numbers
        used, codes = np.unique(combined, return_inverse=True)
        slots = tuple(
            Slot(keys.partition_paths[int(value) // self.buckets], bucket=int(value) % self.buckets) for value in used
        )
        return Routed(slots, codes.astype(np.int32))

    def buckets_of(self, record_keys: pa.Array) -> Codes:
        """The bucket number of every record key."""
        numbers: Codes = bucket_ids(
            record_keys,
            self.buckets,
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
            if bucket is None or bucket >= self.buckets:
                raise CorruptTableError(
                    f"file group {item.file_id} in {where} belongs to none of the {self.buckets} buckets of the "
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
