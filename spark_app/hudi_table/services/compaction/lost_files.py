"""Planned files of a compaction that are lost for good: the plan written again without them, as a
further entry of the chain.

Section 2.3 of `docs/explanation/commit-protocol.md`. A compaction's plan cannot be withdrawn, for
writers name their logs by it; so what is gone is taken out of it. Whoever began by an earlier plan
of the instant finds the new one by his proof or in his walk, and ends. What he sent under an older
proof is there when the quarantine has passed: until then nobody executes the new plan.

Fact (Hudi's `CompactionAdminClient`): it overwrites the requested file when it takes a file group
out of a plan, with all writers stopped; to unschedule a compaction it deletes that file, and logs
that writers named by it are left behind.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from hudi_table.errors import InvalidRequestError, InvariantError, ObjectExistsError, OutcomeUnknownError
from hudi_table.model.names import join
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.missing_files import lost_of
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.store import retry
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice, parse_plan, plan_body, planned_slices

ATTEMPTS_MAX = 1_000
_GIVEN_UP = "given-up-"
"""What the attempt of a plan that was written again begins with."""


def last_plan(ctx: TableContext, instant: Instant, upto: int) -> list[PlannedSlice]:
    """The operations of a compaction as the chain's entries up to number `upto` plan it, or as the
    requested file does if they do not."""
    found = next(iter(_plans(ctx, instant.time, upto)), None)
    if found is None:
        return planned_slices(ctx, instant)
    return parse_plan(found.data, instant.with_state(State.REQUESTED).file_name)


def seconds_left(ctx: TableContext, time: str, upto: int) -> float:
    """For how many more seconds nobody executes the plan of an instant, because it was written
    again, or its commit was taken back; 0 if anybody may."""
    found = next(chain.entries_of(ctx, time, upto), None)
    if found is None or not (found[1].kind is Kind.ABORT or _written_again(found[1])):
        return 0.0
    age = (store_now(ctx) - ctx.storage.head(entry_path(found[0])).modified).total_seconds()
    return max(0.0, ctx.settings.quarantine_seconds - age)


def waits(ctx: TableContext, time: str) -> bool:
    """Whether the plan of an instant was written again, or its commit was taken back, and executors
    of before may still be at work."""
    return seconds_left(ctx, time, chain.read_tail(ctx).sequence) > 0


def lost_files(
    ctx: TableContext, timeline: Timeline, instant: Instant, paths: Iterable[str], upto: int
) -> frozenset[str]:
    """Those of `paths`, the planned files that a user gives up, that the plan still names: none if
    they were given up before.

    Raises InvalidRequestError for a file that is there or that no plan of the instant named, and if
    another counted one is gone too.
    """
    lost_paths = frozenset(paths)
    slices = last_plan(ctx, instant, upto)
    gone = lost_of(ctx, timeline.until(instant.time), slices)
    before = _named(parse_plan(entry.data) for entry in _plans(ctx, instant.time, upto)) - _named([slices])
    wrong, more = lost_paths - gone - before, gone - lost_paths
    if wrong:
        raise InvalidRequestError(
            f"{min(wrong)} is no lost file of the compaction planned at {instant.time}; "
            + (f"these are: {', '.join(sorted(gone))}" if gone else "none of its files is lost, execute it"),
            base_path=ctx.base_path,
            path=min(wrong),
        )
    if more:
        raise InvalidRequestError(
            f"of the compaction planned at {instant.time} {min(more)} is gone too; name all files that are lost for good",
            base_path=ctx.base_path,
            path=min(more),
        )
    return gone


@under_lock
def plan_again(ctx: TableContext, instant: Instant, paths: Iterable[str]) -> bool:
    """Decide that the planned files `paths` are lost: a new plan of the instant without them.
    Whether the plan stands; False if it was executed.

    Raises InvalidRequestError as `lost_files`, and if the timeline has no such plan.
    """
    attempt, lost_paths = f"{_GIVEN_UP}{uuid.uuid4()}", frozenset(paths)
    for _ in range(ATTEMPTS_MAX):
        begun = ctx.clock.boot_seconds()
        timeline, tail = caught_up(ctx)
        if timeline.is_completed(instant.time):
            return False
        if instant.file_name not in timeline.files:
            raise InvalidRequestError(f"the timeline has no pending compaction {instant.time}", base_path=ctx.base_path)
        lost = lost_files(ctx, timeline, instant, lost_paths, tail.sequence)
        if not lost:
            # Given up before, by this attempt or another; the requested file may be the old one still.
            return _show(ctx, instant, tail, begun)
        slices = [_without(item, lost) for item in last_plan(ctx, instant, tail.sequence)]
        entry = ChainEntry.of(
            Kind.PLAN, instant.time, attempt, (), instant.file_name, plan_body(slices),
            max_instant=max(tail.max_instant, instant.time),
        )  # fmt: skip
        if ctx.clock.boot_seconds() - begun > ctx.settings.fresh_seconds:
            continue
        try:
            chain.put_entry(ctx, tail.sequence + 1, entry)
        except (ObjectExistsError, OutcomeUnknownError):
            continue  # The chain is read again in any case.
    raise InvariantError(f"no new plan of {instant.time} in {ATTEMPTS_MAX} attempts", base_path=ctx.base_path)


def _show(ctx: TableContext, instant: Instant, tail: ChainTail, begun: float) -> bool:
    """Overwrite the requested file, by which other engines execute the plan. Nothing of ours
    depends on it.

    Who slept since his listing leaves it: the plan may have been executed and archived, and its
    file would be a new claim.
    """
    found = next(iter(_plans(ctx, instant.time, tail.sequence)), None)
    if found is not None and _written_again(found) and ctx.clock.boot_seconds() - begun <= ctx.settings.fresh_seconds:
        retry.put(ctx.storage, ctx.layout.timeline_path(instant.file_name), found.data)
    return True


def _written_again(entry: ChainEntry) -> bool:
    return entry.kind is Kind.PLAN and entry.attempt.startswith(_GIVEN_UP)


def _plans(ctx: TableContext, time: str, upto: int) -> list[ChainEntry]:
    """The plans of an instant in the chain, the newest first."""
    return [entry for _, entry in chain.entries_of(ctx, time, upto) if entry.kind is Kind.PLAN]


def _named(plans: Iterable[Iterable[PlannedSlice]]) -> frozenset[str]:
    return frozenset(path for slices in plans for item in slices for path in item.paths)


def _without(item: PlannedSlice, lost: frozenset[str]) -> PlannedSlice:
    base = None if item.base_path in lost else item.base
    return replace(item, base=base, logs=tuple(name for name in item.logs if join(item.partition, name) not in lost))


def compaction_at(time: str) -> Instant:
    """The requested compaction of an instant."""
    return Instant(time, Action.COMPACTION, State.REQUESTED)
