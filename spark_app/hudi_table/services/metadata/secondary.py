"""Indexes of secondary keys: what is asked for, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import is_whole, noted_by_partition, noted_secondary
from hudi_table.metadata.lifecycle import has_defined
from hudi_table.metadata.secondary_index.pairs import KINDS, is_kind
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import MetadataPartition, SecondaryPartition, is_secondary
from hudi_table.model.names import META_COLUMNS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema

_OF = "="


def check_secondary(ctx: TableContext, asked: Mapping[str, str]) -> dict[SecondaryPartition, str]:
    """The indexes of secondary keys among what is asked for, with their columns. Raises
    InvalidRequestError, UnsupportedTableError."""
    found: dict[SecondaryPartition, str] = {}
    ready = read_partitions(ctx).all
    for name, column in asked.items():
        if not is_secondary(name):
            continue
        partition = SecondaryPartition(name)
        note = noted_secondary(ctx, partition) if partition in ready else None
        if note is not None and column in ("", note.column):
            found[partition] = note.column
            continue
        if note is not None:
            raise InvalidRequestError(
                f"the index {partition} is of the column {note.column!r}, not {column!r}: drop it first, or give another name"
            )
        _refuse_table(ctx, asked)
        _refuse_column(ctx, partition, column)
        found[partition] = column
    return found


def _refuse_table(ctx: TableContext, asked: Iterable[str]) -> None:
    if not has_defined(ctx):
        raise UnsupportedTableError(
            f"an index of a secondary key is of table versions 8 and 9, and the table has version {ctx.config.version}: upgrade it first",
            base_path=ctx.base_path,
        )
    there = read_partitions(ctx).all
    if MetadataPartition.RECORD_INDEX in there:
        if noted_by_partition(ctx):
            raise UnsupportedTableError(
                "an index of a secondary key needs a global record index, and the table's is by partition: drop the metadata table first "
                "(hudictl metadata BASE --drop --yes)",
                base_path=ctx.base_path,
            )
    elif MetadataPartition.RECORD_INDEX not in set(asked):
        raise UnsupportedTableError(
            "an index of a secondary key needs the record index, and the table has none: build record_index with it, or before it",
            base_path=ctx.base_path,
        )


def _refuse_column(ctx: TableContext, partition: SecondaryPartition, column: str) -> None:
    if not column:
        raise InvalidRequestError(f"the index {partition} is not there: say of which column, {partition}{_OF}<column>")
    timeline = load_timeline(ctx)
    schema = table_schema(ctx, timeline)
    names = [] if schema is None else schema.names
    if schema is None or column not in names or column in META_COLUMNS:
        raise InvalidRequestError(f"the table has no column {column!r}; there are {', '.join(names)}")
    kind = schema.field(column).type
    if not is_kind(kind, whole=is_whole(ctx)):
        instead = (
            f"upgrade the table first, which has version {ctx.config.version} (hudictl upgrade BASE --to 9)"
            if is_kind(kind, whole=False)
            else "name another column, or let filters go by column_stats (hudictl metadata BASE --build --index column_stats --yes)"
        )
        raise UnsupportedTableError(
            f"column {column!r} has the type {kind}: an index of a secondary key is kept of {KINDS}; {instead}",
            base_path=ctx.base_path,
        )
    if load_column_history(ctx, timeline) is not None:
        raise UnsupportedTableError(
            "columns of the table were renamed or have changed (schema on read): no index of a secondary key is kept of it",
            base_path=ctx.base_path,
        )
