"""Which nodes of hash rings a clustering splits, and which neighbours it merges; pure.

Facts (measured on Hudi 0.15.0 and 1.1.1): a file group of more bytes, logs included, than
`hoodie.parquet.max.file.size` times `hoodie.bucket.index.split.threshold` (2.0) is split in two
while the ring has fewer than `hoodie.bucket.index.max.num.buckets` nodes; groups of at most
`hoodie.bucket.index.merge.threshold` (0.2) times that size are merged with their neighbours while
it keeps `hoodie.bucket.index.min.num.buckets`. Both bounds are the number of buckets unless given.
A partition with a pending plan is left alone. The group of a plan says so in its extra metadata:
its partition, the nodes that come and go, and the ring's sequence number.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.model.options.known import explicit_option, option_text, whole_option
from hudi_table.model.options.values import number, short_class
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.table.config import IndexSpec
from hudi_table.model.table.index_properties import BUCKETS_MAX, BUCKETS_MIN
from hudi_table.model.table.rings import Node, Ring, new_prefix, nodes_text, parse_nodes
from hudi_table.services.clustering.strategy import (
    CLASS,
    EXECUTION,
    RINGS,
    PartitionChoice,
    SliceGroup,
    strategy_name,
)
from hudi_table.table.rows.row_order import LAYOUT, SORT
from hudi_table.table.view.clustering_plans import ClusteringGroup
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import FileSlice

SPLIT = "hoodie.bucket.index.split.threshold"
MERGE = "hoodie.bucket.index.merge.threshold"
EXECUTION_CLASS = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
_PARTITION = "clustering.group.partition"
_NODES = "clustering.group.child.node"
_SEQUENCE = "clustering.group.sequence.no"
_NAMESPACE = uuid.UUID("9d6d0c9e-5d2c-4d0a-9a44-0f4a1c6f7b21")


@dataclass(frozen=True, slots=True)
class RingGroup:
    """Slices that are rewritten together, and what becomes of their nodes."""

    slices: tuple[FileSlice, ...]
    ring: Ring
    changes: tuple[Node, ...]

    @property
    def planned(self) -> SliceGroup:
        """The slices, and into how many groups they go."""
        return SliceGroup(self.slices, sum(node.prefix is not None for node in self.changes))

    @property
    def extra(self) -> dict[str, str]:
        """What the plan says of it."""
        return {
            _PARTITION: self.ring.partition,
            _NODES: nodes_text(self.changes),
            _SEQUENCE: str(self.ring.sequence),
        }


@dataclass(frozen=True, slots=True)
class RingChange:
    """What the group of a plan says: the nodes that come and go in the ring of its `sequence`."""

    partition: str
    changes: tuple[Node, ...]
    sequence: int


@dataclass(frozen=True, slots=True)
class RingStrategy:
    """When nodes split and merge. Sizes are bytes."""

    partitions: PartitionChoice
    split_size: float
    merge_size: float
    nodes_min: int
    nodes_max: int

    @classmethod
    def parse(cls, options: Mapping[str, str], index: IndexSpec) -> RingStrategy:
        """From Hudi's keys, and from what the table stores. Raises InvalidOptionError that names
        key and value."""
        _refuse_orders(options)
        size, buckets = WriteOptions.parse(options).target_file_size, index.buckets or 1
        least = _bound(options, BUCKETS_MIN, index.buckets_min or buckets)
        most = _bound(options, BUCKETS_MAX, index.buckets_max or buckets)
        if not least <= most:
            raise InvalidOptionError(f"{BUCKETS_MIN} is {least}, and {BUCKETS_MAX} {most}; give a range")
        split, merge = _factor(options, SPLIT), _factor(options, MERGE)
        return cls(PartitionChoice.parse(options), size * split, size * merge, least, most)

    def groups(
        self, slices: Sequence[FileSlice], partitions: Sequence[str], hour: int, ring_of: Callable[[str], Ring]
    ) -> list[RingGroup]:
        """What splits and merges among the free slices of these partitions."""
        by_partition: dict[str, list[FileSlice]] = {}
        for item in slices:
            by_partition.setdefault(item.partition, []).append(item)
        groups: list[RingGroup] = []
        for partition in self.partitions.of(partitions, hour):
            items = by_partition.get(partition)
            if items:
                groups += self._of_ring(ring_of(partition), items)
        return groups

    def _of_ring(self, ring: Ring, slices: Sequence[FileSlice]) -> list[RingGroup]:
        at: dict[int, FileSlice] = {}
        for item in slices:
            position = ring.position(item.file_id)
            if position is not None:
                at[position] = item
        groups: list[RingGroup] = []
        for position in sorted(at):
            item = at[position]
            if item.size <= self.split_size or len(ring.nodes) + len(groups) >= self.nodes_max:
                continue
            nodes = ring.split(position, (_prefix(ring, (item,), "low"), _prefix(ring, (item,), "high")))
            if nodes is not None:
                groups.append(RingGroup((item,), ring, nodes))
        for group in groups:
            del at[ring.position(group.slices[0].file_id) or 0]
        return groups + self._merges(ring, at, len(ring.nodes) + len(groups) - self.nodes_min)

    def _merges(self, ring: Ring, at: Mapping[int, FileSlice], left: int) -> list[RingGroup]:
        """Runs of small neighbours; `left` nodes may go."""
        groups: list[RingGroup] = []
        taken: set[int] = set()
        for start in sorted(at):
            if start in taken or at[start].size > self.merge_size:
                continue
            run, total = [start], at[start].size
            while left > 0 and total <= self.merge_size:
                after = (run[-1] + 1) % len(ring.nodes)
                if after in taken or after in run or after not in at or at[after].size > self.merge_size:
                    break
                run.append(after)
                total += at[after].size
                left -= 1
            if len(run) > 1:
                taken.update(run)
                items = tuple(at[position] for position in run)
                groups.append(RingGroup(items, ring, ring.merge(run, _prefix(ring, items, "whole"))))
        return groups


def ring_change(group: ClusteringGroup) -> RingChange | None:
    """What the group of a plan says of a ring, None if nothing. Raises CorruptTableError if it is
    not legible."""
    if _NODES not in group.extra:
        return None
    try:
        partition = group.extra.get(_PARTITION) or ""
        return RingChange(partition, parse_nodes(group.extra[_NODES]), int(group.extra[_SEQUENCE]))
    except (KeyError, ValueError) as error:
        raise CorruptTableError(f"the plan of a consistent hashing index cannot be read: {error}") from error


def _prefix(ring: Ring, slices: Sequence[FileSlice], part: str) -> str:
    """The name of a node to come: the same for everybody who plans it of the same files, so that a
    dry run's plan can be found again."""
    files = [name for item in slices for name in PlannedSlice.of(item).files if name]
    seed = uuid.uuid5(_NAMESPACE, "/".join([ring.instant, part, *files]))
    return new_prefix(seed, ring.partition, ring.sequence)


def _factor(options: Mapping[str, str], key: str) -> float:
    return number(key, option_text(options, key), 0)


def _refuse_orders(options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for what asks for another file layout: rows stay in the buckets of
    their keys, in no order."""
    wrong = [key for key in (SORT, LAYOUT) if options.get(key, "").strip()]
    wrong += [CLASS] if strategy_name(options) == "SingleFileSort" else []
    wrong += [EXECUTION] if short_class(explicit_option(options, EXECUTION) or RINGS) != RINGS else []
    if wrong:
        raise InvalidOptionError(
            f"{wrong[0]} is {options.get(wrong[0])!r}: clustering splits and merges the buckets of a ConsistentBucket index, and sorts no rows; "
            "leave it out"
        )


def _bound(options: Mapping[str, str], key: str, stored: int) -> int:
    return whole_option(options, key, least=1) if explicit_option(options, key) else stored
