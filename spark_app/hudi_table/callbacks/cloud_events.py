"""A commit as a CloudEvent: structured JSON of version 1.0, whose id is the table and the instant.

Facts (CloudEvents 1.0.2, JSON format): the media type of one event is
`application/cloudevents+json`; `specversion`, `id`, `source` and `type` are required; source and id
together name an event, and one that comes twice has both again.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from hudi_table.callbacks.commits import Commit
from hudi_table.table.timeline.context import TableContext

MEDIA_TYPE = "application/cloudevents+json; charset=UTF-8"
EVENT_TYPE = "dev.lakeops.hudi.commit.v1"


def event_of(ctx: TableContext, commit: Commit) -> dict[str, Any]:
    """The event of a commit."""
    name = ctx.config.name
    return {
        "specversion": "1.0",
        "id": f"{name}/{commit.instant}",
        "source": ctx.base_path,
        "type": EVENT_TYPE,
        "subject": name,
        "time": rfc3339(commit.completed),
        "datacontenttype": "application/json",
        "data": data_of(commit) | {"table": name},
    }


def data_of(commit: Commit) -> dict[str, Any]:
    """The data of a commit's event, by stable names."""
    return {
        "instant": commit.instant,
        "action": commit.action,
        "operation": commit.operation,
        "kind": commit.kind.value,
        "rowsWritten": commit.rows_written,
        "rowsInserted": commit.rows_inserted,
        "rowsUpdated": commit.rows_updated,
        "rowsDeleted": commit.rows_deleted,
        "files": commit.files,
        "bytesWritten": commit.bytes_written,
        "partitions": commit.partitions,
        "schemaChanged": commit.schema_changed,
        "checkpoints": [dict(each) for each in commit.checkpoints],
    }


def body_of(event: dict[str, Any]) -> bytes:
    """The bytes that are signed and sent."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def rfc3339(moment: datetime) -> str:
    """A moment of UTC, to the millisecond."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
