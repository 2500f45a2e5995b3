"""What people read, to the letter: the timeline, plans and the report of given documents.
HUDI_GOLDEN=write writes the files anew."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hudi_operator.cli.kubectl import plans
from hudi_operator.cli.kubectl.verb_report import content, text
from hudi_operator.cli.kubectl.verb_timeline import COLUMNS, instants
from hudi_operator.cli.redaction import redacted
from hudi_operator.plan.status.why import Facts
from hudi_table.cli.output import Document
from tests.support.manifests import manifest, spec, stored

FOLDER = Path(__file__).parent / "golden"
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SINCE = "2026-01-01T00:55:00Z"


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


RUNS = [
    {"name": "flights-feed-1-2", "work": "Ingest/feed", "phase": "Running", "attempt": 2, "started": "2026-01-01T00:59:48Z"},
    {
        "name": "flights-feed-1-1", "work": "Ingest/feed", "phase": "Succeeded", "attempt": 1,
        "started": "2026-01-01T00:54:50Z", "finished": "2026-01-01T00:55:01Z", "instants": ["20260101005500000"],
        "message": "336,776 rows inserted",
    },
]  # fmt: skip
TABLE = stored(
    manifest(
        **spec(type="MergeOnRead", index={"type": "Simple"}, spark={"conf": {"spark.hadoop.fs.s3a.secret.key": "canary"}})
    ),
    status={
        "observedGeneration": 1,
        "conditions": [
            condition("Ready", "True", "TableReadable", "336,776 records in 24 files"),
            condition("Compacted", "False", "LogFiles", "5.0 MiB of log files wait to be compacted"),
        ],
        "timeline": {
            "lastInstant": "20260101005500000", "lastAction": "deltacommit", "lastTime": SINCE, "commits": 2, "files": 9,
            "pending": ["20260101005700000.compaction.REQUESTED"],
        },
        "data": {"records": 336776, "files": 24, "bytes": 12345678, "logBytes": 5 << 20, "smallFileRatio": "0.08"},
        "ingest": [{"name": "feed", "pendingFiles": 3, "lag": "5m", "consumedFiles": 1, "lastCommit": "20260101005500000"}],
        "services": [{"type": "Cleaning", "last": "20260101004000000", "commitsSince": 1, "pending": []}],
        "runs": RUNS,
    },
)  # fmt: skip
SHRINK = stored(
    manifest("shrink", "TableService", tableRef={"name": "flights"}, type="Clustering", mode="Plan"),
    status={
        "observedGeneration": 1, "phase": "Planned",
        "plan": {
            "digest": "3f2a91bc00112233", "why": "asked for", "fileGroups": 2, "filesBefore": 7, "filesAfter": 2,
            "bytesRead": 73400320, "bytesWritten": 71303168, "bytesFreed": 0, "predictedSeconds": 6.9, "made": SINCE,
        },
    },
)  # fmt: skip
EVENT = {
    "metadata": {}, "type": "Normal", "reason": "Started", "message": "Ingest/feed: attempt 2 as flights-feed-1-2",
    "involvedObject": {"name": "flights"}, "lastTimestamp": "2026-01-01T00:59:48Z", "count": 1,
}  # fmt: skip


def assert_golden(name: str, found: str) -> None:
    path = FOLDER / name
    if os.environ.get("HUDI_GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text()


def test_a_timeline() -> None:
    assert_golden("timeline.txt", Document("InstantList", COLUMNS, instants(TABLE, [SHRINK], NOW)).render("wide"))


def test_plans() -> None:
    assert_golden("plans.txt", Document("PlanList", plans.COLUMNS, [plans.row(SHRINK)]).render("wide"))


def test_a_report() -> None:
    facts = Facts(services=[SHRINK], events=[EVENT], holder="operator-1")
    page = redacted(content(TABLE, facts, {"gitVersion": "v1.35.4"}, NOW))
    found = text(page, TABLE, NOW)
    assert "canary" not in found
    assert_golden("report.txt", found)
