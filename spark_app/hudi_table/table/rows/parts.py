"""File groups whose new rows are more than may be held at once: the same work in parts that fit, by
way of disk.

Rows of one key always fall into the same part, so each part is combined and merged on its own.
Sorted rows are cut by key range, so that the parts in their order are sorted as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec import large_arrays
from hudi_table.codec.hashes.javahash import java_string_hash
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.rows.merge import MergeCounts, Merger, one_chunk
from hudi_table.table.rows.spill import Codes, GroupedRows, joined

PARTS_MAX = 256

# Buckets are a hash modulo their number; a multiplicative mix keeps parts independent of them.
_MIX = np.uint32(0x9E3779B1)


def hash_part(keys: pa.Array, parts: int) -> Codes:
    """The part of each key, by its hash."""
    mixed = (java_string_hash(keys).view(np.uint32) * _MIX) >> np.uint32(12)
    codes: Codes = (mixed % np.uint32(parts)).astype(np.int32)
    return codes


def whole_parts(batches: Iterable[pa.RecordBatch], parts: int, *, ordered: bool, max_bytes: int) -> Iterator[pa.Table]:
    """The rows as tables that hold all rows of their keys; `ordered`: every key of a table precedes
    those of the next."""
    if parts == 1:
        found = list(batches)
        if found:
            yield pa.Table.from_batches(found).combine_chunks()
        return
    with GroupedRows(max_bytes) as rows:
        boundaries: list[pa.Scalar] | None = None
        for batch in batches:
            keys = batch.column(RECORD_KEY)
            if not ordered:
                rows.add(batch, hash_part(keys, parts))
                continue
            if boundaries is None:
                boundaries = _boundaries(keys, parts)
            rows.add(batch, _range_part(keys, boundaries))
        for code in sorted(rows.rows):
            yield pa.Table.from_batches(list(rows.read(code))).combine_chunks()


def merge_in_parts(
    base: Iterable[pa.Table],
    incoming: Iterable[pa.Table],
    start: Callable[[pa.Table], Merger],
    *,
    parts: int,
    max_bytes: int,
) -> Iterator[tuple[pa.Table, MergeCounts | None]]:
    """Merged tables, and with the last table of each part its counts. Rows leave their place: parts
    follow each other.

    `start` makes a merger of one part's incoming rows. While rows are taken in, at most `max_bytes`
    of them are held.
    """
    with GroupedRows(max_bytes) as new, GroupedRows(max_bytes) as old:
        for table in incoming:
            _split(new, table, parts)
        new.flush()
        schema: pa.Schema | None = None
        for table in base:
            schema = table.schema
            # A spill file cannot change a column's dictionary from batch to batch.
            _split(old, table.cast(_plain(schema)), parts)
        old.flush()
        for code in range(parts):
            stored = (_encoded(batch, schema) for batch in joined(old.read(code), max_bytes // 4))
            batches = list(new.read(code))
            if not batches:
                yield from ((table, None) for table in stored)
                continue
            merger = start(pa.Table.from_batches(batches).combine_chunks())
            del batches
            for table in stored:
                yield merger.apply(table), None
            yield merger.rest(), merger.counts
            del merger
            large_arrays.give_back()


def _split(rows: GroupedRows, table: pa.Table, parts: int) -> None:
    for batch in table.combine_chunks().to_batches():
        rows.add(batch, hash_part(batch.column(RECORD_KEY), parts))


def _encoded(batch: pa.RecordBatch, schema: pa.Schema | None) -> pa.Table:
    assert schema is not None
    columns = zip(schema, batch.columns, strict=True)
    return pa.Table.from_arrays(
        [column.dictionary_encode() if column.type != field.type else column for field, column in columns],
        schema=schema,
    )


def _plain(schema: pa.Schema) -> pa.Schema:
    kinds = (field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema)
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])


def _boundaries(keys: pa.Array, parts: int) -> list[pa.Scalar]:
    """Keys that cut the first batch into equal parts: a sample of the rest."""
    ranked = keys.take(pc.sort_indices(keys))
    return [ranked[len(ranked) * part // parts] for part in range(1, parts)]


def _range_part(keys: pa.Array, boundaries: list[pa.Scalar]) -> Codes:
    codes = np.zeros(len(keys), dtype=np.int32)
    for boundary in boundaries:
        codes += np.asarray(one_chunk(pc.greater_equal(keys, boundary))).astype(np.int32)
    return codes


def range_split(keys: pa.Array, groups: int) -> Codes:
    """Groups of equal size by key order: the group of each key, for files of one partition that do
    not overlap."""
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[pc.sort_indices(keys).to_numpy()] = np.arange(len(keys))
    codes: Codes = (ranks * groups // max(1, len(keys))).astype(np.int32)
    return codes
