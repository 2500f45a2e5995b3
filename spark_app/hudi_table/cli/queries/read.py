"""`hudictl read BASE`: the rows of a table, streamed."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import opened, read_arguments
from hudi_table.cli.rows import Shown
from hudi_table.errors import InvalidOptionError
from hudi_table.model.table.cdc import Images
from hudi_table.read.output.exports import ArrowResult


def run(args: argparse.Namespace) -> int:
    """Print or write the rows."""
    shown = Shown.of(args)
    columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
    shown.write(asked(args, columns, shown.wanted).to_batches())
    return exits.GOOD


def asked(args: argparse.Namespace, columns: list[str] | None, limit: int | None) -> ArrowResult:
    """The rows that the arguments name. Raises InvalidOptionError for arguments that do not go
    together."""
    if args.query != "cdc":
        if args.images is not None:
            raise InvalidOptionError("--images belongs to --query cdc; leave it out")
        return opened(args).scan(columns, args.filter, limit=limit, **read_arguments(args))
    for name, value in (("--filter", args.filter), ("--as-of", args.as_of), ("--meta", args.meta)):
        if value:
            raise InvalidOptionError(f"{name} does not go with --query cdc; leave it out")
    span = {"since": args.since, "until": args.until, "full_scan": args.full_scan}
    return opened(args).changes(images=args.images or Images.DATA_BEFORE_AFTER, columns=columns, limit=limit, **span)
