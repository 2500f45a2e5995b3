"""What files say to an index of an expression: of each one the least and the greatest value that
the expression has in its rows, or a bloom filter of the values; of partitions the bounds of all
files.

Facts (measured on Hudi 1.0.2 and 1.1.1): a log has an entry of its own, of the rows in its blocks.
A file without one is read by every filter; a partition without one by none, where another has one.
So a partition gets an entry with each of its files, and the bounds of a partition become wider with
each, until Hudi writes them anew. A bloom filter holds no nulls, for which Hudi cannot make one,
nor can it for a log: on merge-on-read tables its writes fail where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import read_rows
from hudi_table.codec.metadata.column_stats import combined, stats_of_values
from hudi_table.codec.metadata.entries import (
    bloom_entry,
    bloom_removal,
    column_stats_entries,
    column_stats_removals,
    partition_stats_entries,
)
from hudi_table.codec.parquet import whole_batches
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.metadata.definitions import ExpressionNote, noted_expression
from hudi_table.metadata.expression_index.functions import UnknownValueError, Values, bound_function
from hudi_table.metadata.records import Entries, UnkeptError
from hudi_table.model.metadata_table import ExpressionPartition, MetadataPartition
from hudi_table.model.names import is_skeleton, join, parse_base_file, parse_log_file
from hudi_table.model.table.config import TableType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline

FILES_AHEAD = 8
_ROWS = (BlockType.AVRO, BlockType.PARQUET)
File = tuple[str, str]
"""(partition, file name)."""


def note_of(ctx: TableContext, name: ExpressionPartition) -> ExpressionNote:
    """What is noted of the index. Raises UnkeptError if it is none that is kept, of whatever
    column."""
    note = noted_expression(ctx, name)
    if note is None or note.using not in (MetadataPartition.COLUMN_STATS, MetadataPartition.BLOOM_FILTERS):
        raise UnkeptError(name, "its definition names no column alone, or neither column_stats nor bloom_filters")
    return note


@dataclass(frozen=True, slots=True)
class Expression:
    """An index's expression over the columns of one snapshot: `stored` is the type of its column,
    `kind` that of its values."""

    name: ExpressionPartition
    note: ExpressionNote
    stored: pa.DataType
    kind: pa.DataType
    values: Values

    @classmethod
    def of(cls, ctx: TableContext, timeline: Timeline, name: ExpressionPartition) -> Expression:
        """Raises UnkeptError if what Spark makes of the column is not known, or older files hold it
        under another name."""
        found = cls.bound(ctx, name, note_of(ctx, name), table_schema(ctx, timeline) or pa.schema([]))
        if load_column_history(ctx, timeline) is not None:
            raise UnkeptError(
                name, "columns of the table were renamed or have changed, which its older files do not tell"
            )
        return found

    @classmethod
    def bound(cls, ctx: TableContext, name: ExpressionPartition, note: ExpressionNote, schema: pa.Schema) -> Expression:
        """Of a table with these columns. Raises UnkeptError."""
        if note.column not in schema.names:
            raise UnkeptError(name, f"its column {note.column!r} is not there")
        stored = schema.field(note.column).type
        try:
            kind, values = bound_function(note.function, note.options, stored)
        except UnknownValueError as error:
            raise UnkeptError(name, f"its expression {error}") from error
        if note.using != MetadataPartition.BLOOM_FILTERS:
            return cls(name, note, stored, kind, values)
        if ctx.config.type is TableType.MERGE_ON_READ:
            raise UnkeptError(
                name, "Hudi makes no bloom filter of a log, and fails where a merge-on-read table has one"
            )
        if not (pt.is_string(kind) or pt.is_int32(kind)):
            raise UnkeptError(name, f"bloom filters are kept of strings and ints, and its expression gives {kind}")
        return cls(name, note, stored, kind, values)

    def over(self, part: pa.Array) -> pa.Array:
        """Its values for a piece of the column, of whatever width a file has it. Raises
        UnkeptError."""
        try:
            kind, values = self.kind, self.values
            if part.type != self.stored:
                kind, values = bound_function(self.note.function, self.note.options, part.type)
            if kind == self.kind:
                return values(part)
        except UnknownValueError as error:
            raise UnkeptError(self.name, f"its expression {error}") from error
        raise UnkeptError(self.name, f"its column {self.note.column!r} has the type {part.type} in a file")


def is_kept(ctx: TableContext, timeline: Timeline, name: ExpressionPartition) -> bool:
    """Whether commits keep the index, by its definition."""
    try:
        Expression.of(ctx, timeline, name)
    except UnkeptError:
        return False
    return True


def values_of_files(
    ctx: TableContext, timeline: Timeline, name: ExpressionPartition, sizes: Mapping[File, int]
) -> list[Entries]:
    """What these files say, by their sizes in bytes: those that are there and hold rows.

    Raises UnkeptError, CorruptTableError.
    """
    expression = Expression.of(ctx, timeline, name)
    files = sorted(file for file in sizes if _holds_rows(file[1]))
    if expression.note.using == MetadataPartition.BLOOM_FILTERS:
        blooms = LocalEngine(FILES_AHEAD).map(partial(_bloom, ctx, expression), files)
        return _joined(entry for entry in blooms if entry is not None)
    found = bounds_of_files(ctx, expression, {file: sizes[file] for file in files})
    parts = [column_stats_entries(partition, stats) for (partition, _), stats in found]
    by_partition: dict[str, list[pa.StructArray]] = {}
    for (partition, _), stats in found:
        by_partition.setdefault(partition, []).append(stats)
    for partition, several in by_partition.items():
        whole = combined(pa.concat_arrays(several), np.zeros(1, np.int64))
        parts.append(partition_stats_entries(partition, whole, of_expression=True))
    return _joined(parts)


def bounds_of_files(
    ctx: TableContext, expression: Expression, sizes: Mapping[File, int]
) -> list[tuple[File, pa.StructArray]]:
    """The statistics of the expression in each of these files, those that are there and hold
    rows."""
    files = sorted(file for file in sizes if _holds_rows(file[1]))

    def stats(file: File) -> pa.StructArray:
        values, note = _values(ctx, expression, file), expression.note
        try:
            return stats_of_values(values, expression.kind, note.column, file[1], sizes[file], plain=note.plain)
        except ObjectNotFoundError:
            # Cleaned since it was listed: the clean says so.
            return stats_of_values((), expression.kind, note.column, file[1], 0, plain=note.plain)

    found = zip(files, LocalEngine(FILES_AHEAD).map(stats, files), strict=True)
    return [(file, told) for file, told in found if len(told)]


def removals(ctx: TableContext, name: ExpressionPartition, files: Iterable[File]) -> list[Entries]:
    """What says that files are gone. Bounds of their partition may be wider than what is left of
    it. Raises UnkeptError."""
    note = note_of(ctx, name)
    gone = [file for file in files if _holds_rows(file[1])]
    if note.using == MetadataPartition.BLOOM_FILTERS:
        return _joined(bloom_removal(partition, found, _instant(found)) for partition, found in gone)
    return _joined(column_stats_removals(partition, found, [note.column]) for partition, found in gone)


def _holds_rows(name: str) -> bool:
    log = parse_log_file(name)
    return parse_base_file(name) is not None or (log is not None and not log.cdc)


def _bloom(ctx: TableContext, expression: Expression, file: File) -> pa.Table | None:
    bloom, rows = BloomFilter.from_keys(pa.array([], pa.string())), 0
    try:
        for part in _values(ctx, expression, file):
            rows += len(part)
            bloom.add(_texts(part))
    except ObjectNotFoundError:
        return None
    if not rows:
        return None
    return bloom_entry(file[0], file[1], bloom.type, bloom.to_base64(), _instant(file[1]))


def values_in(ctx: TableContext, expression: Expression, file: File) -> Iterator[pa.Array]:
    """What a bloom filter of a file holds: texts, in pieces. Raises as `values_of_files`, and
    ObjectNotFoundError."""
    return map(_texts, _values(ctx, expression, file))


def _texts(values: pa.Array) -> pa.Array:
    """Hudi's filters hold no null and no empty text, and its readers ask them for none."""
    texts = values.cast(pa.string())
    return texts.filter(pc.not_equal(texts, ""))


def _values(ctx: TableContext, expression: Expression, file: File) -> Iterator[pa.Array]:
    """The expression over the rows of a file, in pieces. Raises UnkeptError, ObjectNotFoundError,
    CorruptTableError."""
    path, column = join(*file), expression.note.column
    if is_skeleton(path):
        raise UnkeptError(expression.name, f"the columns of {path} lie in a file outside of the table")
    if parse_base_file(file[1]) is None:
        with ctx.storage.open_read(path) as source:
            for block in scan_blocks(source, path=path):
                if block.type in _ROWS:
                    yield _of_rows(expression, read_rows(source, block), column)
        return
    try:
        with ctx.storage.open_read(path) as source, pq.ParquetFile(source) as found:
            if column not in found.schema_arrow.names:
                yield pa.nulls(found.metadata.num_rows, expression.kind)
                return
            for batch in whole_batches(found, [column]):
                yield expression.over(batch.column(0))
    except pa.ArrowInvalid as error:
        raise CorruptTableError(f"{path} cannot be read: {error}", base_path=ctx.base_path, path=path) from error


def _of_rows(expression: Expression, rows: pa.Table, column: str) -> pa.Array:
    if column not in rows.schema.names:
        return pa.nulls(len(rows), expression.kind)
    return expression.over(one_chunk(rows.column(column)))


def _joined(parts: Iterable[pa.Table]) -> list[Entries]:
    found = [part for part in parts if len(part)]
    return [Entries(pa.concat_tables(found).sort_by("key").combine_chunks())] if found else []


def _instant(name: str) -> str:
    base = parse_base_file(name)
    return base.instant if base is not None else ""
