"""A table's timeline, history and files as rows, and these as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.archived import archived_entries, commit_of, instant_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

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
        ("moment", pa.string()),
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


Row = Mapping[str, Any]


def timeline_rows(timeline: Timeline) -> list[Row]:
    """One row for each instant of the active timeline, in its highest state, oldest first.

    `modified` is the store's own time of that timeline file.
    """
    return [
        {
            "instant": instant.time,
            "action": instant.action.value,
            "state": instant.state.value,
            "file": instant.file_name,
            "modified": timeline.files.get(instant.file_name),
        }
        for instant in timeline.instants
    ]


def history_rows(ctx: TableContext, timeline: Timeline, limit: int | None = None) -> list[Row]:
    """One row for each completed write (the newest `limit` ones), newest first: what it did, in
    files, rows and bytes. `moment`: what `since` and `until` of changes take for it.

    `rows` counts the rows of the files that it wrote, rewritten ones included.
    """
    return LocalEngine(BODIES_AHEAD).map(partial(_history, ctx), timeline.commits[::-1][:limit])


def archived_rows(ctx: TableContext, timeline: Timeline) -> tuple[list[Row], list[Row]]:
    """(as `timeline_rows`, as `history_rows`): instants that left the active `timeline`, in their
    highest state, once however often the archive holds them. `modified` is None, `file` the name
    that the file had. Raises CorruptTableError.
    """
    active = {(i.time, i.grouped_action) for i in timeline.instants}
    highest: dict[tuple[str, Action], tuple[Instant, Row | None]] = {}
    for entries in archived_entries(ctx):
        for entry in entries:
            instant = instant_of(entry)
            if instant is None or (instant.time, instant.grouped_action) in active:
                continue
            key = (instant.time, instant.grouped_action)
            if key not in highest or highest[key][0].sort_key < instant.sort_key:
                wrote = instant.completed and instant.action in WRITE_ACTIONS
                highest[key] = (instant, _history_row(instant, commit_of(entry)) if wrote else None)
    found = sorted(highest.values(), key=lambda pair: pair[0].sort_key)
    writes = [row for _, row in found if row is not None]
    return timeline_rows(Timeline(tuple(i for i, _ in found))), writes[::-1]


def slice_rows(view: FileSystemView) -> list[Row]:
    """One row for each visible file slice; `latest` marks the one that a snapshot reads."""
    return [
        {
            "partition": group.partition,
            "file_id": group.file_id,
            "instant": each.instant,
            "latest": each is group.latest,
            "base_file": each.base.path if each.base else None,
            "size_bytes": each.base.size if each.base else None,
            "log_files": len(each.logs),
        }
        for group in view.groups()
        for each in group.slices
    ]


def as_table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """The rows as an Arrow table. (To make one loads pandas, where it is installed: the command
    line keeps to rows.)"""
    return pa.table([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)


def _history(ctx: TableContext, instant: Instant) -> Row:
    return _history_row(instant, commit_metadata(ctx, instant))


def _history_row(instant: Instant, metadata: CommitMetadata) -> Row:
    stats = metadata.stats
    return {
        "instant": instant.time,
        "moment": instant.moment,
        "action": instant.action.value,
        "operation": metadata.operation_type,
        "partitions": len({s.partition_path for s in stats}),
        "files": len(stats),
        "replaced_groups": len(metadata.replaced_groups),
        "rows": sum(s.num_writes for s in stats),
        "inserted": sum(s.num_inserts for s in stats),
        "updated": sum(s.num_update_writes for s in stats),
        "deleted": sum(s.num_deletes for s in stats),
        "bytes": sum(s.file_size_in_bytes for s in stats),
        "extra_metadata": metadata.extra_metadata,
    }
