"""`hudictl restore BASE SAVEPOINT`: what going back to a savepoint would undo; with `--yes` the
table goes back."""

from __future__ import annotations

import argparse

from hudi_table.cli.opened import opened
from hudi_table.cli.services.going_back import TAKEN_BACK, undo


def run(args: argparse.Namespace) -> int:
    """Print what would go, or what went."""
    table = opened(args)
    service = table.services.restore(args.savepoint, writers_stopped=args.writers_stopped)
    return undo(args, table, service, TAKEN_BACK)
