"""Indexes of expressions: what is asked for, checked before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import ExpressionNote, noted_expression
from hudi_table.metadata.expression_index.entries import Expression
from hudi_table.metadata.lifecycle import has_defined
from hudi_table.metadata.records import UnkeptError
from hudi_table.metadata.table import read_partitions
from hudi_table.model.defined_indexes import asked_expression
from hudi_table.model.metadata_table import ExpressionPartition, is_expression
from hudi_table.model.names import META_COLUMNS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema

FORM = "<function>(<column>)"


def parse_expression(name: ExpressionPartition, text: str) -> ExpressionNote:
    """What is asked for by `function(column)`, by `using bloom_filters` behind it, and by options
    as `format='yyyy-MM-dd'`. Raises InvalidRequestError."""
    found = asked_expression(text)
    if found is None:
        raise InvalidRequestError(
            f"the index {name} is of {text!r}, which is no expression: say {name}={FORM}, with using bloom_filters or options as "
            "format='yyyy-MM-dd' behind it"
        )
    return ExpressionNote(found.column, found.function, found.options, found.using)


def check_expressions(
    ctx: TableContext, asked: Mapping[str, str], without: Collection[str] = ()
) -> dict[ExpressionPartition, ExpressionNote]:
    """The indexes of expressions among what is asked for, with their definitions; `without`:
    indexes that go before these are built. Raises InvalidRequestError, UnsupportedTableError."""
    found: dict[ExpressionPartition, ExpressionNote] = {}
    ready = read_partitions(ctx).all
    for name in map(ExpressionPartition, filter(is_expression, asked)):
        note = noted_expression(ctx, name) if name in ready else None
        text = asked[name]
        if note is None and not text:
            raise InvalidRequestError(f"the index {name} is not there: say of which expression, {name}={FORM}")
        wanted = parse_expression(name, text) if text else note
        if note is not None and wanted is not None and _said(note) != _said(wanted):
            raise InvalidRequestError(
                f"the index {name} is of {note.function}({note.column}) using {note.using}, not {text!r}: drop it first, or give another name"
            )
        if note is None and wanted is not None:
            _refuse(
                ctx, name, wanted, {**_of_columns(ctx, without), **{each.column: str(of) for of, each in found.items()}}
            )
        if wanted is not None:
            found[name] = wanted
    return found


def _said(note: ExpressionNote) -> tuple[object, ...]:
    return note.column, note.function, dict(note.options), note.using


def _of_columns(ctx: TableContext, without: Collection[str]) -> dict[str, str]:
    """The index of an expression that is there and stays, by its column."""
    there = filter(is_expression, set(read_partitions(ctx).all) - set(without))
    notes = {name: noted_expression(ctx, name) for name in there}
    return {note.column: name for name, note in notes.items() if note is not None}


def _refuse(ctx: TableContext, name: ExpressionPartition, note: ExpressionNote, taken: Mapping[str, str]) -> None:
    if not has_defined(ctx):
        raise UnsupportedTableError(
            f"an index of an expression is of table versions 8 and 9, and the table has version {ctx.config.version}: upgrade it first",
            base_path=ctx.base_path,
        )
    if note.column in taken:
        raise InvalidRequestError(
            f"the column {note.column!r} has the index {taken[note.column]}, and Hudi asks one index of an expression of a column for every "
            "expression of it: drop that one first"
        )
    timeline = load_timeline(ctx)
    schema = table_schema(ctx, timeline)
    names = [] if schema is None else schema.names
    if schema is None or note.column not in names or note.column in META_COLUMNS:
        raise InvalidRequestError(f"the table has no column {note.column!r}; there are {', '.join(names)}")
    try:
        Expression.bound(ctx, name, note, schema)
    except UnkeptError as error:
        raise UnsupportedTableError(f"{name} is not built: {error.message}", base_path=ctx.base_path) from error
    if load_column_history(ctx, timeline) is not None:
        raise UnsupportedTableError(
            "columns of the table were renamed or have changed (schema on read): no index of an expression is kept of it",
            base_path=ctx.base_path,
        )
