"""Values looked up in an index of a secondary key: the record keys of the rows that have one.

In version 2 of such an index the file groups are opened that the values hash to, in version 1 all
of them; of their base files the blocks in which a value may lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.codec.metadata.keys import file_group_index, record_keys_of, secondary_prefixes
from hudi_table.metadata.definitions import SecondaryNote, noted_secondary
from hudi_table.metadata.reading import GROUPS_AHEAD, latest_of, parts_of
from hudi_table.metadata.table import CountedInstants, MetadataTable
from hudi_table.model.metadata_table import SecondaryPartition, group_file_id
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import FileSlice


@dataclass(frozen=True, slots=True)
class SecondaryGroups:
    """The file groups of an index, in one listing of the metadata table."""

    note: SecondaryNote
    slices: tuple[FileSlice, ...]
    counted: CountedInstants

    @classmethod
    def load(cls, ctx: TableContext, timeline: Timeline, name: SecondaryPartition) -> SecondaryGroups | None:
        """Those that count for a reader of `timeline`; None if the index is not ready or cannot be
        read."""
        note = noted_secondary(ctx, name)
        table = None if note is None else MetadataTable.with_ready(ctx, timeline, name)
        if note is None or table is None:
            return None
        found = {group.file_id: group.latest for group in table.groups.get(name, ()) if group.slices}
        names = [group_file_id(name, number) for number in range(len(found))]
        if not names or found.keys() != set(names):
            return None
        return cls(note, tuple(found[file_id] for file_id in names), table.counted)

    def record_keys(self, storage: Storage, values: pa.Array) -> pa.Array:
        """The record keys of the rows whose column has one of these values (texts), of the table in
        `storage`.

        Raises ObjectNotFoundError if a file was cleaned meanwhile, CorruptTableError, and what the
        storage raises.
        """
        prefixes = secondary_prefixes(values)
        below = StorageBelow(storage, METADATA_TABLE)
        every = np.arange(len(self.slices))
        numbers = every if self.note.whole else np.unique(file_group_index(prefixes, len(self.slices)))

        def search(number: int) -> pa.Array:
            parts = parts_of(below, self.slices[number], self.counted, prefixes, by_prefix=True)
            return record_keys_of(latest_of(parts)["key"])

        found = LocalEngine(GROUPS_AHEAD).map(search, numbers.tolist())
        return pa.chunked_array(found, pa.string()).combine_chunks().unique()
