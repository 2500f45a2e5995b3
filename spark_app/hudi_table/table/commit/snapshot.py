"""The snapshot of an attempt: a listing that shows everything that was decided before it.

Step 3 of section 2.1 of `docs/explanation/commit-protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_table.errors import UnavailableError, UnsupportedTableError
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.commit.publish import materialise_predecessors
from hudi_table.table.commit.undo import finish_undos
from hudi_table.table.store import retry
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import timeline_with
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.version_change import refuse_beside_change

DECIDED_LISTINGS_MAX = 100


def caught_up(ctx: TableContext) -> tuple[Timeline, ChainTail]:
    """The timeline once everything that is decided is published, and what is to be taken back is
    taken back; and the chain's tail."""
    tail = chain.read_tail(ctx)
    return decided_timeline(ctx, "", "", tail), tail


def decided_timeline(
    ctx: TableContext, time: str, claim: str, tail: ChainTail, reads: Callable[[Timeline], object] = lambda _: None
) -> Timeline:
    """A listing that shows everything that was decided up to the tail, and no rollback or restore
    that is pending: one may come while another is carried out. Or one in which the claim, if any,
    does not stand."""
    for _ in range(DECIDED_LISTINGS_MAX):
        timeline, _ = timeline_with(ctx, reads)
        if claim and not holds(timeline, time, claim):
            return timeline
        try:
            refuse_beside_change(ctx, timeline)
        except UnsupportedTableError:
            if claim:
                # Nothing was written under it, and the change waits for what is pending.
                retry.delete(ctx.storage, ctx.layout.timeline_path(claim))
            raise
        if not materialise_predecessors(ctx, timeline, time, tail.sequence) and not finish_undos(ctx, timeline):
            return timeline
    raise restless(ctx)


def restless(ctx: TableContext) -> UnavailableError:
    """What is raised when listing follows listing."""
    return UnavailableError(
        f"the timeline did not come to rest in {DECIDED_LISTINGS_MAX} listings; rollbacks or restores follow each other, try again",
        base_path=ctx.base_path,
    )


def holds(timeline: Timeline, time: str, claim: str) -> bool:
    """Whether the claim stands: still there, alone at its time (writers and planners claim under
    different names), and newer than everything that had completed."""
    return comparable_time(timeline.newest_settled) < time and timeline.is_alone(time, claim)
