"""Rollback and restore: decided, carried out, and found done when they are asked for again."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import InvalidRequestError
from hudi_table.model.service.services import ServicePlan, ServiceResult, ServiceType
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State, comparable_time
from hudi_table.services.planning import Choose, Draft, digest_of, publish
from hudi_table.services.restoring.checks import check_savepoint
from hudi_table.services.restoring.losing import give_up
from hudi_table.services.restoring.plan import (
    begun_restore,
    nothing_to_choose,
    restore_choice,
    rollback_choice,
    written_after,
)
from hudi_table.table.commit import recovery
from hudi_table.table.commit.beside.locking import section
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.commit.undo import carry_out, planned_undo
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline, records_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import pending_clusterings
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import drop_metadata_if_any


@relists
@logged("rollback")
def rollback(
    ctx: TableContext, instant: str, *, writers_stopped: bool = False, approved: str = "", lost: Iterable[str] = ()
) -> ServiceResult:
    """Take the newest write back, or a failed one that is pending. `writers_stopped`: the caller
    knows that every process that ever wrote the table has ended or left it, so nothing late can
    come. `approved`: digest of a dry run. `lost`: the instant is a pending compaction's, and these
    of its files are given up.

    Raises InvalidRequestError for an instant that cannot be taken back, WriteConflictError if
    others wrote meanwhile.
    """
    refuse_unsupported(ctx.config)
    paths = list(lost)
    if paths:
        return give_up(ctx, instant, paths, writers_stopped=writers_stopped)
    timeline, _ = caught_up(ctx)
    if any(i.time == instant and i.grouped_action in WRITE_ACTIONS for i in timeline.pending):
        return _roll_back_pending(ctx, timeline, instant, writers_stopped=writers_stopped)
    done = _taken_back_by(ctx, timeline, instant)
    if done is not None:
        return _result(ctx, ServiceType.ROLLBACK, done, replayed=True)
    choice = rollback_choice(ctx, instant, writers_stopped=writers_stopped)
    # Hudi's writers do not look for a rollback that is planned: the lock keeps them out until it is done.
    with section(ctx):
        return _carry_out(ctx, ServiceType.ROLLBACK, _publish(ctx, Action.ROLLBACK, choice, approved))


@relists
@logged("restore")
def restore(ctx: TableContext, savepoint: str, *, writers_stopped: bool = False, approved: str = "") -> ServiceResult:
    """Take back everything that was written after a savepoint, failed writes and pending plans too.

    One to the same savepoint that another engine began is ended, if `writers_stopped`. Raises
    InvalidRequestError if there is no such savepoint or one of its files is gone, and as
    `rollback`.
    """
    refuse_unsupported(ctx.config)
    timeline, _ = caught_up(ctx)
    check_savepoint(ctx, timeline, savepoint)
    begun = begun_restore(timeline)
    if begun is not None:
        if approved:
            raise nothing_to_choose(ctx, begun)
        return _end_theirs(ctx, ServiceType.RESTORE, begun, savepoint, writers_stopped=writers_stopped)
    if writers_stopped:
        _drop_pending(ctx, timeline, savepoint)
        timeline = load_timeline(ctx)
    if not written_after(timeline, savepoint):
        done = _restored_to(ctx, timeline, savepoint)
        message = f"nothing was written after {savepoint}"
        return ServiceResult(ServiceType.RESTORE, done.time if done else "", message, replayed=True)
    choice = restore_choice(ctx, savepoint, writers_stopped=writers_stopped)
    with section(ctx):
        return _carry_out(ctx, ServiceType.RESTORE, _publish(ctx, Action.RESTORE, choice, approved))


def _publish(ctx: TableContext, action: Action, choose: Choose, approved: str) -> ServicePlan:
    drop_metadata_if_any(ctx)
    if approved:
        planned = publish(ctx, action, _approved(ctx, choose, action, approved))
    else:
        planned = publish(ctx, action, choose)
    assert planned is not None, "a choice raises rather than to find nothing"
    return planned


def _approved(ctx: TableContext, choose: Choose, action: Action, digest: str) -> Choose:
    """The same choice, as long as it still comes to what was approved."""

    def again(view: FileSystemView) -> Draft | None:
        draft = choose(view)
        if draft is None or digest_of(draft.body) != digest:
            raise InvalidRequestError(
                f"the table has changed since plan {digest} was made: the {action.value} would take other files back; "
                "make a new dry run",
                base_path=ctx.base_path,
            )
        return draft

    return again


def _carry_out(ctx: TableContext, service: ServiceType, planned: ServicePlan) -> ServiceResult:
    action = Action.ROLLBACK if service is ServiceType.ROLLBACK else Action.RESTORE
    instant = Instant(planned.instant, action, State.REQUESTED)
    carry_out(ctx, planned_undo(ctx, instant))
    return _result(ctx, service, instant)


def _roll_back_pending(ctx: TableContext, timeline: Timeline, time: str, *, writers_stopped: bool) -> ServiceResult:
    """A write that did not complete. A plan that waits is no failed write."""
    instant = next(i for i in timeline.pending if i.time == time)
    if instant.action is Action.COMPACTION:
        raise InvalidRequestError(
            f"the {instant.action.value} {time} is planned, and writers have named their logs by it: execute it; if files that it names are "
            "lost for good, give these up (lost=[…], --lost FILE)",
            base_path=ctx.base_path,
        )
    begun = _begun_by_others(ctx, timeline, time)
    if begun is not None:
        return _end_theirs(ctx, ServiceType.ROLLBACK, begun, "", writers_stopped=writers_stopped)
    planned = instant.action is Action.LOG_COMPACTION or instant in pending_clusterings(ctx, timeline)
    give_up = recovery.abort_plan if planned else recovery.abort_and_roll_back
    give_up(ctx, instant, confirmed_dead=writers_stopped)
    left = load_timeline(ctx)
    message = f"{instant.action.value} {time} is rolled back"
    if any(i.time == time for i in left.commits):
        message = f"{time} had been decided, and is committed"
    elif left.claim_names(time):
        message = (
            f"{time} is given up; its files are gone, and it leaves the timeline when nothing late can come any more"
        )
    return ServiceResult(ServiceType.ROLLBACK, time, message)


def _begun_by_others(ctx: TableContext, timeline: Timeline, time: str) -> Instant | None:
    """The rollback of a committed write that is left half way: its completed file is gone, as Hudi
    does first. Ours are finished before any look at the table, so it is another engine's."""
    found = open_rollbacks(ctx, timeline).get(time)
    decision = chain.find_decision(ctx, time, chain.read_tail(ctx).sequence) if found is not None else None
    return found.instant if found and decision and decision[1].kind is Kind.COMMIT else None


def _end_theirs(
    ctx: TableContext, service: ServiceType, begun: Instant, savepoint: str, *, writers_stopped: bool
) -> ServiceResult:
    """Carry out what another engine began and left half way."""
    undo = planned_undo(ctx, begun)
    named = f"the {begun.action.value} {begun.time} of another engine"
    if undo.savepoint and undo.savepoint != savepoint:
        raise InvalidRequestError(
            f"{named} is pending, to savepoint {undo.savepoint}: name that one, then restore to {savepoint}",
            base_path=ctx.base_path,
            instant=begun.time,
        )
    if not writers_stopped:
        raise InvalidRequestError(
            f"{named} has begun to take back {', '.join(sorted(undo.times))}, and may be at it: wait for it, or, where all writers of the "
            "table have ended, confirm it (writers_stopped=True, --writers-stopped)",
            base_path=ctx.base_path,
            instant=begun.time,
        )
    carry_out(ctx, undo)
    return _result(ctx, service, begun)


def _drop_pending(ctx: TableContext, timeline: Timeline, savepoint: str) -> None:
    """Roll back the failed writes and planned clusterings after a savepoint: no process of theirs
    is left."""
    clusterings = {i.time for i in pending_clusterings(ctx, timeline)}
    for instant in timeline.pending:
        if instant.is_write and comparable_time(instant.time) > comparable_time(savepoint):
            give_up = recovery.abort_plan if instant.time in clusterings else recovery.abort_and_roll_back
            give_up(ctx, instant, confirmed_dead=True)


def _taken_back_by(ctx: TableContext, timeline: Timeline, time: str) -> Instant | None:
    """The completed rollback that took an instant back, if it is gone."""
    if any(i.time == time for i in timeline.instants if i.grouped_action in WRITE_ACTIONS):
        return None
    done = [i for i in timeline.completed if i.action is Action.ROLLBACK]
    return next((i for i in reversed(done) for r in records_of(ctx, i) if time in r["commitsRollback"]), None)


def _restored_to(ctx: TableContext, timeline: Timeline, savepoint: str) -> Instant | None:
    done = [i for i in timeline.completed if i.action is Action.RESTORE and i.time > savepoint]
    return next((i for i in reversed(done) if planned_undo(ctx, i).savepoint == savepoint), None)


def _result(ctx: TableContext, service: ServiceType, undo: Instant, *, replayed: bool = False) -> ServiceResult:
    done = load_timeline(ctx).ended(undo) or ctx.layout.completed(undo)
    records = records_of(ctx, done)
    if done.action is Action.RESTORE:
        records = [found for record in records for parts in record["hoodieRestoreMetadata"].values() for found in parts]
    figures = {
        "instants": float(len(records)),
        "filesDeleted": float(sum(record["totalFilesDeleted"] for record in records)),
    }
    times = ", ".join(time for record in records for time in record["commitsRollback"])
    return ServiceResult(service, undo.time, f"took back {times}", figures, replayed)
