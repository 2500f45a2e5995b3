"""`hudictl read BASE`: the rows of a table, streamed."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import opened, read_arguments
from hudi_table.cli.rows import Shown


def run(args: argparse.Namespace) -> int:
    """Print or write the rows."""
    shown = Shown.of(args)
    columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
    scan = opened(args).scan(columns, args.filter, limit=shown.wanted, **read_arguments(args))
    shown.write(scan.to_batches())
    return exits.GOOD
