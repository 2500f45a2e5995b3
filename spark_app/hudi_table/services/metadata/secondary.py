"""Indexes of secondary keys: what is asked for, checked before anything is written, and dropping
one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import define_secondary, noted_by_partition, noted_secondary, undefine
from hudi_table.metadata.lifecycle import drop_partitions, has_secondary
from hudi_table.metadata.secondary_index.pairs import KINDS, is_kind
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import SECONDARY_INDEX, MetadataPartition, SecondaryPartition, is_secondary
from hudi_table.model.names import META_COLUMNS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.write.checks.request import refuse_unsupported

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*", re.ASCII)
_OF = "="


def partition_of(name: str) -> SecondaryPartition:
    """The partition of the index of this name. Raises InvalidRequestError for a name that Hudi
    could not take for a folder's, nor find in SQL."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(f"an index is named by letters, digits and `_`, not {name!r}: give another name")
    return SecondaryPartition(f"{SECONDARY_INDEX}{name}")


def asked_columns(names: Iterable[str]) -> dict[str, str]:
    """The partitions that are asked for, with the column of each that tells one:
    `secondary_index_<name>=<column>`. '' for the others."""
    found: dict[str, str] = {}
    for name in names:
        partition, _, column = name.partition(_OF) if is_secondary(name) else (name, "", "")
        found[partition.strip()] = column.strip()
    return found


def check_secondary(ctx: TableContext, asked: Mapping[str, str]) -> dict[SecondaryPartition, str]:
    """The indexes of secondary keys among what is asked for, with their columns. Raises
    InvalidRequestError, UnsupportedTableError."""
    found: dict[SecondaryPartition, str] = {}
    ready = read_partitions(ctx).all
    for name, column in asked.items():
        if not is_secondary(name):
            continue
        partition = partition_of(name.removeprefix(SECONDARY_INDEX))
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


def define(ctx: TableContext, indexes: Mapping[SecondaryPartition, str]) -> list[SecondaryPartition]:
    """Note those that are not there yet, before they are built. Returns them."""
    there = read_partitions(ctx).all
    new = [name for name in indexes if name not in there]
    # What a process left that died is noted anew: a note that looks old may be taken back.
    undefine(ctx, new)
    for name in new:
        define_secondary(ctx, name, indexes[name])
    return new


def forget(ctx: TableContext, names: Iterable[SecondaryPartition]) -> None:
    """Take the notes away of those that were not begun."""
    there = read_partitions(ctx).all
    undefine(ctx, {name for name in names if name not in there})


@relists
def drop_index(ctx: TableContext, name: str) -> bool:
    """Drop one index. Whether it was there. Raises InvalidRequestError."""
    refuse_unsupported(ctx.config)
    return drop_partitions(ctx, {partition_of(name)}, None)


def _refuse_table(ctx: TableContext, asked: Iterable[str]) -> None:
    if not has_secondary(ctx):
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
    if not is_kind(schema.field(column).type):
        raise UnsupportedTableError(
            f"column {column!r} has the type {schema.field(column).type}: an index of a secondary key is kept of {KINDS}",
            base_path=ctx.base_path,
        )
    if load_column_history(ctx, timeline) is not None:
        raise UnsupportedTableError(
            "columns of the table were renamed or have changed (schema on read): no index of a secondary key is kept of it",
            base_path=ctx.base_path,
        )
