"""A first write of another engine that is under way when ours begins the table.

The founding commit moves the timeline's start behind it: on version 6 readers take its files for
committed ones from then on, and nothing takes them back if it dies. So all that is pending goes
first, and a live write must have ended before. Every writer of ours founds before it writes a file;
so who has markers, or a heartbeat of Hudi's, is another engine, and alive by their age. A mere
claim tells nothing, and has no file to lose.
"""

from __future__ import annotations

from datetime import datetime

from hudi_table.errors import UnavailableError
from hudi_table.model.names import TEMP, join
from hudi_table.table.commit.beside.heartbeat import their_beat
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


def live_first_write(ctx: TableContext, timeline: Timeline, claim: str) -> str | None:
    """The instant of a pending write on a table without completed ones that another engine goes on
    with, None if there is none. `claim` is the caller's, whose age is the store's present."""
    others = [i.time for i in timeline.pending if i.is_write and i.file_name != claim]
    if not others:
        return None
    now, given_up = timeline.files[claim], open_rollbacks(ctx, timeline)
    decided = chain.find_decisions(ctx, others, chain.read_tail(ctx).sequence)
    undecided = (time for time in others if time not in decided and time not in given_up)
    return next((time for time in undecided if _is_at_work(ctx, timeline, time, now)), None)


def _is_at_work(ctx: TableContext, timeline: Timeline, time: str, now: datetime) -> bool:
    signs = [info.modified for info in ctx.storage.list(join(TEMP, time))]
    beat = their_beat(ctx, time)
    signs += [] if beat is None else [beat]
    if not signs:
        return False
    newest = max([*signs, *(timeline.files[name] for name in timeline.claim_names(time))])
    return (now - newest).total_seconds() < ctx.settings.suspect_after_seconds


def under_way(ctx: TableContext, time: str) -> UnavailableError:
    """What a writer is told who may not begin the table yet."""
    return UnavailableError(
        f"another engine makes the table's first write at instant {time}; write again when that has ended, or {ctx.settings.suspect_after_seconds:.0f} s "
        "after its last sign of life if its process is dead",
        base_path=ctx.base_path,
        instant=time,
    )
