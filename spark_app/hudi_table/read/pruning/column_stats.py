"""File slices that cannot hold a row for a filter, by the column statistics of the metadata table.

Asked only where the metadata table says that its statistics are ready; what it has nothing of is
read. A record is found by the file's name, which no other file ever has, so it is right whatever
became of the commit that wrote it. Slices with logs are always read: what merging makes of them
lies in no one file's range. Metadata that cannot be read costs time, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.bounds import values_of
from hudi_table.codec.metadata.column_stats import has_stats
from hudi_table.codec.metadata.keys import column_stats_keys
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.table import UNREADABLE, MetadataTable, read_partitions
from hudi_table.model.metadata_table import AnyPartition, MetadataPartition
from hudi_table.read.filter.expression_tree import tree
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.pruning.column_ranges import Ranges, may_match
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

_STATS = MetadataPartition.COLUMN_STATS


def with_matching_files(
    ctx: TableContext,
    slices: Sequence[FileSlice],
    bound: Bound | None,
    schema: pa.Schema,
    timeline: Timeline | None = None,
) -> tuple[FileSlice, ...]:
    """The slices that may hold rows for the filter, in their order. `schema` has the filter's
    columns; `timeline` is the table's, if it is at hand. No column of the table was ever renamed.
    Raises what the storage raises."""
    plain = [item for item in slices if item.base is not None and not item.logs]
    names = [] if bound is None else [name for name in bound.columns if _compares(schema, name)]
    if bound is None or not names or not plain or _STATS not in read_partitions(ctx).ready:
        return tuple(slices)
    try:
        table = MetadataTable.load(ctx, timeline or load_timeline(ctx))
        if table is None or _STATS not in table.partitions.ready:
            return tuple(slices)
        known = known_ranges(table, _STATS, plain, {name: schema.field(name).type for name in names})
    except UNREADABLE:
        return tuple(slices)
    kept = may_match(tree(bound.expression), known, len(plain))
    skipped = {id(item) for item, may in zip(plain, kept.tolist(), strict=True) if not may}
    return tuple(item for item in slices if id(item) not in skipped)


def _compares(schema: pa.Schema, name: str) -> bool:
    """Whether statistics of a column say anything: see `column_ranges` of floating point
    columns."""
    return name in schema.names and has_stats(schema.field(name).type) and not pt.is_floating(schema.field(name).type)


def known_ranges(
    table: MetadataTable, index: AnyPartition, slices: Sequence[FileSlice], columns: Mapping[str, pa.DataType]
) -> dict[str, Ranges]:
    """Every column in every slice's base file, by a partition of statistics: one look for all of
    them. `columns`: with the types of what is told of them. Raises CorruptTableError."""
    names = pa.array([found.base.path.rpartition("/")[2] for found in slices if found.base is not None], pa.string())
    partitions = pa.array([found.partition for found in slices], pa.string())
    keys = {
        column: column_stats_keys(pa.repeat(pa.scalar(column, pa.string()), len(names)), partitions, names)
        for column in columns
    }
    entries = read_entries(table, index, pa.concat_arrays(list(keys.values())))
    if entries is None or "stats" not in entries.column_names:
        return {}
    stats = entries["stats"].combine_chunks()
    live = pa.array(np.asarray(stats.is_valid()) & ~np.asarray(stats.field("deleted").fill_null(True)))
    known, stats = entries["key"].combine_chunks().filter(live), stats.filter(live)
    return {
        column: _in_files(stats, pc.index_in(keys[column], value_set=known), kind) for column, kind in columns.items()
    }


def _in_files(stats: pa.StructArray, places: pa.Array, kind: pa.DataType) -> Ranges:
    """One column in files whose statistics are at `places`, null where there are none."""
    found, gone = stats.take(places), places.is_null()
    sides = (values_of(found.field(side), kind, found.field("kind")) for side in ("min", "max"))
    parts = (*sides, found.field("null_count"))
    return Ranges(*(pc.if_else(gone, pa.scalar(None, part.type), part) for part in parts))
