"""The entries of log blocks, rows and deletes, as tables in the schema of the table and in the
order of the log.

A changelog of Flink's (`hoodie.allow.operation.metadata.field`) has its deletes among the rows:
those whose `_hoodie_operation` is `D`, and the old rows of updates, `-U`. They count as flagged
deletes, as for Hudi 1.1.1; 0.15.0 takes `-U` for a row (measured).

Where a table stores no meta columns, the rows' keys are made of their fields; deletes hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.conform import cast_array
from hudi_table.codec.log.blocks import BlockType, LogBlock, unreadable
from hudi_table.codec.log.rows import DeletedKeys, read_deletes, read_rows
from hudi_table.codec.promotions import of_today
from hudi_table.errors import CorruptTableError, InvalidDataError, InvalidSchemaError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import GONE_OPERATIONS, OPERATION_COLUMN, RECORD_KEY
from hudi_table.table.keys.record_keys import FieldKeys
from hudi_table.table.rows.merge import ALWAYS_DELETE, FLAGGED, Mask, flags, one_chunk, partial_columns, present_column
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.column_history import stored_as, under_todays_names

_PARQUET_WEIGHT = 8
"""Blocks of Parquet are compressed: how much more Arrow a byte of theirs makes than one of Avro."""


def entry_tables(
    storage: Storage, blocks: Sequence[LogBlock], schema: pa.Schema, how: SliceMerge
) -> Iterator[tuple[float, pa.Table]]:
    """For each block the share of all blocks that is read when it is, about, and its entries:
    `schema`, `ALWAYS_DELETE` and `FLAGGED`, and where some blocks hold changed columns alone, which
    of those columns each entry has (`present_column`).

    Deletes have nulls but for their key, and their ordering values where they count. One block is
    held at a time. Each is read by the names of its instant. Raises UnsupportedTableError where
    fields inside a column had others.
    """
    names = [*dict.fromkeys([*schema.names, OPERATION_COLUMN])]
    stored = [stored_as(how.history, block.instant, names) for block in blocks]
    held = {number: _held(block, stored[number]) for number, block in enumerate(blocks) if block.is_partial}
    lacking = [name for name in schema.names if any(name not in names for names in held.values())]
    weights = [block.content_length * (_PARQUET_WEIGHT if block.type is BlockType.PARQUET else 1) for block in blocks]
    total, done = max(1, sum(weights)), 0
    for number, (block, weight) in enumerate(zip(blocks, weights, strict=True)):
        with storage.open_read(block.path) as source:
            if block.type is BlockType.DELETE:
                try:
                    rows = _deletes(read_deletes(source, block), schema, how.orderings)
                except pa.ArrowInvalid as error:
                    raise unreadable(block, error) from error
                flagged = _ordered(rows, how)
            else:
                found = read_rows(source, block, [name for name in stored[number].values() if name is not None])
                found = under_todays_names(found, stored[number])
                rows, flagged = _conformed(found, schema, block, how.keys), _taken_away(found)
                flagged |= _marked(rows, how.marker)
        deletes = np.full(len(rows), block.type is BlockType.DELETE) & ~(flagged & how.later)
        done += weight
        entries = rows.append_column(ALWAYS_DELETE, pa.array(deletes)).append_column(FLAGGED, pa.array(flagged))
        for name in lacking:
            there = pa.repeat(pa.scalar(number not in held or name in held[number]), len(rows))
            entries = entries.append_column(present_column(name), there)
        yield done / total, entries


def _held(block: LogBlock, stored: Mapping[str, str | None]) -> frozenset[str]:
    """Which columns of today a block has. Raises CorruptTableError."""
    try:
        names = {field["name"] for field in parse_json(block.schema or "")["fields"]}
        return frozenset(name for name, old in stored.items() if old in names)
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable(block, ValueError(f"its header holds no schema: {error}")) from error


def _ordered(deletes: pa.Table, how: SliceMerge) -> Mask:
    """Which deletes lose against a row with a larger ordering value, where deletes take part in
    that."""
    if not how.later or how.ordering is None:
        return np.zeros(len(deletes), dtype=bool)
    return np.asarray(one_chunk(deletes.column(how.ordering)).is_valid())


def from_delete_blocks(entries: pa.Table, how: SliceMerge) -> Mask:
    """Which of these entries delete blocks hold, and no rows: deletes of which no column of theirs
    says so."""
    told = _taken_away(entries) | _marked(entries, how.marker)
    return flags(entries, ALWAYS_DELETE) | (flags(entries, FLAGGED) & ~told)


def by_columns(entries: pa.Table) -> Iterator[pa.Table]:
    """These entries in tables of those that hold the same columns, with these alone."""
    lacking = partial_columns(entries)
    if not lacking:
        yield entries
        return
    codes = np.zeros(len(entries), dtype=np.int64)
    for name in lacking:
        codes = np.unique(2 * codes + flags(entries, present_column(name)), return_inverse=True)[1]
    for code in range(int(codes.max(initial=-1)) + 1):
        found = entries.filter(pa.array(codes == code))
        gone = [name for name in lacking if not flags(found.slice(0, 1), present_column(name)).any()]
        yield found.drop_columns([*gone, *map(present_column, lacking)])


def _marked(rows: pa.Table, marker: tuple[str, str] | None) -> Mask:
    if marker is None or len(rows) == 0:
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(pc.fill_null(pc.equal(one_chunk(rows.column(marker[0])).cast(pa.string()), marker[1]), False))


def _taken_away(rows: pa.Table) -> Mask:
    """Which rows say by their operation that the row of their key is gone."""
    if OPERATION_COLUMN not in rows.schema.names:
        return np.zeros(len(rows), dtype=bool)
    operations = rows.column(OPERATION_COLUMN).cast(pa.string())
    return np.asarray(pc.is_in(operations, value_set=pa.array(GONE_OPERATIONS)).combine_chunks())


def _deletes(deleted: DeletedKeys, schema: pa.Schema, orderings: Sequence[str]) -> pa.Table:
    known = {RECORD_KEY: deleted.keys}
    for name, values in zip(orderings, (deleted.ordering, *deleted.then_by), strict=False):
        known[name] = _comparable(values, schema.field(name).type)
    columns = [known.get(field.name) for field in schema]
    return pa.Table.from_arrays(
        [
            pa.nulls(len(deleted.keys), field.type) if column is None else column
            for field, column in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )


def _comparable(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The deletes' ordering values in the type of the rows', null where they do not count: those of
    another kind, and the integer 0 of a column that is no int, for that stands for null.

    A delete keeps the type that its column had, which may have become wider since: rows were
    compared with it as numbers, and are. Hudi compares an `Integer` with no `Long`: to 0.15.0 the
    delete is the newer one, and 1.1.1 fails (measured). Raises pa.ArrowInvalid.
    """
    if pt.is_int32(values.type) and not pt.is_int32(target):
        values = pc.if_else(pc.equal(values, 0), pa.scalar(None, values.type), values)
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if pt.is_int64(values.type) and (pt.is_timestamp(target) or pt.is_time64(target)):
        return values.view(target)
    if pt.is_int32(values.type) and pt.is_time32(target):
        return values.view(target)
    try:
        return cast_array(values, target)
    except pa.ArrowNotImplementedError:
        return pa.nulls(len(values), target)


def block_keys(source: Any, block: LogBlock, keys: FieldKeys | None) -> pa.Array:
    """The record keys of a block of rows, strings. `keys`: how they are made, None where they are
    stored. Raises CorruptTableError."""
    if keys is None:
        return one_chunk(read_rows(source, block, [RECORD_KEY]).column(RECORD_KEY)).cast(pa.string())
    try:
        return keys.record_keys(read_rows(source, block, keys.columns))
    except (InvalidDataError, InvalidSchemaError) as error:
        raise unreadable(block, error) from error


def _conformed(rows: pa.Table, schema: pa.Schema, block: LogBlock, keys: FieldKeys | None) -> pa.Table:
    try:
        found = of_today(rows, schema)
        return found if keys is None else keys.put_in(found)
    except InvalidDataError as error:
        raise CorruptTableError(
            f"the block at {block.offset} of {block.path} does not fit the table's schema: {error.message}",
            path=block.path,
        ) from error
