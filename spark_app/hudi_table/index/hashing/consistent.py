"""The consistent hashing bucket index: the place of a key's hash on its partition's ring is the file group.

Facts (measured on Hudi 0.15.0): see `model.table.rings` and `codec.hashes.xxhash`. A partition's ring is stored beside the timeline, and a clustering
splits and merges its nodes one by one, so that the other file groups stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.codec.hashes.key_values import joined_values
from hudi_table.codec.hashes.xxhash import ring_hashes
from hudi_table.errors import CorruptTableError
from hudi_table.index.base import Codes, Keys, Lookup, Positions, Routed, Slot
from hudi_table.model.table.rings import Ring
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.table.view.hash_rings import RingSource


@dataclass(frozen=True, slots=True)
class ConsistentIndex:
    """`rings` are the partitions'; `hash_fields` is a subset of `record_key`."""

    rings: RingSource
    record_key: tuple[str, ...]
    hash_fields: tuple[str, ...]
    colon_rule: str = "0.15"

    @property
    def reads_snapshot(self) -> bool:
        """False: the hash and the ring are all."""
        return False

    @property
    def is_global(self) -> bool:
        """False: rings are per partition."""
        return False

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

    def groups(self, slices: Iterable[FileSlice]) -> dict[Slot, FileSlice]:
        """Slot of every group. Raises CorruptTableError for a group that is no node's, of the partitions that rows were routed to."""
        known = self.rings.known()
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
    """Of each row the number of its node, counted through the rings in their order; `partitions[i]` is the number of row i's ring."""
    sizes = np.array([len(ring.nodes) for ring in rings], dtype=np.int64)
    first = np.r_[0, np.cumsum(sizes)][:-1]
    values = np.array([node.value for ring in rings for node in ring.nodes], dtype=np.int64)
    ordered = (np.repeat(np.arange(len(rings)), sizes) << 32) | values
    found = np.searchsorted(ordered, (partitions.astype(np.int64) << 32) | places)
    # What lies past the last node belongs to the first.
    past = found >= (first + sizes)[partitions]
    return np.where(past, first[partitions], found).astype(np.int64)
