"""What `hudictl upgrade` and `hudictl downgrade` share: a dry run, and the work itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.program import lock_options, storage_options
from hudi_table.read.output.human import number
from hudi_table.services.upgrading.plan import VersionPlan

_COLUMNS = (
    Column("from", "From"),
    Column("to", "To"),
    Column("done", "Done"),
    Column("timelineFiles", "Timeline files", number, right=True),
    Column("slices", "Slices to compact", number, right=True),
    Column("waiting", "Pending", "; ".join),
    Column("dropped", "Dropped", "; ".join),
    Column("noLonger", "Could not read it", "; ".join),
    Column("unproven", "Not known", "; ".join, wide=True),
    Column("properties", "Properties", "; ".join, wide=True),
)


def bring(args: argparse.Namespace, work: Callable[..., Any]) -> int:
    """Print what would be rewritten; with `--yes`, what was."""
    more = {
        "resume": args.resume,
        "storage_options": storage_options(args.storage),
        "lock": lock_options(args.lock),
    }
    more |= {"readers": args.reader, "savepoint": args.savepoint}
    found = work(args.base, to=args.to, dry_run=not args.yes, **more)
    row = {"from": found.source, "to": found.target, "timelineFiles": found.timeline_files}
    planned = isinstance(found, VersionPlan)
    row |= {"done": "dry run" if planned else found.message, "slices": found.slices if planned else None}
    row |= {
        "waiting": list(found.waiting) if planned else [],
        "dropped": [*found.dropped, *found.savepoints] if planned else [],
    }
    row["properties"] = [_shown(key, value) for key, value in found.properties.items()] if planned else []
    row |= {"noLonger": list(found.no_longer) if planned else [], "unproven": list(found.unproven) if planned else []}
    emit(Document("TableVersion", _COLUMNS, [row], single=True), args.output)
    for line in found.unproven if planned else ():
        note(f"{line}: try it with a copy of the table first")
    if planned and found.source != found.target:
        note("nothing was changed; --yes does it, once every process that writes the table has ended")
    return exits.GOOD


def _shown(key: str, value: str | None) -> str:
    return f"{key} goes" if value is None else f"{key}={value}"
