"""A compaction of version 6 is not executed where it would hide what another engine wrote beside
its plan.

Section 2.6 of `docs/explanation/commit-protocol.md`. The instant of a plan lies ahead of the clock
until its file is there, so that Hudi's writers find it. A planner can sleep right before it creates
that file, for longer. A write of Hudi's that begins then has a later instant, has read no plan, and
puts its log to the slice that is planned. Readers show that log while the plan waits, and would not
behind its execution. To delete the plan would not help: others name their logs by it.
"""

from __future__ import annotations

from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, comparable_time
from hudi_table.table.commit.beside.first_reads import is_theirs_and_alive
from hudi_table.table.commit.missing_files import PlannedFiles
from hudi_table.table.commit.rollback import written_by
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


def refuse_late_writes(ctx: TableContext, listed: Timeline, plan: Instant, files: PlannedFiles) -> None:
    """Look for writes that a plan does not know and that have not seen it, in a listing of the
    timeline and one of the planned folders behind it. Both are made anyway.

    Raises UnavailableError while one may go on, WriteConflictError where one has completed.
    """
    if plan.action is not Action.COMPACTION or ctx.layout.tells_completions:
        return
    going = _live(ctx, listed, plan)
    if going is not None:
        raise UnavailableError(
            f"another engine's write of {going} began before the plan of {plan.time} was there and goes on; execute the plan when it "
            "has ended",
            base_path=ctx.base_path,
            instant=plan.time,
        )
    for path in files.beside:
        hidden = sorted(time for time in written_by(ctx, path) if listed.is_completed(time))
        if hidden:
            raise WriteConflictError(
                f"the write of {hidden[0]} has put {path} beside the plan of {plan.time}, which was not there when it began: to execute "
                f"the plan would hide its rows, which readers show as long as it waits; take {hidden[0]} back, execute the plan, and "
                "write those rows again",
                base_path=ctx.base_path,
                instant=plan.time,
            )


def _live(ctx: TableContext, listed: Timeline, plan: Instant) -> str | None:
    """A live write of another engine that began under a later instant before the plan's file was
    there, by the store's ages. Hudi commits none whose heartbeat is late."""
    if ctx.lock is None:
        return None
    planned_at, own = listed.files[plan.file_name], comparable_time(plan.time)
    for instant in listed.pending:
        if instant.action not in WRITE_ACTIONS or comparable_time(instant.time) <= own:
            continue
        begun_at = min(listed.files[name] for name in listed.own_names(instant))
        if begun_at <= planned_at and is_theirs_and_alive(ctx, instant.time):
            return instant.time
    return None
