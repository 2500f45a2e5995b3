"""Writing one log file: rows cut into data blocks that a reader can hold, then deletes.

A log file of ours holds one instant. The blocks of a log compaction name the instants whose blocks
they replace.

Facts (measured): no Hudi can read a log whose rows have `_hoodie_operation` with a null in it. On
Spark 0.15.0 fails to write such rows and 1.1.1 loses them. Base files may hold nulls, which is all
that both write there on Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import text_of_columns, with_meta_text
from hudi_table.codec.log.rows import avro_block, delete_block, parquet_block
from hudi_table.model.names import META_COLUMNS, OPERATION_COLUMN, RECORD_KEY, UPDATED
from hudi_table.model.options.write_options import LogBlocks
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.rows.merge import one_chunk, ordering_values
from hudi_table.write.workload import FileGroupTask

BLOCK_BYTES = 64 << 20
"""Arrow bytes of the rows of one data block at most: what a reader has to hold at once."""
_BLOCK_SHARE = 8
"""A block takes at most this part of the task's memory, for encoding copies it."""
_DELETE_BYTES = 1024
"""What a delete takes where it is read: such blocks are decoded record by record."""


@dataclass(slots=True)
class LogWriter:
    """An open log file of a task. `rows` and `deletes` are what it holds so far."""

    sink: BinaryIO
    task: FileGroupTask
    right: RightToWrite
    compacted: Sequence[str] = ()
    rows: int = 0
    deletes: int = 0
    _avro_schema: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._avro_schema = with_meta_text(self.task.settings.avro_schema)

    @property
    def _block_bytes(self) -> int:
        return max(1, min(BLOCK_BYTES, self.task.settings.memory_bytes // _BLOCK_SHARE))

    def pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        """The rows in slices of which each is a block."""
        return _cut(table, self._block_bytes // max(1, table.nbytes // max(1, len(table))))

    def put(self, piece: pa.Table, *, partial: bool = False) -> None:
        """A data block of rows with the five meta columns, in the task's schema, of which `partial`
        rows have some columns alone. A row that tells no operation is an update. Where the table
        stores no meta columns, they are null, as Hudi leaves them."""
        schema, instant, settings = self._avro_schema, self.task.instant, self.task.settings
        if partial:
            schema = text_of_columns(schema, tuple(piece.schema.names))
        piece = _with_operations(piece)
        if settings.virtual_keys is not None:
            piece = _without_meta(piece)
        if settings.log_blocks is LogBlocks.PARQUET:
            block = parquet_block(
                piece,
                schema,
                instant,
                compacted=self.compacted,
                partial=partial,
                codec=settings.codec,
                level=settings.codec_level,
            )
        else:
            block = avro_block(piece, schema, instant, compacted=self.compacted, partial=partial)
        self.sink.write(block)
        self.rows += len(piece)
        self.right.renew_if_due()

    def put_deletes(self, keys: pa.Table, orderings: Sequence[str]) -> None:
        """Delete blocks of the record keys; unconditional where the columns `orderings` are null,
        or without any."""
        for piece in _cut(keys, self._block_bytes // _DELETE_BYTES):
            values = ordering_values(piece, orderings)
            block = delete_block(
                one_chunk(piece.column(RECORD_KEY)),
                self.task.partition,
                self.task.instant,
                values,
                compacted=self.compacted,
            )
            self.sink.write(block)
            self.deletes += len(piece)


def _with_operations(rows: pa.Table) -> pa.Table:
    place = rows.schema.get_field_index(OPERATION_COLUMN)
    if place < 0:
        return rows
    return rows.set_column(place, rows.schema.field(place), pc.fill_null(rows.column(place), UPDATED))


def _without_meta(rows: pa.Table) -> pa.Table:
    data = rows.drop_columns(list(META_COLUMNS))
    nulls = [pa.nulls(len(rows), pa.string())] * len(META_COLUMNS)
    return pa.Table.from_arrays([*nulls, *data.columns], names=[*META_COLUMNS, *data.column_names])


def _cut(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    step = max(1, rows)
    return (table.slice(start, step) for start in range(0, len(table), step))
