"""Rollbacks of a pending compaction that another engine has begun and left.

Facts (Hudi's `HoodieTable.rollbackInflightCompaction`, `RunCompactionActionExecutor`): before Hudi
executes a plan of which something was begun, it plans a rollback of that, deletes the data files,
completes the rollback and goes on with the same plan under the same instant. If it dies in between,
the rollback waits for Hudi's next compaction, and until then nobody of ours executes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from hudi_table.model.timeline.instants import Instant, State
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.pending_plans import compactions_taken_back
from hudi_table.table.commit.rollback import PendingRollback, complete, rollback_record
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import encode_record
from hudi_table.table.timeline.timeline import Timeline


def end_left(ctx: TableContext, timeline: Timeline, rollbacks: Iterable[PendingRollback], now: datetime) -> list[str]:
    """Complete those of pending rollbacks that take a compaction back and were planned the
    quarantine time before `now`, the store's time, or longer: who planned one has died. Returns
    the compactions, which can be executed again.

    No file is deleted: all executors of ours write the same names, so a delete that comes late
    would meet the file of the next one. What the other engine left is what it had marked, and who
    executes the plan deletes that before it commits.
    """
    held = {instant.time for instant in compactions_taken_back(ctx, timeline)}
    found = [each for each in rollbacks if each.target.time in held and _is_left(ctx, timeline, each, now)]
    return [time for each in found for time in _end(ctx, each)]


def _is_left(ctx: TableContext, timeline: Timeline, rollback: PendingRollback, now: datetime) -> bool:
    planned = timeline.files[rollback.instant.with_state(State.REQUESTED).file_name]
    return (now - planned).total_seconds() >= ctx.settings.quarantine_seconds


@under_lock
def _end(ctx: TableContext, rollback: PendingRollback) -> list[str]:
    timeline = load_timeline(ctx)
    target: Instant = rollback.target
    if rollback not in compactions_taken_back(ctx, timeline).values():
        return []
    retry.put(ctx.storage, ctx.layout.timeline_path(rollback.instant.with_state(State.INFLIGHT).file_name), b"")
    report = rollback_record(ctx, target, rollback.instant.time, ())
    complete(ctx, rollback.instant, encode_record("HoodieRollbackMetadata", report))
    return [target.time]
