"""Indexes that somebody names and defines, of secondary keys and of expressions: asking for them,
noting them before they are built, dropping one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.definitions import ExpressionNote, define_expression, define_secondary, undefine
from hudi_table.metadata.lifecycle import drop_partitions
from hudi_table.metadata.table import read_partitions
from hudi_table.model.defined_indexes import NAME, OF
from hudi_table.model.metadata_table import (
    EXPRESSION_INDEX,
    SECONDARY_INDEX,
    DefinedPartition,
    ExpressionPartition,
    SecondaryPartition,
    is_defined,
    is_expression,
    short_name,
)
from hudi_table.services.metadata.expressions import check_expressions
from hudi_table.services.metadata.secondary import check_secondary
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.write.checks.request import refuse_unsupported

Definitions: TypeAlias = Mapping[DefinedPartition, str | ExpressionNote]
"""Of each index its column, or its expression."""


def partition_of(name: str, *, expression: bool = False) -> DefinedPartition:
    """The partition of the index of this name. Raises InvalidRequestError for a name that Hudi
    could not take for a folder's, nor find in SQL."""
    if NAME.fullmatch(name) is None:
        raise InvalidRequestError(f"an index is named by letters, digits and `_`, not {name!r}: give another name")
    if expression:
        return ExpressionPartition(f"{EXPRESSION_INDEX}{name}")
    return SecondaryPartition(f"{SECONDARY_INDEX}{name}")


def asked_columns(names: Iterable[str]) -> dict[str, str]:
    """The partitions that are asked for, with the column or expression of each that tells one:
    `secondary_index_<name>=<column>`, `expr_index_<name>=<expression>`. '' for the others."""
    found: dict[str, str] = {}
    for name in names:
        partition, _, column = name.partition(OF) if is_defined(name) else (name, "", "")
        found[partition.strip()] = column.strip()
    return found


def check_defined(ctx: TableContext, asked: Mapping[str, str], without: Collection[str] = ()) -> Definitions:
    """The indexes among what is asked for that have a definition; `without`: indexes that go before
    these are built. Raises InvalidRequestError, UnsupportedTableError."""
    there = {*read_partitions(ctx).all, *asked} - set(without)
    for name in filter(is_defined, asked):
        other, short = SECONDARY_INDEX if is_expression(name) else EXPRESSION_INDEX, short_name(name)
        partition_of(short)
        if f"{other}{short}" in there:
            raise InvalidRequestError(f"{other}{short} has the name of {name}: give another one")
    found: list[tuple[DefinedPartition, str | ExpressionNote]] = [
        *check_secondary(ctx, asked).items(),
        *check_expressions(ctx, asked, without).items(),
    ]
    return dict(found)


def define(ctx: TableContext, indexes: Definitions) -> list[DefinedPartition]:
    """Note those that are not there yet, before they are built. Returns them."""
    there = read_partitions(ctx).all
    new = [name for name in indexes if name not in there]
    # What a process left that died is noted anew: a note that looks old may be taken back.
    undefine(ctx, new)
    for name in new:
        said = indexes[name]
        if isinstance(name, ExpressionPartition) and isinstance(said, ExpressionNote):
            define_expression(ctx, name, said)
        elif isinstance(name, SecondaryPartition) and isinstance(said, str):
            define_secondary(ctx, name, said)
    return new


def forget(ctx: TableContext, names: Iterable[DefinedPartition]) -> None:
    """Take the notes away of those that were not begun."""
    there = read_partitions(ctx).all
    undefine(ctx, {name for name in names if name not in there})


def there_of(ctx: TableContext, names: Iterable[str]) -> list[str]:
    """The partitions of the indexes of these names, of whichever kind, that are there. Raises
    InvalidRequestError."""
    named = {partition_of(name, expression=kind) for name in names for kind in (False, True)}
    return sorted(named & set(read_partitions(ctx).all))


@relists
def drop_indexes(ctx: TableContext, names: Collection[str]) -> list[str]:
    """Drop the indexes of these names, of whichever kind. Their partitions, as far as they were
    there. Raises InvalidRequestError."""
    refuse_unsupported(ctx.config)
    found = there_of(ctx, names)
    drop_partitions(ctx, found, None)
    return found
