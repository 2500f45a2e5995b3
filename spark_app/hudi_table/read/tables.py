"""A table's timeline, history and files as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.model.instants import Instant
from hudi_table.table.context import TableContext
from hudi_table.table.engine import LocalEngine
from hudi_table.table.timeline import Timeline, commit_metadata
from hudi_table.table.view import FileSystemView

BODIES_AHEAD = 16
"""Commit bodies fetched at once: waiting for a store, not work."""

TIMELINE_SCHEMA = pa.schema(
    [
        ("instant", pa.string()),
        ("action", pa.string()),
        ("state", pa.string()),
        ("file", pa.string()),
        ("modified", pa.timestamp("us", tz="UTC")),
    ]
)
HISTORY_SCHEMA = pa.schema(
    [
        ("instant", pa.string()),
        ("action", pa.string()),
        ("operation", pa.string()),
        ("partitions", pa.int64()),
        ("files", pa.int64()),
        ("replaced_groups", pa.int64()),
        ("rows", pa.int64()),
        ("inserted", pa.int64()),
        ("updated", pa.int64()),
        ("deleted", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
SLICE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("latest", pa.bool_()),
        ("base_file", pa.string()),
        ("size_bytes", pa.int64()),
        ("log_files", pa.int64()),
    ]
)


def timeline_table(timeline: Timeline) -> pa.Table:
    """One row for each instant of the active timeline, in its highest state, oldest first.

    `modified` is the store's own time of that timeline file.
    """
    rows = [
        (i.time, i.action.value, i.state.value, i.file_name, timeline.files.get(i.file_name)) for i in timeline.instants
    ]
    return _table(TIMELINE_SCHEMA, rows)


def history_table(ctx: TableContext, timeline: Timeline, limit: int | None = None) -> pa.Table:
    """One row for each completed write (the newest `limit` ones), newest first: what it did, in files, rows and bytes.

    `rows` counts the rows of the files that it wrote, rewritten ones included.
    """
    newest = timeline.commits[::-1][:limit]
    return _table(HISTORY_SCHEMA, LocalEngine(BODIES_AHEAD).map(partial(_history, ctx), newest))


def slices_table(view: FileSystemView) -> pa.Table:
    """One row for each visible file slice; `latest` marks the one that a snapshot reads."""
    rows = [
        (
            group.partition,
            group.file_id,
            each.instant,
            each is group.latest,
            each.base.path if each.base else None,
            each.base.size if each.base else None,
            len(each.logs),
        )
        for group in view.groups()
        for each in group.slices
    ]
    return _table(SLICE_SCHEMA, rows)


def _history(ctx: TableContext, instant: Instant) -> Sequence[Any]:
    metadata = commit_metadata(ctx, instant)
    stats = metadata.stats
    return (
        instant.time,
        instant.action.value,
        metadata.operation_type,
        len({s.partition_path for s in stats}),
        len(stats),
        sum(map(len, (metadata.replaced or {}).values())),
        sum(s.num_writes for s in stats),
        sum(s.num_inserts for s in stats),
        sum(s.num_update_writes for s in stats),
        sum(s.num_deletes for s in stats),
        sum(s.file_size_in_bytes for s in stats),
    )


def _table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays: Mapping[str, pa.Array] = {f.name: pa.array(c, f.type) for f, c in zip(schema, columns, strict=True)}
    return pa.table(arrays, schema=schema)
