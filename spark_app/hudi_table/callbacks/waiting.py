"""Waiting until a commit has completed after a position: for sensors of schedulers and scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from hudi_table.callbacks.commits import Page, commits_after
from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.position import Position
from hudi_table.errors import InvalidOptionError, UnavailableError
from hudi_table.metadata.port import open_context
from hudi_table.read.moments import Moment
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.context import TableContext

POLL_SECONDS = 5.0
UNAVAILABLE_MAX = 5
"""So many looks in a row that a store does not answer end the wait."""


def commits_since(
    uri: str | Path,
    since: Moment,
    *,
    kinds: Collection[CommitKind] = (CommitKind.WRITE,),
    storage_options: Mapping[str, str] | None = None,
) -> Page:
    """What has completed since a position, an instant, a time or `earliest`, at most a page. It
    returns at once, so a sensor may ask as often as its scheduler likes: `str(page.position)` is
    the `since` of the next time. Raises InvalidOptionError, TableNotFoundError, UnavailableError,
    …"""
    ctx = open_context(open_storage(str(uri), storage_options))
    return commits_after(ctx, Position.parse(since, ctx.config.timezone), kinds=kinds)


def wait_for_commit(
    uri: str | Path,
    since: Moment,
    *,
    timeout: float | None = None,
    poll: float = POLL_SECONDS,
    kinds: Collection[CommitKind] = (CommitKind.WRITE,),
    storage_options: Mapping[str, str] | None = None,
) -> Page | None:
    """`commits_since`, asked every `poll` seconds until there is one; None once `timeout` seconds
    have passed without. A store that does not answer for a while is asked again."""
    if poll <= 0:
        raise InvalidOptionError(f"poll is {poll}: give seconds, such as 5")
    ctx = open_context(open_storage(str(uri), storage_options))
    return wait_in(ctx, Position.parse(since, ctx.config.timezone), timeout=timeout, poll=poll, kinds=kinds)


def wait_in(
    ctx: TableContext, position: Position, *, timeout: float | None, poll: float, kinds: Collection[CommitKind]
) -> Page | None:
    """`wait_for_commit` of a table that is open."""
    clock = ctx.clock
    ends = None if timeout is None else clock.boot_seconds() + timeout
    unanswered = 0
    while True:
        more = False
        try:
            page = commits_after(ctx, position, kinds=kinds)
            unanswered = 0
            if page.told:
                return page
            position, more = page.position, page.more
        except UnavailableError:
            unanswered += 1
            if unanswered >= UNAVAILABLE_MAX:
                raise
        left = None if ends is None else ends - clock.boot_seconds()
        if left is not None and left <= 0:
            return None
        if not more:
            clock.sleep(poll if left is None else min(poll, left))
