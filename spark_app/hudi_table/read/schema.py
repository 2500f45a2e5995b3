"""The columns of a table at a moment, and those beside them that a read may name."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.avro.schema import meta_fields
from hudi_table.model.names import OPERATION_COLUMN
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline

META_FIELDS = tuple(meta_fields())
NAMED_FIELDS = (*META_FIELDS, pa.field(OPERATION_COLUMN, pa.string()))
"""Fields beside the table's own that a read may name; `_hoodie_operation` is null of rows whose
files do not have it."""


def schema_as_of(ctx: TableContext, timeline: Timeline, as_of: str | None) -> pa.Schema:
    """The schema at an instant, without meta columns; before the first known commit, that of the
    first; else none."""
    found = None
    if as_of is not None:
        found = table_schema(ctx, timeline.until(as_of))
        if found is None and timeline.commits:
            found = table_schema(ctx, timeline.until(timeline.commits[0].time))
    found = found if found is not None else table_schema(ctx, timeline)
    return pa.schema([]) if found is None else found


def with_meta(schema: pa.Schema) -> pa.Schema:
    """Hudi's five meta columns before those of a table."""
    return pa.schema([*META_FIELDS, *schema])
