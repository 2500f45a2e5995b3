"""Executors of a published plan, who have their right from the plan: all of one plan are one
attempt.

Section 2.3 of `docs/explanation/commit-protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from hudi_table.errors import HudiError, InvalidRequestError, UnavailableError, WriteConflictError
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.instants import Action, Instant, State
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
    all. Of a compaction whose commit was taken back the plan stays, and is executed again, for one
    more decision of the same instant. Raises InvalidRequestError if the timeline has no such plan,
    WriteConflictError if it was given up or is rolled back, UnavailableError while another engine
    takes completed writes back.
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
    kind = Kind.PLAN if decision is None else decision[1].kind
    stays = instant.action is Action.COMPACTION
    if kind is Kind.ABORT and not stays:
        raise WriteConflictError(
            f"the plan of {instant.time} was given up and is being rolled back; schedule a new one",
            base_path=ctx.base_path,
            instant=instant.time,
        )
    undone = open_rollbacks(ctx, timeline)
    # A commit that could not be published just now is being taken back, too.
    if kind is Kind.COMMIT or instant.time in undone:
        after = "execute it once the rollback has ended" if stays else "once the rollback has ended, schedule a new one"
        raise WriteConflictError(
            f"another engine rolls {instant.time} back: its plan cannot be executed; {after}",
            base_path=ctx.base_path,
            instant=instant.time,
        )
    _refuse_what_goes(ctx, instant, timeline, undone)
    right = right_of(ctx, instant.time, requested.file_name, tail)
    right.is_shared = True
    return Transaction(
        ctx, requested, f"plan-{instant.time}", timeline, tail, right,
        completes_as=_name_of_before(ctx, instant, tail) if kind is Kind.ABORT else "",
        heartbeat=Heartbeat(ctx, instant.time),
    )  # fmt: skip


def _name_of_before(ctx: TableContext, instant: Instant, tail: ChainTail) -> str:
    """The completed file of the commit of a compaction that was decided and taken back: under
    another name a second one could appear beside it, by who slept before he created it."""
    commits = (entry for _, entry in chain.entries_of(ctx, instant.time, tail.sequence) if entry.kind is Kind.COMMIT)
    return next((entry.name for entry in commits), "")


def _refuse_what_goes(ctx: TableContext, instant: Instant, timeline: Timeline, undone: Iterable[str]) -> None:
    """Raise UnavailableError while another engine has begun to take back a write that the timeline
    shows as completed: its rows would be rewritten, and come back."""
    going = sorted(time for time in undone if timeline.is_completed(time) and time < instant.time)
    if going:
        raise UnavailableError(
            f"another engine has begun to take {going[0]} back, whose rows {instant.time} would rewrite: execute it when the rollback "
            "has ended; one whose engine died is ended by the next write of that engine",
            base_path=ctx.base_path,
            instant=instant.time,
        )
