"""Failed writes: abort in the chain, roll back, wait out the quarantine, finish. Any process, any
time.

The steps are those of `docs/explanation/commit-protocol.md` section 2.2. Every one is idempotent,
and wrong suspicion is safe: the chain decides once. Hudi's own pending table services (compaction,
clustering, …) are left to Hudi.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hudi_table.errors import InvariantError, ObjectNotFoundError
from hudi_table.model.names import HEARTBEAT, TEMP, join
from hudi_table.model.options.write_options import FailedWrites, failed_writes
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.model.timeline.instants import PLANNED_ACTIONS, Action, Instant, State
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.left_rollbacks import end_left
from hudi_table.table.commit.pending_plans import given_up_log_compactions
from hudi_table.table.commit.publish import drop_claim, is_given_up, materialise
from hudi_table.table.commit.rollback import (
    PendingRollback,
    delete_claim,
    open_rollbacks,
    roll_back,
    take_back_unclaimed,
)
from hudi_table.table.commit.undo import UNDOING, Undo, carry_out, finish_undos
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import has_archive
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import pending_clusterings

ABORT_ATTEMPTS_MAX = 1_000


def recover(ctx: TableContext, timeline: Timeline, *, own: str | None = None, eager: bool = False) -> tuple[str, ...]:
    """Roll forward or back every pending write that seems dead; returns the instants that were
    dealt with: none if all is as the timeline shows it.

    `own` is the name of the caller's claim, never touched, whose age is the store's present.
    `eager`: the caller knows that no other writer is alive, so every undecided instant is taken for
    dead at once (its quarantine still runs).
    """
    done = _drop_leftovers(ctx, timeline) + _drop_withdrawn(ctx, timeline)
    undone = {i.time for i in timeline.pending if i.action in UNDOING}
    if finish_undos(ctx, timeline):
        timeline = load_timeline(ctx)
        done += sorted(undone - {i.time for i in timeline.pending})
    completed = {instant.time for instant in timeline.commits}
    # A rollback of a completed instant that another engine planned and did not finish is left to it.
    rollbacks = {time: found for time, found in open_rollbacks(ctx, timeline).items() if time not in completed}
    mine = "" if own is None else own.partition(".")[0]
    waiting = [i for i in timeline.pending if i.is_write and i.time != mine]
    planners = [time for time in timeline.planner_claims if time != mine]
    if own is not None and not eager:
        # What is young is left to who holds it; if it was decided, who comes behind it in the chain publishes it.
        now = timeline.files[own]
        waiting = [i for i in waiting if i.time in rollbacks or _is_old(ctx, timeline, i.time, now)]
        planners = [time for time in planners if _is_old(ctx, timeline, time, now)]
    if not waiting and not rollbacks and not planners:
        return tuple(done)
    now = timeline.files[own] if own is not None else store_now(ctx)
    upto = chain.read_tail(ctx).sequence
    waiting += [i for i in given_up_log_compactions(ctx, timeline) if _is_aborted(ctx, i.time, upto)]
    # Another engine takes back what it wrote for a compaction, whose plan stays: that is left to it while it may live.
    done += end_left(ctx, timeline, rollbacks.values(), now)
    known = {mine, *(i.time for i in waiting), *(i.time for i in timeline.pending if i.action in PLANNED_ACTIONS)}
    unclaimed = [rollback for time, rollback in rollbacks.items() if time not in known]
    times = [*(i.time for i in waiting), *planners, *(rollback.target.time for rollback in unclaimed)]
    decisions = chain.find_decisions(ctx, times, upto)
    recovery = _Recovery(ctx, timeline, now, decisions, rollbacks, frozenset(pending_clusterings(ctx, timeline)), eager)
    for instant in waiting:
        done += _finish_instant(recovery, instant)
    for time in planners:
        if time in decisions or recovery.may_be_ended(time):
            done += recover_planner(ctx, time)
    for rollback in unclaimed:
        done += _finish_unclaimed(recovery, rollback)
    return tuple(done)


@dataclass(frozen=True, slots=True)
class _Recovery:
    """What a recovery goes by: a listing, the store's time, decisions in the chain by instant,
    pending rollbacks of what has not completed, and pending plans of clusterings."""

    ctx: TableContext
    timeline: Timeline
    now: datetime
    decisions: Mapping[str, tuple[int, ChainEntry]]
    rollbacks: Mapping[str, PendingRollback]
    clusterings: frozenset[Instant]
    eager: bool

    def may_be_ended(self, time: str) -> bool:
        """Whether the holder of an undecided instant seems dead, or all are taken for dead."""
        return self.eager or _seems_dead(self.ctx, self.timeline, time, self.now)


def _finish_instant(recovery: _Recovery, instant: Instant) -> list[str]:
    """What becomes of one pending write or clustering: the chain decides, and without a decision
    whether it seems dead."""
    ctx, rollback = recovery.ctx, recovery.rollbacks.get(instant.time)
    decision = _of_write(recovery.decisions.get(instant.time))
    if decision is not None and not decision[1].is_of(instant):
        # Of a writer who saw the planner's claim, and died before he gave up his: he has written no file, and the instant's are the plan's.
        dead = recovery.may_be_ended(instant.time)
        if dead:
            delete_claim(ctx, recovery.timeline, instant)
        return [instant.time] if dead else []
    if decision is not None and decision[1].kind is Kind.COMMIT:
        return _finish_commit(recovery, instant, decision[1], rollback)
    if decision is not None and decision[1].kind is Kind.ABORT:
        over = _quarantine_over(ctx, decision, recovery.now, _planned_at(recovery.timeline, rollback))
        # Its files were deleted when its rollback began; until the quarantine ends there is nothing more to do.
        return _roll_back_aborted(ctx, instant, over=over) if over or rollback is None else []
    if rollback is not None and (decision is None or instant in recovery.clusterings):
        # A rollback that another engine planned: even then nothing is deleted before the chain has aborted it.
        return (abort_and_roll_back if decision is None else abort_plan)(ctx, instant)
    if instant in recovery.clusterings or not recovery.may_be_ended(instant.time):
        return []
    if decision is not None:
        # A plan of the same action, which a writer's claim hides: it is given up with that.
        return abort_plan(ctx, instant)
    if recovery.timeline.has_passed(instant.time):
        # Nothing live can be so old: its claim arrived late, and its files are archived.
        delete_claim(ctx, recovery.timeline, instant)
        return [instant.time]
    return abort_and_roll_back(ctx, instant)


def _finish_unclaimed(recovery: _Recovery, rollback: PendingRollback) -> list[str]:
    """What becomes of a rollback whose instant has no claim any more.

    Behind an abort in the chain it ends with the quarantine. Else it is another engine's, which may
    be about to end it: it is left alone for as long. A writer of ours may still go on under the
    instant, so its markers stay, by which archiving finds what comes late.
    """
    ctx, timeline, target = recovery.ctx, recovery.timeline, rollback.target
    planned = _planned_at(timeline, rollback)
    decision = _of_write(recovery.decisions.get(target.time))
    if decision is not None and decision[1].kind is Kind.ABORT:
        over = _quarantine_over(ctx, decision, recovery.now, planned)
        return _roll_back_aborted(ctx, target, over=True) if over else []
    if planned is None or (recovery.now - planned).total_seconds() < ctx.settings.quarantine_seconds:
        return []
    # What the timeline has passed may be archived, and its files count: where nothing is, it began before the first commit.
    if timeline.has_passed(target.time) and has_archive(ctx):
        return []
    if decision is not None:
        return _finish_foreign(ctx, timeline, target, rollback.instant, recovery.now)
    return _roll_back_unclaimed(ctx, target)


@under_lock
def _roll_back_unclaimed(ctx: TableContext, target: Instant) -> list[str]:
    return roll_back(ctx, load_timeline(ctx), target, over=True, sweeps=False)


def _of_write(decision: tuple[int, ChainEntry] | None) -> tuple[int, ChainEntry] | None:
    """The decision of a write's instant: the plan of a planner that had drawn the same one is
    none."""
    other = decision is not None and decision[1].kind is Kind.PLAN and not decision[1].is_plan_of_instant
    return None if other else decision


def _finish_commit(
    recovery: _Recovery, instant: Instant, entry: ChainEntry, rollback: PendingRollback | None
) -> list[str]:
    """A decided write: it is published, but if another engine takes it back, or it was archived."""
    if rollback is not None:
        return _finish_foreign(recovery.ctx, recovery.timeline, instant, rollback.instant, recovery.now)
    if materialise(recovery.ctx, entry):
        return [instant.time]
    if recovery.timeline.has_passed(instant.time):
        delete_claim(recovery.ctx, recovery.timeline, instant)
        return [instant.time]
    # A restore of another engine's has taken it back, and has left the plan.
    return _roll_back_aborted(recovery.ctx, instant, over=False) if is_given_up(recovery.ctx, instant.time) else []


def _drop_withdrawn(ctx: TableContext, timeline: Timeline) -> list[str]:
    """Delete the late inflight files of rollbacks that were withdrawn for others of the same
    instant: their plans are gone for good."""
    done = []
    for instant in timeline.pending:
        plan = instant.with_state(State.REQUESTED).file_name
        if instant.action is not Action.ROLLBACK or plan in timeline.files:
            continue
        # A listing may show what was created behind a part of it, and not what was created before that.
        with contextlib.suppress(ObjectNotFoundError):
            ctx.storage.head(ctx.layout.timeline_path(plan))
            continue
        delete_claim(ctx, timeline, instant)
        done.append(instant.time)
    return done


def recover_failed_writes(ctx: TableContext, timeline: Timeline, options: Mapping[str, str]) -> tuple[str, ...]:
    """What cleaning does first: take back the writes without a sign of life, unless the policy is
    NEVER; returns the instants that it has changed.

    Several at once come to one rollback of each. Raises InvalidOptionError.
    """
    policy = failed_writes(options) or ctx.settings.failed_writes
    return () if policy is FailedWrites.NEVER else recover(ctx, timeline)


def give_up_own(ctx: TableContext, instant: Instant, *, confirmed_dead: bool) -> None:
    """What a writer does whose attempt has failed: take it back. No lock is waited for, which may
    be what it did not get: nobody else goes by an instant that has not completed."""
    if not _abort_and_roll_back(ctx, instant, confirmed_dead=confirmed_dead):
        give_up_unclaimed(ctx, instant.time, confirmed_dead=confirmed_dead)


@under_lock
def abort_and_roll_back(ctx: TableContext, instant: Instant, *, confirmed_dead: bool = False) -> list[str]:
    """Section 2.2 steps 2 to 4: create the abort entry, delete the files, finish when nothing late
    can come.

    An instant that was committed meanwhile is published instead; a published plan is left alone.
    """
    return _abort_and_roll_back(ctx, instant, confirmed_dead=confirmed_dead)


def _abort_and_roll_back(ctx: TableContext, instant: Instant, *, confirmed_dead: bool) -> list[str]:
    entry = _decide_dead(ctx, instant.time)
    if entry is None or entry.kind is Kind.PLAN:
        return []
    if entry.kind is Kind.COMMIT:
        materialise(ctx, entry)
        return [instant.time]
    timeline = load_timeline(ctx)
    # A commit of nothing, perhaps, which stands in the place of what a sleeper has tried to publish.
    return [] if timeline.is_completed(instant.time) else roll_back(ctx, timeline, instant, over=confirmed_dead)


def give_up_unclaimed(ctx: TableContext, time: str, *, confirmed_dead: bool) -> None:
    """What an attempt wrote behind another engine's rollback of its instant is deleted: no recovery
    finds an instant without a claim, and files of an instant that the timeline has passed count as
    committed.

    Only of what can never count: it has no decision and no completed file, and it is not older than
    the timeline, where it may be archived.
    """
    tail = chain.read_tail(ctx)
    timeline = load_timeline(ctx)
    # Every write begins behind a completed one: a timeline without any has lost what it had, to the archive perhaps.
    may_be_archived = not timeline.commits or timeline.has_passed(time)
    if may_be_archived or timeline.claim_names(time) or timeline.is_completed(time):
        return
    if chain.find_decision(ctx, time, tail.sequence) is None:
        take_back_unclaimed(ctx, timeline, time, over=confirmed_dead)


def are_over(ctx: TableContext, times: Iterable[str], now: datetime) -> bool:
    """Whether the quarantines of instants that were just taken back are over. Of one that the chain
    has not aborted, which another engine took back, nothing tells."""
    wanted = set(times)
    decisions = chain.find_decisions(ctx, wanted, chain.read_tail(ctx).sequence) if wanted else {}
    return all(_quarantine_over(ctx, decisions.get(time), now, None) for time in wanted)


@under_lock
def _roll_back_aborted(ctx: TableContext, instant: Instant, *, over: bool) -> list[str]:
    """Roll back, unless a fresh listing shows the instant completed: its abort is that of a
    rollback or restore then, which deletes the files after the completed one."""
    timeline = load_timeline(ctx)
    return [] if timeline.is_completed(instant.time) else roll_back(ctx, timeline, instant, over=over)


@under_lock
def _finish_foreign(
    ctx: TableContext, timeline: Timeline, instant: Instant, rollback: Instant, now: datetime
) -> list[str]:
    """A committed write whose completed file another engine has turned back, to delete its files
    next (of merge-on-read tables, measured on Hudi 0.15.0): left to it, unless it seems to have
    died. Then the chain aborts the write, and all of it goes."""
    begun = timeline.files.get(rollback.with_state(State.REQUESTED).file_name, now)
    if (now - begun).total_seconds() < ctx.settings.quarantine_seconds:
        return []
    if load_timeline(ctx).is_completed(instant.time):
        return []
    carry_out(ctx, Undo(rollback, (instant.with_state(State.COMPLETED),)))
    return [instant.time]


@under_lock
def abort_plan(ctx: TableContext, instant: Instant, *, confirmed_dead: bool = False) -> list[str]:
    """Give up the published plan of a clustering, whose groups have moved, or of a log compaction,
    and roll back what its executors wrote.

    Never a compaction's: writers name their logs by its plan. Executors that go on find the abort
    at their commit; one that committed before stands. `confirmed_dead`: every process that ever
    wrote the table has ended, since anybody may be executing the plan; else its rollback waits for
    the quarantine. Returns the instants that were dealt with.
    """
    entry = _decide_dead(ctx, instant.time, planned=True)
    if entry is None or entry.kind is not Kind.ABORT:
        return []
    return roll_back(ctx, load_timeline(ctx), instant, over=confirmed_dead)


def _drop_leftovers(ctx: TableContext, timeline: Timeline) -> list[str]:
    """Inflight files of cleans and rollbacks that were archived, once the timeline has passed them:
    nothing else is there of them."""
    left = [i for i in timeline.pending if timeline.has_passed(i.time) and timeline.is_leftover(i)]
    for instant in left:
        delete_claim(ctx, timeline, instant)
    return [instant.time for instant in left]


@under_lock
def recover_planner(ctx: TableContext, time: str) -> list[str]:
    """A planner that died: its plan appears if the chain has it, and never if not; its claim goes.

    Nothing is written under a planner's claim, so there is nothing to roll back and no quarantine
    to wait for.
    """
    entry = _decide_dead(ctx, time, planner=True)
    if entry is not None and entry.kind is Kind.PLAN:
        materialise(ctx, entry)
    drop_claim(ctx, time)
    return [time]


def _decide_dead(ctx: TableContext, time: str, *, planned: bool = False, planner: bool = False) -> ChainEntry | None:
    """What the chain says of an instant whose holder seems dead: an abort, unless it was decided
    before. `planned`: a published plan is no such decision. `planner`: the holder is one, else a
    plan under the same instant that is another's is none.

    None if its claim is gone: archived or rolled back since it was suspected, and its entry
    trimmed; what is there of it is not ours.
    """
    for _ in range(ABORT_ATTEMPTS_MAX):
        begun = ctx.clock.boot_seconds()
        timeline = load_timeline(ctx)
        tail = chain.read_tail(ctx)
        decision = chain.find_decision(ctx, time, tail.sequence)
        if not planner:
            decision = _of_write(decision)
        if decision is not None and not (planned and decision[1].kind is Kind.PLAN):
            return decision[1]
        # Completed without an entry: another engine executed our plan, or ended its own write meanwhile.
        if not timeline.claim_names(time) or timeline.is_completed(time):
            return None
        if ctx.clock.boot_seconds() - begun > ctx.settings.quarantine_seconds / 2:
            continue
        # Read again in any case.
        chain.append_abort(ctx, tail, time)
    raise InvariantError(f"no abort of {time} in {ABORT_ATTEMPTS_MAX} attempts", base_path=ctx.base_path)


def _is_aborted(ctx: TableContext, time: str, upto: int) -> bool:
    decision = chain.find_decision(ctx, time, upto)
    return decision is not None and decision[1].kind is Kind.ABORT


def _planned_at(timeline: Timeline, rollback: PendingRollback | None) -> datetime | None:
    return timeline.files.get(rollback.instant.with_state(State.REQUESTED).file_name) if rollback is not None else None


def _quarantine_over(
    ctx: TableContext, decision: tuple[int, ChainEntry] | None, now: datetime, planned: datetime | None
) -> bool:
    """Whether H has passed since the abort became visible, by the store's timestamps.

    `planned`: the age of the rollback's plan, as listed. It comes behind the abort, so one younger
    than H saves the read of the entry; an older one, another engine's perhaps, says nothing.
    """
    young = planned is not None and (now - planned).total_seconds() < ctx.settings.quarantine_seconds
    if decision is None or young:
        return False
    aborted = ctx.storage.head(entry_path(decision[0])).modified
    return (now - aborted).total_seconds() >= ctx.settings.quarantine_seconds


def _is_old(ctx: TableContext, timeline: Timeline, time: str, now: datetime) -> bool:
    """Whether the claim alone would let its holder seem dead."""
    newest = max(timeline.files[name] for name in timeline.claim_names(time))
    return (now - newest).total_seconds() >= ctx.settings.suspect_after_seconds


def _seems_dead(ctx: TableContext, timeline: Timeline, time: str, now: datetime) -> bool:
    if not _is_old(ctx, timeline, time, now):
        return False
    signs = [timeline.files[name] for name in timeline.claim_names(time)]
    signs += [info.modified for info in ctx.storage.list(join(TEMP, time))]
    with contextlib.suppress(ObjectNotFoundError):
        signs.append(ctx.storage.head(f"{HEARTBEAT}/{time}").modified)
    return (now - max(signs)).total_seconds() >= ctx.settings.suspect_after_seconds
