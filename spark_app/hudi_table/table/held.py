"""Which file groups a pending plan holds: no other plan takes them, and no writer that would be lost on them."""

from __future__ import annotations

from hudi_table.model.instants import Instant
from hudi_table.table.clusterings import ClusteringPlan, pending_clusterings
from hudi_table.table.compactions import planned_groups
from hudi_table.table.context import TableContext
from hudi_table.table.rollback import open_rollbacks
from hudi_table.table.timeline import Timeline

Groups = dict[tuple[str, str], str]
"""(partition, file id) → the plan's instant."""


def held_groups(ctx: TableContext, timeline: Timeline) -> Groups:
    """The groups of every pending compaction, log compaction and clustering. Raises CorruptTableError."""
    return planned_groups(ctx, timeline) | clustered_groups(ctx, timeline)


def clustered_groups(ctx: TableContext, timeline: Timeline) -> Groups:
    """Those of clusterings that are not being rolled back."""
    return {
        (item.partition, item.file_id): instant.time
        for instant, plan in live_clusterings(ctx, timeline).items()
        for item in plan.slices
    }


def live_clusterings(ctx: TableContext, timeline: Timeline) -> dict[Instant, ClusteringPlan]:
    """Pending clusterings that can still complete."""
    found = pending_clusterings(ctx, timeline)
    if not found:
        return found
    given_up = open_rollbacks(ctx, timeline)
    return {instant: plan for instant, plan in found.items() if instant.time not in given_up}
