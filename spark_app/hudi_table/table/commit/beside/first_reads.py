"""Under a lock that other engines take too, a write of theirs that began before ours reads before
ours is decided.

Base files of a group go by the instants at which writes began, in every table version: the logs of
versions 8 and 9 alone go by completion. A writer of Hudi's draws its instant, waits for the lock,
and only then reads. Had a commit of ours come before that, it would merge that one and put its file
below it, where no engine shows it (seen of 0.15.0 on version 6 and of 1.2.0 on 8). If it has read
before, Hudi looks for conflicts and finds ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_table.model.timeline.instants import WRITE_ACTIONS, State, comparable_time
from hudi_table.table.commit.beside.heartbeat import their_beat
from hudi_table.table.commit.beside.locking import may_decide, section
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.timeline import Timeline

WAIT_SECONDS_MAX = 5.0
"""How long a commit lets others read first, in all: a writer that is slow to begin holds up nobody
for longer."""
LOOK_SECONDS = 0.2


@contextmanager
def section_behind_reads(ctx: TableContext, own: str) -> Iterator[Timeline | None]:
    """The lock, held for the write of the instant `own`; given back for a while where a live write
    of another engine that began before has not read yet.

    What it commits meanwhile is found by who lists the timeline inside, as ever. Given is the
    listing that was made inside, if one was.
    """
    if ctx.lock is None or may_decide(ctx):
        # In a section of the caller's there is nothing that could be given back.
        with section(ctx):
            yield None
        return
    left = WAIT_SECONDS_MAX
    while True:
        with section(ctx):
            listed = list_timeline(ctx) if left > 0 else None
            if listed is None or not _waits_to_read(ctx, own, listed):
                yield listed
                return
        left -= _given_back(ctx, own, left)


def _given_back(ctx: TableContext, own: str, seconds: float) -> float:
    """Wait without the lock until nobody has to read first, or for so many seconds; how many it
    took."""
    begun = ctx.clock.boot_seconds()
    while True:
        ctx.clock.sleep(min(LOOK_SECONDS, seconds))
        passed = ctx.clock.boot_seconds() - begun
        if passed >= seconds or not _waits_to_read(ctx, own, list_timeline(ctx)):
            return max(passed, LOOK_SECONDS)


def _waits_to_read(ctx: TableContext, own: str, listed: Timeline) -> bool:
    """Whether a write of another engine that began before shows its requested file alone, and a
    fresh heartbeat."""
    waiting = [
        instant.time
        for instant in listed.pending
        if instant.state is State.REQUESTED
        and instant.action in WRITE_ACTIONS
        and comparable_time(instant.time) < comparable_time(own)
    ]
    return bool(waiting) and any(is_theirs_and_alive(ctx, time) for time in waiting)


def is_theirs_and_alive(ctx: TableContext, time: str) -> bool:
    """By its heartbeat. A writer of ours that reads a higher instant than its own draws a new one,
    so it need not come first."""
    beat = their_beat(ctx, time)
    return beat is not None and (store_now(ctx) - beat).total_seconds() < ctx.heartbeat.tolerance
