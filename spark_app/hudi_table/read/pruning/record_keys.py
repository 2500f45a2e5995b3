"""File slices that cannot hold the record keys that a filter asks for, by the record index of the
metadata table.

A filter that leaves every field of the record key a few values (`=`, `in`, joined by `and` and
`or`) leaves a few keys, and the index tells the one file group of each. It knows the newest
snapshot alone, and one place of a key. So it is asked for that snapshot only, where keys are unique
in the table, and not believed if it tells of a file group that the snapshot does not have, or if a
commit completed while it was read: its base files may tell of that commit already. Metadata that
cannot be read costs time, never rows. An index by partition has one place of a key in each, and is
asked for those partitions that other filters leave, if they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa

from hudi_table.errors import UnavailableError
from hudi_table.metadata.record_index.lookup import Located, RecordShards
from hudi_table.metadata.table import UNREADABLE
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.table.config import TableConfig
from hudi_table.read.filter.expression_tree import possible_values, tree
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.pruning.buckets import MAX_KEYS, keys_are_hudis, value_texts
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

PARTITIONS_MAX = 64
"""Data partitions whose shards are opened for one scan."""


def with_record_keys(
    ctx: TableContext,
    timeline: Timeline,
    everything: Sequence[FileSlice],
    left: Sequence[FileSlice],
    bound: Bound | None,
    schema: pa.Schema,
) -> tuple[FileSlice, ...]:
    """Those slices of `left` that may hold the filter's keys, in their order. `everything` are all
    slices of the newest snapshot, that of `timeline`; `schema` has the filter's columns. Raises
    what the storage raises."""
    config = ctx.config
    known = MetadataPartition.RECORD_INDEX in config.metadata_partitions and len(left) > 1
    keys = possible_record_keys(bound, config, schema) if known else None
    if keys is None:
        return tuple(left)
    try:
        shards = RecordShards.load(ctx, timeline)
        found = None if shards is None else _find(ctx, shards, keys, left)
    except (*UNREADABLE, UnavailableError):
        return tuple(left)
    codes = None if found is None else found.among(everything)
    if codes is None or codes.null_count or load_timeline(ctx).commits != timeline.commits:
        return tuple(left)
    groups = {(everything[code].partition, everything[code].file_id) for code in np.unique(codes).tolist()}
    return tuple(item for item in left if (item.partition, item.file_id) in groups)


def _find(ctx: TableContext, shards: RecordShards, keys: pa.Array, left: Sequence[FileSlice]) -> Located | None:
    """Where the keys are, None if the index cannot tell of all of them."""
    if not shards.by_partition:
        return shards.find(ctx.storage, keys) if _unique(ctx.config) else None
    partitions = sorted({item.partition for item in left})
    if len(partitions) > PARTITIONS_MAX:
        return None
    every = pa.array(np.tile(np.arange(len(keys)), len(partitions)))
    homes = pa.array(np.repeat(np.arange(len(partitions), dtype=np.int32), len(keys)))
    paths = pa.DictionaryArray.from_arrays(homes, pa.array(partitions, pa.string()))
    repeated = keys.take(every)
    return None if (shards.numbers(repeated, paths) < 0).any() else shards.find(ctx.storage, repeated, paths)


def possible_record_keys(bound: Bound | None, config: TableConfig, schema: pa.Schema) -> pa.Array | None:
    """Every record key that a matching row may have, None where they are not known, or too many."""
    if bound is None or not config.record_key or not keys_are_hudis(config):
        return None
    if not set(config.record_key) <= set(bound.columns) & set(schema.names):
        return None
    values = possible_values(tree(bound.expression))
    texts = [value_texts(values.get(name), schema.field(name).type) for name in config.record_key]
    found = [text for text in texts if text is not None]
    if len(found) < len(texts) or prod(map(len, found)) > MAX_KEYS:
        return None
    name, *more = config.record_key
    if not more:
        # Some releases write the single key of a complex generator as `field:value`.
        return pa.array([*found[0], *(f"{name}:{text}" for text in found[0])], pa.string())
    pairs = [[f"{name}:{text}" for text in some] for name, some in zip(config.record_key, found, strict=True)]
    return pa.array([",".join(parts) for parts in product(*pairs)], pa.string())


def _unique(config: TableConfig) -> bool:
    """Whether writers keep keys unique in the whole table: what foreign tables store nothing of is
    what they have the index for."""
    return config.index is None or config.index.type.is_global or not config.partition_by
