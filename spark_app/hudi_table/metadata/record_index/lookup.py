"""Record keys looked up in the record index: of each key the partition and the file group, from the
shards that it hashes to.

Facts (measured on Hudi 0.15.0 and 1.1.1): of n shards a key is in number `abs(hash) mod n`; shards
are the file groups `record-index-<number>-0`. In an index by partition, which 1.1.1 alone has
(`hoodie.metadata.record.level.index.enable`), each data partition has shards of its own, and a key
as many entries as it has partitions. What such a shard tells of another partition is none of Hudi
1.1: 0.15.0, which knows no such index, puts entries where they do not belong. It is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.metadata.entries import joined_file_ids
from hudi_table.codec.metadata.keys import file_group_index
from hudi_table.errors import CorruptTableError
from hudi_table.metadata.reading import GROUPS_AHEAD, latest_of, parts_of
from hudi_table.metadata.record_index.shards import is_there, shard_counts
from hudi_table.metadata.table import CountedInstants, MetadataTable
from hudi_table.model.metadata_table import MetadataPartition, group_file_id
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

_RECORD_INDEX = MetadataPartition.RECORD_INDEX


@dataclass(frozen=True, slots=True)
class Located:
    """What the index tells of keys: entry i is of the key at `rows[i]`, which is in file group
    `file_ids[i]` of `partitions[i]`."""

    rows: npt.NDArray[np.int64]
    partitions: pa.Array
    file_ids: pa.Array

    @property
    def names(self) -> pa.Array:
        """`file id/partition` of each entry."""
        return pc.binary_join_element_wise(self.file_ids, self.partitions, "/")

    def within(self, partitions: pa.DictionaryArray) -> Located:
        """The entries of keys that tell of the key's own partition."""
        own = partitions.take(pa.array(self.rows)).cast(pa.string())
        kept = pc.equal(self.partitions, own)
        return Located(self.rows[np.asarray(kept)], self.partitions.filter(kept), self.file_ids.filter(kept))

    def among(self, slices: Sequence[FileSlice]) -> pa.Array:
        """The position of each entry's file group in `slices`, null where it is none of them."""
        known = pa.array([f"{item.file_id}/{item.partition}" for item in slices], pa.string())
        return pc.index_in(self.names, value_set=known)


@dataclass(frozen=True, slots=True)
class RecordShards:
    """The shards of one listing of the metadata table, picklable: whoever has the table's storage
    looks keys up.

    `spans`: of an index by partition, where in `slices` the shards of each data partition begin,
    and how many they are.
    """

    slices: tuple[FileSlice, ...]
    counted: CountedInstants
    spans: Mapping[str, tuple[int, int]] | None = None

    @property
    def by_partition(self) -> bool:
        """Whether a key is looked up in one data partition."""
        return self.spans is not None

    @classmethod
    def load(cls, ctx: TableContext, timeline: Timeline) -> RecordShards | None:
        """Those that count for a reader of `timeline`; None if there is no record index that is
        ready and can be read."""
        if _RECORD_INDEX not in ctx.config.metadata_partitions:
            return None
        table = MetadataTable.with_ready(ctx, timeline, _RECORD_INDEX)
        if table is None:
            return None
        found = {group.file_id: group.latest for group in table.groups.get(_RECORD_INDEX, ())}
        if table.by_partition:
            return cls._of_partitions(ctx, table, found)
        names = [group_file_id(_RECORD_INDEX, number) for number in range(len(found))]
        if not names or found.keys() != set(names):
            return None
        return cls(tuple(found[name] for name in names), table.counted)

    @classmethod
    def _of_partitions(
        cls, ctx: TableContext, table: MetadataTable, newest: Mapping[str, FileSlice]
    ) -> RecordShards | None:
        there = [
            name for name, item in newest.items() if is_there(item.logs, table.counted, based=item.base is not None)
        ]
        try:
            counts = shard_counts(there, ctx.base_path)
        except CorruptTableError:
            return None
        begins = np.cumsum([0, *counts.values()]).tolist()
        names = [group_file_id(_RECORD_INDEX, number, of) for of, count in counts.items() for number in range(count)]
        spans = {of: (begin, count) for (of, count), begin in zip(counts.items(), begins, strict=False)}
        return cls(tuple(newest[name] for name in names), table.counted, spans)

    def numbers(self, keys: pa.Array, partitions: pa.DictionaryArray | None = None) -> npt.NDArray[np.int32]:
        """The shard of each key, which an index by partition has for the key's one of `partitions`:
        -1 if it has none for that."""
        if self.spans is None:
            return file_group_index(keys, len(self.slices))
        assert partitions is not None
        found = [self.spans.get(path, (-1, 0)) for path in partitions.dictionary.to_pylist()]
        spans = np.array(found, np.int32).reshape(-1, 2)[partitions.indices.to_numpy(zero_copy_only=False)]
        return np.where(spans[:, 1] == 0, -1, spans[:, 0] + file_group_index(keys, np.maximum(spans[:, 1], 1)))

    def find(self, storage: Storage, keys: pa.Array, partitions: pa.DictionaryArray | None = None) -> Located:
        """Where the index has these keys (strings), of the table in `storage`, and if it is by
        partition, where in the key's one of `partitions`. Shards without any of them are not
        opened.

        Raises ObjectNotFoundError if a file was cleaned meanwhile, CorruptTableError, and what the
        storage raises.
        """
        numbers = self.numbers(keys, partitions)
        below = StorageBelow(storage, METADATA_TABLE)

        def search(shard: int) -> Located:
            rows = np.flatnonzero(numbers == shard)
            return self._in_shard(below, self.slices[shard], keys.take(pa.array(rows)), rows)

        found = LocalEngine(GROUPS_AHEAD).map(search, np.unique(numbers[numbers >= 0]).tolist())
        if not found:
            return Located(np.empty(0, np.int64), pa.array([], pa.string()), pa.array([], pa.string()))
        located = Located(
            np.concatenate([part.rows for part in found]),
            pa.concat_arrays([part.partitions for part in found]),
            pa.concat_arrays([part.file_ids for part in found]),
        )
        return located if self.spans is None or partitions is None else located.within(partitions)

    def _in_shard(self, storage: Storage, item: FileSlice, keys: pa.Array, rows: npt.NDArray[np.int64]) -> Located:
        entries = latest_of(parts_of(storage, item, self.counted, keys))
        places = pc.index_in(keys, value_set=entries["key"].combine_chunks())
        known = places.is_valid()
        where = entries["location"].combine_chunks().take(places.filter(known))
        return Located(rows[np.asarray(known)], where.field("partition"), joined_file_ids(where))
