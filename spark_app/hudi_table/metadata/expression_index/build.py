"""Indexes of expressions that are defined and are to be built again, and what is wrong in one that
is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.bounds import values_of
from hudi_table.codec.metadata.keys import bloom_keys
from hudi_table.codec.metadata.records import PARTITION_STATS
from hudi_table.metadata.definitions import define_expression, defined_by_users
from hudi_table.metadata.expression_index.entries import Expression, File, is_kept, note_of, values_in, values_of_files
from hudi_table.metadata.reading import merged_of, slice_parts
from hudi_table.metadata.records import UnkeptError
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import ExpressionPartition, MetadataPartition, is_expression
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView


def built_again(ctx: TableContext, timeline: Timeline) -> list[ExpressionPartition]:
    """The indexes of expressions that a metadata table is to have again which is built as a whole:
    those that are defined, in the version that the table's version has now."""
    found = []
    for name in map(ExpressionPartition, filter(is_expression, defined_by_users(ctx))):
        if is_kept(ctx, timeline, name):
            define_expression(ctx, name, note_of(ctx, name))
            found.append(name)
    return found


def wrong_entries(ctx: TableContext, table: MetadataTable, timeline: Timeline, name: ExpressionPartition) -> str:
    """What the index says otherwise than the rows, of the files that a reader opens; '' for
    nothing, and of an index that is not kept, which the next write drops.

    Raises CorruptTableError, ObjectNotFoundError if a file was cleaned meanwhile.
    """
    sizes: dict[File, int] = {}
    for item in FileSystemView(ctx, timeline).latest_slices():
        bases = [] if item.base is None else [(item.base.path, item.base.size)]
        for path, size in (*bases, *((log.path, log.size) for log in item.logs)):
            sizes[item.partition, path.rpartition("/")[2]] = size
    slices = [group.latest for group in table.groups.get(name, ()) if group.slices]
    if not slices:
        return "has no file group"
    held = pa.concat_tables([merged_of(name, slice_parts(table, item)) for item in slices]).combine_chunks()
    try:
        expression = Expression.of(ctx, timeline, name)
        if expression.note.using == MetadataPartition.BLOOM_FILTERS:
            wrong = sum(_lacking(ctx, expression, held, sizes))
            return f"has filters of {wrong} files that lack values of their rows" if wrong else ""
        wanted = [entries.rows for entries in values_of_files(ctx, timeline, name, sizes)]
    except UnkeptError:
        return ""
    return _wrong_bounds(held, wanted[0], expression.kind) if wanted else ""


def _wrong_bounds(held: pa.Table, wanted: pa.Table, kind: pa.DataType) -> str:
    """Of a partition the bounds may be wider than those of its rows."""
    places = pc.index_in(wanted["key"].combine_chunks(), value_set=held["key"].combine_chunks())
    there = places.is_valid()
    lacks = len(wanted) - pc.sum(there.cast(pa.int64()), min_count=0).as_py()
    found = held.take(places.drop_null())["stats"].combine_chunks()
    told = wanted.filter(there)
    expected = told["stats"].combine_chunks()
    of_partition = pc.equal(told["type"].combine_chunks(), PARTITION_STATS)
    right = pc.and_(_holds(found, expected, kind), pc.or_(of_partition, _holds(expected, found, kind)))
    wrong = len(right) - pc.sum(right.cast(pa.int64()), min_count=0).as_py()
    return f"lacks {lacks} entries, and {wrong} have other bounds than the rows" if lacks or wrong else ""


def _holds(wide: pa.StructArray, narrow: pa.StructArray, kind: pa.DataType) -> pa.Array:
    """Whether the bounds of each STATS_TYPE value hold those of the other one at its place, which
    has perhaps none."""
    low, least = (values_of(stats.field("min"), kind, stats.field("kind")) for stats in (wide, narrow))
    high, most = (values_of(stats.field("max"), kind, stats.field("kind")) for stats in (wide, narrow))
    inside = pc.and_(pc.less_equal(low, least), pc.less_equal(most, high))
    return pc.or_(narrow.field("min").is_null(), inside.fill_null(False))


def _lacking(ctx: TableContext, expression: Expression, held: pa.Table, sizes: Mapping[File, int]) -> Iterator[bool]:
    """Whether the filter of each file lacks a value of its rows; a file without a filter is read by
    everybody."""
    blooms = held["bloom"].combine_chunks()
    kinds, texts = blooms.field("type"), blooms.field("filter")
    for file in sorted(sizes):
        key = bloom_keys(pa.array([file[0]]), pa.array([file[1]]))
        place = pc.index_in(key, value_set=held["key"].combine_chunks())[0].as_py()
        if place is None:
            continue
        bloom = BloomFilter.parse(texts[place].as_py(), kinds[place].as_py())
        yield not all(bloom.might_contain(part).all() for part in values_in(ctx, expression, file))
