"""`hudictl rollback BASE INSTANT`: what taking the newest write back would undo; with `--yes` it is taken back. With `--lost FILE` the lost
files of a pending compaction are given up."""

from __future__ import annotations

import argparse

from hudi_table.cli.services.going_back import give_up_lost, undo
from hudi_table.services.restoring.service import ROLLBACK_SERVICE


def run(args: argparse.Namespace) -> int:
    """Print what would go, or what went."""
    if args.lost:
        return give_up_lost(args)
    return undo(args, ROLLBACK_SERVICE, args.instant)
