"""The rows of a slice: its log blocks folded into one row or delete per key, then merged into the
base file.

Facts (merge-on-read, measured on Hudi 0.15.0, both payloads): between log entries the later one
wins, unless the earlier row's ordering value is strictly greater; after a delete the next row wins
whatever its ordering. A delete entry is ignored only if it has an ordering value (not the integer
0), and the row's is strictly greater; for Hudi they must be of one Java class, too, so that a
delete of before a column was widened wins. What is left meets the base row: by commit time it
always wins; by event time the base row stays if its ordering is strictly greater, but a delete
entry always deletes.

Folding a log's beginning first changes nothing, so entries that outgrow their budget are folded
before anything goes to disk.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.log.blocks import LogBlock
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.engine.memory import MERGE_BYTES
from hudi_table.table.rows.combine import combine
from hudi_table.table.rows.fold_later import fold_later
from hudi_table.table.rows.log_entries import entry_tables
from hudi_table.table.rows.merge import (
    ALWAYS_DELETE,
    FLAGGED,
    Mask,
    MergeCounts,
    Merger,
    MergeRule,
    Rows,
    dense_ranks,
    flags,
    newest,
    one_chunk,
)
from hudi_table.table.rows.parts import PARTS_MAX, merge_in_parts, whole_parts
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import Storage

_SHARES = 8
"""Parts of the budget: entries held, their copy when they are folded and when they are merged, base
rows held and merged, and the blocks that are being decoded."""
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader asks of a slice: the columns of `schema` alone. `largest` gives a value that no
    value of a column of the base is above, where the file tells one, and `base` the rows of the
    base with the columns that it is given."""

    schema: pa.Schema
    largest: Callable[[str], Any]
    base: Callable[[pa.Schema], Iterable[pa.Table]]


def merged_rows(
    storage: Storage,
    base: Iterable[pa.Table],
    blocks: Sequence[LogBlock],
    schema: pa.Schema,
    how: SliceMerge,
    *,
    memory_bytes: int = MERGE_BYTES,
    counts: MergeCounts | None = None,
    asked: Asked | None = None,
) -> Iterator[pa.Table]:
    """The rows of a slice: tables of `schema`, those of the base first, in their order, then what
    the logs insert.

    `base` are tables of `schema`, which holds `_hoodie_record_key` and what `how` needs. Logs of
    more than the memory are merged in parts by key, by way of disk, and the rows follow each other
    part by part. A block is decoded whole. What was done is added to `counts`. `asked`: these
    columns are given, and `base` is what it tells.
    """
    out = schema if asked is None or how.rule.function is not None else asked.schema
    held = _Held(entry_tables(storage, blocks, schema, how), schema, how, max(1, memory_bytes // _SHARES))
    if held.take_in():
        entries = held.folded()
        if len(entries) == 0:
            yield from base if asked is None else asked.base(out)
            return
        rule = how.rule
        if asked is not None and out is not schema and _is_newer(entries, rule, asked):
            # So the base need not tell its ordering values.
            rule = replace(rule, ordering=None)
            base = asked.base(_without(schema, {how.rule.ordering}.difference(out.names, how.key_columns)))
        merger = Merger(entries, out, rule)
        for table in _grouped(base, len(entries) // 2, held.limit):
            yield merger.apply(table)
        yield merger.rest()
        if counts is not None:
            counts.add(merger.counts)
        return

    def start(part: pa.Table) -> Merger:
        return Merger(folded([part], schema, how), out, how.rule)

    for table, done in merge_in_parts(base, held.drain(), start, parts=held.parts, max_bytes=held.limit):
        yield table
        if counts is not None and done is not None:
            counts.add(done)


def _is_newer(entries: pa.Table, rule: MergeRule, asked: Asked) -> bool:
    """Whether no row of the base can be newer than an entry: by whole numbers and times alone, of
    which statistics tell the very values."""
    if rule.ordering is None or rule.then_by or rule.ordering in asked.schema.names:
        return False
    kind = entries.schema.field(rule.ordering).type
    if not (pt.is_integer(kind) or pt.is_date(kind) or pt.is_timestamp(kind)):
        return False
    largest = asked.largest(rule.ordering)
    smallest = pc.min(entries.column(rule.ordering))
    try:
        return largest is not None and (
            not smallest.is_valid or bool(pc.greater_equal(smallest, pa.scalar(largest, kind)).as_py())
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        # The file holds it as another type.
        return False


def _without(schema: pa.Schema, names: set[str | None]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def folded_entries(
    storage: Storage,
    blocks: Sequence[LogBlock],
    schema: pa.Schema,
    how: SliceMerge,
    *,
    memory_bytes: int = MERGE_BYTES,
) -> Iterator[pa.Table]:
    """One row for each key of the blocks, in `schema`, `ALWAYS_DELETE` and `FLAGGED`: the row that
    won, or the delete (null but for its key and ordering)."""
    held = _Held(entry_tables(storage, blocks, schema, how), schema, how, max(1, memory_bytes // _SHARES))
    if held.take_in():
        yield held.folded()
        return
    batches = (batch for table in held.drain() for batch in table.combine_chunks().to_batches())
    for part in whole_parts(batches, held.parts, ordered=False, max_bytes=held.limit):
        yield folded([part], schema, how)


def _grouped(tables: Iterable[pa.Table], rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """The tables, joined until they have so many rows or bytes: each lookup hashes all keys of the
    log anew."""
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(map(len, pending)) >= rows or sum(item.nbytes for item in pending) >= max_bytes:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


@dataclass(slots=True)
class _Held:
    """The entries of a log, read as far as `limit` bytes of them (folded, if that helps) can be
    held."""

    entries: Iterator[tuple[float, pa.Table]]
    schema: pa.Schema
    how: SliceMerge
    limit: int
    tables: list[pa.Table] = field(default_factory=list)
    parts: int = 1

    def take_in(self) -> bool:
        """Read on; false, with the number of `parts` that the whole log takes, if it does not
        fit."""
        size = seen = 0
        for share, table in self.entries:
            self.tables.append(table)
            size += table.nbytes
            seen += table.nbytes
            if size <= self.limit:
                continue
            self.tables = [self.folded()]
            size = self.tables[0].nbytes
            if size > self.limit // 2:
                self.parts = min(PARTS_MAX, 1 + math.ceil(seen / share / self.limit))
                return False
        return True

    def folded(self) -> pa.Table:
        """What was read, folded; to be called once."""
        tables, self.tables = self.tables, []
        return folded(tables, self.schema, self.how)

    def drain(self) -> Iterator[pa.Table]:
        """All entries, those read first."""
        tables, self.tables = self.tables, []
        while tables:
            yield tables.pop(0)
        for _, table in self.entries:
            yield table


def folded(tables: list[pa.Table], schema: pa.Schema, how: SliceMerge) -> pa.Table:
    """One entry for each key of these, in their order. Empties the list, so that memory is free as
    early as can be."""
    if not tables:
        return schema.append(pa.field(ALWAYS_DELETE, pa.bool_())).append(pa.field(FLAGGED, pa.bool_())).empty_table()
    keys = pa.chunked_array([chunk for table in tables for chunk in table.column(RECORD_KEY).chunks], pa.string())
    encoded = one_chunk(keys.dictionary_encode())
    if len(encoded.dictionary) == len(encoded):
        # Every key has one entry, which wins whatever it is.
        found = pa.concat_tables(tables)
        tables.clear()
        return found
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    deletes = np.concatenate([flags(table, ALWAYS_DELETE) for table in tables])
    ranks = _ranks(tables, deletes, how.orderings)
    if how.later:
        return fold_later(tables, codes, ranks, how.partial)
    if how.combines:
        rows = pa.concat_tables(tables)
        tables.clear()
        return combine(rows, codes, ranks, deletes)
    return _taken(tables, np.sort(_fold(codes, len(encoded.dictionary), deletes, ranks)))


def _ranks(tables: Sequence[pa.Table], deletes: Mask, orderings: Sequence[str]) -> Rows:
    """Dense ranks of the ordering values of all entries in a row; -1 of deletes whose ordering does
    not count."""
    ranks: Rows | None = None
    for ordering in orderings:
        values = one_chunk(pa.chunked_array([chunk for table in tables for chunk in table.column(ordering).chunks]))
        finer = dense_ranks(values)
        if ranks is None:
            ranks, unconditional = finer, deletes & ~np.asarray(values.is_valid())
        else:
            ranks = np.unique(ranks * (int(finer.max(initial=0)) + 1) + finer, return_inverse=True)[1].astype(np.int64)
    if ranks is None:
        return -deletes.astype(np.int64)
    ranks[unconditional] = -1
    return ranks


def _fold(codes: Rows, keys: int, deletes: Mask, ranks: Rows) -> Rows:
    """For each key the number of the entry that won, a delete where one did."""
    state = np.full(keys, _ABSENT, dtype=np.int64)
    turns = np.flatnonzero(np.diff(deletes)) + 1
    for start, stop in itertools.pairwise([0, *turns.tolist(), len(codes)]):
        numbers = np.arange(start, stop, dtype=np.int64)
        gone = bool(deletes[start:stop].any())
        if not gone:
            survives = newest(codes[numbers], pa.array(ranks[numbers]))
            numbers = numbers if survives is None else numbers[survives]
        known = np.maximum(state[codes[numbers]], 0)
        loses = (state[codes[numbers]] != _ABSENT) & ~deletes[known] & (ranks[known] > ranks[numbers])
        if gone:
            loses &= ranks[numbers] >= 0
        numbers = numbers[~loses]
        state[codes[numbers]] = numbers
    return state


def _taken(tables: list[pa.Table], winners: Rows) -> pa.Table:
    """The entries with these numbers, table by table. Empties the list."""
    found = []
    start = 0
    while tables:
        table = tables.pop(0)
        low, high = np.searchsorted(winners, [start, start + len(table)])
        if low < high:
            found.append(table if high - low == len(table) else table.take(pa.array(winners[low:high] - start)))
        start += len(table)
    return pa.concat_tables(found)
