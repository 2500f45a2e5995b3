"""Under a lock that other engines take too, the instant of a compaction's plan lies ahead of the
clock until its file is there (version 6).

Section 2.6 of `docs/explanation/commit-protocol.md`. Logs go there to the slice of the instant in
their names. Hudi's writers draw an instant by their clocks and read without the lock, and when they
commit they look at those pending plans alone that are later than themselves. So a plan whose
instant has passed when its file appears is not found by who began in between, and its compaction
leaves his rows out. Hudi itself lets its clocks catch up under the lock before it uses an instant.
"""

from __future__ import annotations

from datetime import timedelta

from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.instants import (
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
    format_instant_time,
    parse_instant,
)
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.timeline import Timeline

AHEAD_SECONDS, AHEAD_SECONDS_MAX = 2.0, 32.0
"""How far ahead of the clock the instant is drawn: longer than it mostly takes from there to the
file. Where that is too short it is drawn twice as far ahead, up to this."""
SKEW_SECONDS = 0.5
"""So far it lies ahead still when the file is created: clocks may be apart. Hudi allows for 0.2."""


class CameLate(Exception):  # noqa: N818 - no error: another instant is drawn
    """Raised before the decision of a plan whose instant has passed."""


def needs_to_be_ahead(ctx: TableContext, planned: Instant | None) -> bool:
    """Whether this is the plan of a compaction of which that holds."""
    if ctx.lock is None or ctx.layout.tells_completions or planned is None:
        return False
    return planned.action is Action.COMPACTION and planned.state is State.REQUESTED


def floor_ahead(ctx: TableContext, seconds: float) -> str:
    """An instant that lies so far ahead of the clock."""
    return format_instant_time(local_now(ctx) + timedelta(seconds=seconds))


def came_late(ctx: TableContext, name: str, listed: Timeline | None = None) -> bool:
    """Whether the plan's file `name`, which is not there yet, would come too late: its instant has
    passed by the clock, or a listing shows a live write of another engine, whose clock is ahead,
    that began behind it."""
    planned = parse_instant(name)
    if planned is None or not needs_to_be_ahead(ctx, planned):
        return False
    own = comparable_time(planned.time)
    if floor_ahead(ctx, SKEW_SECONDS) >= own:
        return True
    # Who decides no plan, and who reads, loads nothing of this.
    from hudi_table.table.commit.beside.first_reads import is_theirs_and_alive

    later = () if listed is None else listed.pending
    return any(
        i.action in WRITE_ACTIONS and comparable_time(i.time) > own and is_theirs_and_alive(ctx, i.time) for i in later
    )


def refuse_late(ctx: TableContext, name: str, listed: Timeline) -> None:
    """Raise CameLate for a plan that must not be decided any more."""
    if came_late(ctx, name, listed):
        raise CameLate


def late(ctx: TableContext, time: str) -> WriteConflictError:
    """The error of a planner that came too late."""
    return WriteConflictError(
        f"the instant {time} of a compaction's plan had passed before the plan was there, and a write of another engine could have "
        "begun in between, which does not see it; nothing of the plan is visible, plan again",
        base_path=ctx.base_path,
        instant=time,
    )


def wait_until_passed(ctx: TableContext, time: str, seconds: float) -> None:
    """Let the clock catch up, for hardly longer than that: else what we decide meanwhile would have
    an instant later than those of others who begin behind it."""
    from hudi_table.table.commit.beside.first_reads import LOOK_SECONDS

    end = ctx.clock.boot_seconds() + seconds + LOOK_SECONDS
    while (left := end - ctx.clock.boot_seconds()) > 0 and floor_ahead(ctx, 0.0) <= comparable_time(time):
        ctx.clock.sleep(min(left, LOOK_SECONDS))
