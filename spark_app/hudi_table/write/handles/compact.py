"""What a task of a compaction does with one planned slice: its logs merged into a new base file, or
folded into one log.

The file's name and rows follow from the plan alone, so that any executor writes the same file, and
may write it again. Rows keep their commit time and sequence number (measured on Hudi 0.15.0).
Unlike Hudi 0.15.0, a compaction of logs that hold nothing makes a base file too: newer logs carry
the plan's instant as their base, and would hide the older file.

A log compaction's log has the version of the last log that it replaces, and by its token follows
right behind it: before everything that was written beside the plan. Readers that apply both, as
0.15.0 does, come to the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.log.blocks import LogBlock
from hudi_table.errors import CorruptTableError
from hudi_table.model.names import (
    OPERATION_COLUMN,
    RECORD_KEY,
    LogFileName,
    log_write_token,
    parse_log_file,
)
from hudi_table.model.table.layouts import Layout
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.read_ahead import ReadAhead
from hudi_table.table.rows.log_entries import by_columns, from_delete_blocks
from hudi_table.table.rows.log_merge import folded_entries, merged_rows
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.rows.merge import MergeCounts
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import ListedFile
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import LogFile
from hudi_table.write.handles.base_file import FileWork, base_rows, row_schema, write_one
from hudi_table.write.handles.log import log_stat
from hudi_table.write.handles.log_file import LogWriter
from hudi_table.write.workload import FileGroupTask, LogPlace


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One planned slice, picklable. `visible` are the instants whose blocks count: those completed
    before the plan's. `absent` are paths of planned logs that are gone, and of which no block would
    count. `sizes`: of the files that are there, in bytes, by path, where they are known."""

    file: FileGroupTask
    planned: PlannedSlice
    visible: VisibleInstants
    merge: SliceMerge
    absent: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)

    def files(self) -> list[ListedFile]:
        """The files that are read, as they are listed."""
        return [ListedFile(path, size) for path, size in self.sizes.items()]

    def logs(self) -> list[LogFile]:
        """The planned logs that are read, in their order. Raises CorruptTableError for a name that
        is no log's."""
        return [LogFile(path, 0, _parsed(path)) for path in self.planned.log_paths if path not in self.absent]


def compact_file_group(item: CompactionTask, right: RightToWrite) -> WriteStat:
    """Write the new base file. Raises WriteAbortedError if the instant was taken away, and what the
    storage raises."""
    work = FileWork(item.file, row_schema(item.file, dictionaries=False), MergeCounts())
    with ReadAhead(right.storage, [item.files()]) as ahead, ahead.opened(0) as storage:
        scanned = slice_blocks(storage, item.logs(), item.visible)
        tables = slice_rows(item, work, scanned, storage)
        stat = write_one(work, 0, tables, right)
    return replace(
        stat,
        num_inserts=work.counts.inserted,
        extra={
            "totalLogRecords": work.counts.updated + work.counts.deleted + work.counts.inserted,
            "totalLogFilesCompacted": len(item.planned.logs),
            "totalLogSizeCompacted": int(item.planned.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
            "totalUpdatedRecordsCompacted": work.counts.updated,
            "totalLogBlocks": len(scanned),
        },
    )


def slice_rows(
    item: CompactionTask, work: FileWork, scanned: Sequence[LogBlock], storage: Storage
) -> Iterator[pa.Table]:
    """The rows of the planned slice, the blocks of its logs merged in: tables of `work.rows`, in an
    order of their own."""
    base = base_rows(work, storage, dictionaries=False) if item.file.base_path is not None else iter(())
    return merged_rows(
        storage,
        base,
        scanned,
        work.rows,
        item.merge,
        memory_bytes=item.file.settings.memory_bytes,
        counts=work.counts,
    )


def compact_logs(item: CompactionTask, right: RightToWrite) -> WriteStat:
    """Write the log that stands for the planned ones. Raises as `compact_file_group`."""
    with ReadAhead(right.storage, [item.files()]) as ahead, ahead.opened(0) as storage:
        return _compact_logs(item, right, storage)


def _compact_logs(item: CompactionTask, right: RightToWrite, storage: Storage) -> WriteStat:
    task = item.file
    scanned = slice_blocks(storage, item.logs(), item.visible)
    if any(OPERATION_COLUMN in (block.schema or "") for block in scanned):
        # A row that deletes stays one, with its ordering value, only where its operation is kept.
        task = replace(task, settings=task.settings.with_operation())
    assert task.log is not None
    replaced = {instant for block in scanned for instant in (block.instant, *block.compacted)}
    token = log_write_token(task.instant, task.attempt)
    name = str(LogFileName(task.file_id, task.log.instant, task.log.version, token))
    schema = with_meta(task.settings.schema)
    gone: list[pa.Table] = []
    with right.create_file(task.partition, name, task.log.marker) as sink:
        log = LogWriter(sink, task, right, sorted(replaced))
        for table in folded_entries(storage, scanned, schema, item.merge, memory_bytes=task.settings.memory_bytes):
            deletes = pa.array(from_delete_blocks(table, item.merge))
            for rows in by_columns(table.filter(pc.invert(deletes))):
                names = [name for name in schema.names if name in rows.schema.names]
                for piece in log.pieces(rows.select(names)):
                    log.put(piece, partial=names != schema.names)
            gone.append(table.select([RECORD_KEY, *item.merge.orderings]).filter(deletes))
        for keys in gone:
            log.put_deletes(keys, item.merge.orderings)
        size = sink.tell()
    return log_stat(
        task,
        name,
        size,
        log,
        totalLogRecords=log.rows + log.deletes,
        totalLogFilesCompacted=len(item.planned.logs),
        totalLogSizeCompacted=int(item.planned.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
        totalUpdatedRecordsCompacted=log.rows,
        totalLogBlocks=len(scanned),
    )


def log_place(layout: Layout, planned: PlannedSlice, instant: str) -> LogPlace:
    """Where the log of a log compaction of `instant` goes. Raises CorruptTableError for a plan
    without logs, or with another name."""
    if not planned.logs:
        raise CorruptTableError(f"a log compaction is planned of group {planned.file_id}, which has no logs")
    last = _parsed(planned.log_paths[-1])
    if layout.logs_tell_writers:
        return LogPlace.of_its_own(instant, layout.log_marker)
    slice_instant = last.base_instant
    return LogPlace(last.version, slice_instant, planned.base or "", planned.logs, slice_instant, layout.log_marker)


def _parsed(path: str) -> LogFileName:
    found = parse_log_file(path.rpartition("/")[2])
    if found is None:
        raise CorruptTableError(f"a compaction plan names {path} as a log file, which it is not", path=path)
    return found
