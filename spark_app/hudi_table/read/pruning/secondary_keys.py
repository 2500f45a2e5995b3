"""File slices that hold no row with the values that a filter asks for, by the indexes of secondary
keys in the metadata table.

A filter that leaves an indexed column a few values (`=`, `in`, joined by `and` and `or`) leaves the
record keys that the index has for them, and the record index tells the file group of each. Both are
believed where the record index is for a filter on the key (`record_keys`), and not otherwise.

Facts (measured on Hudi 1.1.1 and 1.2.0): of several indexes of a merge-on-read table its writes
keep one alone.
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
from hudi_table.metadata.secondary_index.pairs import is_kind, value_texts
from hudi_table.metadata.table import UNREADABLE
from hudi_table.model.metadata_table import MetadataPartition, SecondaryPartition, is_secondary
from hudi_table.model.table.config import TableType
from hudi_table.model.table.index_properties import names_in
from hudi_table.model.table.properties import METADATA_PARTITIONS_INFLIGHT
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
    if not indexes or len(left) < 2 or _may_be_stale(ctx):
        return tuple(left)
    values = possible_values(tree(bound.expression))
    for name in sorted(indexes):
        note = noted_secondary(ctx, name)
        texts = (
            None
            if note is None or note.column not in schema.names
            else _texts(values.get(note.column), schema.field(note.column).type, whole=note.whole)
        )
        if texts is not None:
            left = _with(ctx, timeline, everything, left, SecondaryPartition(name), texts)
    return tuple(left)


def _may_be_stale(ctx: TableContext) -> bool:
    """Whether a write of Hudi's may have left one of the indexes as it was, and nobody can tell
    which."""
    if ctx.config.type is not TableType.MERGE_ON_READ:
        return False
    begun = names_in(ctx.config.extra.get(METADATA_PARTITIONS_INFLIGHT, ""))
    return sum(map(is_secondary, {*ctx.config.metadata_partitions, *begun})) > 1


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


def _texts(values: Values | None, kind: pa.DataType, *, whole: bool) -> pa.Array | None:
    """The texts of the values that a column of this type must have; None if any may be, or there
    are too many. `whole`: as `is_kind` has it."""
    if values is None or len(values) > MAX_KEYS or not is_kind(kind, whole=whole):
        return None
    if any(not value.is_valid or _family(value.type) != _family(kind) for value in values):
        return None
    try:
        return value_texts(pa.array([value.cast(kind) for value in values], kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _family(kind: pa.DataType) -> str:
    """Types whose values are one if their numbers or texts are. Nothing follows from a comparison
    of two families, by which Arrow may round or make midnights of days."""
    tests = {"number": pt.is_integer, "truth": pt.is_boolean, "day": pt.is_date32, "moment": pt.is_timestamp}
    found = next((name for name, test in tests.items() if test(kind)), "text" if _is_text(kind) else str(kind))
    return f"{found} {kind.tz is None}" if pt.is_timestamp(kind) else found


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))
