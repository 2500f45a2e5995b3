"""Waiting until a commit has completed after a position: for sensors of schedulers and scripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from hudi_table.callbacks.commits import Page, commits_after
from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.position import Position
from hudi_table.errors import InvalidOptionError, TableNotFoundError, UnavailableError
from hudi_table.metadata.port import open_context
from hudi_table.read.moments import Moment
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
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
    return commits_after(*_table(open_storage(str(uri), storage_options), since), kinds=kinds)


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
    have passed without. What has completed is looked through before the time ends, however much it
    is. A store that does not answer for a while is asked again, and a table that is not there yet
    is waited for."""
    if poll <= 0:
        raise InvalidOptionError(f"poll is {poll}: give seconds, such as 5")
    found = wait_at(open_storage(str(uri), storage_options), since, timeout=timeout, poll=poll, kinds=kinds)
    return None if found is None else found[1]


def wait_at(
    storage: Storage,
    since: Moment,
    *,
    timeout: float | None,
    poll: float,
    kinds: Collection[CommitKind],
    absent: Callable[[], None] = lambda: None,
) -> tuple[TableContext, Page] | None:
    """`wait_for_commit` of the table at a storage, and the table. `absent` is called at first where
    there is none yet."""
    Position.parse(since, "UTC")  # Which is refused at once, though its zone is the table's.
    clock = SystemClock()
    ends = None if timeout is None else clock.boot_seconds() + timeout
    table: tuple[TableContext, Position] | None = None
    unanswered = looks = 0
    while True:
        looks += 1
        try:
            table = table or _table(storage, since)
            page = commits_after(*table, kinds=kinds)
            unanswered = 0
            if page.told:
                return table[0], page
            table = table[0], page.position
            if page.more:
                continue
        except TableNotFoundError:
            if table is not None:
                raise
            if looks == 1:
                absent()
        except UnavailableError:
            unanswered += 1
            if unanswered >= UNAVAILABLE_MAX:
                raise
        left = None if ends is None else ends - clock.boot_seconds()
        if left is not None and left <= 0:
            return None
        clock.sleep(poll if left is None else min(poll, left))


def _table(storage: Storage, since: Moment) -> tuple[TableContext, Position]:
    ctx = open_context(storage)
    return ctx, Position.parse(since, ctx.config.timezone)
