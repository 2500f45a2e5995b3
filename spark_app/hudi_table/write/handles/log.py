"""What a task does with the rows of a file group that go to its log: one new log file, of this
instant alone.

Facts (measured on Hudi 0.15.0): rows carry all five meta columns, the file name being the file id;
flagged deletes are no rows but entries of a delete block with their ordering value; the operation
DELETE writes none. Write stats of logs name version, base file and all logs of the slice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.log.rows import beyond_delete_block
from hudi_table.errors import InvalidDataError
from hudi_table.model.names import IS_DELETED, META_COLUMNS, RECORD_KEY, LogFileName, join, log_write_token
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.rows.merge import ALWAYS_DELETE, Mask, deleted, flags, one_chunk
from hudi_table.write.handles.log_file import LogWriter
from hudi_table.write.workload import FileGroupTask


def write_log(task: FileGroupTask, tables: Iterator[pa.Table], right: RightToWrite) -> tuple[WriteStat, ...]:
    """Write one log file of data blocks and then delete blocks; no stat if there is nothing to
    write.

    Rows are written as they come; of deletes the keys are held to the end. No key comes twice.
    """
    assert task.log is not None
    first = next((table for table in tables if len(table)), None)
    if first is None:
        return ()
    token = log_write_token(task.instant, task.attempt)
    name = str(LogFileName(task.file_id, task.log.instant, task.log.version, token))
    held: list[pa.Table] = []
    with right.create_file(task.partition, name, task.log.marker) as sink:
        log = LogWriter(sink, task, right)
        for table in itertools.chain([first], tables):
            gone = deleted(table)
            if gone.any():
                gone &= ~_stays_row(task, table)
                held.append(_deletes(task, table.filter(pa.array(gone))))
                table = table.filter(pa.array(~gone))
            for piece in log.pieces(table):
                log.put(_stamped(task, piece, log.rows))
        for keys in held:
            log.put_deletes(keys, _orderings(task, keys))
        size = sink.tell()
    return (log_stat(task, name, size, log),)


def log_stat(task: FileGroupTask, name: str, size: int, log: LogWriter, **extra: int) -> WriteStat:
    """The write stat of a log file: version, base file and all logs of the slice."""
    assert task.log is not None
    return WriteStat(
        file_id=task.file_id,
        path=join(task.partition, name),
        partition_path=task.partition,
        prev_commit=task.log.prev_commit,
        num_writes=log.rows,
        num_deletes=log.deletes,
        num_update_writes=log.rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
        extra={
            "logVersion": task.log.version,
            "logOffset": 0,
            "baseFile": task.log.base_file,
            "logFiles": [*task.log.known_logs, name],
            "recordsStats": {"val": None},
            **extra,
        },
    )


def _stamped(task: FileGroupTask, rows: pa.Table, numbered: int) -> pa.Table:
    """Rows with the five meta columns, in the schema of the table."""
    counters = pa.array(np.arange(numbered, numbered + len(rows))).cast(pa.string())
    meta = [
        pa.repeat(task.instant, len(rows)),
        pc.binary_join_element_wise(f"{task.instant}_{task.index}", counters, "_"),
        rows.column(RECORD_KEY),
        pa.repeat(task.partition, len(rows)),
        pa.repeat(task.file_id, len(rows)),
    ]
    schema = with_meta(task.settings.schema)
    have = set(rows.schema.names)
    data = [
        rows.column(f.name) if f.name in have else pa.nulls(len(rows), f.type)
        for f in list(schema)[len(META_COLUMNS) :]
    ]
    return pa.Table.from_arrays([*meta, *data], schema=schema)


def _deletes(task: FileGroupTask, rows: pa.Table) -> pa.Table:
    """What delete blocks need of the rows: unconditional where the operation deletes, with the
    row's ordering value where the row is flagged."""
    keys, always = rows.select([RECORD_KEY]), pa.array(flags(rows, ALWAYS_DELETE))
    for name in _orderings(task, rows):
        values = one_chunk(rows.column(name))
        keys = keys.append_column(name, pc.if_else(always, pa.scalar(None, values.type), values))
    return keys


def _stays_row(task: FileGroupTask, rows: pa.Table) -> Mask:
    """Which deletes stay among the rows: flagged ones whose ordering value no delete block holds.
    Every reader takes them for deletes by their flag.

    Raises InvalidDataError for such a delete without a flag.
    """
    beyond = np.zeros(len(rows), dtype=bool)
    for name in _orderings(task, rows):
        beyond |= beyond_delete_block(one_chunk(rows.column(name)))
    beyond &= ~flags(rows, ALWAYS_DELETE)
    unseen = beyond & deleted(rows) & ~flags(rows, IS_DELETED)
    if unseen.any():
        row = rows.slice(int(unseen.argmax()), 1).select([RECORD_KEY, *_orderings(task, rows)]).to_pylist()
        raise InvalidDataError(
            f"the delete {row[0]} has an ordering value beyond decimal(30, 15), which is all that a log holds of a "
            f"delete: write it as a row with {IS_DELETED} = true"
        )
    return beyond


def _orderings(task: FileGroupTask, rows: pa.Table) -> list[str]:
    return [name for name in task.settings.combine_orderings if name in rows.schema.names]
