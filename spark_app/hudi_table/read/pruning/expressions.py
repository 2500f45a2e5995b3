"""File slices that hold no row for a filter by the indexes of expressions in the metadata table: by
the least and the greatest value that an expression has in a file, or a bloom filter of its values.

Entries are found and believed as column statistics are (`column_stats`): by the name of a file; and
slices with logs are always read. What an index is of is read again once its entries were, for one
may be dropped and made anew under its name. Metadata that cannot be read costs time, never rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.metadata.keys import bloom_keys
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.metadata.definitions import noted_expression
from hudi_table.metadata.expression_index.entries import Expression, note_of
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.records import UnkeptError
from hudi_table.metadata.table import UNREADABLE, MetadataTable
from hudi_table.model.metadata_table import ExpressionPartition, MetadataPartition, is_expression
from hudi_table.read.filter.expression_tree import tree
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.pruning.column_ranges import Flags
from hudi_table.read.pruning.column_stats import known_ranges
from hudi_table.read.pruning.expression_values import Between, Wanted, implied
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

FILTERS_AT_ONCE = 64
"""Files whose bloom filters are in memory together: 28 MB of those of Hudi's size."""


def with_expressions(
    ctx: TableContext, slices: Sequence[FileSlice], bound: Bound, schema: pa.Schema, timeline: Timeline | None = None
) -> tuple[FileSlice, ...]:
    """The slices that may hold rows for the filter, in their order. The arguments are those of
    `with_matching_files`."""
    plain = [item for item in slices if item.base is not None and not item.logs]
    names = filter(is_expression, ctx.config.metadata_partitions) if plain else ()
    asked = [one for one in (_asked(ctx, ExpressionPartition(name), bound, schema) for name in names) if one]
    if not asked:
        return tuple(slices)
    kept = np.ones(len(plain), bool)
    try:
        table = MetadataTable.load(ctx, timeline or load_timeline(ctx))
        for one in asked:
            expression = one.expression
            if table is None or expression.name not in table.partitions.ready:
                continue
            found = one.may_hold(table, plain)
            if noted_expression(ctx, expression.name) == expression.note:
                kept &= found
    except UNREADABLE:
        return tuple(slices)
    skipped = {id(item) for item, may in zip(plain, kept.tolist(), strict=True) if not may}
    return tuple(item for item in slices if id(item) not in skipped)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An index, and the values that it is asked for."""

    expression: Expression
    wanted: Wanted

    def may_hold(self, table: MetadataTable, slices: Sequence[FileSlice]) -> Flags:
        """For each slice whether its base file may hold such values."""
        expression, note = self.expression, self.expression.note
        if note.using == MetadataPartition.BLOOM_FILTERS:
            steps = range(0, len(slices), FILTERS_AT_ONCE)
            parts = [_Filters.of(table, expression, slices[start : start + FILTERS_AT_ONCE]) for start in steps]
            return np.concatenate([_tested(self.wanted, part) for part in parts])
        ranges = known_ranges(table, expression.name, slices, {note.column: expression.kind}).get(note.column)
        return np.ones(len(slices), bool) if ranges is None else _tested(self.wanted, ranges)


class _Known(Protocol):
    """What an index tells of files."""

    def may_be(self, low: pa.Scalar | None, high: pa.Scalar | None) -> Flags:
        """For each file whether it may hold a value between the two."""


@dataclass(frozen=True, slots=True)
class _Filters:
    """The bloom filters of files, None where there is none."""

    blooms: Sequence[BloomFilter | None]

    @classmethod
    def of(cls, table: MetadataTable, expression: Expression, slices: Sequence[FileSlice]) -> _Filters:
        names = pa.array([found.base.name for found in slices if found.base is not None], pa.string())
        keys = bloom_keys(pa.array([found.partition for found in slices], pa.string()), names)
        entries = read_entries(table, expression.name, keys)
        if entries is None or "bloom" not in entries.column_names:
            return cls([None] * len(slices))
        places = pc.index_in(keys, value_set=entries["key"].combine_chunks())
        return cls([_parsed(entry) for entry in entries["bloom"].combine_chunks().take(places).to_pylist()])

    def may_be(self, low: pa.Scalar | None, high: pa.Scalar | None) -> Flags:
        """For each file whether its filter has the value: one value, and no empty text, for of
        others filters tell nothing."""
        text = low.cast(pa.string()).as_py() if low is not None and high is not None and low.equals(high) else ""
        if not text:
            return np.ones(len(self.blooms), bool)
        key = pa.array([text])
        return np.array([bloom is None or bool(bloom.might_contain(key)[0]) for bloom in self.blooms], bool)


def _parsed(entry: Any) -> BloomFilter | None:
    try:
        told = entry is not None and not entry["deleted"] and entry["filter"]
        return BloomFilter.parse(entry["filter"], entry["type"]) if told else None
    except (CorruptTableError, UnsupportedTableError):
        return None


def _tested(wanted: Wanted, known: _Known) -> Flags:
    if isinstance(wanted, Between):
        return known.may_be(wanted.low, wanted.high)
    each = [_tested(part, known) for part in wanted.parts]
    found: Flags = np.logical_and.reduce(each) if wanted.every else np.logical_or.reduce(each)
    return found


def _asked(ctx: TableContext, name: ExpressionPartition, bound: Bound, schema: pa.Schema) -> _Asked | None:
    """None where the filter says nothing of the expression, or what that gives is not known."""
    try:
        note = note_of(ctx, name)
        if note.column not in bound.columns:
            return None
        expression = Expression.bound(ctx, name, note, schema)
    except UnkeptError:
        return None
    wanted = implied(tree(bound.expression), expression)
    return None if wanted is None else _Asked(expression, wanted)
