"""`hudictl rollback BASE INSTANT`: what taking the newest write back would undo; with `--yes` it is
taken back. With `--lost FILE` the lost files of a pending compaction are given up."""

from __future__ import annotations

import argparse

from hudi_table.cli.opened import opened
from hudi_table.cli.services.going_back import TAKEN_BACK, undo


def run(args: argparse.Namespace) -> int:
    """Print what would go, or what went."""
    table = opened(args)
    service = table.services.rollback(args.instant, writers_stopped=args.writers_stopped, lost=args.lost)
    return undo(args, table, service, "gives these files and their rows up for ever" if args.lost else TAKEN_BACK)
