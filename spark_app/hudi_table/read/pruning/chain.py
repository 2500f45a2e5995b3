"""All that leaves files out before one is opened, in its order: partitions, buckets, the record
index, indexes of secondary keys, column statistics, indexes of expressions.

The latter four are imported where there is a filter, and a metadata table that may know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_table.model.metadata_table import is_expression
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.pruning.buckets import Pruned, possible_keys, pruned
from hudi_table.read.pruning.partitions import matching_partitions
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is read. `everything`: its slices before anything was left out; `buckets`: how many it
    has, if it is hashed. `visible`: the timeline that hash rings are looked up by, `newest`: that
    of a newest snapshot of all rows, which a record index tells of, `table`: the table's; None
    where one is not at hand. `renamed`: older files hold columns under other names."""

    everything: Sequence[FileSlice]
    buckets: int | None
    visible: Timeline | None = None
    newest: Timeline | None = None
    table: Timeline | None = None
    renamed: bool = False


def prune(
    ctx: TableContext, snapshot: Snapshot, slices: Sequence[FileSlice], bound: Bound | None, schema: pa.Schema
) -> tuple[Pruned, int]:
    """Those of the slices that may hold rows for the filter, and in how many partitions; `schema`
    has the filter's columns. Raises what the storage raises."""
    partitions = sorted({item.partition for item in slices})
    kept = set(partitions) if bound is None else matching_partitions(bound, partitions, ctx.config, schema)
    keys, visible = possible_keys(bound, ctx.config, schema), snapshot.visible
    if visible is None and keys is not None and not snapshot.buckets:
        visible = load_timeline(ctx)
    left = pruned(ctx, visible, (item for item in slices if item.partition in kept), keys, snapshot.buckets)
    listed = snapshot.newest if snapshot.table is None else snapshot.table
    if bound is None or snapshot.renamed or (listed is not None and not listed.has_metadata):
        return left, len(kept)
    from hudi_table.read.pruning.column_stats import with_matching_files
    from hudi_table.read.pruning.record_keys import with_record_keys
    from hudi_table.read.pruning.secondary_keys import with_values

    if snapshot.newest is not None:
        found = with_record_keys(ctx, snapshot.newest, snapshot.everything, left.slices, bound, schema)
        found = with_values(ctx, snapshot.newest, snapshot.everything, found, bound, schema)
        left = replace(left, slices=found)
    found = with_matching_files(ctx, left.slices, bound, schema, snapshot.table)
    if any(map(is_expression, ctx.config.metadata_partitions)):
        from hudi_table.read.pruning.expressions import with_expressions

        found = with_expressions(ctx, found, bound, schema, snapshot.table)
    return replace(left, slices=found), len(kept)
