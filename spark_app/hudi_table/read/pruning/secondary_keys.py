"""File slices that hold no row with the values that a filter asks for, by the indexes of secondary
keys in the metadata table.

A filter that leaves an indexed column a few values (`=`, `in`, joined by `and` and `or`) leaves the
record keys that the index has for them, and the record index tells the file group of each. Both are
believed where the record index is for a filter on the key (`record_keys`), and not otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import UnavailableError
from hudi_table.metadata.definitions import noted_secondary
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.metadata.secondary_index.lookup import SecondaryGroups
from hudi_table.metadata.secondary_index.pairs import is_kind
from hudi_table.metadata.table import UNREADABLE
from hudi_table.model.metadata_table import MetadataPartition, SecondaryPartition, is_secondary
from hudi_table.read.filter.expression_tree import Values, possible_values, tree
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.pruning.buckets import MAX_KEYS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


def with_values(
    ctx: TableContext,
    timeline: Timeline,
    everything: Sequence[FileSlice],
    left: Sequence[FileSlice],
    bound: Bound,
    schema: pa.Schema,
) -> tuple[FileSlice, ...]:
    """Those slices of `left` that may hold rows with the filter's values, in their order. The
    arguments are those of `with_record_keys`."""
    named = ctx.config.metadata_partitions
    indexes = [name for name in named if is_secondary(name)] if MetadataPartition.RECORD_INDEX in named else []
    if not indexes or len(left) < 2:
        return tuple(left)
    values = possible_values(tree(bound.expression))
    for name in sorted(indexes):
        note = noted_secondary(ctx, name)
        texts = (
            None
            if note is None or note.column not in schema.names
            else _texts(values.get(note.column), schema.field(note.column).type)
        )
        if texts is not None:
            left = _with(ctx, timeline, everything, left, SecondaryPartition(name), texts)
    return tuple(left)


def _with(
    ctx: TableContext,
    timeline: Timeline,
    everything: Sequence[FileSlice],
    left: Sequence[FileSlice],
    name: SecondaryPartition,
    texts: pa.Array,
) -> Sequence[FileSlice]:
    try:
        index, shards = SecondaryGroups.load(ctx, timeline, name), RecordShards.load(ctx, timeline)
        if index is None or shards is None or shards.by_partition:
            return left
        keys = index.record_keys(ctx.storage, texts)
        if len(keys) > MAX_KEYS:
            return left
        found = shards.find(ctx.storage, keys)
    except (*UNREADABLE, UnavailableError):
        return left
    codes = found.among(everything)
    # Every key of a pair is in the record index: one that is not tells of a commit that came meanwhile, or of damage.
    if len(found.rows) < len(keys) or codes.null_count or load_timeline(ctx).commits != timeline.commits:
        return left
    groups = {(everything[code].partition, everything[code].file_id) for code in np.unique(codes).tolist()}
    return [item for item in left if (item.partition, item.file_id) in groups]


def _texts(values: Values | None, kind: pa.DataType) -> pa.Array | None:
    """The texts of the values that a column of this type must have; None if any may be, or there
    are too many."""
    if values is None or len(values) > MAX_KEYS or not is_kind(kind):
        return None
    if any(not value.is_valid or pt.is_integer(value.type) != pt.is_integer(kind) for value in values):
        return None
    try:
        return pa.array([value.cast(kind).cast(pa.string()).as_py() for value in values], pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
