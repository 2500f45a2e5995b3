"""`hudictl timeline BASE`: the instants of the active timeline, and of the archived one if asked,
newest first."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import age_seconds, opened
from hudi_table.cli.output import Column, Document, emit
from hudi_table.read.output.human import age, number, size
from hudi_table.read.tables import Row, archived_rows, history_rows, timeline_rows
from hudi_table.services.setting_checkpoints.audit import CheckpointSet
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists

_COLUMNS = (
    Column("instant", "Instant"),
    Column("action", "Action"),
    Column("state", "State"),
    Column("ageSeconds", "Age", age, right=True),
    Column("operation", "Operation"),
    Column("inserted", "Inserted", number, right=True),
    Column("updated", "Updated", number, right=True),
    Column("deleted", "Deleted", number, right=True),
    Column("files", "Files", number, right=True),
    Column("sizeBytes", "Written", size, right=True),
    Column("replacedGroups", "Replaced", number, wide=True, right=True),
    Column("partitions", "Partitions", number, wide=True, right=True),
    Column("checkpointSet", "Checkpoint set", wide=True),
    Column("file", "File", wide=True),
)


def _instants(ctx: TableContext, args: argparse.Namespace) -> tuple[list[Row], dict[str, Row]]:
    """(the newest instants, what the writes among them did)."""
    timeline = load_timeline(ctx)
    before, wrote = archived_rows(ctx, timeline) if args.archived else ([], [])
    instants = [*before, *timeline_rows(timeline)][::-1][: args.limit]
    return instants, {row["instant"]: row for row in [*wrote, *history_rows(ctx, timeline, args.limit)]}


def _who(extra: Mapping[str, str]) -> str | None:
    found = CheckpointSet.of(extra)
    return f"{found.ingest} by {found.by}" if found is not None else None


def run(args: argparse.Namespace) -> int:
    """Print one line for each instant; completed writes say what they did."""
    table = opened(args)
    instants, writes = with_relists(table.context, lambda: _instants(table.context, args))
    rows: list[dict[str, Any]] = []
    for instant in instants:
        done: Row = writes.get(instant["instant"], {}) if instant["state"] == "completed" else {}
        done = done if done.get("action") == instant["action"] else {}
        rows.append(
            {
                "instant": instant["instant"],
                "action": instant["action"],
                "state": instant["state"],
                "ageSeconds": age_seconds(table, instant["instant"]),
                "operation": (done.get("operation") or "").lower() or None,
                "inserted": done.get("inserted"),
                "updated": done.get("updated"),
                "deleted": done.get("deleted"),
                "files": done.get("files"),
                "sizeBytes": done.get("bytes"),
                "replacedGroups": done.get("replaced_groups"),
                "partitions": done.get("partitions"),
                "checkpointSet": _who(done.get("extra_metadata", {})),
                "file": instant["file"],
            }
        )
    emit(Document("InstantList", _COLUMNS, rows), args.output)
    return exits.GOOD
