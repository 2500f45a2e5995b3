"""The entries of log blocks, rows and deletes, as tables in the schema of the table and in the order of the log.

A changelog of Flink's (`hoodie.allow.operation.metadata.field`) has its deletes among the rows: those whose `_hoodie_operation` is `D`, and
the old rows of updates, `-U`. They count as flagged deletes, as for Hudi 1.1.1; 0.15.0 takes `-U` for a row (measured).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.conform import conform
from hudi_table.codec.log.blocks import BlockType, LogBlock
from hudi_table.codec.log.rows import DeletedKeys, read_deletes, read_rows
from hudi_table.errors import CorruptTableError, InvalidDataError
from hudi_table.model.names import GONE_OPERATIONS, OPERATION_COLUMN, RECORD_KEY
from hudi_table.table.rows.merge import ALWAYS_DELETE, FLAGGED, Mask
from hudi_table.table.store.ports import Storage

_PARQUET_WEIGHT = 8
"""Blocks of Parquet are compressed: how much more Arrow a byte of theirs makes than one of Avro."""


def entry_tables(
    storage: Storage, blocks: Sequence[LogBlock], schema: pa.Schema, ordering: str | None
) -> Iterator[tuple[float, pa.Table]]:
    """For each block the share of all blocks that is read when it is, about, and its entries: `schema`, `ALWAYS_DELETE` and `FLAGGED`.

    Deletes have nulls but for their key, and their `ordering` value where it counts. One block is held at a time.
    """
    weights = [block.content_length * (_PARQUET_WEIGHT if block.type is BlockType.PARQUET else 1) for block in blocks]
    total, done = max(1, sum(weights)), 0
    for block, weight in zip(blocks, weights, strict=True):
        with storage.open_read(block.path) as source:
            if block.type is BlockType.DELETE:
                rows = _deletes(read_deletes(source, block), schema, ordering)
                flagged = np.zeros(len(rows), dtype=bool)
            else:
                found = read_rows(source, block, [*dict.fromkeys([*schema.names, OPERATION_COLUMN])])
                rows, flagged = _conformed(found, schema, block), _taken_away(found)
        deletes = np.full(len(rows), block.type is BlockType.DELETE)
        done += weight
        entries = rows.append_column(ALWAYS_DELETE, pa.array(deletes)).append_column(FLAGGED, pa.array(flagged))
        yield done / total, entries


def _taken_away(rows: pa.Table) -> Mask:
    """Which rows say by their operation that the row of their key is gone."""
    if OPERATION_COLUMN not in rows.schema.names:
        return np.zeros(len(rows), dtype=bool)
    operations = rows.column(OPERATION_COLUMN).cast(pa.string())
    return np.asarray(pc.is_in(operations, value_set=pa.array(GONE_OPERATIONS)).combine_chunks())


def _deletes(deleted: DeletedKeys, schema: pa.Schema, ordering: str | None) -> pa.Table:
    known = {RECORD_KEY: deleted.keys}
    if ordering is not None:
        known[ordering] = _comparable(deleted.ordering, schema.field(ordering).type)
    columns = [known.get(field.name) for field in schema]
    return pa.Table.from_arrays(
        [
            pa.nulls(len(deleted.keys), field.type) if column is None else column
            for field, column in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )


def _comparable(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The deletes' ordering values in the type of the rows', null where they do not count."""
    if values.null_count == len(values) or _java_class(values.type) != _java_class(target):
        return pa.nulls(len(values), target)
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


def _conformed(rows: pa.Table, schema: pa.Schema, block: LogBlock) -> pa.Table:
    try:
        return conform(rows, schema)
    except InvalidDataError as error:
        raise CorruptTableError(
            f"the block at {block.offset} of {block.path} does not fit the table's schema: {error.message}",
            path=block.path,
        ) from error
