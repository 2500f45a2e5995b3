"""Executors of a published plan, who have their right from the plan: all of one plan are one
attempt.

Section 2.3 of `docs/explanation/commit-protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hudi_table.errors import HudiError, InvalidRequestError, WriteConflictError
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.instants import Instant, State
from hudi_table.table.commit.beside.heartbeat import Heartbeat
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.commit.snapshot import decided_timeline
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.commit.write_permit import right_of
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.kept_properties import refuse_lost
from hudi_table.table.timeline.timeline import Timeline


def resume(
    ctx: TableContext, instant: Instant, prepares: Callable[[Transaction], object] | None = None
) -> Transaction | None:
    """The transaction of whoever executes the published plan of `instant`; None if it is committed.
    `prepares`: what is read of it while its snapshot is confirmed; what that raises is left to who
    reads again.

    All executors of a plan are one attempt: they write the same files, and one decision stands for
    all. Raises InvalidRequestError if the timeline has no such plan, WriteConflictError if it was
    given up or is rolled back.
    """
    refuse_lost(ctx)
    tail = _tail_of_plan(ctx, instant.time)

    def prepare(timeline: Timeline) -> None:
        with suppress(HudiError):
            txn = _resumed(ctx, instant, timeline, tail)
            if txn is not None and prepares is not None:
                prepares(txn)

    return _resumed(ctx, instant, decided_timeline(ctx, "", "", tail, prepare), tail)


def _tail_of_plan(ctx: TableContext, time: str) -> ChainTail:
    """The chain's tail: the one that this process knows, if the plan lies before it. What was
    decided since the first proof finds."""
    tail = chain.known_tail(ctx)
    decision = chain.find_decision(ctx, time, tail.sequence)
    return tail if decision is not None and decision[1].kind is Kind.PLAN else chain.read_tail(ctx)


def _resumed(ctx: TableContext, instant: Instant, timeline: Timeline, tail: ChainTail) -> Transaction | None:
    requested = instant.with_state(State.REQUESTED)
    if any(i.time == instant.time for i in timeline.commits):
        return None
    if requested.file_name not in timeline.files:
        raise InvalidRequestError(
            f"the timeline has no pending {instant.action.value} {instant.time}; schedule one", base_path=ctx.base_path
        )
    decision = chain.find_decision(ctx, instant.time, tail.sequence)
    if decision is not None and decision[1].kind is Kind.ABORT:
        raise WriteConflictError(
            f"the plan of {instant.time} was given up and is being rolled back; schedule a new one",
            base_path=ctx.base_path,
            instant=instant.time,
        )
    if instant.time in open_rollbacks(ctx, timeline):
        raise WriteConflictError(
            f"another engine rolls {instant.time} back: its plan cannot be executed; once the rollback has ended, schedule a new one",
            base_path=ctx.base_path,
            instant=instant.time,
        )
    right = right_of(ctx, instant.time, requested.file_name, tail)
    right.is_shared = True
    return Transaction(
        ctx, requested, f"plan-{instant.time}", timeline, tail, right, heartbeat=Heartbeat(ctx, instant.time)
    )
