"""What a task of a compaction does: the logs of one planned slice merged into a new base file of the plan's instant.

The file's name and rows follow from the plan alone, so that any executor writes the same file, and may write it again.
Rows keep their commit time and sequence number (measured on Hudi 0.15.0). Unlike Hudi 0.15.0, a slice whose logs hold
nothing gets its base file too: newer logs carry the plan's instant as their base, and would hide the older file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_table.model.commits import WriteStat
from hudi_table.model.names import LogFileName, parse_log_file
from hudi_table.table.compactions import PlannedSlice
from hudi_table.table.log_merge import SliceMerge, merged_rows
from hudi_table.table.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.merge import MergeCounts
from hudi_table.table.right import RightToWrite
from hudi_table.table.view import LogFile
from hudi_table.write.tasks import FileWork, base_rows, row_schema, write_one
from hudi_table.write.workload import FileGroupTask


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One planned slice, picklable. `visible` are the instants whose blocks count: those completed before the plan's."""

    file: FileGroupTask
    planned: PlannedSlice
    visible: VisibleInstants
    merge: SliceMerge

    def logs(self) -> list[LogFile]:
        """The planned logs, in their order. Raises ValueError for a name that is no log's."""
        return [
            LogFile(path, 0, _parsed(name))
            for path, name in zip(self.planned.log_paths, self.planned.logs, strict=True)
        ]


def compact_file_group(item: CompactionTask, right: RightToWrite) -> WriteStat:
    """Write the new base file. Raises WriteAbortedError if the instant was taken away, and what the storage raises."""
    storage = right.storage
    scanned = slice_blocks(storage, item.logs(), item.visible)
    rows = row_schema(item.file, dictionaries=False)
    work = FileWork(item.file, rows, MergeCounts())
    base = base_rows(work, right, dictionaries=False) if item.file.base_path is not None else iter(())
    tables = merged_rows(
        storage, base, scanned, rows, item.merge, memory_bytes=item.file.settings.memory_bytes, counts=work.counts
    )
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


def _parsed(name: str) -> LogFileName:
    found = parse_log_file(name)
    if found is None:
        raise ValueError(f"{name!r} is no name of a log file")
    return found
