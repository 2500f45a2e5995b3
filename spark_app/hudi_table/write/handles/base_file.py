"""What one task does with one file group, here or in a Spark task: marker, file, write stat.

The driver and every task share nothing but `FileGroupTask` and the right to write. Incoming batches
hold `_hoodie_record_key`, the table's columns, and where rows may be deleted by the operation
`ALWAYS_DELETE`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.avro.schema import with_meta
from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.parquet import BaseFileFooter, read_batches, read_footer
from hudi_table.codec.parquet_writer import BaseFileWriter, constant_column
from hudi_table.codec.promotions import of_today
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.names import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    META_COLUMNS,
    RECORD_KEY,
    BaseFileName,
    MarkerType,
    join,
    parse_base_file,
)
from hudi_table.model.table.cdc import INSERT
from hudi_table.model.timeline.commits import CDC_STATS, WriteStat
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.read_ahead import open_sized
from hudi_table.table.keys.record_keys import FieldKeys
from hudi_table.table.rows.combine import combined_per_key
from hudi_table.table.rows.fold_later import folded_per_key
from hudi_table.table.rows.merge import ALWAYS_DELETE, FLAGGED, MergeCounts, Merger, deleted, newest_per_key
from hudi_table.table.rows.parts import merge_in_parts, whole_parts
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.column_history import stored_as, under_todays_names
from hudi_table.write.event_times import EventTimes
from hudi_table.write.handles.cdc import ChangeLog, RecordingMerger, change_log
from hudi_table.write.handles.log import write_log
from hudi_table.write.settings import WriteSettings
from hudi_table.write.workload import SIZE_SLACK, FileGroupTask, Mode

ROW_GROUP_BYTES_MAX = 128 * 1024 * 1024
ROW_GROUP_BYTES_LEAST = 4 * 1024 * 1024
_CONSTANT = pa.dictionary(pa.int32(), pa.string())


def write_file_group(
    task: FileGroupTask, batches: Iterable[pa.RecordBatch], right: RightToWrite
) -> tuple[WriteStat, ...]:
    """Write the file (or, if it rolls over, the files) of one group; no stat if there is nothing to
    write.

    Raises WriteAbortedError if the instant was taken away, and what the storage raises. A failed
    attempt leaves at most marked files, which the driver's reconciliation or a recovery deletes.
    """
    seen = EventTimes(task.settings.event_time)
    work = FileWork(task, row_schema(task), MergeCounts(), seen)
    if task.mode is Mode.LOG:
        return seen.stamped(write_log(task, _incoming(task, batches, seen, dropping_deletes=False), right))
    if task.mode is Mode.CREATE:
        return seen.stamped(_create(work, batches, right))
    return seen.stamped([_rewrite(work, batches, right)])


@dataclass(slots=True)
class FileWork:
    """One attempt at one file. `rows` is the schema of rows between reading and writing: what a
    file holds, without the two columns that are the same in every row of it. `stored`: the footer
    of the base file that is read. `known`: a filter that holds the keys of the rows that come
    next."""

    task: FileGroupTask
    rows: pa.Schema
    counts: MergeCounts
    seen: EventTimes = dataclasses.field(default_factory=EventTimes)
    numbered: int = 0
    changes: ChangeLog | None = None
    stored: BaseFileFooter | None = None
    known: BloomFilter | None = None


def row_schema(task: FileGroupTask, *, dictionaries: bool = True) -> pa.Schema:
    """The schema of rows between reading and writing; `dictionaries`: columns of few values may be
    such."""
    meta = [
        pa.field(COMMIT_TIME, _CONSTANT if dictionaries else pa.string()),
        pa.field(COMMIT_SEQNO, pa.string()),
        pa.field(RECORD_KEY, pa.string()),
    ]
    return pa.schema([*meta, *task.settings.schema])


def _create(work: FileWork, batches: Iterable[pa.RecordBatch], right: RightToWrite) -> tuple[WriteStat, ...]:
    rows = (_stamped(work, table) for table in _incoming(work.task, batches, work.seen, dropping_deletes=True))
    tables = _at_most(rows, work.task.settings.row_group_rows)
    stats: list[WriteStat] = []
    for number in itertools.count():
        first = next(tables, None)
        if first is None:
            return tuple(stats)
        stats.append(write_one(work, number, itertools.chain([first], tables), right))
    raise AssertionError("unreachable")


def _rewrite(work: FileWork, batches: Iterable[pa.RecordBatch], right: RightToWrite) -> WriteStat:
    images = work.task.settings.cdc
    if images is None:
        return _rewritten(work, batches, right)
    with change_log(work.task, images, right) as log:
        work.changes = log
        stat = _rewritten(work, batches, right)
    return replace(stat, extra={**stat.extra, CDC_STATS: log.stats})


def _rewritten(work: FileWork, batches: Iterable[pa.RecordBatch], right: RightToWrite) -> WriteStat:
    tables = _merged(work, batches, right) if work.task.mode is Mode.MERGE else _appended(work, batches, right)
    return write_one(work, 0, tables, right)


def write_one(work: FileWork, number: int, tables: Iterator[pa.Table], right: RightToWrite) -> WriteStat:
    """One file from `tables`, up to the target size if the task rolls over."""
    task, settings = work.task, work.task.settings
    name = str(BaseFileName(task.rolled_file_id(number), task.write_token, task.instant))
    kind = MarkerType.CREATE if task.base_path is None else MarkerType.MERGE
    with right.create_file(task.partition, name, kind) as sink:
        with BaseFileWriter(
            sink,
            with_meta(settings.schema),
            avro_schema=settings.avro_schema,
            bloom=settings.bloom,
            codec=settings.codec,
            level=settings.codec_level,
            row_group_rows=settings.row_group_rows,
            row_group_bytes=min(_held_bytes(settings), settings.target_file_size),
        ) as writer:
            for table in tables:
                writer.write(_as_stored(table, task, name), known=work.known)
                right.renew_if_due()
                if task.rolls_over and sink.tell() >= settings.target_file_size * (1 + SIZE_SLACK):
                    break
        size = sink.tell()
    counts = work.counts
    inserted = counts.inserted if task.base_path is not None else writer.rows
    return WriteStat(
        file_id=task.rolled_file_id(number),
        path=join(task.partition, name),
        partition_path=task.partition,
        prev_commit=task.prev_commit,
        num_writes=writer.rows,
        num_deletes=counts.deleted,
        num_update_writes=counts.updated,
        num_inserts=inserted,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


def _merged(work: FileWork, batches: Iterable[pa.RecordBatch], right: RightToWrite) -> Iterator[pa.Table]:
    """The base file's rows with the incoming ones merged in."""
    task = work.task

    def start(rows: pa.Table) -> Merger:
        stamped, rule = _stamped(work, rows, keep=(ALWAYS_DELETE, FLAGGED)), task.settings.rule
        if work.changes is not None:
            return RecordingMerger(stamped, work.rows, rule, work.changes)
        return Merger(stamped, work.rows, rule)

    incoming = _incoming(task, batches, work.seen, dropping_deletes=False)
    if task.parts > 1:
        merged = merge_in_parts(
            base_rows(work, right.storage), incoming, start, parts=task.parts, max_bytes=task.settings.memory_bytes
        )
        for table, counts in merged:
            yield table
            if counts is not None:
                work.counts.add(counts)
        return
    base = base_rows(work, right.storage)
    # The first rows of the base decide which columns stay dictionaries, so they come before the incoming ones.
    tables = itertools.chain(list(itertools.islice(base, 1)), base)
    parts = list(incoming)
    if not parts:
        yield from tables
        return
    merger = start(pa.concat_tables(parts))
    work.known = _filter_that_stays(work, merger)
    for table in tables:
        yield merger.apply(table)
    work.known = None
    yield merger.rest()
    work.counts = merger.counts


def _filter_that_stays(work: FileWork, merger: Merger) -> BloomFilter | None:
    """The stored filter, where the new file has all keys of the old one: hashing them again would
    give the same bits, and took a fifth of a rewrite. Where keys go it is made anew, or its errors
    would grow with every rewrite."""
    spec = work.task.settings.bloom
    if spec is None or work.stored is None or not merger.keeps_keys:
        return None
    try:
        found = work.stored.bloom()
    except (CorruptTableError, UnsupportedTableError):
        return None
    return None if found is None else found.going_on(spec)


def _appended(work: FileWork, batches: Iterable[pa.RecordBatch], right: RightToWrite) -> Iterator[pa.Table]:
    """The base file's rows, then the incoming ones."""
    yield from base_rows(work, right.storage)
    for table in _incoming(work.task, batches, work.seen, dropping_deletes=True):
        work.counts.inserted += len(table)
        rows = _stamped(work, table)
        if work.changes is not None:
            work.changes.put(INSERT, after=rows)
        yield rows


def base_rows(work: FileWork, storage: Storage, *, dictionaries: bool = True) -> Iterator[pa.Table]:
    """The base file batch by batch, in today's schema; with `dictionaries`, columns of few values
    stay such, which is half the work."""
    task, path = work.task, work.task.base_path
    assert path is not None
    virtual = task.settings.virtual_keys
    name = parse_base_file(path.rpartition("/")[2])
    assert name is not None
    stored = stored_as(task.settings.history, name.instant, work.rows.names)
    first = True
    with open_sized(storage, path, task.base_bytes) as source:
        work.stored = read_footer(source, path=path)
        for batch in read_batches(
            source,
            [name for name in stored.values() if name is not None],
            path=path,
            metadata=work.stored.metadata,
            batch_rows=task.settings.row_group_rows,
            batch_bytes=_held_bytes(task.settings),
            dictionary_columns=None if dictionaries else (),
        ):
            batch = under_todays_names(batch, stored)
            if dictionaries and first and virtual is None and task.parts == 1:
                work.rows = _with_dictionaries(work.rows, batch.schema, task.settings.rule.orderings)
            first = False
            table = _conformed(pa.Table.from_batches([batch]), work.rows)
            yield table if virtual is None else FieldKeys(virtual).put_in(table)


def _held_bytes(settings: WriteSettings) -> int:
    """What reading the base file, or writing a row group, may hold at once, beside the rows that
    are merged in."""
    return min(ROW_GROUP_BYTES_MAX, max(ROW_GROUP_BYTES_LEAST, settings.memory_bytes // 2))


def _with_dictionaries(rows: pa.Schema, stored: pa.Schema, orderings: Sequence[str]) -> pa.Schema:
    """The schema of rows, with string columns as dictionaries where the file gives them so."""
    known = {field.name for field in stored if field.type == _CONSTANT} - {*orderings, RECORD_KEY, COMMIT_SEQNO}
    return pa.schema(
        [field.with_type(_CONSTANT) if field.name in known and field.type == pa.string() else field for field in rows]
    )


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`of_today`, but dictionaries stay dictionaries."""
    plain = of_today(table, pa.schema([field for field in schema if field.type != _CONSTANT]))
    have = set(table.schema.names)
    columns = []
    for field in schema:
        if field.type != _CONSTANT:
            columns.append(plain.column(field.name))
        elif field.name in have:
            columns.append(_encoded(table.column(field.name)))
        else:
            columns.append(pa.nulls(len(table), _CONSTANT))
    return pa.Table.from_arrays(columns, schema=schema)


def _encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if column.type == _CONSTANT else column.dictionary_encode()


def _incoming(
    task: FileGroupTask, batches: Iterable[pa.RecordBatch], seen: EventTimes, *, dropping_deletes: bool
) -> Iterator[pa.Table]:
    """Incoming rows: streamed, or in whole tables where duplicates must be combined or rows
    sorted."""
    settings = task.settings
    tables: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for batch in batches)
    if settings.combine or settings.sort:
        tables = whole_parts(batches, task.parts, ordered=settings.sort, max_bytes=settings.memory_bytes)
    for table in tables:
        rows = settings.rule.flagged(table)
        if settings.combine:
            rows = _one_per_key(rows, settings)
        if settings.sort:
            rows = rows.take(pc.sort_indices(rows.column(RECORD_KEY)))
        rows = _without_deletes(rows) if dropping_deletes else rows
        if len(rows) > 0:
            seen.see(rows)
            yield rows


def _one_per_key(rows: pa.Table, settings: WriteSettings) -> pa.Table:
    if settings.rule.combines and settings.rule.later:
        return folded_per_key(rows, RECORD_KEY, settings.combine_orderings, settings.rule.partial)
    one = combined_per_key if settings.rule.combines else newest_per_key
    return one(rows, RECORD_KEY, settings.combine_orderings)


def _without_deletes(table: pa.Table) -> pa.Table:
    gone = deleted(table)
    return table.filter(pa.array(~gone)) if gone.any() else table


def _stamped(work: FileWork, table: pa.Table, keep: tuple[str, ...] = ()) -> pa.Table:
    """Incoming rows with commit time and sequence numbers, in the schema of `work.rows` (and the
    columns to keep)."""
    task = work.task
    start, work.numbered = work.numbered, work.numbered + len(table)
    counters = pa.array(np.arange(start, work.numbered)).cast(pa.string())
    seqno = pc.binary_join_element_wise(f"{task.instant}_{task.index}", counters, "_")
    times = constant_column(task.instant, len(table))
    present = set(table.schema.names)
    data = []
    for field in list(work.rows)[3:]:
        column = table.column(field.name) if field.name in present else pa.nulls(len(table), field.type)
        data.append(_encoded(column) if field.type == _CONSTANT else column)
    kept = [name for name in keep if name in present]
    schema = pa.schema([*work.rows, *(table.schema.field(name) for name in kept)])
    columns = [times, seqno, table.column(RECORD_KEY), *data, *(table.column(name) for name in kept)]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_stored(table: pa.Table, task: FileGroupTask, name: str) -> pa.Table:
    """Rows as the file holds them: meta columns first, partition path and file name the same in
    every row."""
    rows = len(table)
    file_name = constant_column(name, rows)
    if task.settings.virtual_keys is None:
        meta = [*table.columns[:3], constant_column(task.partition, rows), file_name]
    else:
        # As Hudi 0.15's Avro writer leaves them: null, but for the file name.
        meta = [*(pa.nulls(rows, kind) for kind in (_CONSTANT, pa.string(), pa.string(), _CONSTANT)), file_name]
    return pa.Table.from_arrays([*meta, *table.columns[3:]], names=[*META_COLUMNS, *table.schema.names[3:]])


def _at_most(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The tables in slices of a bounded number of rows, so that a roll-over comes in time."""
    for table in tables:
        for start in range(0, len(table), rows):
            yield table.slice(start, rows)
