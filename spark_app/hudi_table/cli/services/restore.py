"""`hudictl restore BASE SAVEPOINT`: what going back to a savepoint would undo; with `--yes` the table goes back."""

from __future__ import annotations

import argparse

from hudi_table.cli.services.going_back import undo
from hudi_table.services.restoring.service import RESTORE_SERVICE


def run(args: argparse.Namespace) -> int:
    """Print what would go, or what went."""
    return undo(args, RESTORE_SERVICE, args.savepoint)
