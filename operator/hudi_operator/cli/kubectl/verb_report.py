"""everything about a table on one page, without secrets

What somebody who helps needs to see: the table, its manifest, conditions, timeline, runs, debts,
services, causes and events.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import yaml

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import access
from hudi_operator.cli.kubectl.gathered import facts_of
from hudi_operator.cli.kubectl.verb_timeline import instants
from hudi_operator.cli.kubectl.verb_why import text as why_text
from hudi_operator.cli.redaction import redacted
from hudi_operator.plan.status import overview, why
from hudi_operator.plan.status.why import Cause, Facts
from hudi_table.cli import exits
from hudi_table.cli.output import API_VERSION, Column
from hudi_table.cli.output import Document as Shown
from hudi_table.model.counts import counted
from hudi_table.read.output.human import age, size
from hudi_table.table.store.clock import SystemClock

EVENTS_MAX = 20
_HIDDEN_METADATA = ("managedFields", "annotations")


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["report", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    cluster = access(args)
    table = cluster.table(args.name)
    now = SystemClock().now()
    facts = facts_of(cluster, table, now)
    page = redacted(content(table, facts, cluster.rest.get("/version"), now))
    if args.output == "json":
        sys.stdout.write(json.dumps(page, indent=2, ensure_ascii=False) + "\n")
    elif args.output == "yaml":
        sys.stdout.write(str(yaml.safe_dump(page, sort_keys=False, allow_unicode=True)))
    else:
        sys.stdout.write(text(page, redacted(table), now))
    return exits.GOOD


def text(page: dict[str, Any], table: Document, now: datetime) -> str:
    """As people read it."""
    causes = [
        Cause(**{**cause, "level": why.Level(cause["level"]), "next": cause["next"] or ""}) for cause in page["causes"]
    ]
    return "\n".join(_sections(page, table, causes, now))


def content(table: Document, facts: Facts, version: Document, now: datetime) -> dict[str, Any]:
    """The page as a document."""
    status = documents.status_of(table)
    events = sorted(facts.events, key=documents.moment_of)[-EVENTS_MAX:]
    return {
        "apiVersion": API_VERSION,
        "kind": "TableReport",
        "made": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "cluster": {"version": version.get("gitVersion"), "leader": facts.holder},
        "overview": overview.row(table, facts.services, now),
        "metadata": {name: value for name, value in table["metadata"].items() if name not in _HIDDEN_METADATA},
        "spec": table.get("spec"),
        "conditions": list(documents.conditions_of(table)),
        "timeline": {**(status.get("timeline") or {}), "instants": instants(table, list(facts.services), now)},
        "data": status.get("data"),
        "index": status.get("index"),
        "ingest": status.get("ingest"),
        "upkeep": status.get("services"),
        "runs": documents.runs_of(table),
        "notes": status.get("notes"),
        "services": [{"name": documents.name_of(each), "spec": each.get("spec"), "status": each.get("status")} for each in facts.services],
        "causes": [why.row(cause) for cause in why.causes(table, facts, now)],
        "events": [_event(each) for each in events],
    }  # fmt: skip


def _event(event: Document) -> dict[str, Any]:
    return {
        "time": documents.moment_of(event),
        "type": event.get("type"),
        "reason": event.get("reason"),
        "object": (event.get("involvedObject") or {}).get("name"),
        "count": (event.get("series") or {}).get("count") or event.get("count") or 1,
        "message": event.get("message"),
    }


def _sections(page: dict[str, Any], table: Document, causes: list[Cause], now: datetime) -> Iterator[str]:
    row = page["overview"]
    yield f"{row['namespace']}/{row['name']}, {page['made']}"
    yield f"Kubernetes {page['cluster']['version']}, leader {page['cluster']['leader'] or 'not seen'}\n"
    fields = (
        ("health", row["health"]), ("location", row["location"]), ("type", row["type"]),
        ("last commit", f"{row['lastInstant'] or '-'}, {age(row['lastCommitSeconds'])} ago"),
        ("data", f"{counted(row['records'], 'record')}, {counted(row['files'], 'file')}, {size(row['bytes'])}, {size(row['logBytes'])} of logs"),
        ("debt", ", ".join(row["debts"]) or "-"),
    )  # fmt: skip
    yield "".join(f"{name:<12} {value}\n" for name, value in fields)
    yield "WHY\n" + why_text(table, causes, now)
    yield "CONDITIONS\n" + _table(page["conditions"], "type", "status", "reason", "lastTransitionTime", "message")
    yield "TIMELINE\n" + _table(page["timeline"]["instants"], "instant", "action", "state", "work")
    yield "RUNS\n" + _table(page["runs"], "name", "work", "phase", "started", "finished", "message")
    yield "INGEST\n" + _table(page["ingest"] or [], "name", "pendingFiles", "lag", "consumedFiles", "lastCommit")
    yield "UPKEEP\n" + _table(page["upkeep"] or [], "type", "last", "commitsSince", "pending")
    rows = [{"name": s["name"], **s["spec"], "phase": (s["status"] or {}).get("phase")} for s in page["services"]]
    yield "SERVICES\n" + _table(rows, "name", "type", "mode", "schedule", "phase")
    yield "EVENTS\n" + _table(page["events"], "time", "type", "reason", "object", "count", "message")
    yield "SPEC\n" + str(yaml.safe_dump(page["spec"], sort_keys=False, allow_unicode=True))


def _table(rows: list[dict[str, Any]], *names: str) -> str:
    return Shown("Rows", tuple(Column(name, _words(name)) for name in names), rows).render("table") or "-\n"


def _words(name: str) -> str:
    """`pendingFiles` → `pending files`."""
    return re.sub("([A-Z])", lambda capital: f" {capital[1].lower()}", name)
