"""Merging incoming rows into the rows of a base file, column by column.

Facts (copy-on-write, measured on Hudi 0.15.0): by commit time the incoming row always wins; by
event time it wins unless its ordering value is strictly smaller, flagged deletes included. A row
that loses leaves the stored one untouched, its meta columns too. Deletes of keys that are not there
are dropped. The operation DELETE deletes whatever the ordering.

The base arrives batch by batch; the incoming rows of one file group are held in memory. Rows keep
their place, new rows follow at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec import large_arrays
from hudi_table.model.names import ALL_META_COLUMNS, IS_DELETED, RECORD_KEY
from hudi_table.model.table.merge_settings import PartialUpdates
from hudi_table.model.table.merging import UNAVAILABLE

ALWAYS_DELETE = "_lakeops_delete"
"""Boolean column of incoming rows: true deletes whatever the ordering. Never stored."""
FLAGGED = "_lakeops_flagged"
"""Boolean column of incoming rows: true is a flagged delete, like `_hoodie_is_deleted`. Never
stored."""


_PRESENT = "_lakeops_has_"
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
_UNTOUCHED: tuple[Rows, Rows] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Which row wins: the incoming one (`ordering` is None), or the one with the larger ordering
    value.

    `partial`: values of the winner that leave the other's. `combines`: an older row too fills what
    is null, and takes part with its meta columns. `deletes_always`: flagged deletes do not look at
    ordering values. `marker`: column and text, in any case, that flag a delete. `function`: what
    makes one row of a stored and an incoming one, for tables of them, row by row; what it marks by
    `_hoodie_is_deleted` goes. `then_by`: columns that are compared where the ordering values are
    equal, in turn. `later`: as table versions 8 and 9 have it, a flagged delete that loses does
    nothing, a row that an older one fills keeps its meta columns, and a marker counts as it is
    written.
    """

    ordering: str | None = None
    partial: PartialUpdates | None = None
    combines: bool = False
    deletes_always: bool = False
    marker: tuple[str, str] | None = None
    function: Callable[[pa.Table, pa.Table], pa.Table] | None = None
    then_by: tuple[str, ...] = ()
    later: bool = False

    @property
    def orderings(self) -> list[str]:
        """The columns whose values are compared, in turn."""
        return [] if self.ordering is None else [self.ordering, *self.then_by]

    def flagged(self, rows: pa.Table) -> pa.Table:
        """Incoming rows with the column `FLAGGED` where a marker tells deletes."""
        if self.marker is None or self.marker[0] not in rows.schema.names:
            return rows
        column, text = self.marker
        texts = rows.column(column).cast(pa.string())
        marked = pc.equal(texts, text) if self.later else pc.equal(pc.utf8_lower(texts), text.lower())
        return rows.append_column(FLAGGED, pc.fill_null(marked, False))


@dataclass(slots=True)
class MergeCounts:
    """Rows that a merge updated, deleted, inserted and left as they were."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    kept: int = 0

    def add(self, other: MergeCounts) -> None:
        """Add what another merge did."""
        self.updated += other.updated
        self.deleted += other.deleted
        self.inserted += other.inserted
        self.kept += other.kept


class Merger:
    """Merges one file group.

    `incoming` has unique values in `_hoodie_record_key`, the columns of `schema` and perhaps
    `ALWAYS_DELETE`; `schema` is what `apply` and `rest` return. Deletes are rows with
    `ALWAYS_DELETE`, `FLAGGED` or `_hoodie_is_deleted` true.
    """

    def __init__(self, incoming: pa.Table, schema: pa.Schema, rule: MergeRule) -> None:
        self.counts = MergeCounts()
        self._schema = schema
        self._rule = rule
        self._always = flags(incoming, ALWAYS_DELETE)
        self._deletes = deleted(incoming)
        self._columns = [one_chunk(incoming.column(name)) for name in schema.names]
        self._keys = one_chunk(incoming.column(RECORD_KEY))
        self._orderings = [one_chunk(incoming.column(name)) for name in rule.orderings]
        self._present = {name: flags(incoming, present_column(name)) for name in partial_columns(incoming)}
        self._seen = np.zeros(len(self._keys), dtype=bool)
        self._touched = _UNTOUCHED

    @property
    def met(self) -> tuple[Rows, Mask]:
        """Rows of the base that the last `apply` replaced or deleted, ascending, and which of them
        it deleted."""
        replaced, removed = self._touched
        changed = np.union1d(replaced, removed)
        return changed, np.isin(changed, removed)

    @property
    def keeps_keys(self) -> bool:
        """Whether every row of the base surely has one in its place."""
        return self._rule.function is None and not self._deletes.any()

    def apply(self, base: pa.RecordBatch | pa.Table) -> pa.Table:
        """The rows of one batch of the base after the merge; `base` has the columns of `schema`."""
        table = pa.table(base) if isinstance(base, pa.RecordBatch) else base
        keys = table.column(RECORD_KEY)
        found = one_chunk(pc.index_in(keys, value_set=self._keys))
        rows = np.flatnonzero(np.asarray(found.is_valid()))
        if len(rows) == 0:
            self.counts.kept += len(table)
            self._touched = _UNTOUCHED
            return table.select(self._schema.names)
        positions = found.drop_null().to_numpy().astype(np.int64)
        self._seen[positions] = True
        wins = self._wins(table, rows, positions)
        if not self._rule.combines:
            rows, positions, wins = rows[wins], positions[wins], wins[wins]
        elif self._rule.later:
            counts = wins | ~self._deletes[positions]
            rows, positions, wins = rows[counts], positions[counts], wins[counts]
        gone = self._deletes[positions]
        removed, rows, positions, wins = rows[gone], rows[~gone], positions[~gone], wins[~gone]
        new_columns = [column.take(pa.array(positions)) for column in self._columns]
        if self._rule.function is not None and len(rows):
            new_columns, more = self._made(table, rows, new_columns)
            removed = np.concatenate([removed, rows[more]])
        self.counts.deleted += len(removed)
        self.counts.updated += len(rows) + int(gone.sum()) - len(removed)
        self.counts.kept += len(table) - len(rows) - int(gone.sum())
        self._touched = (rows, removed)
        keep = np.ones(len(table), dtype=bool)
        keep[removed] = False
        return self._put(table, (rows, positions, wins), new_columns, keep)

    def rest(self) -> pa.Table:
        """Incoming rows whose key no batch held, without deletes; to be called after the last
        `apply`."""
        new = np.flatnonzero(~self._seen & ~self._deletes)
        self.counts.inserted += len(new)
        rows = pa.array(new)
        return pa.Table.from_arrays([column.take(rows) for column in self._columns], schema=self._schema)

    def _wins(self, base: pa.Table, rows: Rows, positions: Rows) -> Mask:
        if not self._orderings:
            return np.ones(len(rows), dtype=bool)
        less, equal = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)
        for name, values in zip(self._rule.orderings, self._orderings, strict=True):
            stored = one_chunk(base.column(name)).take(pa.array(rows))
            new_values = values.take(pa.array(positions))
            less |= equal & strictly_less(new_values, stored)
            if not self._rule.then_by:
                break
            equal &= ~strictly_less(new_values, stored) & ~strictly_less(stored, new_values)
        always = self._deletes if self._rule.deletes_always else self._always
        return always[positions] | ~less

    def _put(self, base: pa.Table, met: tuple[Rows, Rows, Mask], new_columns: list[pa.Array], keep: Mask) -> pa.Table:
        """Those rows of the base that are kept, with the given ones in the place of those that were
        `met`: their rows, the places of the incoming rows, and whether these win."""
        rows, positions, wins = met
        places = np.arange(len(base), dtype=np.int64)
        places[rows] = len(base) + np.arange(len(rows))
        plain = pa.array(places[keep])
        memory = large_arrays.pool()
        arrays = []
        for field, new in zip(self._schema, new_columns, strict=True):
            stored, take = base.column(field.name), plain
            stays = None
            if field.name in ALL_META_COLUMNS:
                stays = ~wins if self._rule.later and self._rule.combines else None
            elif self._rule.partial is not None:
                stays = self._stays(stored, new, rows, wins)
            if field.name in self._present:
                stays = ~self._present[field.name][positions] | (False if stays is None else stays)
            if stays is not None:
                mixed = places.copy()
                mixed[rows[stays]] = rows[stays]
                take = pa.array(mixed[keep])
            whole = pa.concat_arrays([*stored.chunks, new], memory_pool=memory)
            arrays.append(pc.take(whole, take, boundscheck=False, memory_pool=memory))
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _made(self, base: pa.Table, rows: Rows, new_columns: list[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """What the rule's function makes of these rows of the base and the given ones, and which of
        them are to go."""
        assert self._rule.function is not None
        fields = [(i, field.name) for i, field in enumerate(self._schema) if field.name not in ALL_META_COLUMNS]
        names = [name for _, name in fields]
        stored = base.select(names).take(pa.array(rows))
        found = self._rule.function(_plain(stored), _plain(pa.table([new_columns[i] for i, _ in fields], names=names)))
        made = list(new_columns)
        for i, name in fields:
            column = one_chunk(found.column(name))
            made[i] = column.dictionary_encode() if pa.types.is_dictionary(self._schema.field(i).type) else column
        return made, flags(found, IS_DELETED)

    def _stays(self, stored: pa.ChunkedArray, new_values: pa.Array, rows: Rows, wins: Mask) -> Mask:
        """Of each of these rows whether the stored value of a column stays."""
        assert self._rule.partial is not None
        missing = missing_values(new_values, self._rule.partial)
        if not self._rule.combines:
            return missing
        there = ~missing_values(one_chunk(stored).take(pa.array(rows)), self._rule.partial)
        stays: Mask = np.where(wins, missing, there)
        return stays


def present_column(name: str) -> str:
    """The boolean column of log entries that says whether an entry holds the column `name` at all.
    Never stored."""
    return f"{_PRESENT}{name}"


def partial_columns(entries: pa.Table) -> list[str]:
    """The columns that some of these entries do not hold."""
    return [name.removeprefix(_PRESENT) for name in entries.schema.names if name.startswith(_PRESENT)]


def newest(groups: Rows, ordering: pa.Array | None) -> Mask | None:
    """Which rows survive when one row per group is kept: the largest ordering value, among equals
    the last.

    `groups` are numbers from 0 that stand for keys. None means all rows survive. Null orderings
    count as smallest.
    """
    size = int(groups.max()) + 1 if len(groups) else 0
    seen = np.zeros(size, dtype=bool)
    seen[groups] = True
    if int(seen.sum()) == len(groups):
        return None
    rank = np.arange(len(groups), dtype=np.int64)
    if ordering is not None:
        rank = dense_ranks(ordering) * len(groups) + rank
    best = np.full(size, -1, dtype=np.int64)
    np.maximum.at(best, groups, rank)
    survives: Mask = best[groups] == rank
    return survives


def key_groups(keys: pa.Array) -> Rows:
    """Numbers from 0 that are equal where the keys are."""
    groups: Rows = one_chunk(keys).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return groups


def keys_and_ranks(rows: pa.Table, key: str, orderings: Sequence[str]) -> tuple[Rows, Rows] | None:
    """`key_groups` and `dense_ranks` of incoming rows, of which those without an ordering column
    are taken in their order; None where no key comes twice."""
    codes = key_groups(rows.column(key))
    if len(codes) == int(codes.max(initial=-1)) + 1:
        return None
    values = ordering_values(rows, orderings)
    return codes, np.zeros(len(rows), dtype=np.int64) if values is None else dense_ranks(values)


def newest_per_key(rows: pa.Table, key: str, orderings: Sequence[str]) -> pa.Table:
    """One row per key, chosen by `newest`; rows keep their order."""
    survives = newest(key_groups(rows.column(key)), ordering_values(rows, orderings))
    return rows if survives is None else rows.take(pa.array(np.flatnonzero(survives)))


def strictly_less(left: pa.Array, right: pa.Array) -> Mask:
    """Row by row, whether `left` orders before `right`; false if either is null. NaN orders last,
    as in Java."""
    less = np.asarray(pc.fill_null(pc.less(left, right), False))
    if pa.types.is_floating(left.type):
        left_nan = np.asarray(pc.fill_null(pc.is_nan(left), False))
        right_nan = np.asarray(pc.fill_null(pc.is_nan(right), False))
        less = less | (right_nan & ~left_nan & np.asarray(left.is_valid()))
    return less


def _plain(rows: pa.Table) -> pa.Table:
    """The rows without dictionaries."""
    return pa.table(
        [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in rows.columns
        ],
        names=rows.schema.names,
    )


def missing_values(values: pa.Array, partial: PartialUpdates) -> Mask:
    """Which values are not to be stored over another one."""
    if partial is PartialUpdates.IGNORE_DEFAULTS:
        return np.asarray(values.is_null())
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not _is_text(kind):
        return np.zeros(len(values), dtype=bool)
    plain = values.cast(kind) if pa.types.is_dictionary(values.type) else values
    marker = pa.scalar(UNAVAILABLE if pa.types.is_string(kind) else UNAVAILABLE.encode(), kind)
    return np.asarray(pc.fill_null(pc.equal(plain, marker), False))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def deleted(rows: pa.Table) -> Mask:
    """Which incoming rows are deletes."""
    return flags(rows, ALWAYS_DELETE) | flags(rows, FLAGGED) | flags(rows, IS_DELETED)


def flags(rows: pa.Table, column: str) -> Mask:
    """The boolean column as a numpy mask; null, a missing column and one of another type are false,
    as for Hudi."""
    if column not in rows.schema.names or not pa.types.is_boolean(rows.schema.field(column).type):
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(pc.fill_null(one_chunk(rows.column(column)), False)).astype(bool)


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array, copied only if it has several chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def ordering_values(rows: pa.Table | pa.RecordBatch, orderings: Sequence[str]) -> pa.Array | None:
    """What rows are compared by: None, one column, or several, which are compared in turn, as a
    struct."""
    columns = [one_chunk(rows.column(name)) for name in orderings]
    if len(columns) > 1:
        return pa.StructArray.from_arrays(columns, list(orderings))
    return columns[0] if columns else None


def dense_ranks(values: pa.Array) -> Rows:
    """Dense ranks, null lowest with 0, NaN highest; of structs by their fields, in turn."""
    if pa.types.is_struct(values.type):
        whole = np.zeros(len(values), dtype=np.int64)
        for field in values.flatten():
            of_field = dense_ranks(field)
            _, whole = np.unique(whole * (int(of_field.max(initial=0)) + 1) + of_field, return_inverse=True)
        return whole
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    place = np.empty(len(distinct) + 1, dtype=np.int64)
    place[:-1][pc.sort_indices(distinct).to_numpy()] = np.arange(1, len(distinct) + 1)
    place[-1] = 0
    indices = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    ranks: Rows = place[indices]
    return ranks
