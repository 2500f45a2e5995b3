"""Which of the indexes that look keys up is meant, and what the options say of it.

Facts. `hoodie.bloom.index.update.partition.path` and `hoodie.simple.index.update.partition.path` are true by default: a global
index moves a key to the partition of its new row. If false, the row stays in the partition of the stored one, whatever its
partition column says then (measured on Hudi 0.15.0 and 1.1.1 with the bloom index). `hoodie.record.index.update.partition.path` is
false by default. Where no record index is ready Hudi looks keys up as a global simple index does (read in public source), and so do we.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from hudi_table.errors import InvalidOptionError
from hudi_table.index.base import Index
from hudi_table.index.bloom import BloomIndex
from hudi_table.index.record_index import RecordIndex
from hudi_table.index.simple import SimpleIndex
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, MetadataPartition
from hudi_table.model.options.values import boolean
from hudi_table.model.options.write_options import PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE, WriteOptions
from hudi_table.model.table.config import IndexType
from hudi_table.model.table.index_properties import RECORD_INDEX_MOVES
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


class RecordIndexWarning(UserWarning):
    """Keys are looked up in the files: no record index is ready. Building one mends it."""


def lookup_index(kind: IndexType, options: Mapping[str, str], stored: Mapping[str, str]) -> Index:
    """A simple, bloom or record index; `stored` are properties of the table. Raises InvalidOptionError for options that it does not
    know or cannot follow."""
    chosen = WriteOptions.parse(options)
    if kind is IndexType.PARTITIONED_RECORD_INDEX:
        return RecordIndex(is_global=False)
    if kind is IndexType.RECORD_INDEX:
        return RecordIndex(moves=_record_index_moves(options, stored))
    if not kind.needs_filters:
        return SimpleIndex(is_global=kind.is_global)
    return BloomIndex(is_global=kind.is_global, prune_by_ranges=chosen.bloom_by_ranges)


def shards_for(index: Index, ctx: TableContext, timeline: Timeline) -> RecordShards | None:
    """The shards in which a record index looks keys up, for the snapshot `timeline`; warns where there are none."""
    if not isinstance(index, RecordIndex):
        return None
    shards = RecordShards.load(ctx, timeline)
    if shards is not None and shards.by_partition != index.is_global:
        return shards
    simple, enable, name = (
        ("global simple", RECORD_INDEX_ENABLE, MetadataPartition.RECORD_INDEX)
        if index.is_global
        else ("simple", PARTITIONED_RECORD_INDEX_ENABLE, PARTITIONED_RECORD_INDEX)
    )
    other = "" if shards is None else f", but one that is {'by partition' if shards.by_partition else 'global'}"
    warnings.warn(
        f"{ctx.base_path} has no {'global' if index.is_global else 'partitioned'} record index that is ready{other}: keys are looked up in the "
        f"files, as a {simple} index does; build one with {enable}=true or `hudictl metadata BASE --build --yes --index {name}`",
        RecordIndexWarning,
        stacklevel=2,
    )
    return None


def _record_index_moves(options: Mapping[str, str], stored: Mapping[str, str]) -> bool:
    have, want = (
        boolean(RECORD_INDEX_MOVES, given[RECORD_INDEX_MOVES]) if given.get(RECORD_INDEX_MOVES, "").strip() else None
        for given in (stored, options)
    )
    if have is not None and want is not None and have != want:
        raise InvalidOptionError(
            f"option {RECORD_INDEX_MOVES}={str(want).lower()} contradicts the table, which stores {str(have).lower()}; remove the option"
        )
    return bool(have if want is None else want)
