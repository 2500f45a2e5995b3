"""The critical section beside other engines: section 2.6 of `docs/explanation/commit-protocol.md`.

Under the lock the timeline is listed, the decision made and published. Who sleeps over his lease in
there decides nothing any more.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from hudi_table.table.timeline.context import TableContext


def section(ctx: TableContext) -> AbstractContextManager[object]:
    """The lock that the table's writers share, held; nothing where there is none."""
    return contextlib.nullcontext() if ctx.lock is None else ctx.lock.section()


def refuse_if_lost(ctx: TableContext) -> None:
    """Right before a decision. Raises WriteAbortedError."""
    if ctx.lock is not None:
        ctx.lock.refuse_if_lost()
