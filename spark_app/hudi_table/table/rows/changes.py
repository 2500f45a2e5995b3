"""Rows of change data: an operation with the images of a row before and after it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvariantError
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.table.cdc import AFTER, BEFORE, KEY, OP, TIME
from hudi_table.table.rows.merge import one_chunk


def change_schema(image: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """`columns` of a change: the operation, the instant and the record key are text, images are
    structs of `image`."""
    structs = {BEFORE: pa.struct(list(image)), AFTER: pa.struct(list(image))}
    return pa.schema([pa.field(name, structs.get(name, pa.string())) for name in columns])


def change_rows(op: str, instant: str, before: pa.Table | None, after: pa.Table | None, schema: pa.Schema) -> pa.Table:
    """One row in `schema` (see `change_schema`) for each row of `before` and `after`, which belong
    together by position.

    Both have the columns of the images and, where `schema` tells the key, `_hoodie_record_key`; one
    of them may be None.
    """
    known = after if after is not None else before
    if known is None:
        raise InvariantError("a change has an image before or after it")
    columns = []
    for field in schema:
        rows = {BEFORE: before, AFTER: after}.get(field.name)
        if field.name in (OP, TIME):
            columns.append(pa.repeat(pa.scalar(op if field.name == OP else instant), len(known)))
        elif field.name == KEY:
            columns.append(one_chunk(known.column(RECORD_KEY)))
        elif rows is None:
            columns.append(pa.nulls(len(known), field.type))
        else:
            columns.append(_image(rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _image(rows: pa.Table, kind: pa.StructType) -> pa.StructArray:
    plain = conform(rows, pa.schema(list(kind)))
    return pa.StructArray.from_arrays([one_chunk(column) for column in plain.columns], fields=list(kind))
