"""The critical section beside other engines: section 2.6 of `docs/explanation/commit-protocol.md`.

Under the lock the timeline is listed, the decision made and published. Who sleeps over his lease in
there decides nothing any more.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, TypeVar

from hudi_table.table.timeline.context import TableContext

P = ParamSpec("P")
R = TypeVar("R")


def section(ctx: TableContext) -> AbstractContextManager[None]:
    """The lock that the table's writers share, held; nothing where there is none."""
    return contextlib.nullcontext() if ctx.lock is None else ctx.lock.section()


def under_lock(step: Callable[Concatenate[TableContext, P], R]) -> Callable[Concatenate[TableContext, P], R]:
    """A step whose whole is a section. What it goes by it reads itself: what was read before the
    lock was had may have passed."""

    @functools.wraps(step)
    def alone(ctx: TableContext, /, *args: P.args, **more: P.kwargs) -> R:
        with section(ctx):
            return step(ctx, *args, **more)

    return alone


def may_decide(ctx: TableContext) -> bool:
    """Whether nobody else can have the lock yet; a table without one has nobody who waits for
    it."""
    return ctx.lock is None or ctx.lock.lasts()
