"""Making decided chain entries visible under their Hudi names; idempotent, by anybody."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import ge, itemgetter

from hudi_table.errors import ObjectExistsError, ObjectNotFoundError, UnavailableError
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, comparable_time, parse_instant, planner_claim
from hudi_table.table.commit.beside.ahead import came_late
from hudi_table.table.commit.beside.locking import may_decide, under_lock
from hudi_table.table.commit.foreign_writers import is_overtaken, narrowed
from hudi_table.table.commit.rollback import is_closed, open_rollbacks
from hudi_table.table.store import retry
from hudi_table.table.store.ports import has_object
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.layout import decode_commit
from hudi_table.table.timeline.timeline import Timeline

ATTEMPTS_MAX = 5
_REWRITES = (Action.CLUSTERING, Action.COMPACTION)


def materialise(ctx: TableContext, entry: ChainEntry) -> bool:
    """Create the file of a decided entry if its claim is there and it was not archived, and before
    it those of what was decided before. Returns whether a listing that shows neither the file nor
    the instant's end is out of date: the file is there now, whoever created it, or the instant has
    left the timeline.

    An entry whose claim is gone, or older than the first completed instant, was archived or
    aborted: putting its file back would move the timeline's start backwards and make rows vanish
    (measured on Hudi). And if the chain, read after that listing, aborts the instant behind this
    entry, it was given up or taken back. Where a lock is shared it is held, and the entry is given
    up if another engine has overtaken it.
    """
    if entry.kind is Kind.ABORT:
        return False
    return is_there(ctx, entry) or _published(ctx, entry)


def is_there(ctx: TableContext, entry: ChainEntry) -> bool:
    """Whether the file of a decided entry, no abort, stands on the timeline. If it is a commit, all
    that were decided before it do, or have left it; that of a plan may be older than its entry."""
    return has_object(ctx.storage, ctx.layout.timeline_path(entry.name))


def materialise_predecessors(ctx: TableContext, timeline: Timeline, own: str, upto: int) -> bool:
    """Step 3: materialise the decided entries up to number `upto` that are not visible yet, in
    chain order.

    Only instants that are pending in the listing can be concerned. Returns whether the listing is
    out of date, by whatever was published since, by this process or another: a snapshot of it would
    lack what was decided before its tail, and the walk behind the tail would not meet it.
    """
    planners = timeline.planner_claims
    writes = [i.time for i in timeline.pending if i.time != own and i.grouped_action in WRITE_ACTIONS]
    decisions = chain.find_decisions(ctx, [*planners, *writes], upto)
    expected = [*((time, Kind.PLAN) for time in planners), *((time, Kind.COMMIT) for time in writes)]
    waiting = [decisions[time] for time, kind in expected if time in decisions and decisions[time][1].kind is kind]
    waiting.sort(key=itemgetter(0))
    # The last one first: with it all before it are published.
    moved = [entry for _, entry in reversed(waiting) if materialise(ctx, entry) and entry.name not in timeline.files]
    for entry in moved:
        if entry.kind is Kind.PLAN:
            # Its maker may have died before. A plan of the metadata table is on no listing of this timeline: while its claim is, it would be waited for.
            drop_claim(ctx, entry.instant)
    return bool(moved)


@under_lock
def _published(ctx: TableContext, entry: ChainEntry) -> bool:
    for _ in range(ATTEMPTS_MAX):
        listed = ctx.clock.boot_seconds()
        timeline = list_timeline(ctx)
        tail = chain.read_tail(ctx)
        stands: bool | None = None
        for number, each in _unpublished(ctx, entry, timeline, tail.sequence):
            stands = _appears(ctx, each, number, timeline, tail, listed)
            if stands is None:
                break
        if stands is not None:
            return stands
    raise UnavailableError(
        f"{entry.name} could not be published: the timeline took longer than {ctx.settings.fresh_seconds:.0f} s to list, "
        f"{ATTEMPTS_MAX} times; try again",
        base_path=ctx.base_path,
    )


def _unpublished(
    ctx: TableContext, entry: ChainEntry, timeline: Timeline, upto: int
) -> list[tuple[int | None, ChainEntry]]:
    """What was decided before an entry and a listing does not show, in the order of the chain, and
    at last the entry; with their numbers, None for one that the chain, up to a number, has given up
    since or holds no more.

    Behind the newest commit that the listing shows nothing is looked for: all before it is there.
    """
    decision = chain.find_decision(ctx, entry.instant, upto)
    own = decision[0] if decision is not None else 0
    if decision is not None and decision[1].kind is entry.kind is Kind.COMMIT:
        # A plan whose execution was given up has been executed again.
        entry = decision[1]
    given_up: set[str] = set()
    found: list[tuple[int | None, ChainEntry]] = []
    for number in range(upto if own else 0, 0, -1):
        each = chain.get_entry(ctx, number)
        if each is None or (number < own and each.kind is Kind.COMMIT and each.name in timeline.files):
            break
        if each.kind is Kind.ABORT:
            given_up.add(each.instant)
        elif number < own and each.instant not in given_up:
            found.append((number, each))
    stands = decision is not None and decision[1].kind is not Kind.ABORT
    return [*reversed(found), (own if stands else None, entry)]


def _appears(
    ctx: TableContext, entry: ChainEntry, number: int | None, timeline: Timeline, tail: ChainTail, listed: float
) -> bool | None:
    """`materialise` of one entry by a listing, of the boot-clock second `listed`, and by the chain
    as it was read behind it. None where both have to be read again."""
    if not _may_appear(timeline, entry):
        return not _claims(timeline, entry)
    if number is None:
        return False
    if entry.kind is Kind.COMMIT and timeline.is_completed(entry.instant):
        # Another engine has executed the plan, and says itself when.
        return True
    if entry.kind is Kind.COMMIT and entry.instant in open_rollbacks(ctx, timeline):
        # Another engine takes it back: its files go, and some are gone.
        return False
    if ctx.clock.boot_seconds() - listed > ctx.settings.fresh_seconds:
        # Archived meanwhile, perhaps: who slept lists again.
        return None
    is_void = entry.kind is Kind.COMMIT and _was_taken_back(ctx, entry, timeline)
    is_late = entry.name not in timeline.files and came_late(ctx, entry.name, timeline)
    if is_void or is_late or (ctx.lock is not None and is_overtaken(ctx, entry, timeline, tail.sequence)):
        return False if chain.append_abort(ctx, tail, entry.instant) else None
    stands = create_file_of(ctx, entry, listed)
    if stands and entry.kind is Kind.PLAN:
        drop_claim(ctx, entry.instant)
    return stands


def _was_taken_back(ctx: TableContext, entry: ChainEntry, timeline: Timeline) -> bool:
    """Whether another engine took back a clustering that had been executed and published, or a
    compaction that had been executed.

    Facts (Hudi 1.1.1 and 1.2.0, versions 8 and 9, measured): a restore to before a clustering, or
    its rollback, deletes its completed file and its data files, and leaves its plan and its
    inflight file. Of any other write all files of the timeline go, of a compaction and a log
    compaction too. Hudi's compactor (`HoodieTable.rollbackInflightCompaction`) first rolls back
    what was begun of a plan, whoever began it: the data files go, and the plan stays.
    """
    if not _is_pending_rewrite(timeline, entry):
        return False
    for path in decode_commit(entry.data).paths:
        try:
            ctx.storage.head(path)
        except ObjectNotFoundError:
            # Or others have published it since the listing, and cleaned it: its completed file is there now.
            return _is_pending_rewrite(list_timeline(ctx), entry)
        return False
    # Nothing that it wrote tells. To give up what only removes rows that are deleted anyway loses nothing.
    later = (i for i in timeline.instants if comparable_time(i.time) > comparable_time(entry.instant))
    return any(i.action is Action.RESTORE for i in later)


def _is_pending_rewrite(timeline: Timeline, entry: ChainEntry) -> bool:
    return any(i.time == entry.instant and i.action in _REWRITES for i in timeline.pending)


def create_file_of(ctx: TableContext, entry: ChainEntry, seen: float) -> bool:
    """Create the entry's timeline file exclusively; a file that is there already is a helper's
    success. False if the entry was given up since, by who has the lock now: then it is gone again,
    or a commit of nothing stands in its place.

    `seen`: the boot-clock second of what shows that the instant was not archived.
    """
    path, data = ctx.layout.timeline_path(entry.name), entry.data
    try:
        retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, data))
    except ObjectExistsError:
        return may_decide(ctx) or entry.kind is Kind.PLAN or not is_closed(ctx, entry)
    if not may_decide(ctx) and _came_too_late(ctx, entry):
        # No process can look at its lease and send in one step.
        retry.delete(ctx.storage, path)
        return False
    withdraw_if_late(ctx, entry.instant, entry.name, seen, waits=partial(_waits, ctx, entry))
    return True


@under_lock
def _came_too_late(ctx: TableContext, entry: ChainEntry) -> bool:
    """Whether the entry whose file has just been created without the lock is given up: by who had
    that meanwhile, or here, because another engine had it and did what excludes the entry. What
    that did behind the file it did in sight of it."""
    for _ in range(ATTEMPTS_MAX):
        timeline, tail = list_timeline(ctx), chain.read_tail(ctx)
        if is_given_up(ctx, entry.instant, tail):
            return True
        if entry.name not in timeline.files or not _claims(timeline, entry):
            return False
        created = timeline.files[entry.name]
        if not is_overtaken(ctx, entry, narrowed(timeline, partial(ge, created)), tail.sequence):
            return False
        if chain.append_abort(ctx, tail, entry.instant):
            return True
    raise UnavailableError(
        f"{entry.name} came when the lock was lost, and {ATTEMPTS_MAX} times another writer was faster than who was to say whether it "
        "stands; try again",
        base_path=ctx.base_path,
    )


def withdraw_if_late(
    ctx: TableContext, time: str, name: str, seen: float, *, waits: Callable[[Timeline], bool] = lambda _: False
) -> None:
    """Delete the timeline file `name` of the instant `time`, just created, if it came back after
    the instant was archived.

    A process cannot look at its clock and send a request in one step. Who slept in between finds by
    his clock that H has passed since `seen`, and by a new listing that no other file of the instant
    is left: archiving takes the completed one last. One that by that listing `waits` did not come
    back, though it is left alone.
    """
    if ctx.clock.boot_seconds() - seen <= ctx.settings.quarantine_seconds:
        return
    timeline = list_timeline(ctx)
    if not set(timeline.claim_names(time)) - {name} and not waits(timeline):
        retry.delete(ctx.storage, ctx.layout.timeline_path(name))


def _waits(ctx: TableContext, entry: ChainEntry, timeline: Timeline) -> bool:
    """Whether an entry is a plan whose file, left alone since others have dropped the claim, waits
    for who carries it out: it was created soon behind its entry, or its instant has neither ended
    nor been passed. What was given up does not, nor what the chain tells no more."""
    created, planned = timeline.files.get(entry.name), parse_instant(entry.name)
    if entry.kind is not Kind.PLAN or created is None:
        return False
    decision = chain.find_decision(ctx, entry.instant, chain.read_tail(ctx).sequence)
    if decision is None or decision[1].kind is not Kind.PLAN:
        return False
    late = (created - ctx.storage.head(entry_path(decision[0])).modified).total_seconds()
    if late <= ctx.settings.quarantine_seconds / 2:
        return True
    if planned is None or not entry.is_plan_of_instant:
        return False
    return timeline.ended(planned) is None and not timeline.has_passed(entry.instant)


def drop_claim(ctx: TableContext, time: str) -> None:
    """Delete a planner's claim: from its materialisation on the plan itself holds the instant."""
    retry.delete(ctx.storage, ctx.layout.timeline_path(planner_claim(time)))


def is_given_up(ctx: TableContext, time: str, tail: ChainTail | None = None) -> bool:
    """Whether the chain's last word of an instant is an abort; up to this `tail`, or that of
    now."""
    decision = chain.find_decision(ctx, time, (tail or chain.read_tail(ctx)).sequence)
    return decision is not None and decision[1].kind is Kind.ABORT


def _may_appear(timeline: Timeline, entry: ChainEntry) -> bool:
    # Archiving may be at the oldest: its plan goes before its completed file, and must not come back.
    is_oldest = bool(timeline.commits) and entry.instant == timeline.commits[0].time
    return bool(_claims(timeline, entry)) and not is_oldest and not timeline.has_passed(entry.instant)


def _claims(timeline: Timeline, entry: ChainEntry) -> list[str]:
    """The claims under which the entry's file may appear: of a plan that of its planner alone.

    That one goes once the plan is there, so a plan without it was there, and may have been deleted
    since, as a savepoint is. A writer that drew the same time as the planner, and gives it up as
    soon as it lists, brings nothing back.
    """
    if entry.kind is Kind.PLAN:
        return [planner_claim(entry.instant)] if entry.instant in timeline.planner_claims else []
    return timeline.claim_names(entry.instant)
