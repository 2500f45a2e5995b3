"""Columns whose names mean something to Hudi: its own five, that of the operation, and the mark of
deletes.

Facts: Hudi's writer drops its columns from what it is given and writes them anew.
`_hoodie_is_deleted` deletes where it is a Boolean that is true; of another type Hudi takes it for a
column like any other (`BaseAvroPayload.isDeleteRecord`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import normal_type
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.names import ALL_META_COLUMNS, IS_DELETED, META_COLUMNS, OPERATION_COLUMN

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_OURS = "_lakeops_"
"""Begins the names of columns that rows have on their way through a write."""


def own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns of a caller's schema that are the table's: without Hudi's five, as a read returns
    them, and without the index of a pandas frame.

    Raises InvalidSchemaError for some of the five or for other columns by their names, for
    `_hoodie_is_deleted` of another type than Boolean, and for names that begin with `_lakeops_`.
    """
    meta = [field for field in schema if field.name.lower() in ALL_META_COLUMNS]
    if meta and not _as_read(meta):
        field = meta[0]
        raise InvalidSchemaError(
            f"column '{field.name}' ({field.type}) has the name of a column of Hudi's own, which would be lost: rename or drop it "
            "(rows read from a Hudi table may keep all five)"
        )
    fields = [f for f in schema if f.name.lower() not in ALL_META_COLUMNS and not _PANDAS_INDEX.fullmatch(f.name)]
    for field in fields:
        if field.name.lower() == IS_DELETED and (field.name != IS_DELETED or not _flags(field.type)):
            raise InvalidSchemaError(
                f"column '{field.name}' is {field.type}: '{IS_DELETED}' marks rows that are deleted, and has to be bool; cast it, or "
                "give it another name"
            )
        if field.name.lower().startswith(_OURS):
            raise InvalidSchemaError(f"column '{field.name}' has a name that writes use themselves: rename it")
    return pa.schema(fields)


def _as_read(meta: Iterable[pa.Field]) -> bool:
    """Whether these are the five, perhaps with that of the operation, with texts in them (or
    nothing at all), as reads return them."""
    found = list(meta)
    texts = all(pt.is_null(field.type) or normal_type(field.type) == pa.string() for field in found)
    return texts and sorted({*(field.name for field in found)} - {OPERATION_COLUMN}) == sorted(META_COLUMNS)


def _flags(kind: pa.DataType) -> bool:
    return bool(pt.is_null(kind)) or normal_type(kind) == pa.bool_()
