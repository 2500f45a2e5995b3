"""The consistent hashing bucket index: the place of a key's hash on its partition's ring is the
file group.

Facts (measured on Hudi 0.15.0): see `model.table.rings` and `codec.hashes.xxhash`. A partition's
ring is stored beside the timeline, and a clustering splits and merges its nodes one by one, so that
the other file groups stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from hudi_table.codec.hashes.key_values import joined_values
from hudi_table.codec.hashes.xxhash import ring_hashes
from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.index.base import Codes, Index, IndexChange, InTasks, Keys, Lookup, Positions, Routed, Slot
from hudi_table.index.bucket_signs import SAMPLED
from hudi_table.index.hashing.base import HashIndex
from hudi_table.index.hashing.hash_fields import hash_fields
from hudi_table.index.hashing.ring_write import rings_of_write
from hudi_table.model.counts import counted
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.model.table.rings import Ring
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.table.view.hash_rings import FixedRings, RingSource, TableRings


@dataclass(frozen=True, slots=True)
class ConsistentIndex(HashIndex):
    """`rings` are the partitions'; `hash_fields` is a subset of `record_key`."""

    rings: RingSource
    record_key: tuple[str, ...]
    hash_fields: tuple[str, ...]
    colon_rule: str = "0.15"

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> ConsistentIndex:
        """The index of a table, with the rings that partitions begin with. Raises
        InvalidOptionError."""
        fields, colon_rule = hash_fields(config, spec, options)
        return cls(FixedRings(spec.buckets or 0), config.record_key, fields, colon_rule)

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Every row to the file group of its node, which may not exist yet; no slot is unused."""
        del lookup
        rings = [self.rings.ring(path) for path in keys.partition_paths]
        at = nodes_of(self.places_of(keys.record_keys), keys.partitions, rings)
        used, codes = np.unique(at, return_inverse=True)
        places = [(ring.partition, node.file_id) for ring in rings for node in ring.nodes]
        slots = tuple(Slot(*places[int(number)]) for number in used)
        return Routed(slots, codes.astype(np.int32))

    def places_of(self, record_keys: pa.Array) -> Codes:
        """The place on the ring of every record key, from 0 to 2^31 - 1."""
        places: Codes = ring_hashes(joined_values(record_keys, self.hash_fields, self.colon_rule))
        return places

    def slots_in(self, partition: str) -> list[Slot]:
        """All places of a partition where rows can go, in the order of the ring."""
        return [Slot(partition, file_id=node.file_id) for node in self.rings.ring(partition).nodes]

    def as_of(self, ctx: TableContext, timeline: Timeline) -> ConsistentIndex:
        """With the rings that the timeline shows, of which none is read that is known to be the
        same."""
        if isinstance(self.rings, TableRings):
            return replace(self, rings=self.rings.as_of(timeline))
        return replace(self, rings=TableRings(ctx, timeline, self.rings.buckets))

    def moved_since(self, before: Index) -> bool:
        """Whether a split, a merge or an overwrite changed a ring by which rows were routed."""
        known = before.rings.known() if isinstance(before, ConsistentIndex) else {}
        return any(self.rings.ring(partition) != ring for partition, ring in list(known.items()))

    def change(
        self,
        ctx: TableContext,
        txn: Transaction,
        filled: Collection[str],
        replaced: Mapping[str, Sequence[str]] | None,
    ) -> IndexChange:
        """The rings that a write to these partitions stores, of an index that has those of a
        timeline."""
        if not isinstance(self.rings, TableRings):
            return IndexChange()
        return rings_of_write(ctx, self.rings, txn, filled, replaced)

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks hash, by the rings of these partitions and nothing that reads others."""
        rings = {partition: self.rings.ring(partition) for partition in partitions}
        return InTasks(replace(self, rings=FixedRings(self.rings.buckets, rings)))

    def check_fits(self, ctx: TableContext, timeline: Timeline, *, from_options: bool) -> None:
        """Refuse file groups that are no node's."""
        for item in islice(FileSystemView(ctx, timeline).latest_slices() if from_options else (), SAMPLED):
            ring = self.rings.ring(item.partition)
            if ring.position(item.file_id) is None:
                raise InvalidOptionError(
                    f"the options name consistent hashing with {counted(self.rings.buckets, 'bucket')}, and file group {item.file_id} of partition "
                    f"{item.partition!r} belongs to none of the {len(ring.nodes)} nodes of its ring; give the index that the table was written with",
                    base_path=ctx.base_path,
                )

    def groups(self, slices: Iterable[FileSlice], *, replacing: bool = False) -> dict[Slot, FileSlice]:
        """Slot of every group. Raises CorruptTableError for a group that is no node's, of the
        partitions that rows were routed to, unless the write hides it: overwriting is how such
        groups become right again."""
        known = {} if replacing else self.rings.known()
        found: dict[Slot, FileSlice] = {}
        for item in slices:
            ring = known.get(item.partition)
            if ring is not None and ring.position(item.file_id) is None:
                raise CorruptTableError(
                    f"file group {item.file_id} in partition {item.partition!r} belongs to no node of its hash ring, as of "
                    f"{ring.instant}; another writer replaced rows without a new ring, rewrite the partition with insert_overwrite"
                )
            found[Slot(item.partition, file_id=item.file_id)] = item
        return found


def nodes_of(places: Codes, partitions: Codes, rings: list[Ring]) -> Positions:
    """Of each row the number of its node, counted through the rings in their order; `partitions[i]`
    is the number of row i's ring."""
    sizes = np.array([len(ring.nodes) for ring in rings], dtype=np.int64)
    first = np.r_[0, np.cumsum(sizes)][:-1]
    values = np.array([node.value for ring in rings for node in ring.nodes], dtype=np.int64)
    ordered = (np.repeat(np.arange(len(rings)), sizes) << 32) | values
    found = np.searchsorted(ordered, (partitions.astype(np.int64) << 32) | places)
    # What lies past the last node belongs to the first.
    past = found >= (first + sizes)[partitions]
    return np.where(past, first[partitions], found).astype(np.int64)
