"""How long the timeline is, and whether archiving could make it shorter: what an operator
watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hudi_table.model.service.debt import ArchivingDebt
from hudi_table.services.archiving.plan import Present, plan_archiving
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.archiving.replaced import Replaced
from hudi_table.table.commit.undo import decided_undos
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

TIMELINE_FILES_MAX = 1_000
"""What stores list in one request; a longer timeline costs every reader and writer a second one."""
TIMELINE_FILES_WARN = 800


@dataclass(frozen=True, slots=True)
class TimelineDebt:
    """`files` directly under `.hoodie/`, `writes` completed ones on the active timeline. `warn`:
    archive soon."""

    files: int
    writes: int
    warn: bool


def timeline_debt(timeline: Timeline) -> TimelineDebt:
    """The figures of one listing, which costs no request of its own."""
    files = len(timeline.files)
    return TimelineDebt(files, len(timeline.commits), files >= TIMELINE_FILES_WARN)


def archiving_debt(ctx: TableContext, timeline: Timeline, options: Mapping[str, str]) -> ArchivingDebt:
    """What an archiving with these options would find. Raises InvalidOptionError as it would.

    Of the metadata table nothing is asked: archiving compacts it first, so it holds nothing back
    for long. The store is asked only where a replacecommit is next to leave.
    """
    policy = ArchivePolicy.parse(options)
    present = Present.of(ctx, ctx.clock.now())
    found = plan_archiving(timeline, policy, present, gone=Replaced(ctx).gone, undone=partial(decided_undos, ctx))
    most = policy.limits(timeline.commits)[1]
    return ArchivingDebt(len(timeline.commits), most, found.writes, found.due, found.held_by)
