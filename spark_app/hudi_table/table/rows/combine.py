"""Rows of one key put together column by column: partial updates among the rows of a batch or the
entries of a log.

Facts (PartialUpdateAvroPayload, measured on Hudi 0.15.0): rows are taken as they come. One whose
ordering value is not smaller than any before it overwrites, but with its nulls; an older one fills
the nulls that are left. A delete that is not older takes all before it away; a row that is older
than such a delete stands alone, one that is not fills its nulls from the columns of the delete. A
delete that is older than such a delete does nothing. Meta columns are those of the row that came
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.table.rows.merge import (
    ALWAYS_DELETE,
    FLAGGED,
    Mask,
    Rows,
    deleted,
    keys_and_ranks,
    one_chunk,
)

_NOT_FILLED = frozenset({*ALL_META_COLUMNS, ALWAYS_DELETE, FLAGGED})


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Entries key by key, in the order in which they came: the entry at each place, and each key's
    first place.

    `alive`: no delete took it away, and it is no delete that came behind a newer one. `newer`: it
    was not older than any that was alive when it came. `gone`: of each key, whether a delete came
    last.
    """

    entries: Rows
    starts: Rows
    alive: Mask
    newer: Mask
    gone: Mask


def combine(rows: pa.Table, codes: Rows, ranks: Rows, deletes: Mask) -> pa.Table:
    """One row for each key, in the order of the keys' first entries.

    `codes` number the keys from 0 without gaps, `ranks` are dense ranks of ordering values, -1 for
    a delete without one.
    """
    seen = _sequence(codes, ranks, deletes)
    places = np.arange(len(codes), dtype=np.int64)
    last = np.maximum.reduceat(
        np.where(seen.alive & (deletes[seen.entries] == np.repeat(seen.gone, _counts(seen))), places, -1), seen.starts
    )
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        chosen = (
            last if field.name in _NOT_FILLED else _chosen(seen, np.asarray(column.is_valid())[seen.entries], places)
        )
        columns.append(one_chunk(column).take(pa.array(seen.entries[chosen])))
    merged = pa.Table.from_arrays(columns, schema=rows.schema)
    return merged.take(pa.array(np.argsort(seen.entries[seen.starts])))


def combined_per_key(rows: pa.Table, key: str, orderings: Sequence[str]) -> pa.Table:
    """`combine` of incoming rows."""
    found = keys_and_ranks(rows, key, orderings)
    return rows if found is None else combine(rows, *found, deleted(rows))


def _counts(seen: _Sequence) -> Rows:
    counts: Rows = np.diff(np.append(seen.starts, len(seen.entries)))
    return counts


def _chosen(seen: _Sequence, valid: Mask, places: Rows) -> Rows:
    """Of each key the place whose value counts: the last newer one that is not null, else the first
    older one."""
    newest = np.maximum.reduceat(np.where(seen.alive & seen.newer, places, -1), seen.starts)
    newer = np.maximum.reduceat(np.where(seen.alive & seen.newer & valid, places, -1), seen.starts)
    older = np.minimum.reduceat(np.where(seen.alive & ~seen.newer & valid, places, len(places)), seen.starts)
    found: Rows = np.where(newer >= 0, newer, np.where(older < len(places), older, newest))
    return found


def _sequence(codes: Rows, ranks: Rows, deletes: Mask) -> _Sequence:
    entries = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[entries]) != 0])
    counts = np.diff(np.append(starts, len(entries)))
    keys = np.repeat(np.arange(len(starts)), counts)
    ranked = ranks[entries]
    # Keys follow each other, so a running maximum over (key, rank) never looks back into another key.
    top = np.maximum.accumulate(keys * (int(ranks.max(initial=0)) + 2) + ranked + 1)
    newer = keys * (int(ranks.max(initial=0)) + 2) + ranked + 1 == top
    alive = np.ones(len(entries), dtype=bool)
    gone = np.zeros(len(starts), dtype=bool)
    mixed = np.flatnonzero(np.logical_or.reduceat(deletes[entries], starts))
    _with_deletes(mixed, starts, counts, ranked, deletes[entries], (alive, newer, gone))
    return _Sequence(entries, starts, alive, newer, gone)


def _with_deletes(
    keys: Rows, starts: Rows, counts: Rows, ranks: Rows, deletes: Mask, masks: tuple[Mask, Mask, Mask]
) -> None:
    """Fill in `alive`, `newer` and `gone` of keys that have deletes: entry by entry, all keys at
    once."""
    alive, newer, gone = masks
    top = np.full(len(starts), -1, dtype=np.int64)
    begin = starts.copy()
    step = 0
    while len(keys):
        places = starts[keys] + step
        delete = deletes[places]
        new = (ranks[places] >= top[keys]) | (delete & (ranks[places] < 0))
        afresh = np.where(delete, new, gone[keys] & ~new) if step else np.ones(len(keys), dtype=bool)
        newer[places] = new | afresh
        # A delete that is older than the delete before it takes nothing away and fills nothing.
        alive[places] = ~(delete & gone[keys] & ~new)
        begin[keys[afresh]] = places[afresh]
        top[keys] = np.where(afresh, ranks[places], np.maximum(top[keys], ranks[places]))
        gone[keys] = np.where(delete, gone[keys] | new, False)
        step += 1
        keys = keys[counts[keys] > step]
    alive &= np.arange(len(ranks)) >= np.repeat(begin, counts)
