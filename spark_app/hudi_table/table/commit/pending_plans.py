"""Which file groups a pending plan holds: no other plan takes them, and no writer that would be
lost on them."""

from __future__ import annotations

from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.table.commit.rollback import PendingRollback, open_rollbacks
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringPlan, pending_clusterings
from hudi_table.table.view.compaction_plans import groups_of, pending_plans

Groups = dict[tuple[str, str], str]
"""(partition, file id) → the plan's instant."""


def held_groups(ctx: TableContext, timeline: Timeline) -> Groups:
    """The groups of every pending compaction, log compaction and clustering. Raises
    CorruptTableError."""
    plans = pending_plans(ctx, timeline)
    gone = given_up_log_compactions(ctx, timeline)
    return groups_of({i: slices for i, slices in plans.items() if i not in gone}) | clustered_groups(ctx, timeline)


def given_up_log_compactions(ctx: TableContext, timeline: Timeline) -> frozenset[Instant]:
    """Pending log compactions that are being rolled back: they hold nothing any more."""
    found = [i for i in timeline.pending if i.action is Action.LOG_COMPACTION]
    given_up = open_rollbacks(ctx, timeline) if found else {}
    return frozenset(i for i in found if i.time in given_up)


def compactions_taken_back(ctx: TableContext, timeline: Timeline) -> dict[Instant, PendingRollback]:
    """Pending compactions of which another engine is taking back what it wrote, and by which
    rollback. Their plans stay and hold their groups; until the rollback has ended nobody executes
    them."""
    found = [i for i in timeline.pending if i.action is Action.COMPACTION]
    rollbacks = open_rollbacks(ctx, timeline) if found else {}
    return {i: rollbacks[i.time] for i in found if i.time in rollbacks}


def clustered_groups(ctx: TableContext, timeline: Timeline) -> Groups:
    """Those of clusterings that are not being rolled back."""
    return groups_of({instant: plan.slices for instant, plan in live_clusterings(ctx, timeline).items()})


def live_clusterings(ctx: TableContext, timeline: Timeline) -> dict[Instant, ClusteringPlan]:
    """Pending clusterings that can still complete."""
    found = pending_clusterings(ctx, timeline)
    if not found:
        return found
    given_up = open_rollbacks(ctx, timeline)
    return {instant: plan for instant, plan in found.items() if instant.time not in given_up}


def pending_resize(ctx: TableContext, timeline: Timeline) -> str | None:
    """The instant of the plan that is to change the number of buckets, if one waits for its
    execution."""
    found = [i.time for i, plan in live_clusterings(ctx, timeline).items() if plan.is_resize]
    return found[0] if found else None


def refuse_while_resizing(ctx: TableContext, timeline: Timeline) -> None:
    """Refuse to write while the table waits to be rewritten into other buckets. Raises
    WriteConflictError that names the plan."""
    waiting = pending_resize(ctx, timeline)
    if waiting is not None:
        raise WriteConflictError(
            f"the table is being resized to another number of buckets by the plan of {waiting}, and takes no rows until then; "
            f"execute it (hudictl resize {ctx.base_path} --yes), or roll it back (hudictl rollback {ctx.base_path} {waiting})",
            base_path=ctx.base_path,
            instant=waiting,
        )
