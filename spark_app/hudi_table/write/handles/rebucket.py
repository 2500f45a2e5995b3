"""What a task of a resize does with one group: the rows of its slices into the buckets, or nodes of
a ring, where they belong from now on.

Names and rows follow from the plan and the slices alone, as those of a clustering do. Rows keep
their commit time, sequence number and key, and within a bucket the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from hudi_table.codec.dictionaries import SharedDictionaries
from hudi_table.errors import CorruptTableError
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.index.hashing.consistent import ConsistentIndex, nodes_of
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.rows.spill import Codes, GroupedRows
from hudi_table.write.handles.cluster import source_rows, write_rows
from hudi_table.write.handles.compact import CompactionTask
from hudi_table.write.workload import FileGroupTask

_SHARES = 3
"""Of the budget: rows held, what is read, and what is being written."""


class Router(Protocol):
    """Where the rows of a group go. Picklable."""

    def outputs_of(self, record_keys: pa.Array, partition: str) -> Codes:
        """The position in the task's outputs of every row, -1 of one that belongs to none of
        them."""
        ...


@dataclass(frozen=True, slots=True)
class BucketRouter:
    """Output i is bucket `first + i * step` of the new `index`."""

    index: BucketIndex
    first: int
    step: int

    def outputs_of(self, record_keys: pa.Array, partition: str) -> Codes:
        """By the new number of buckets."""
        buckets = self.index.buckets_of(record_keys, partition)
        here = buckets % self.step == self.first
        codes: Codes = np.where(here, (buckets - self.first) // self.step, -1).astype(np.int32)
        return codes


@dataclass(frozen=True, slots=True)
class RingRouter:
    """Output i is the node of the new ring, which `index` holds, whose file group is
    `file_ids[i]`."""

    index: ConsistentIndex
    file_ids: tuple[str, ...]

    def outputs_of(self, record_keys: pa.Array, partition: str) -> Codes:
        """By the new ring."""
        ring = self.index.rings.ring(partition)
        numbers = {file_id: at for at, file_id in enumerate(self.file_ids)}
        outputs = np.array([numbers.get(node.file_id, -1) for node in ring.nodes], dtype=np.int32)
        places = self.index.places_of(record_keys)
        codes: Codes = outputs[nodes_of(places, np.zeros(len(places), dtype=np.int32), [ring])]
        return codes


@dataclass(frozen=True, slots=True)
class ResizeTask:
    """One group, picklable: the slices that are read, the files that are written, and which row
    goes to which. `memory_bytes` may be held, more waits on disk; `threads` write files at once."""

    sources: tuple[CompactionTask, ...]
    outputs: tuple[FileGroupTask, ...]
    router: Router
    memory_bytes: int
    threads: int = 1


def resize_group(item: ResizeTask, right: RightToWrite) -> tuple[WriteStat, ...]:
    """Write the new buckets that have rows. Raises WriteAbortedError if the instant was taken away,
    CorruptTableError if a row lies in a bucket that is not its own, and what the storage raises."""
    shared = SharedDictionaries()
    with GroupedRows(max(1, item.memory_bytes // _SHARES)) as rows:
        for source in item.sources:
            for table in source_rows([source], right, item.memory_bytes):
                codes = _codes(item, source, table)
                batches = shared.encoded(table).combine_chunks().to_batches()
                start = 0
                for batch in batches:
                    rows.add(batch, codes[start : start + len(batch)])
                    start += len(batch)
                right.renew_if_due()
        rows.flush()
        found = LocalEngine(item.threads).map(partial(_write, item, rows, shared, right), range(len(item.outputs)))
    return tuple(stat for stats in found for stat in stats)


def _write(
    item: ResizeTask, rows: GroupedRows, shared: SharedDictionaries, right: RightToWrite, number: int
) -> tuple[WriteStat, ...]:
    return write_rows(item.outputs[number], _tables(rows, shared, number), right)


def _tables(rows: GroupedRows, shared: SharedDictionaries, number: int) -> Iterator[pa.Table]:
    for batch in rows.read(number):
        yield shared.decoded(pa.Table.from_batches([batch]))


def _codes(item: ResizeTask, source: CompactionTask, table: pa.Table) -> Codes:
    """The output of every row."""
    codes = item.router.outputs_of(one_chunk(table.column(RECORD_KEY)), source.file.partition)
    strange = np.flatnonzero(codes < 0)
    if len(strange):
        key = table.column(RECORD_KEY)[int(strange[0])].as_py()
        raise CorruptTableError(
            f"key {key!r} lies in file group {source.file.file_id} of partition {source.file.partition!r}, which is not its bucket; "
            "another writer hashed it in another way: hudictl doctor lists such groups, rewrite their partition with insert_overwrite",
            path=source.file.base_path,
        )
    return codes
