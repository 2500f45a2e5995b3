"""The rows of a slice: its log blocks folded into one row or delete per key, then merged into the base file.

Facts (merge-on-read, measured on Hudi 0.15.0, both payloads): between log entries the later one wins, unless the
earlier row's ordering value is strictly greater; after a delete the next row wins whatever its ordering. A delete entry
is ignored only if it has an ordering value (not the integer 0) of the same Java class as the row's, and the row's is
strictly greater. What is left meets the base row: by commit time it always wins; by event time the base row stays
if its ordering is strictly greater, but a delete entry always deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.conform import conform
from hudi_table.codec.log_blocks import BlockType, LogBlock
from hudi_table.codec.log_rows import DeletedKeys, read_deletes, read_rows
from hudi_table.errors import CorruptTableError, InvalidDataError
from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.table.merge import ALWAYS_DELETE, MergeCounts, Merger, MergeRule, Rows, dense_ranks, newest, one_chunk
from hudi_table.table.ports import Storage

_ABSENT, _DELETED = -1, -2


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """How a table merges on read: `ordering` is compared between log entries, and with base rows if `event_time`."""

    ordering: str | None = None
    event_time: bool = False

    @property
    def rule(self) -> MergeRule:
        """How the folded entries meet base rows."""
        return MergeRule(self.ordering if self.event_time else None)

    def needs(self, fields: Sequence[pa.Field]) -> list[str]:
        """Columns that merging reads, of those that the table has."""
        known = {field.name for field in fields}
        wanted = [RECORD_KEY, *([self.ordering] if self.ordering else []), IS_DELETED]
        return [name for name in wanted if name in known or name == RECORD_KEY]


@dataclass(frozen=True, slots=True)
class _Entries:
    """Keys of one block, rows or deletes, and their ordering values in the type of the table, null where they do not count."""

    block: LogBlock
    keys: pa.Array
    ordering: pa.Array | None
    deletes: bool = False


def merged_rows(
    storage: Storage,
    base: Iterable[pa.Table],
    blocks: Sequence[LogBlock],
    schema: pa.Schema,
    how: SliceMerge,
    *,
    counts: MergeCounts | None = None,
) -> Iterator[pa.Table]:
    """The rows of a slice: tables of `schema`, those of the base first, in their order, then what the logs insert.

    `base` are tables of `schema`, which holds `_hoodie_record_key` and what `how` needs. What was done is added to `counts`.
    """
    entries = folded_entries(storage, blocks, schema, how)
    if len(entries) == 0:
        yield from base
        return
    merger = Merger(entries, schema, how.rule)
    for table in base:
        yield merger.apply(table)
    yield merger.rest()
    if counts is not None:
        counts.add(merger.counts)


def folded_entries(storage: Storage, blocks: Sequence[LogBlock], schema: pa.Schema, how: SliceMerge) -> pa.Table:
    """One row for each key of the blocks, in `schema` and `ALWAYS_DELETE`: the row that won, or a delete (other columns null)."""
    found = list(_entries(storage, blocks, schema, how))
    if not found:
        return pa.table([pa.array([], f.type) for f in schema], schema=schema).append_column(
            ALWAYS_DELETE, pa.array([], pa.bool_())
        )
    keys = pa.chunked_array([entry.keys for entry in found])
    encoded = one_chunk(keys.dictionary_encode())
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    winners = _fold(found, codes, len(encoded.dictionary), _ranks(found, how))
    rows = _winning_rows(storage, found, winners[winners >= 0], schema)
    gone = encoded.dictionary.take(pa.array(np.flatnonzero(winners == _DELETED)))
    return _with_deletes(rows, gone, schema)


def _entries(storage: Storage, blocks: Sequence[LogBlock], schema: pa.Schema, how: SliceMerge) -> Iterator[_Entries]:
    names = [RECORD_KEY, *([how.ordering] if how.ordering else [])]
    wanted = pa.schema([schema.field(name) for name in names])
    for block in blocks:
        with storage.open_read(block.path) as source:
            if block.type is BlockType.DELETE:
                deleted = read_deletes(source, block)
                if len(deleted.keys):
                    yield _Entries(block, deleted.keys, _comparable(deleted, wanted, how), deletes=True)
                continue
            rows = _conformed(read_rows(source, block, names), wanted, block)
        if len(rows):
            ordering = one_chunk(rows.column(how.ordering)) if how.ordering else None
            yield _Entries(block, one_chunk(rows.column(RECORD_KEY)), ordering)


def _comparable(deleted: DeletedKeys, wanted: pa.Schema, how: SliceMerge) -> pa.Array | None:
    """The deletes' ordering values in the type of the rows', null where they do not count."""
    if how.ordering is None or deleted.ordering.null_count == len(deleted.ordering):
        return None
    target = wanted.field(how.ordering).type
    if _java_class(deleted.ordering.type) != _java_class(target):
        return None
    values = deleted.ordering
    if pt.is_timestamp(target) and pt.is_integer(values.type):
        return values.view(target)
    return values.cast(target)


def _java_class(kind: pa.DataType) -> str:
    """What Java compares: values of different classes are never compared with each other."""
    if pt.is_timestamp(kind) or pt.is_time64(kind) or pt.is_int64(kind):
        return "Long"
    if pt.is_integer(kind):
        return "Integer"
    return "BigDecimal" if pt.is_decimal(kind) else str(kind)


def _ranks(found: Sequence[_Entries], how: SliceMerge) -> Rows:
    """Dense ranks of the ordering values of all entries in a row; -1 of deletes whose ordering does not count."""
    total = sum(len(entry.keys) for entry in found)
    if how.ordering is None:
        return np.where(
            np.repeat([e.deletes for e in found], [len(e.keys) for e in found]), -1, np.zeros(total, np.int64)
        )
    kind = next((e.ordering.type for e in found if e.ordering is not None), pa.null())
    parts = [pa.nulls(len(e.keys), kind) if e.ordering is None else e.ordering for e in found]
    values = pa.concat_arrays(parts)
    ranks = dense_ranks(values)
    void = np.repeat([e.deletes for e in found], [len(e.keys) for e in found]) & ~np.asarray(values.is_valid())
    ranks[void] = -1
    return ranks


def _fold(found: Sequence[_Entries], codes: Rows, keys: int, ranks: Rows) -> Rows:
    """For each key the number of the entry that won, `_DELETED` if a delete did."""
    state = np.full(keys, _ABSENT, dtype=np.int64)
    start = 0
    for entry in found:
        stop = start + len(entry.keys)
        numbers = np.arange(start, stop, dtype=np.int64)
        if entry.deletes:
            _delete(state, codes, numbers, ranks)
        else:
            _put(state, codes, numbers, ranks)
        start = stop
    return state


def _put(state: Rows, codes: Rows, numbers: Rows, ranks: Rows) -> None:
    """Rows of one block, of which a key may have several."""
    survives = newest(codes[numbers], pa.array(ranks[numbers]))
    if survives is not None:
        numbers = numbers[survives]
    known = state[codes[numbers]]
    older = (known >= 0) & (ranks[np.maximum(known, 0)] > ranks[numbers])
    numbers = numbers[~older]
    state[codes[numbers]] = numbers


def _delete(state: Rows, codes: Rows, numbers: Rows, ranks: Rows) -> None:
    known = state[codes[numbers]]
    ignored = (known >= 0) & (ranks[numbers] >= 0) & (ranks[np.maximum(known, 0)] > ranks[numbers])
    state[codes[numbers[~ignored]]] = _DELETED


def _winning_rows(storage: Storage, found: Sequence[_Entries], winners: Rows, schema: pa.Schema) -> pa.Table:
    """The rows with these numbers, block by block."""
    winners = np.sort(winners)
    tables: list[pa.Table] = []
    start = 0
    for entry in found:
        stop = start + len(entry.keys)
        mine: npt.NDArray[np.int64] = winners[(winners >= start) & (winners < stop)] - start
        if len(mine):
            with storage.open_read(entry.block.path) as source:
                rows = _conformed(read_rows(source, entry.block, schema.names), schema, entry.block)
            tables.append(rows if len(mine) == len(rows) else rows.take(pa.array(mine)))
        start = stop
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _with_deletes(rows: pa.Table, gone: pa.Array, schema: pa.Schema) -> pa.Table:
    kept = rows.append_column(ALWAYS_DELETE, pa.array(np.zeros(len(rows), dtype=bool)))
    if not len(gone):
        return kept
    columns = [gone if field.name == RECORD_KEY else pa.nulls(len(gone), field.type) for field in schema]
    deletes = pa.Table.from_arrays([*columns, pa.array(np.ones(len(gone), dtype=bool))], schema=kept.schema)
    return pa.concat_tables([kept, deletes])


def _conformed(rows: pa.Table, schema: pa.Schema, block: LogBlock) -> pa.Table:
    try:
        return conform(rows, schema)
    except InvalidDataError as error:
        raise CorruptTableError(
            f"the block at {block.offset} of {block.path} does not fit the table's schema: {error.message}",
            path=block.path,
        ) from error
