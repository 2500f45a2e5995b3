"""`hudictl cluster BASE`: what a clustering would do, and with `--yes` its plan and execution."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import opened, option_arguments
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.services.rewrites import COLUMNS, planned
from hudi_table.model.service.services import ServiceResult

_COLUMNS = (*COLUMNS, Column("details", "GROUPS", wide=True))


def run(args: argparse.Namespace) -> int:
    """Print what waits and what would be planned, or was planned and executed, oldest first."""
    service = opened(args).services.clustering(option_arguments(args.option), force=args.now)
    rows: list[dict[str, Any]] = []
    if args.yes and not args.schedule:
        with bar() as progress:
            rows = [_executed(result) for result in service.run(progress=progress)]
    else:
        if not args.schedule:
            rows = [{"instant": instant, "done": "waits for its execution"} for instant in service.pending()]
        plan = service.schedule() if args.yes else service.plan()
        rows += [planned(plan, "planned, " if plan.instant else "would be planned, ")] if plan is not None else []
    emit(Document("ClusteringList", _COLUMNS, rows), args.output)
    for line in (line for item in rows for line in item.get("details", ())):
        note(line)
    if not rows:
        left = (
            "nothing is left to cluster"
            if args.now
            else "none is due; --now plans one for all small files that there are"
        )
        note(f"no clustering waits, and {left}")
    elif not args.yes:
        note("nothing was changed; --yes does it")
    return exits.GOOD


def _executed(result: ServiceResult) -> dict[str, Any]:
    figures = {key: int(result.figures[key]) for key in (column.key for column in _COLUMNS) if key in result.figures}
    return {"instant": result.instant, "done": "clustered", **figures}
