"""The critical section beside other engines: section 2.6 of `docs/explanation/commit-protocol.md`.

Under the lock the timeline is listed, the decision made and published. Who sleeps over his lease in
there decides nothing any more. Which lock it is Hudi's options say. Locks are imported where one is
asked for: most programs take none.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from hudi_table.errors import InvalidOptionError, WriteAbortedError
from hudi_table.model.options.known import check_options
from hudi_table.table.timeline.context import TableContext

_WHAT, _WHY = "the lock that the table's writers share", "its lease has ended, or another took it"
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


def refuse_if_lost(ctx: TableContext) -> None:
    """What was done in a section before a decision holds no more once the lock was lost, though it
    may be had again. Raises WriteAbortedError."""
    if ctx.lock is not None and ctx.lock.is_lost():
        raise lock_lost()


def lock_lost() -> WriteAbortedError:
    """The error of who finds it right before a decision."""
    from hudi_table.table.locks.lease import lost

    return lost(_WHAT, _WHY)


def may_decide(ctx: TableContext) -> bool:
    """Whether nobody else can have the lock yet; a table without one has nobody who waits for
    it."""
    return ctx.lock is None or ctx.lock.lasts()


def with_lock(ctx: TableContext, lock: Mapping[str, str]) -> TableContext:
    """The table whose commits, plans and recoveries hold the lock that `lock` describes. Raises
    InvalidOptionError, also for options of something else."""
    from hudi_table.model.options.lock_settings import PREFIX, names_lock

    check_options(lock)
    strange = sorted(name for name in lock if not names_lock(name))
    if strange:
        raise InvalidOptionError(f"`lock` has the option {strange[0]!r}: it takes those that begin with {PREFIX!r}")
    found = locked(ctx, lock)
    if found.lock is None:
        raise InvalidOptionError(f"`lock` names no lock: give options that begin with {PREFIX!r}, the provider first")
    return found


def locked(ctx: TableContext, options: Mapping[str, str]) -> TableContext:
    """The table as a call with these options sees it: under the lock that they name, if they name
    one, with heartbeats as they say.

    Raises InvalidOptionError for a lock that cannot be, for another than the table was opened with,
    and for optimistic concurrency control without any.
    """
    from hudi_table.model.options.lock_settings import (
        MODE,
        PREFIX,
        asks_for_control,
        heartbeat_settings,
        lock_settings,
        names_lock,
    )

    if not any(names_lock(name) for name in options):
        return ctx
    heartbeat = heartbeat_settings(options)
    if heartbeat is not None:
        ctx = replace(ctx, heartbeat=heartbeat)
    settings = lock_settings(
        options, base_path=ctx.base_path, table_name=ctx.config.name, environment=os.environ, known=ctx.lock is not None
    )
    if settings is None:
        if ctx.lock is None and asks_for_control(options):
            raise InvalidOptionError(
                f"option {MODE!r}={options[MODE]} needs the lock that the other writers take: name it by {PREFIX + 'provider'!r}"
            )
        return ctx
    if ctx.lock is None:
        from hudi_table.table.locks.opening import open_lock
        from hudi_table.table.locks.shared import SharedLock

        return replace(ctx, lock=SharedLock(open_lock(settings, ctx.storage, ctx.clock), settings))
    if ctx.lock.settings != settings:
        raise InvalidOptionError(
            f"options that begin with {PREFIX!r} describe another lock than the one that the table was opened with: leave them out"
        )
    return ctx
