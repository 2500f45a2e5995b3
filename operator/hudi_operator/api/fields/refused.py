"""What no job would make a table of, as the API server judges it: columns named twice, patterns for
places, what is not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hudi_operator.api.schema import Rule
from hudi_table.model.table.config import IndexType, MergeMode, TableType

_RECORD = [kind for kind in IndexType if kind.metadata_partition is not None]
_MOVING = [kind for kind in IndexType if kind.is_global and not kind.may_keep_partition and not kind.is_custom]
"""Indexes with which a key always follows its newest row into another partition."""


def _list(items: Sequence[object]) -> str:
    return "[" + ", ".join(repr(str(each)) if isinstance(each, str) else str(each) for each in items) + "]"


def _once(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _by_event_time(table: Any) -> bool:
    return table.merge_mode is MergeMode.EVENT_TIME or (table.merge_mode is None and bool(table.ordering_fields))


REFUSED = (
    Rule(
        "!self.location.contains('*')",
        "location has a *: it is no pattern; give the table's own folder, which holds all its partitions",
        "location",
        lambda t: "*" not in t.location,
    ),
    Rule(
        "self.ingest.all(i, !has(i.source.path) || !i.source.path.contains('*'))",
        "a source's path has a *: it is no pattern; give the folder, of which all files are taken",
        "ingest",
        lambda t: not any("*" in (each.source.path or "") for each in t.ingest),
    ),
    Rule(
        "self.recordKey.all(f, self.recordKey.exists_one(g, g == f))",
        "recordKey names a column twice: name it once",
        "recordKey",
        lambda t: _once(t.record_key),
    ),
    Rule(
        "self.partitionBy.all(p, self.partitionBy.exists_one(q, q.field == p.field))",
        "partitionBy names a column twice: name it once",
        "partitionBy",
        lambda t: _once([each.field for each in t.partition_by]),
    ),
    Rule(
        "!has(self.index) || self.index.hashFields.all(f, self.index.hashFields.exists_one(g, g == f))",
        "index.hashFields names a column twice: name it once",
        "index",
        lambda t: t.index is None or _once(t.index.hash_fields),
    ),
    Rule(
        f"self.type != 'MergeOnRead' || !has(self.index) || !(self.index.type in {_list(_MOVING)}) || "
        "(has(self.mergeMode) ? self.mergeMode != 'EventTime' : size(self.orderingFields) == 0)",
        f"a MergeOnRead table by EventTime is not written with {' or '.join(_MOVING)} by this release: take mergeMode CommitTime, type CopyOnWrite or another index",
        "index",
        lambda t: (
            t.type is not TableType.MERGE_ON_READ
            or t.index is None
            or t.index.type not in _MOVING
            or not _by_event_time(t)
        ),
    ),
)
