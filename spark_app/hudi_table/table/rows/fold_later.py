"""Log entries of one key folded into one, as table versions 8 and 9 merge: one rule for rows and
deletes.

Facts (read in Hudi's source, measured on 1.0.2 and 1.1.1): entries are taken in their order. A
delete without an ordering value beats what is before it, and anything after beats it. Else the
later entry wins unless its ordering value is smaller, be it a row or a delete. Where rows hold
changed columns alone, or null means unchanged, the winner takes what it lacks from the other one;
never from a delete. Meta columns are those of the winner. What is left meets the base row by the
same rule (`Merger`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.model.table.merge_settings import PartialUpdates
from hudi_table.table.rows.merge import (
    ALWAYS_DELETE,
    FLAGGED,
    Mask,
    Rows,
    deleted,
    flags,
    keys_and_ranks,
    missing_values,
    one_chunk,
    partial_columns,
    present_column,
)

_OF_WINNER = frozenset({*ALL_META_COLUMNS, ALWAYS_DELETE, FLAGGED})


def fold_later(tables: list[pa.Table], codes: Rows, ranks: Rows, partial: PartialUpdates | None) -> pa.Table:
    """One entry for each key, in the order of the keys' first entries. Empties the list.

    `codes` number the keys from 0 without gaps; `ranks` are dense ranks of ordering values, -1 of a
    delete without one.
    """
    rows = pa.concat_tables(tables)
    tables.clear()
    seen = _Sequence(codes, ranks, deleted(rows))
    fills = {name: flags(rows, present_column(name)) for name in partial_columns(rows)}
    winners = seen.winners()
    if partial is None and not fills:
        return rows.take(pa.array(winners))
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        name = field.name
        of_column = next((known for known in fills if present_column(known) == name), name)
        chosen = winners
        if name not in _OF_WINNER:
            there = fills.get(of_column, np.ones(len(rows), dtype=bool))
            if partial is not None and of_column == name:
                there = there & ~missing_values(one_chunk(column), partial)
            chosen = seen.filled(winners, there)
        columns.append(one_chunk(column).take(pa.array(chosen)))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def folded_per_key(rows: pa.Table, key: str, orderings: Sequence[str], partial: PartialUpdates | None) -> pa.Table:
    """`fold_later` of incoming rows."""
    found = keys_and_ranks(rows, key, orderings)
    if found is None:
        return rows
    codes, ranks = found
    return fold_later([rows], codes, np.where(flags(rows, ALWAYS_DELETE), -1, ranks), partial)


class _Sequence:
    """Entries key by key, in the order in which they came, and which of them take part.

    Nothing before the last delete that won when it came takes part, and no delete but that one.
    After it a row takes part from the first on that was not older.
    """

    def __init__(self, codes: Rows, ranks: Rows, deletes: Mask) -> None:
        self._entries = np.argsort(codes, kind="stable")
        of_key = codes[self._entries]
        self._starts = np.flatnonzero(np.r_[True, np.diff(of_key) != 0])
        counts = np.diff(np.append(self._starts, len(of_key)))
        places = np.arange(len(of_key), dtype=np.int64)
        ranked, gone = ranks[self._entries], deletes[self._entries]
        resets = np.repeat(self._last(gone & (ranked < 0), places), counts)
        ranked = np.where(places < resets, -1, ranked)
        # Keys follow each other, so a running maximum over (key, rank) never looks back into another key.
        step = int(ranks.max(initial=0)) + 2
        height = np.repeat(np.arange(len(counts)), counts) * step + ranked + 1
        newer = (height == np.maximum.accumulate(height)) & (places >= resets)
        self._begins = self._last(gone & newer, places)
        begins = np.repeat(self._begins, counts)
        rows = ~gone & (places > begins)
        first = np.minimum.reduceat(np.where(rows & newer, places, len(places)), self._starts)
        self._newer = rows & newer
        self._older = rows & ~newer & (places > np.repeat(first, counts))
        self._places = places

    def winners(self) -> Rows:
        """Of each key the entry that won."""
        last = self._last(self._newer, self._places)
        return self._ordered(np.where(last >= 0, last, self._begins))

    def filled(self, winners: Rows, there: Mask) -> Rows:
        """Of each key the entry whose value of a column counts: of those that have it the last that
        won, else the first that lost."""
        has = there[self._entries]
        newest = self._last(self._newer & has, self._places)
        masked = np.where(self._older & has, self._places, len(self._places))
        oldest = np.minimum.reduceat(masked, self._starts)
        row = self._last(self._newer, self._places) >= 0
        found = np.where(newest >= 0, newest, np.where(row & (oldest < len(self._places)), oldest, -1))
        entries = self._entries[np.maximum(found, 0)]
        chosen: Rows = np.where(self._sorted(found) >= 0, self._sorted(entries), winners)
        return chosen

    def _last(self, mask: Mask, places: Rows) -> Rows:
        """Of each key the last place where the mask is true, -1 without one."""
        found: Rows = np.maximum.reduceat(np.where(mask, places, -1), self._starts)
        return found

    def _ordered(self, places: Rows) -> Rows:
        return self._sorted(self._entries[places])

    def _sorted(self, of_keys: Rows) -> Rows:
        """Values of keys, in the order of the keys' first entries."""
        found: Rows = of_keys[np.argsort(self._entries[self._starts])]
        return found
