"""what was done to a table

The status tells the newest writes, services and runs, and works for whoever may read the resource.
The whole timeline lies in the store, which the user's machine may not reach, and whose credentials
are the operator's: `--storage` reads it with the user's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl.access import access
from hudi_operator.plan.status.overview import since
from hudi_table.cli import exits
from hudi_table.cli import main as hudictl
from hudi_table.cli.output import Column, emit, note
from hudi_table.cli.output import Document as Shown
from hudi_table.model.counts import counted
from hudi_table.model.timeline.instants import parse_instant_time
from hudi_table.read.output.human import age
from hudi_table.table.store.clock import SystemClock

ACTIONS = {
    "Compaction": "commit", "LogCompaction": "logcompaction", "Clustering": "replacecommit", "Cleaning": "clean",
    "Savepoint": "savepoint", "Restore": "restore", "Rollback": "rollback", "Resize": "replacecommit", "PartitionTTL": "replacecommit",
    "Indexing": "indexing",
}  # fmt: skip
COLUMNS = (
    Column("instant", "Instant"),
    Column("action", "Action"),
    Column("state", "State"),
    Column("ageSeconds", "Age", age, right=True),
    Column("work", "Work"),
    Column("run", "Attempt", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Print one line for each instant, newest first."""
    cluster = access(args)
    table = cluster.table(args.name)
    if args.storage:
        return hudictl(_hudictl_arguments(args, table))
    rows = instants(table, cluster.services_of(table), SystemClock().now())[: args.limit]
    emit(Shown("InstantList", COLUMNS, rows), args.output)
    commits = (documents.status_of(table).get("timeline") or {}).get("commits", 0)
    if args.output in ("table", "wide"):
        note(
            f"as the status reports it; the active timeline has {counted(commits, 'write')}: --storage reads all of it at {_location(table)}"
        )
    return exits.GOOD


def instants(table: Document, services: list[Document], now: datetime) -> list[dict[str, Any]]:
    """What the status knows of the timeline, newest first."""
    rows: dict[tuple[str, str | None], dict[str, Any]] = {}
    for instant, action, state, run in _instants(table, services):
        # A savepoint bears the instant of the write that it keeps.
        row = rows.setdefault(
            (instant, action), {"instant": instant, "action": action, "state": "completed", "work": None, "run": None}
        )
        row["state"] = state or row["state"]
        row["work"], row["run"] = run.get("work") or row["work"], run.get("name") or row["run"]
    for row in rows.values():
        row["ageSeconds"] = _age(row["instant"], now)
    return sorted(rows.values(), key=lambda row: (str(row["instant"]), str(row["action"])), reverse=True)


def _instants(table: Document, services: list[Document]) -> Iterator[tuple[str, str | None, str | None, Document]]:
    """(instant, action, state, run) as far as each part of the status knows them."""
    status = documents.status_of(table)
    timeline = status.get("timeline") or {}
    written = "deltacommit" if table.get("spec", {}).get("type") == "MergeOnRead" else "commit"
    for resource in (table, *services):
        for run in documents.runs_of(resource):
            work = str(run.get("work")).partition("/")[0]
            for instant in run.get("instants") or ():
                yield instant, written if work == "Ingest" else ACTIONS.get(work), None, run
    for service in status.get("services") or ():
        if service.get("last"):
            yield service["last"], ACTIONS.get(service["type"]), None, {"work": service["type"]}
    for pending in timeline.get("pending") or ():
        instant, _, rest = str(pending).partition(".")
        action, _, state = rest.partition(".")
        yield instant, action, state.lower() or None, {}
    if timeline.get("lastInstant"):
        yield timeline["lastInstant"], timeline.get("lastAction"), None, {}


def _age(instant: str, now: datetime) -> int | None:
    try:
        return since(parse_instant_time(instant).replace(tzinfo=UTC).isoformat(), now)
    except ValueError:
        return None


def _location(table: Document) -> str:
    return str(table.get("spec", {}).get("location"))


def _hudictl_arguments(args: argparse.Namespace, table: Document) -> list[str]:
    """The same question to the store. No credential stands in an argument."""
    store = table.get("spec", {}).get("storage") or {}
    options = [f"{name}={store[name]}" for name in ("endpoint", "region") if store.get(name)]
    limit = ["--limit", str(args.limit)] if args.limit is not None else []
    return [
        "timeline",
        _location(table),
        "-o",
        args.output,
        *limit,
        *(part for each in options for part in ("--storage", each)),
    ]
