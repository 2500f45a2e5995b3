"""what keeps a table from going on, and the next command

Exit code 3 if something blocks it, or waits for somebody.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import access
from hudi_operator.cli.kubectl.gathered import facts_of
from hudi_operator.plan.status import overview, why
from hudi_operator.plan.status.why import Cause, Level
from hudi_table.cli import exits
from hudi_table.cli.output import Column, emit
from hudi_table.cli.output import Document as Shown
from hudi_table.read.output.human import age
from hudi_table.table.store.clock import SystemClock

_COLUMNS = tuple(Column(name, name.capitalize()) for name in ("level", "what", "why", "next", "since"))

_FINDINGS = (Level.BLOCKS, Level.FAILED, Level.WAITS)


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["why", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Print every cause, the gravest first."""
    cluster = access(args)
    table = cluster.table(args.name)
    now = SystemClock().now()
    found = why.causes(table, facts_of(cluster, table, now), now)
    if args.output == "text":
        sys.stdout.write(text(table, found, now))
    else:
        emit(Shown("CauseList", _COLUMNS, [why.row(cause) for cause in found]), args.output)
    return exits.FINDINGS if any(each.level in _FINDINGS for each in found) else exits.GOOD


def text(table: Document, causes: Sequence[Cause], now: datetime) -> str:
    """As people read it."""
    name = documents.name_of(table)
    lines = [f"{name}: {_verdict(table, causes)}"]
    for cause in causes:
        since = overview.since(cause.since, now)
        lines += ["", f"{cause.level.value:<6}  {cause.what}{f', for {age(since)}' if since is not None else ''}"]
        lines += [f"        {cause.why}"] if cause.why else []
        lines += [f"        → {cause.next}"] if cause.next else []
    return "\n".join(lines) + "\n"


def _verdict(table: Document, causes: Sequence[Cause]) -> str:
    if any(each.level is Level.BLOCKS for each in causes):
        return "something blocks it"
    if any(each.level is Level.FAILED for each in causes):
        return "nothing blocks it, but a service failed"
    if any(each.level is Level.WAITS for each in causes):
        return "something waits"
    ready = documents.condition_of(table, "Ready")
    said = f"; {ready['message']}" if ready.get("status") == "True" and ready.get("message") else ""
    return f"nothing blocks it{said}"
