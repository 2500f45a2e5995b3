"""The entries of log blocks, rows and deletes, as tables in the schema of the table and in the order of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.conform import conform
from hudi_table.codec.log_blocks import BlockType, LogBlock
from hudi_table.codec.log_rows import DeletedKeys, read_deletes, read_rows
from hudi_table.errors import CorruptTableError, InvalidDataError
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.merge import ALWAYS_DELETE
from hudi_table.table.ports import Storage

_PARQUET_WEIGHT = 8
"""Blocks of Parquet are compressed: how much more Arrow a byte of theirs makes than one of Avro."""


def entry_tables(
    storage: Storage, blocks: Sequence[LogBlock], schema: pa.Schema, ordering: str | None
) -> Iterator[tuple[float, pa.Table]]:
    """For each block the share of all blocks that is read when it is, about, and its entries: `schema` and `ALWAYS_DELETE`.

    Deletes have nulls but for their key, and their `ordering` value where it counts. One block is held at a time.
    """
    weights = [block.content_length * (_PARQUET_WEIGHT if block.type is BlockType.PARQUET else 1) for block in blocks]
    total, done = max(1, sum(weights)), 0
    for block, weight in zip(blocks, weights, strict=True):
        with storage.open_read(block.path) as source:
            if block.type is BlockType.DELETE:
                rows = _deletes(read_deletes(source, block), schema, ordering)
            else:
                rows = _conformed(read_rows(source, block, schema.names), schema, block)
        deletes = np.full(len(rows), block.type is BlockType.DELETE)
        done += weight
        yield done / total, rows.append_column(ALWAYS_DELETE, pa.array(deletes))


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
