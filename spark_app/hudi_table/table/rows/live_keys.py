"""The record keys that a slice of a file group has now, and the values of columns beside them:
those of its rows after its logs are merged in.

Where they are many, a base file's keys come in batches; those of a slice with logs within the
memory that merging may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.log.blocks import BlockType
from hudi_table.codec.log.rows import read_deletes
from hudi_table.codec.parquet import read_batches
from hudi_table.codec.promotions import of_today
from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.engine.memory import MERGE_BYTES
from hudi_table.table.rows.log_entries import block_keys
from hudi_table.table.rows.log_merge import merged_rows
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.column_history import load_column_history, stored_as, under_todays_names
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


class LiveKeys:
    """The keys of any slice of one snapshot of a table, made of their fields where it stores none.
    Picklable. `beside`: fields of columns that `rows_of` gives too. `schema`: the table's columns
    where they are not those of the snapshot, as behind a commit that widens one."""

    def __init__(
        self,
        ctx: TableContext,
        timeline: Timeline,
        memory_bytes: int = MERGE_BYTES,
        *,
        beside: Sequence[pa.Field] = (),
        schema: pa.Schema | None = None,
    ) -> None:
        self._visible = VisibleInstants.of(timeline)
        columns = table_schema(ctx, timeline) if schema is None else schema
        stored = with_meta(columns or pa.schema([]))
        self._merge = SliceMerge.of(ctx.config, stored, load_column_history(ctx, timeline))
        needs = self._merge.needs(stored)
        given = {field.name: field for field in beside}
        self._asked = pa.schema([stored.field(RECORD_KEY), *given.values()])
        self._columns = pa.schema([*needs, *(given[name] for name in given.keys() - {field.name for field in needs})])
        self._memory = memory_bytes

    def after(self, instant: str) -> LiveKeys:
        """Of the same snapshot and this instant, whose files are there and which has not
        completed."""
        seen = self._visible
        more = copy(self)
        more._visible = replace(
            seen,
            latest=max(seen.latest, instant, key=comparable_time),
            completed=seen.completed | {instant},
            inflight=seen.inflight - {instant},
        )
        return more

    def rows_of(self, storage: Storage, item: FileSlice) -> Iterator[pa.Table]:
        """The record keys with the columns beside them, in pieces. Raises as `of` does."""
        if not item.logs:
            yield from self._base(storage, item, self._asked)
            return
        for table in self._merged(storage, item):
            yield table.select(self._asked.names)

    def of(self, storage: Storage, item: FileSlice) -> Iterator[pa.Array]:
        """The record keys, strings, in pieces. Raises CorruptTableError, ObjectNotFoundError if a
        file was cleaned meanwhile."""
        alone = pa.schema([self._asked.field(RECORD_KEY)])
        for table in self._merged(storage, item) if item.logs else self._base(storage, item, alone):
            yield one_chunk(table.column(RECORD_KEY))

    def dead_of(self, storage: Storage, item: FileSlice) -> pa.Array:
        """The distinct record keys, strings, that the slice's files hold and no reader sees, since
        its logs delete them. Raises as `of` does."""
        rows_delete = IS_DELETED in self._columns.names or self._merge.combines
        found = []
        for block in slice_blocks(storage, item.logs, self._visible):
            if block.type is BlockType.DELETE or rows_delete:
                with storage.open_read(block.path) as source:
                    is_delete = block.type is BlockType.DELETE
                    deleted = read_deletes(source, block).keys if is_delete else None
                    found.append(block_keys(source, block, self._merge.keys) if deleted is None else deleted)
        dead = one_chunk(pa.chunked_array(found, pa.string())).unique()
        if len(dead):
            is_dead = np.ones(len(dead), dtype=bool)
            for seen in self.of(storage, item):
                is_dead &= ~np.asarray(pc.is_in(dead, value_set=seen))
            dead = dead.filter(pa.array(is_dead))
        return dead

    def _merged(self, storage: Storage, item: FileSlice) -> Iterator[pa.Table]:
        base = self._base(storage, item, self._columns)
        blocks = slice_blocks(storage, item.logs, self._visible)
        return merged_rows(storage, base, blocks, self._columns, self._merge, memory_bytes=self._memory)

    def _base(self, storage: Storage, item: FileSlice, wanted: pa.Schema) -> Iterator[pa.Table]:
        """The rows of the base file, with these columns."""
        if item.base is None:
            return
        keys = self._merge.keys
        made_of = [self._columns.field(name) for name in self._merge.key_columns if name not in wanted.names]
        reads = pa.schema([*wanted, *made_of])
        stored = stored_as(self._merge.history, item.base.instant, reads.names)
        names = [name for name in stored.values() if name is not None]
        with storage.open_read(item.base.path) as source:
            for batch in read_batches(source, names, path=item.base.path):
                rows = pa.Table.from_batches([of_today(under_todays_names(batch, stored), reads)])
                yield rows if keys is None else keys.put_in(rows).select(wanted.names)
