"""What a task does with the rows of a file group that go to its log: one new log file, of this instant alone.

Facts (measured on Hudi 0.15.0): rows carry all five meta columns, the file name being the file id; flagged deletes are no
rows but entries of a delete block with their ordering value; the operation DELETE writes none. Write stats of logs
name version, base file and all logs of the slice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro_schema import with_meta, with_meta_text
from hudi_table.codec.log_rows import avro_block, delete_block
from hudi_table.model.commits import WriteStat
from hudi_table.model.names import META_COLUMNS, RECORD_KEY, LogFileName, MarkerType, join, log_write_token
from hudi_table.table.merge import ALWAYS_DELETE, deleted, flags, one_chunk
from hudi_table.table.right import RightToWrite
from hudi_table.write.workload import FileGroupTask, LogPlace

BLOCK_BYTES = 64 << 20
"""Arrow bytes of the rows of one data block at most: what a reader has to hold at once."""
_BLOCK_SHARE = 8
"""A block takes at most this part of the task's memory, for encoding copies it."""
_DELETE_BYTES = 1024
"""What a delete takes where it is read: such blocks are decoded record by record."""


def write_log(task: FileGroupTask, tables: Iterator[pa.Table], right: RightToWrite) -> tuple[WriteStat, ...]:
    """Write one log file of data blocks and then delete blocks; no stat if there is nothing to write.

    Rows are written as they come; of deletes the keys are held to the end. No key comes twice.
    """
    assert task.log is not None
    first = next((table for table in tables if len(table)), None)
    if first is None:
        return ()
    name = str(
        LogFileName(task.file_id, task.log.base_instant, task.log.version, log_write_token(task.instant, task.attempt))
    )
    block_bytes = max(1, min(BLOCK_BYTES, task.settings.memory_bytes // _BLOCK_SHARE))
    written, deletes = 0, []
    with right.create_file(task.partition, name, MarkerType.APPEND) as sink:
        schema = with_meta_text(task.settings.avro_schema)
        for table in itertools.chain([first], tables):
            gone = deleted(table)
            if gone.any():
                deletes.append(_keys_of(task, table.filter(pa.array(gone))))
                table = table.filter(pa.array(~gone))
            for piece in _pieces(table, block_bytes // max(1, table.nbytes // max(1, len(table)))):
                sink.write(avro_block(_stamped(task, piece, written), schema, task.instant))
                written += len(piece)
                right.renew_if_due()
        for table in deletes:
            for piece in _pieces(table, block_bytes // _DELETE_BYTES):
                sink.write(_deletes(task, piece))
        size = sink.tell()
    return (_stat(task, task.log, name, size, written, sum(map(len, deletes))),)


def _pieces(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    step = max(1, rows)
    return (table.slice(start, step) for start in range(0, len(table), step))


def _keys_of(task: FileGroupTask, deletes: pa.Table) -> pa.Table:
    """What a delete block needs of the rows."""
    wanted = {RECORD_KEY, task.settings.combine_ordering, ALWAYS_DELETE}
    return deletes.select([name for name in deletes.schema.names if name in wanted])


def _stamped(task: FileGroupTask, rows: pa.Table, numbered: int) -> pa.Table:
    """Rows with the five meta columns, in the schema of the table."""
    counters = pa.array(np.arange(numbered, numbered + len(rows))).cast(pa.string())
    meta = {
        0: pa.repeat(task.instant, len(rows)),
        1: pc.binary_join_element_wise(f"{task.instant}_{task.index}", counters, "_"),
        2: rows.column(RECORD_KEY),
        3: pa.repeat(task.partition, len(rows)),
        4: pa.repeat(task.file_id, len(rows)),
    }
    schema = with_meta(task.settings.schema)
    have = set(rows.schema.names)
    data = [
        rows.column(f.name) if f.name in have else pa.nulls(len(rows), f.type)
        for f in list(schema)[len(META_COLUMNS) :]
    ]
    return pa.Table.from_arrays([*meta.values(), *data], schema=schema)


def _deletes(task: FileGroupTask, rows: pa.Table) -> bytes:
    """Unconditional where the operation deletes, with the row's ordering value where the row is flagged."""
    name = task.settings.combine_ordering
    ordering = None
    if name is not None and name in rows.schema.names:
        values = one_chunk(rows.column(name))
        always = pa.array(flags(rows, ALWAYS_DELETE))
        ordering = pc.if_else(always, pa.scalar(None, values.type), values)
    return delete_block(one_chunk(rows.column(RECORD_KEY)), task.partition, task.instant, ordering)


def _stat(task: FileGroupTask, log: LogPlace, name: str, size: int, rows: int, deleted: int) -> WriteStat:
    return WriteStat(
        file_id=task.file_id,
        path=join(task.partition, name),
        partition_path=task.partition,
        prev_commit=log.base_instant,
        num_writes=rows,
        num_deletes=deleted,
        num_update_writes=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
        extra={
            "logVersion": log.version,
            "logOffset": 0,
            "baseFile": log.base_file,
            "logFiles": [*log.known_logs, name],
            "recordsStats": {"val": None},
        },
    )
