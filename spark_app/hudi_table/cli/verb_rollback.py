"""`hudictl rollback BASE INSTANT`: what taking the newest write back would undo; with `--yes` it is taken back."""

from __future__ import annotations

import argparse

from hudi_table.cli.undoing import undo
from hudi_table.services.restoring.service import ROLLBACK_SERVICE


def run(args: argparse.Namespace) -> int:
    """Print what would go, or what went."""
    return undo(args, ROLLBACK_SERVICE, args.instant)
