"""The table's schema, from its newest commit that carries one."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.avro.schema import avro_to_arrow
from hudi_table.errors import CorruptTableError
from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


def table_avro_schema(ctx: TableContext, timeline: Timeline) -> str | None:
    """Avro schema JSON of the newest completed write that has one, else the one the table was
    created with."""
    for instant in reversed(timeline.commits):
        text = commit_metadata(ctx, instant).avro_schema
        if text:
            return text
    return ctx.config.create_schema


def table_schema(ctx: TableContext, timeline: Timeline) -> pa.Schema | None:
    """Arrow schema without meta columns, or None for a table that never had one. Raises
    CorruptTableError."""
    return _parsed(ctx, table_avro_schema(ctx, timeline))


def schema_behind(ctx: TableContext, metadata: CommitMetadata, timeline: Timeline) -> pa.Schema | None:
    """The same once a commit is there whose snapshot was `timeline`."""
    return _parsed(ctx, metadata.avro_schema or table_avro_schema(ctx, timeline))


def _parsed(ctx: TableContext, text: str | None) -> pa.Schema | None:
    if text is None:
        return None
    try:
        schema = avro_to_arrow(text)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"the table's Avro schema cannot be read: {error}", base_path=ctx.base_path) from error
    # Some actions (DELETE_PARTITION, ALTER_SCHEMA) carry the meta columns, most do not.
    return pa.schema([field for field in schema if field.name not in ALL_META_COLUMNS])
