"""An index of a secondary key over everything that is committed: the pairs of all slices, dealt out
to file groups, on disk where they are many. Memory holds those of a few batches, and of one
group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_table.codec.metadata.entries import secondary_entries
from hudi_table.metadata.definitions import define_secondary, defined_by_users, is_whole
from hudi_table.metadata.records import UnkeptError, group_numbers
from hudi_table.metadata.secondary_index.pairs import Pairs, note_of
from hudi_table.model.metadata_table import SecondaryPartition, group_file_id, is_secondary
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

_KEYS = pa.schema([("key", pa.string())])
PAIRS_BYTES = 256 << 20
"""Pairs that are held in memory before they go to disk."""


def is_kept(ctx: TableContext, timeline: Timeline, name: SecondaryPartition, *, whole: bool | None = None) -> bool:
    """Whether commits keep the index, by its column. `whole`: as one of version 1, or not; None as
    it is defined."""
    try:
        Pairs(ctx, timeline, name, whole=whole)
    except UnkeptError:
        return False
    return True


def built_again(ctx: TableContext, timeline: Timeline, *, indexed: bool) -> list[SecondaryPartition]:
    """The indexes of secondary keys that a metadata table is to have again which is built as a
    whole: those that are defined, if a global record index is built too (`indexed`)."""
    found: list[SecondaryPartition] = []
    for name in filter(is_secondary, defined_by_users(ctx)):
        partition = SecondaryPartition(name)
        if indexed and is_kept(ctx, timeline, partition, whole=is_whole(ctx)):
            # In the version of the index that the table's version has now.
            define_secondary(ctx, partition, note_of(ctx, partition).column)
            found.append(partition)
    return found


def recorded_pairs(
    ctx: TableContext,
    timeline: Timeline,
    name: SecondaryPartition,
    groups: int,
    memory_bytes: int = PAIRS_BYTES,
    *,
    every: bool = False,
) -> Iterator[tuple[str, pa.Table]]:
    """(file id, entries sorted by key) of every file group that has any, one after the other; of
    `every` one, also without.

    Raises UnkeptError if no index of its column is kept. UnavailableError if a file was cleaned
    meanwhile.
    """
    whole, pairs = note_of(ctx, name).whole, Pairs(ctx, timeline, name)
    with GroupedRows(memory_bytes) as dealt:
        for item in FileSystemView(ctx, timeline).latest_slices():
            for keys in pairs.of(ctx.storage, item):
                batch = pa.RecordBatch.from_arrays([keys], names=["key"])
                dealt.add(batch, group_numbers(keys, groups, whole=whole))
        for number in range(groups) if every else sorted(dealt.rows):
            found = pa.Table.from_batches(dealt.read(number) if number in dealt.rows else (), _KEYS)
            yield group_file_id(name, number), secondary_entries(found["key"].combine_chunks().unique())
