"""The change data of one rewrite of a base file: a `.cdc` log file beside it.

Facts (measured on Hudi 0.15.0): the log's base instant is the one that writes it, its version 1,
its token that of the new base file; the write stat names it in `cdcStats` with its size. A new
group has none: its rows are all inserts. Hudi's reader asks for one wherever a file of updates,
deletes or copied rows was written; Hudi itself leaves it out of inserts into small files, and then
cannot read the changes. We write one with every rewrite, with an empty block if nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from hudi_table.codec.avro.schema import without_meta
from hudi_table.codec.log.blocks import BlockType
from hudi_table.codec.log.cdc_schema import cdc_avro_schema
from hudi_table.codec.log.rows import avro_block
from hudi_table.codec.logical_types.vectors import as_stored, stored_schema
from hudi_table.model.names import LogFileName, join
from hudi_table.model.table.cdc import DELETE, INSERT, UPDATE, Images
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.rows.changes import change_rows, change_schema
from hudi_table.table.rows.merge import Merger, MergeRule
from hudi_table.write.workload import FileGroupTask

BLOCK_BYTES = 16 << 20
"""Arrow bytes of the changes of one block: what writer and reader have to hold at once."""


class ChangeLog:
    """An open change log. `put` takes what was changed, in any number of parts."""

    def __init__(self, sink: BinaryIO, task: FileGroupTask, images: Images, path: str) -> None:
        self.path = path
        self._sink = sink
        self._instant = task.instant
        self._avro = cdc_avro_schema(task.settings.avro_schema, images)
        # Avro knows vectors as columns alone: inside an image they are their bytes.
        self._schema = change_schema(stored_schema(without_meta(task.settings.schema)), images.columns)
        self._held: list[pa.Table] = []
        self._bytes = 0

    @property
    def stats(self) -> dict[str, int]:
        """The `cdcStats` of the write stat: path relative to the base path, bytes so far."""
        return {self.path: self._sink.tell()}

    def put(self, op: str, before: pa.Table | None = None, after: pa.Table | None = None) -> None:
        """Changes of one kind; rows have at least the table's columns and `_hoodie_record_key`."""
        before, after = (None if image is None else as_stored(image) for image in (before, after))
        rows = change_rows(op, self._instant, before, after, self._schema)
        if not len(rows):
            return
        step = max(1, BLOCK_BYTES // max(1, rows.nbytes // len(rows)))
        for start in range(0, len(rows), step):
            piece = rows.slice(start, step)
            self._held.append(piece)
            self._bytes += piece.nbytes
            if self._bytes >= BLOCK_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write what is held, as one block; without anything held, an empty one."""
        rows = pa.concat_tables(self._held) if self._held else self._schema.empty_table()
        self._sink.write(avro_block(rows.combine_chunks(), self._avro, self._instant, BlockType.CDC))
        self._held, self._bytes = [], 0

    def finish(self) -> None:
        """Write the rest. A file of no change holds one empty block."""
        if self._held or not self._sink.tell():
            self.flush()


@contextmanager
def change_log(task: FileGroupTask, images: Images, right: RightToWrite) -> Iterator[ChangeLog]:
    """The change log of a task that rewrites a base file; it appears whole or not at all."""
    name = str(LogFileName(task.file_id, task.instant, 1, task.write_token, cdc=True))
    with right.create_file(task.partition, name, task.settings.log_marker) as sink:
        log = ChangeLog(sink, task, images, join(task.partition, name))
        yield log
        log.finish()


class RecordingMerger(Merger):
    """A merger that puts every change that it makes into a log."""

    def __init__(self, incoming: pa.Table, schema: pa.Schema, rule: MergeRule, log: ChangeLog) -> None:
        super().__init__(incoming, schema, rule)
        self._log = log

    def apply(self, base: pa.RecordBatch | pa.Table) -> pa.Table:
        """The rows after the merge, as `Merger` gives them."""
        merged = super().apply(base)
        rows, gone = self.met
        stay = rows[~gone]
        if len(stay):
            # Rows keep their order, so a row has moved up by as many as were deleted before it.
            moved = stay - np.cumsum(gone)[~gone]
            self._log.put(UPDATE, _taken(base, stay), merged.take(pa.array(moved)))
        if gone.any():
            self._log.put(DELETE, _taken(base, rows[gone]))
        return merged

    def rest(self) -> pa.Table:
        """The rows that are new."""
        new = super().rest()
        self._log.put(INSERT, after=new)
        return new


def _taken(base: pa.RecordBatch | pa.Table, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    table = pa.table(base) if isinstance(base, pa.RecordBatch) else base
    return table.take(pa.array(rows))
