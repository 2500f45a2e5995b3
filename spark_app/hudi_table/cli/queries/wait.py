"""`hudictl wait BASE --since INSTANT`: waits until a commit has completed after an instant, and
prints it and those behind it."""

from __future__ import annotations

import argparse

from hudi_table.callbacks.waiting import wait_at
from hudi_table.cli import exits
from hudi_table.cli.output import note
from hudi_table.cli.program import storage_options
from hudi_table.cli.queries.events import kinds_of, show
from hudi_table.table.store.opening import open_storage


def run(args: argparse.Namespace) -> int:
    """Exit code 0 with a commit, 6 without one in time."""
    storage = open_storage(args.base, storage_options(args.storage))

    def absent() -> None:
        note(f"no table lies at {storage.base_path} yet: waiting for it")

    found = wait_at(storage, args.since, timeout=args.timeout, poll=args.poll, kinds=kinds_of(args), absent=absent)
    if found is None:
        note(f"no commit within {args.timeout:g} s after {args.since}")
        return exits.TIMED_OUT
    show(*found, args)
    return exits.GOOD
