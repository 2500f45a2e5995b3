"""`hudictl wait BASE --since INSTANT`: waits until a commit has completed after an instant, and
prints it and those behind it."""

from __future__ import annotations

import argparse

from hudi_table.callbacks.position import Position
from hudi_table.callbacks.waiting import wait_in
from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import note
from hudi_table.cli.queries.events import kinds_of, show


def run(args: argparse.Namespace) -> int:
    """Exit code 0 with a commit, 6 without one in time."""
    ctx = opened(args).context
    position = Position.parse(args.since, ctx.config.timezone)
    page = wait_in(ctx, position, timeout=args.timeout, poll=args.poll, kinds=kinds_of(args))
    if page is None:
        note(f"no commit within {args.timeout:g} s after {args.since}")
        return exits.TIMED_OUT
    show(ctx, page, args)
    return exits.GOOD
