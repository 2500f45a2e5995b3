"""A table in one row: how it is, how fresh, its debt, what is at work. Computed from documents;
nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.manifests.quantities import human_bytes
from hudi_table.model.counts import counted


def row(table: Document, services: Sequence[Document], now: datetime) -> dict[str, Any]:
    """The row of one HudiTable; `services` are its TableServices. Times in seconds, sizes in
    bytes."""
    status = documents.status_of(table)
    timeline, data = status.get("timeline") or {}, status.get("data") or {}
    ready = documents.condition_of(table, "Ready")
    own = [service for service in services if documents.table_of(service) == documents.name_of(table)]
    return {
        "namespace": documents.namespace_of(table),
        "name": documents.name_of(table),
        "health": health(table),
        "reason": ready.get("reason"),
        "message": ready.get("message"),
        "type": table.get("spec", {}).get("type"),
        "location": table.get("spec", {}).get("location"),
        "lastInstant": timeline.get("lastInstant"),
        "lastCommitSeconds": since(timeline.get("lastTime"), now),
        "waitingFiles": sum(int(each.get("pendingFiles") or 0) for each in status.get("ingest") or ()),
        "lag": status.get("lag"),
        "records": data.get("records"),
        "files": data.get("files"),
        "bytes": data.get("bytes"),
        "logBytes": data.get("logBytes"),
        "debts": list(debts(table)),
        "running": [_at_work(run, now) for each in (table, *own) for run in documents.running_of(each)],
        "advice": list(advice(table)),
        "plansWaiting": [documents.name_of(each) for each in own if waits(each)],
    }


def health(table: Document) -> str:
    """One word: the worst decides. An empty table that works is healthy."""
    if table["metadata"].get("deletionTimestamp"):
        return "Deleting"
    if not documents.conditions_of(table):
        return "NotSeen"
    if documents.is_true(table, "Stalled"):
        return "Stalled"
    ready = documents.condition_of(table, "Ready")
    if not documents.is_seen(table):
        return "Outdated"
    if ready.get("status") != "True":
        return {"NoTable": "Empty", "Running": "Starting", "Ingesting": "Starting"}.get(
            str(ready.get("reason")), "Unknown" if ready.get("status") == "Unknown" else "NotReady"
        )
    return "Suspended" if documents.is_suspended(table) else "Ready"


def debts(table: Document) -> Iterator[str]:
    """The debts of a table, a few words each."""
    data = documents.status_of(table).get("data") or {}
    reasons = {
        each["type"]: each.get("reason") for each in documents.conditions_of(table) if each.get("status") == "False"
    }
    if "Compacted" in reasons:
        yield f"{human_bytes(data.get('logBytes') or 0)} of logs"
    if "WellSized" in reasons:
        ratio = data.get("smallFileRatio")
        yield f"{float(ratio) * 100:.0f}% small files" if ratio is not None else "small files"
    if "Clean" in reasons:
        yield "failed writes" if reasons["Clean"] == "FailedWrites" else "old slices"
    if "Archived" in reasons:
        files = (documents.status_of(table).get("timeline") or {}).get("files")
        yield counted(files, "timeline file")
    if "MetadataTable" in reasons:
        yield "no metadata table"
    if documents.is_true(table, "ResizeNeedsApproval"):
        yield "resize wanted"
    if documents.is_true(table, "UpgradeNeedsApproval"):
        yield "upgrade wanted"
    if documents.condition_of(table, "ReadersServed").get("status") == "False":
        yield "a reader is lost"


def advice(table: Document) -> Iterator[str]:
    """What its index is advised, a few words; the sentences stand in the status."""
    index = documents.index_of(table)
    if index.get("advice"):
        yield f"index {index['better']}" if index.get("better") else f"index {index.get('type')}: see why"


def waits(service: Document) -> bool:
    """Whether a plan waits for somebody's approval."""
    plan = documents.plan_of(service)
    return bool(plan) and plan.get("digest") != service.get("spec", {}).get("approve") and not plan.get("stale")


def since(moment: str | None, now: datetime) -> int | None:
    """Whole seconds since an RFC 3339 moment."""
    return None if not moment else max(0, round((now - datetime.fromisoformat(moment)).total_seconds()))


def _at_work(run: Document, now: datetime) -> dict[str, Any]:
    return {"work": run.get("work"), "name": run.get("name"), "seconds": since(run.get("started"), now)}
