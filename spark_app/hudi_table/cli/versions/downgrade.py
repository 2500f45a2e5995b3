"""`hudictl downgrade BASE --to VERSION`: what a downgrade of the table version would rewrite; with
`--yes` it is done."""

from __future__ import annotations

import argparse

from hudi_table.api import downgrade_table
from hudi_table.cli.versions.bring import bring


def run(args: argparse.Namespace) -> int:
    """Print what would be rewritten, or what was."""
    return bring(args, downgrade_table)
