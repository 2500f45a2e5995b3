"""What Hudi 1.x notes of the indexes in a metadata table: `.hoodie/.index_defs/index.json`, which
the property `hoodie.table.index.defs.path` names.

Facts (measured on Hudi 1.1.1, table version 6). Its readers skip files by the columns that are
noted there alone, by none if there is no note; its writers note them anew. An index of each
partition of its own is the partition `record_index` as the global one is, and differs by
`"isPartitioned": "true"` among its options there. Dropping the metadata table leaves the file as it
is. 0.15.0 asks for no note. On table version 9 (measured there) statistics are of version 2.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hudi_table.codec.metadata.column_stats import META_OF_015_ALONE, indexed_columns
from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.json_text import parse_json
from hudi_table.model.metadata_table import ExpressionPartition, MetadataPartition, SecondaryPartition, is_defined
from hudi_table.model.names import HOODIE
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.table.version_properties import STATISTICS
from hudi_table.table.store import retry
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import replace_properties

DEFINITIONS: Final = f"{HOODIE}/.index_defs/index.json"
_PROPERTY: Final = "hoodie.table.index.defs.path"
_DEFINED: Final = "indexDefinitions"
_BY_PARTITION: Final = "isPartitioned"
_PLAIN: Final = "V2"
_SECONDARY: Final = "secondary_index"
_EXPRESSION: Final = "expr"


def define_column_stats(ctx: TableContext, schema: pa.Schema) -> None:
    """Note which columns of files of this schema have statistics, by every writer. Notes of other
    indexes stay as they are."""
    columns = [name for name in indexed_columns(schema) if name not in META_OF_015_ALONE]
    _note(
        ctx,
        {
            "indexName": str(MetadataPartition.COLUMN_STATS),
            "indexType": str(MetadataPartition.COLUMN_STATS),
            "indexFunction": str(MetadataPartition.COLUMN_STATS),
            "sourceFields": columns,
            "indexOptions": {},
            "version": STATISTICS[ctx.config.version],
        },
    )


@dataclass(frozen=True, slots=True)
class StatisticsNote:
    """What is noted of column statistics: the `columns` of which readers believe them, and whether
    bounds are `plain` values with their type beside them, as those of version 2 are."""

    columns: frozenset[str] = frozenset()
    plain: bool = False


def noted_statistics(ctx: TableContext) -> StatisticsNote:
    """The note of the column statistics. Of table version 6 nobody asks it."""
    if not ctx.layout.partition_stats:
        return StatisticsNote()
    found = _read(ctx).get(MetadataPartition.COLUMN_STATS)
    note = found if isinstance(found, dict) else {}
    columns = note.get("sourceFields")
    return StatisticsNote(frozenset(map(str, columns or ())), note.get("version") == _PLAIN)


def define_record_index(ctx: TableContext, *, by_partition: bool) -> None:
    """Note which of the two kinds the record index is. Hudi 1.1 would look keys up amiss in one
    that it takes for the other. On table versions 8 and 9 it notes a global one too."""
    found = _read(ctx)
    is_noted = not ctx.layout.partition_stats or MetadataPartition.RECORD_INDEX in found
    if is_noted and _says_by_partition(found) == by_partition:
        return
    _note(
        ctx,
        {
            "indexName": str(MetadataPartition.RECORD_INDEX),
            "indexType": str(MetadataPartition.RECORD_INDEX),
            "indexFunction": "",
            "sourceFields": [],
            "indexOptions": {_BY_PARTITION: str(by_partition).lower()},
            "version": "V1",
        },
    )


@dataclass(frozen=True, slots=True)
class SecondaryNote:
    """What is noted of an index of a secondary key: its `column`, and whether a pair lies in the
    file group of its `whole` key, as in version 1 of such an index, or in that of its value."""

    column: str
    whole: bool = True


def noted_secondary(ctx: TableContext, name: str) -> SecondaryNote | None:
    """The note of an index of a secondary key; None if there is none, or one of more than a
    column."""
    found = _read(ctx).get(name)
    note = found if isinstance(found, dict) else {}
    columns = note.get("sourceFields")
    if note.get("indexType") != _SECONDARY or not isinstance(columns, list) or len(columns) != 1:
        return None
    return SecondaryNote(str(columns[0]), note.get("version") != _PLAIN)


def is_whole(ctx: TableContext) -> bool:
    """Whether an index of a secondary key that is noted now is one of version 1."""
    return STATISTICS[ctx.config.version] != _PLAIN


def is_noted(ctx: TableContext) -> bool:
    """Whether the table's properties name a file of notes."""
    return _PROPERTY in ctx.config.extra


def defined_by_users(ctx: TableContext) -> set[str]:
    """The indexes that somebody has made by their name: of secondary keys and of expressions."""
    return set(filter(is_defined, _read(ctx)))


def define_secondary(ctx: TableContext, name: SecondaryPartition, column: str) -> None:
    """Note the column of an index of a secondary key, in the version that its table's version
    has."""
    _note(
        ctx,
        {
            "indexName": str(name),
            "indexType": _SECONDARY,
            "indexFunction": "identity",
            "sourceFields": [column],
            "indexOptions": {},
            "version": STATISTICS[ctx.config.version],
        },
    )


@dataclass(frozen=True, slots=True)
class ExpressionNote:
    """What is noted of an index of an expression: the `function` of its `column` with the
    function's `options`, `using` what it tells of a file (`column_stats` or `bloom_filters`), and
    whether bounds are `plain` values with their type beside them."""

    column: str
    function: str
    options: Mapping[str, str] = field(default_factory=dict)
    using: str = str(MetadataPartition.COLUMN_STATS)
    plain: bool = False


def noted_expression(ctx: TableContext, name: str) -> ExpressionNote | None:
    """The note of an index of an expression; None if there is none, or one of more than a
    column."""
    found = _read(ctx).get(name)
    note = found if isinstance(found, dict) else {}
    columns, options = note.get("sourceFields"), note.get("indexOptions")
    if not isinstance(columns, list) or len(columns) != 1 or not isinstance(options, dict):
        return None
    told = {str(key): str(value) for key, value in options.items() if key != _EXPRESSION}
    using = str(note.get("indexType", "")).lower()
    return ExpressionNote(str(columns[0]), str(note.get("indexFunction")), told, using, note.get("version") == _PLAIN)


def define_expression(ctx: TableContext, name: ExpressionPartition, note: ExpressionNote) -> None:
    """Note an index of an expression, in the version that its table's version has."""
    _note(
        ctx,
        {
            "indexName": str(name),
            "indexType": note.using,
            "indexFunction": note.function,
            "sourceFields": [note.column],
            "indexOptions": {_EXPRESSION: note.function, **note.options},
            "version": STATISTICS[ctx.config.version],
        },
    )


def undefine(ctx: TableContext, names: Collection[str]) -> None:
    """Take the notes of these indexes away. Hudi 1.1.1 fails on a filter by an index that is noted
    and not there, or finds no row (measured)."""
    found = _read(ctx)
    _put(ctx, found, {name: note for name, note in found.items() if name not in names})


def undefine_all_but_users(ctx: TableContext) -> None:
    """Leave the notes alone of indexes that somebody has made by their name, which are built again
    by them."""
    undefine(ctx, {name for name in _read(ctx) if not is_defined(name)})


def noted_by_partition(ctx: TableContext) -> bool:
    """Whether the note says that a record index of the table is one of each partition. One that is
    not noted is global."""
    return _says_by_partition(_read(ctx))


def _says_by_partition(noted: Mapping[str, Any]) -> bool:
    try:
        options = noted[MetadataPartition.RECORD_INDEX]["indexOptions"]
        return stored_boolean(str(options.get(_BY_PARTITION)))
    except (KeyError, TypeError, AttributeError):
        return False


def _note(ctx: TableContext, index: dict[str, Any]) -> None:
    """Put one note in the place of that of the same index; those of others stay as they are."""
    found = _read(ctx)
    _put(ctx, found, found | {index["indexName"]: index})
    replace_properties(ctx, {_PROPERTY: DEFINITIONS})


def _put(ctx: TableContext, found: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
    """Put these notes in the place of those that were found, unless they are the same."""
    if notes != found:
        retry.put(ctx.storage, DEFINITIONS, json.dumps({_DEFINED: notes}, indent=2).encode())


def _read(ctx: TableContext) -> dict[str, Any]:
    """What is noted, by the name of the index; nothing for a file that is missing or none of
    Hudi's."""
    try:
        found = parse_json(ctx.storage.get(DEFINITIONS))
    except (ObjectNotFoundError, ValueError):
        return {}
    known = found.get(_DEFINED) if isinstance(found, dict) else None
    return known if isinstance(known, dict) else {}
