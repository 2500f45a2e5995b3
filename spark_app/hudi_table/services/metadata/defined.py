"""Indexes that somebody names and defines, of secondary keys and of expressions: asking for them,
noting them before they are built, dropping one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.definitions import ExpressionNote, define_expression, define_secondary, undefine
from hudi_table.metadata.lifecycle import drop_partitions
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import (
    EXPRESSION_INDEX,
    SECONDARY_INDEX,
    DefinedPartition,
    ExpressionPartition,
    SecondaryPartition,
    is_defined,
    is_expression,
)
from hudi_table.services.metadata.expressions import check_expressions
from hudi_table.services.metadata.secondary import check_secondary
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.write.checks.request import refuse_unsupported

Definitions: TypeAlias = Mapping[DefinedPartition, str | ExpressionNote]
"""Of each index its column, or its expression."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*", re.ASCII)
_OF = "="


def partition_of(name: str, *, expression: bool = False) -> DefinedPartition:
    """The partition of the index of this name. Raises InvalidRequestError for a name that Hudi
    could not take for a folder's, nor find in SQL."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(f"an index is named by letters, digits and `_`, not {name!r}: give another name")
    if expression:
        return ExpressionPartition(f"{EXPRESSION_INDEX}{name}")
    return SecondaryPartition(f"{SECONDARY_INDEX}{name}")


def asked_columns(names: Iterable[str]) -> dict[str, str]:
    """The partitions that are asked for, with the column or expression of each that tells one:
    `secondary_index_<name>=<column>`, `expr_index_<name>=<expression>`. '' for the others."""
    found: dict[str, str] = {}
    for name in names:
        partition, _, column = name.partition(_OF) if is_defined(name) else (name, "", "")
        found[partition.strip()] = column.strip()
    return found


def check_defined(ctx: TableContext, asked: Mapping[str, str]) -> Definitions:
    """The indexes among what is asked for that have a definition. Raises InvalidRequestError,
    UnsupportedTableError."""
    there = {*read_partitions(ctx).all, *asked}
    for name in filter(is_defined, asked):
        own, other = (EXPRESSION_INDEX, SECONDARY_INDEX) if is_expression(name) else (SECONDARY_INDEX, EXPRESSION_INDEX)
        short = name.removeprefix(own)
        partition_of(short)
        if f"{other}{short}" in there:
            raise InvalidRequestError(f"{other}{short} has the name of {name}: give another one")
    found: list[tuple[DefinedPartition, str | ExpressionNote]] = [
        *check_secondary(ctx, asked).items(),
        *check_expressions(ctx, asked).items(),
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


@relists
def drop_index(ctx: TableContext, name: str) -> bool:
    """Drop the index of this name, of whichever kind. Whether it was there. Raises
    InvalidRequestError."""
    refuse_unsupported(ctx.config)
    return drop_partitions(ctx, {partition_of(name), partition_of(name, expression=True)}, None)
