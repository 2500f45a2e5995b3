"""What a task of a clustering does with one group: its slices' rows, in order, into new file groups
of about equal size.

Names and rows follow from the plan and the slices alone, so that any executor writes the same
files, and may write them again. Rows keep their commit time, sequence number and key (measured on
Hudi 0.15.0).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hudi_table.codec.dictionaries import SharedDictionaries
from hudi_table.codec.parquet import read_footer
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.read.prefetch import in_order
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.log_scan import slice_blocks
from hudi_table.table.rows.merge import MergeCounts
from hudi_table.table.rows.row_order import RowOrder
from hudi_table.table.rows.sorted_rows import PIECE_ROWS, SortedRows
from hudi_table.write.handles.base_file import FileWork, base_rows, row_schema, write_one
from hudi_table.write.handles.compact import CompactionTask, slice_rows
from hudi_table.write.workload import FileGroupTask

_READ_SHARES = 4


@dataclass(frozen=True, slots=True)
class ClusteringTask:
    """One group, picklable: the slices that are read, the files that are written. `memory_bytes`
    may be held; `threads` write files at once."""

    sources: tuple[CompactionTask, ...]
    outputs: tuple[FileGroupTask, ...]
    order: RowOrder
    memory_bytes: int
    threads: int = 1


def cluster_group(item: ClusteringTask, right: RightToWrite) -> tuple[WriteStat, ...]:
    """Write the new files; fewer than planned if there are fewer rows. Raises WriteAbortedError if
    the instant was taken away, and what the storage raises."""
    if len(item.outputs) == 1 and not item.order.columns:
        shared = SharedDictionaries()
        with closing(source_rows(item.sources, right, item.memory_bytes, item.threads)) as tables:
            return write_rows(item.outputs[0], (shared.decoded(shared.encoded(table)) for table in tables), right)
    with SortedRows(item.order, item.memory_bytes, item.threads) as rows:
        with closing(source_rows(item.sources, right, item.memory_bytes, item.threads)) as tables:
            for table in tables:
                rows.add(table)
                right.renew_if_due()
        rows.finish(_column_sizes(item, right) if len(item.outputs) > 1 else {})
        write = partial(_run, item, rows, right)
        found = LocalEngine(item.threads).map(write, range(len(item.outputs)))
    return tuple(stat for stats in found for stat in stats)


def _run(item: ClusteringTask, rows: SortedRows, right: RightToWrite, number: int) -> tuple[WriteStat, ...]:
    return write_rows(item.outputs[number], rows.run(number, len(item.outputs)), right)


def write_rows(task: FileGroupTask, tables: Iterator[pa.Table], right: RightToWrite) -> tuple[WriteStat, ...]:
    """The rows as the file of a new group; no stat, and no file, if there are none."""
    pieces = _pieces(tables)
    first = next(pieces, None)
    if first is None:
        return ()
    work = FileWork(task, row_schema(task, dictionaries=False), MergeCounts())
    return (write_one(work, 0, _chained(first, pieces), right),)


def source_rows(
    sources: Sequence[CompactionTask], right: RightToWrite, memory_bytes: int, threads: int = 1
) -> Generator[pa.Table, None, None]:
    """The rows of planned slices, logs merged in, one slice after the other, in steps as large as
    the memory allows, which do not decide what is written. So many `threads` read slices at once;
    closing the generator stops them."""
    share = memory_bytes // (_READ_SHARES * threads)
    if threads == 1:
        return (table for source in sources for table in _slice_rows(source, right, share))
    read = [partial(_slice_rows, source, right, share) for source in sources]
    return in_order(read, ahead=threads, depth=1)


def _slice_rows(source: CompactionTask, right: RightToWrite, memory_bytes: int) -> Iterator[pa.Table]:
    logs = source.logs()
    work = FileWork(source.file, row_schema(source.file, dictionaries=not logs), MergeCounts())
    if logs:
        return slice_rows(source, work, slice_blocks(right.storage, logs, source.visible), right.storage)
    file = replace(source.file, settings=replace(source.file.settings, memory_bytes=memory_bytes))
    return base_rows(replace(work, task=file), right.storage)


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows in tables of one length, so that row groups do not depend on how the rows came."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        held.append(table)
        count += len(table)
        while count >= PIECE_ROWS:
            whole = pa.concat_tables(held)
            yield whole.slice(0, PIECE_ROWS)
            held, count = [whole.slice(PIECE_ROWS)], count - PIECE_ROWS
    if count:
        yield pa.concat_tables(held)


def _chained(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _column_sizes(item: ClusteringTask, right: RightToWrite) -> dict[str, int]:
    """Bytes that each column takes in the base files that are read."""
    sizes: dict[str, int] = {}
    for source in item.sources:
        path = source.file.base_path
        if path is None:
            continue
        with right.storage.open_read(path) as file:
            metadata = read_footer(file, path=path).metadata
        assert metadata is not None
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(number)
                name = chunk.path_in_schema.partition(".")[0]
                sizes[name] = sizes.get(name, 0) + chunk.total_compressed_size
    return sizes
