"""`hudictl keystore BASE`: what an external index has of the table; `--check` looks whether it is
right, `--rebuild` takes all in anew."""

from __future__ import annotations

import argparse

from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.model.counts import counted
from hudi_table.read.output.human import number
from hudi_table.services.index.key_store import rebuild_store, store_state

_COLUMNS = (
    Column("index", "INDEX"),
    Column("fileGroups", "FILE GROUPS", number, right=True),
    Column("recorded", "RECORDED", number, right=True),
    Column("keys", "KEYS", number, right=True),
    Column("missing", "MISSING", number, right=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the state of the store, after rebuilding it if that is asked."""
    table = opened(args)
    ctx = table.context
    state = rebuild_store(ctx) if args.rebuild and args.yes else store_state(ctx, check=args.check)
    missing = None if state.missing is None else sum(state.missing.values())
    found = {
        "index": ctx.config.index.class_name if ctx.config.index else "",
        "fileGroups": state.file_groups,
        "recorded": state.recorded,
        "keys": state.keys,
        "missing": missing,
    }
    emit(Document("KeyStoreList", _COLUMNS, [found]), args.output)
    for (partition, file_id), count in (state.missing or {}).items():
        note(
            f"{counted(count, 'key')} of file group {file_id} of partition {partition!r} missing; writes would insert what is missing again"
        )
    if missing:
        note("stop the writers, type --rebuild --yes, and look for keys that came twice: hudictl doctor --keys")
        return exits.FINDINGS
    if args.rebuild and not args.yes:
        note(
            f"nothing was changed; --yes forgets {counted(state.keys, 'key')} and reads those of {counted(state.file_groups, 'file group')}"
        )
    return exits.GOOD
