"""What a write does to the hash rings of a consistent hashing index: the first one of a partition,
and a new one where it is replaced.

A node's file id is fixed by its ring, and a replaced file group stays hidden for ever. So what
replaces the groups of a partition gives it a ring of the same values with new file ids, which
counts with its commit. (Hudi 0.15.0 and 1.1.1 give the new groups other ids and keep the ring: what
they write next goes to the hidden groups, and is lost. Measured.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hudi_table.errors import CorruptTableError, WriteConflictError
from hudi_table.index.base import IndexChange, Slot
from hudi_table.model.table.rings import REPLACE, Ring, new_prefix
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import replaced_groups
from hudi_table.table.view.hash_rings import TableRings, create_ring, ring_path


@dataclass(frozen=True, slots=True)
class RingChange(IndexChange):
    """`first`: rings that are not stored yet; `renewed`: those that the commit makes, with the ones
    before."""

    first: Sequence[Ring] = ()
    renewed: Mapping[str, tuple[Ring, Ring]] = field(default_factory=dict)

    def moved(self, slots: Sequence[Slot]) -> Sequence[Slot]:
        """The slots where rows that were routed by the rings before go."""
        if not self.renewed:
            return slots
        places = {
            (before.partition, old.file_id): new.file_id
            for before, after in self.renewed.values()
            for old, new in zip(before.nodes, after.nodes, strict=True)
        }
        return [replace(s, file_id=places.get((s.partition, s.file_id or ""), s.file_id)) for s in slots]

    def store(self, ctx: TableContext, txn: Transaction) -> None:
        """Store the rings. Raises WriteConflictError if another writer began a partition with
        another ring."""
        for ring in self.first:
            if create_ring(ctx, ring).nodes != ring.nodes:
                raise WriteConflictError(
                    f"another writer began partition {ring.partition!r} with another hash ring while the rows were taken in; write again",
                    base_path=ctx.base_path,
                    instant=txn.time,
                )
        for _, ring in self.renewed.values():
            txn.right.put_file(ring_path(ring.partition, ring.instant), ring.to_json())


def rings_of_write(
    ctx: TableContext,
    rings: TableRings,
    txn: Transaction,
    filled: Collection[str],
    replaced: Mapping[str, Sequence[str]] | None,
) -> RingChange:
    """The rings that a write to the `filled` partitions stores; `replaced` are the groups that it
    hides.

    Raises CorruptTableError if rows would go to a file group that another engine has replaced.
    """
    hidden = replaced_groups(ctx, txn.timeline)
    renewed = {}
    for partition in sorted({*filled, *(replaced or ())}):
        ring = rings.ring(partition)
        lost = [node.file_id for node in ring.nodes if (partition, node.file_id) in hidden]
        if lost and replaced is None:
            raise CorruptTableError(
                f"file group {lost[0]} is a node of the hash ring of partition {partition!r}, and a commit of another engine has "
                "replaced it: rows that go there would not be seen; rewrite the partition with insert_overwrite",
                base_path=ctx.base_path,
            )
        if lost or (replaced and replaced.get(partition)):
            fresh = [replace(n, prefix=new_prefix(txn.seed, partition, n.value), tag=REPLACE) for n in ring.nodes]
            renewed[partition] = (ring, ring.changed(fresh, txn.time))
    first = [rings.ring(name) for name in sorted(filled) if name not in renewed and not rings.is_stored(name)]
    return RingChange(first, renewed)
