"""Under a lock that other engines take too, the plan of a compaction is later than whatever they
have begun.

In table version 6 logs go to the slice of the instant in their names. Hudi's writers draw an
instant and read without the lock, and of pending plans look only at those later than their own
instant: an older one they believe to have read. A planner of ours claims its instant long before
its plan is there, by a file that Hudi does not know. A writer of Hudi's that begins in between
writes below the plan, and the compaction would leave its rows out. So the plan's instant is drawn
under the lock, right before its decision, and ahead of the clock. In versions 8 and 9 logs go by
completion, and executors of a clustering compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from hudi_table.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    WriteConflictError,
)
from hudi_table.model.json_text import parse_json
from hudi_table.model.timeline import conflict_keys
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Instant, State, planner_claim
from hudi_table.table.commit.beside.ahead import (
    AHEAD_SECONDS,
    AHEAD_SECONDS_MAX,
    CameLate,
    floor_ahead,
    late,
    needs_to_be_ahead,
    wait_until_passed,
)
from hudi_table.table.commit.beside.first_reads import LOOK_SECONDS, WAIT_SECONDS_MAX, is_theirs_and_alive
from hudi_table.table.commit.beside.locking import section
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.commit.transaction import CLAIM_ATTEMPTS_MAX, Transaction
from hudi_table.table.commit.write_permit import right_of
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.timeline import Timeline


def decide_late(txn: Transaction, touches: Iterable[str], decide: Callable[[], None]) -> None:
    """Let `decide` decide and publish a plan, which touches these conflict keys: where that is
    needed under the lock, and under another claim, whose instant is later than all that was begun
    and lies ahead of the clock.

    A live write of another engine that may write to the planned groups goes first, for some
    seconds. Raises WriteConflictError if one goes on then, and what `decide` raises.
    """
    ctx, keys = txn.ctx, tuple(touches)
    if not needs_to_be_ahead(ctx, txn.instant):
        decide()
        return
    end = ctx.clock.boot_seconds() + WAIT_SECONDS_MAX
    ahead = AHEAD_SECONDS
    while True:
        with section(ctx):
            listed = list_timeline(ctx)
            writing = _writing(ctx, listed, keys)
            if writing is None:
                _claim_anew(txn, listed, ahead)
                try:
                    decide()
                except CameLate:
                    if ahead >= AHEAD_SECONDS_MAX:
                        raise late(ctx, txn.time) from None
                    ahead *= 2
                    continue
                wait_until_passed(ctx, txn.time, ahead)
                return
        if ctx.clock.boot_seconds() >= end:
            raise WriteConflictError(
                f"another engine's write of {writing} goes on and may change file groups that are to be compacted; plan again when "
                "it has ended",
                base_path=ctx.base_path,
                instant=txn.time,
            )
        ctx.clock.sleep(LOOK_SECONDS)


def _claim_anew(txn: Transaction, listed: Timeline, ahead: float) -> None:
    """Claim an instant that is later than all that was listed and so many seconds ahead of the
    clock, for the one that the planner has."""
    ctx, before = txn.ctx, txn.right.claim_path
    time = max(listed.newest_time, txn.tail.max_instant)
    for _ in range(CLAIM_ATTEMPTS_MAX):
        time = draw_instant(ctx, max(time, floor_ahead(ctx, ahead)))
        claim = planner_claim(time)
        path = ctx.layout.timeline_path(claim)
        try:
            ctx.storage.put_if_absent(path, b"")
        except (ObjectExistsError, OutcomeUnknownError):
            continue
        newest = (listed := list_timeline(ctx)).newest_time
        if newest == time and listed.is_alone(time, claim):
            txn.instant = Instant(time, txn.instant.action, State.REQUESTED)
            txn.right = right_of(ctx, time, claim, txn.tail)
            retry.delete(ctx.storage, before)
            return
        # Another has begun behind it.
        retry.delete(ctx.storage, path)
        time = max(time, newest)
    raise UnavailableError(
        f"no instant of a plan could be claimed in {CLAIM_ATTEMPTS_MAX} attempts; many writers are at work, try again",
        base_path=ctx.base_path,
    )


def _writing(ctx: TableContext, listed: Timeline, touches: tuple[str, ...]) -> str | None:
    """A live write of another engine that may touch what the plan does."""
    for instant in listed.pending:
        if instant.action in WRITE_ACTIONS and is_theirs_and_alive(ctx, instant.time):
            keys = _touches_of(ctx, instant)
            if keys is None or conflict_keys.meet(keys, touches):
                return instant.time
    return None


def _touches_of(ctx: TableContext, pending: Instant) -> Set[str] | None:
    """What a pending write of another engine touches, as its inflight file tells: the groups that
    it updates, and the partitions of its inserts. None where it does not tell yet, or at all."""
    if pending.state is not State.INFLIGHT:
        return None
    try:
        document = parse_json(ctx.storage.get(ctx.layout.timeline_path(pending.file_name)))
        groups = {
            (str(partition), str(stat["fileId"] or ""))
            for partition, stats in document["partitionToWriteStats"].items()
            for stat in stats
        }
    except (ObjectNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    updated = group_conflict_keys((partition, file_id) for partition, file_id in groups if file_id)
    filled = {conflict_keys.partition_conflict_key(partition) for partition, file_id in groups if not file_id}
    return updated | filled or None
