"""One attempt at one instant: claim, snapshot, files, decision, publication.

The steps are those of `docs/explanation/commit-protocol.md` sections 2.1 and 2.3, and carry its
numbers. A writer claims its instant by its requested file. That of a table service is its plan, and
appears only when the chain has decided it: so a planner claims by a file of its own, which Hudi
does not know, and an executor has its right from the plan.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace

from hudi_table.errors import (
    CommitStateUnknownError,
    HudiError,
    InvariantError,
    ObjectExistsError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedTableError,
    WriteAbortedError,
)
from hudi_table.model.options.write_options import FailedWrites
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata
from hudi_table.model.timeline.conflict_keys import METADATA
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time, parse_instant, planner_claim
from hudi_table.table.commit import recovery
from hudi_table.table.commit.beside.first_reads import section_behind_reads
from hudi_table.table.commit.beside.first_writes import live_first_write, under_way
from hudi_table.table.commit.beside.heartbeat import Heartbeat
from hudi_table.table.commit.beside.locking import refuse_if_lost, section
from hudi_table.table.commit.beside.turns import Place
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.foreign_writers import Neighbours
from hudi_table.table.commit.markers import Marks, reconcile_attempts
from hudi_table.table.commit.publish import drop_claim
from hudi_table.table.commit.snapshot import DECIDED_LISTINGS_MAX, decided_timeline, holds, restless
from hudi_table.table.commit.write_permit import RightToWrite, right_of
from hudi_table.table.store import retry
from hudi_table.table.store.at_once import at_once
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.column_history import with_history
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.kept_properties import refuse_lost
from hudi_table.table.timeline.layout import encode_commit
from hudi_table.table.timeline.properties import keep_properties
from hudi_table.table.timeline.timeline import Timeline

_LOG = logging.getLogger("hudi_table.commit")

CLAIM_ATTEMPTS_MAX = 100
FIRST_COMMIT_LISTINGS = 10
FIRST_COMMIT_SECONDS, FIRST_COMMIT_SECONDS_MAX = 1.0, 16.0
"""How long who was aborted in a table's first commit waits for that of another, at first and at
most; up to twice that, by chance."""


@dataclass(slots=True)
class Transaction:
    """A claimed instant and the snapshot that its work is based on. Made by `begin`, ended by
    `commit` or `abort`. `completes_as`: the completed file, where an earlier decision named it."""

    ctx: TableContext
    instant: Instant
    attempt: str
    timeline: Timeline
    tail: ChainTail
    right: RightToWrite
    batch: str = ""
    completes_as: str = ""
    seed: uuid.UUID = field(default_factory=uuid.uuid4)
    heartbeat: Heartbeat = field(kw_only=True, repr=False)

    @property
    def time(self) -> str:
        """The instant time T."""
        return self.instant.time

    @property
    def _marks(self) -> Marks | None:
        """All markers of the instant, if no other process has written for it."""
        return None if self.right.is_shared else self.right.marks

    def inflight(self, body: bytes = b"") -> None:
        """Step 4: create the inflight file. `body` is Hudi's workload JSON, or nothing."""
        retry.put(
            self.ctx.storage, self.ctx.layout.timeline_path(self.instant.with_state(State.INFLIGHT).file_name), body
        )

    def commit(self, metadata: CommitMetadata, conflict_keys: Iterable[str]) -> Instant:
        """Steps 4 (reconcile) to 6: decide, publish, and clear the markers. What is on the timeline
        then.

        Raises WriteConflictError or WriteAbortedError if the decision went against this attempt,
        CommitStateUnknownError if the store stopped answering between decision and publication.
        """
        metadata = with_history(self.ctx, self.timeline, self.time, metadata)
        neighbours = Neighbours(self.ctx, self.time, self.right.claim, self.timeline)
        has_metadata = self.timeline.has_metadata
        try:
            # What is written to a metadata table, and a lock, come before the listing that is held against the write.
            waits = has_metadata or self._marks is not None or self.ctx.lock is not None
            marks, _ = at_once(
                self.ctx.storage,
                lambda: reconcile_attempts(self.ctx, self.time, metadata.paths, self._marks),
                lambda: None if waits else neighbours.relist_ahead(),
            )
        except InvariantError:
            # Who took this attempt for dead has deleted its markers: that is no bug, and the proof says so.
            self.right.prove()
            raise
        if marks.files - metadata.paths:
            # Deleting took its time: what is held against the write is listed again.
            neighbours.listed = None
        claimed = Claimed.of_commit(tuple(sorted(set(conflict_keys))), metadata)
        delta = self.ctx.metadata.delta(self.ctx, self.right, metadata, self.time, self.timeline)
        data = encode_commit(self.ctx.layout, metadata)
        place = Place(self.ctx, self.time, claimed.conflict_keys) if self.right.is_own else None

        def decide(again: bool) -> ChainEntry:
            # Hudi's writers write to the metadata table, and compact it, under the lock.
            with section_behind_reads(self.ctx, self.time) as listed:
                # What is written to a metadata table takes its time: behind that it is listed again.
                neighbours.under_lock = None if has_metadata else listed
                write = delta.write_again if again else delta.write
                touched = replace(claimed, metadata=write() if has_metadata else frozenset({METADATA}))
                file = self.completes_as or self.instant
                return self._decide(Kind.COMMIT, touched, file, data, neighbours, delta.write_again, place=place)

        entry = decide(False) if place is None else place.decide(decide)
        self._clear(marks)
        completed = parse_instant(entry.name)
        assert completed is not None, "a commit is a completed instant"
        return completed

    def plan(
        self,
        body: bytes,
        conflict_keys: Iterable[str],
        file: Instant | str | None = None,
        *,
        compacts_metadata: bool = False,
    ) -> None:
        """Decide and publish the requested file of a table service (or `file`: one of that name, or
        of an instant that completes), whose claim has then served.

        `compacts_metadata`: it takes the logs of all commits so far, so one that was decided since
        excludes it. Raises WriteConflictError if what it was planned on has moved,
        WriteAbortedError and CommitStateUnknownError.
        """
        claimed = Claimed(tuple(sorted(set(conflict_keys))), compacts_metadata=compacts_metadata)
        self._decide(Kind.PLAN, claimed, file or self.instant.file_name, body)
        drop_claim(self.ctx, self.time)

    def withdraw(self) -> None:
        """Give up a claim under which nothing was written or decided."""
        retry.delete(self.ctx.storage, self.right.claim_path)
        self.heartbeat.end()

    def signs_of_life(self) -> AbstractContextManager[None]:
        """A context in which other processes are told that this attempt is alive."""
        return self.heartbeat.beats()

    def abort(self, *, confirmed_dead: bool = True) -> None:
        """Give up: abort the instant in the chain and roll its files back.

        `confirmed_dead`: every process of this attempt has ended, so nothing late can appear and
        the quarantine is not needed. Nothing happens to an instant that was decided otherwise
        meanwhile.
        """
        recovery.give_up_own(self.ctx, self.instant, confirmed_dead=confirmed_dead)

    def _decide(
        self,
        kind: Kind,
        claimed: Claimed,
        file: Instant | str,
        data: bytes,
        neighbours: Neighbours | None = None,
        rewrite: Callable[[], frozenset[str]] | None = None,
        *,
        place: Place | None = None,
    ) -> ChainEntry:
        neighbours = neighbours or Neighbours(self.ctx, self.time, self.right.claim, self.timeline)
        decider = Decider(
            self.ctx, self.time, self.attempt, self.batch, self.tail, self.right, self.timeline.files, rewrite, neighbours, place, self.heartbeat
        )  # fmt: skip
        refuse_if_lost(self.ctx)
        with section(self.ctx):
            entry, requested_at = decider.decide(kind, claimed, file, data)
            _LOG.debug("%s: %s decided, not published yet", self.time, kind.value)
            decider.publish(entry, requested_at)
        _LOG.debug("%s: %s published", self.time, kind.value)
        return entry

    def _clear(self, marks: Marks) -> None:
        """The markers have served; if they cannot be deleted now a later recovery deletes them."""
        beats = [self.heartbeat.path] if self.heartbeat.shown else []
        with suppress(HudiError):
            self.ctx.storage.delete_all([*dict.fromkeys([*marks.objects, *self.right.marks.objects]), *beats])


def write_action(config: TableConfig) -> Action:
    """The action of a plain write: of a merge-on-read table a commit is the end of a compaction."""
    return Action.DELTA_COMMIT if config.type is TableType.MERGE_ON_READ else Action.COMMIT


def begin(
    ctx: TableContext,
    action: Action,
    *,
    attempt: str | None = None,
    batch: str = "",
    failed_writes: FailedWrites | None = None,
    reads: Callable[[Timeline], object] | None = None,
) -> Transaction:
    """Steps 1 to 3: tail, claim, snapshot. Failed writes of others are recovered on the way, if
    `failed_writes`, by default the table's policy, is eager. `reads`: what is read of the snapshot
    while it is confirmed, beside the first proof of the right; what it raises is left to who reads
    again.

    The table gets a founding commit of no files first if it has no completed write: without one,
    Hudi's readers take files of pending instants for committed ones as soon as a later instant
    completes.

    Raises UnavailableError if no instant can be claimed within the bound.
    """
    refuse_lost(ctx)
    keep_properties(ctx)
    name = attempt or str(uuid.uuid4())
    pause = FIRST_COMMIT_SECONDS
    for _ in range(DECIDED_LISTINGS_MAX):
        txn = _claim(ctx, action, name, reads=reads)
        if txn.timeline.last_commit is None:
            try:
                _commit_empty(ctx, txn)
            except WriteAbortedError:
                # Several who begin a table at once take each other's claims for those of failed first writes: who was aborted lets the
                # others end.
                _await_first_commit(ctx, pause * random.uniform(1, 2))  # noqa: S311 - no secret
                pause = min(2 * pause, FIRST_COMMIT_SECONDS_MAX)
        elif _recovered(ctx, txn, failed_writes):
            txn.batch = batch
            return txn
    raise restless(ctx)


def begin_plan(ctx: TableContext, action: Action) -> Transaction:
    """The same steps for a planner of a table service. Ended by `plan` or `withdraw`."""
    refuse_lost(ctx)
    name = str(uuid.uuid4())
    for _ in range(DECIDED_LISTINGS_MAX):
        txn = _claim(ctx, action, name, planner=True)
        if _recovered(ctx, txn, None):
            return txn
    raise restless(ctx)


@contextmanager
def planning(ctx: TableContext, action: Action) -> Iterator[Transaction]:
    """`begin_plan` for a block that ends it: the claim is given up where the block fails, unless
    nobody knows whether its plan counts."""
    txn = begin_plan(ctx, action)
    try:
        yield txn
    except CommitStateUnknownError:
        raise
    except HudiError:
        with suppress(HudiError):
            txn.withdraw()
        raise


def _recovered(ctx: TableContext, txn: Transaction, policy: FailedWrites | None, *, eager: bool = False) -> bool:
    """Whether the attempt may go on once failed writes are recovered, as the policy says, or with
    `eager` all that is undecided.

    What recovery publishes, deletes or ends is not as the snapshot shows it any more, so the
    snapshot is taken anew. If the claim does not stand in that one, as beside a rollback that has
    just completed at a later instant, it is given up: claim another.
    """
    if not eager and (policy or ctx.settings.failed_writes) is not FailedWrites.EAGER:
        return True
    claim = txn.right.claim
    with txn.heartbeat.beats_if_shown():
        if not recovery.recover(ctx, txn.timeline, own=claim, eager=eager):
            return True
        timeline = decided_timeline(ctx, txn.time, claim, txn.tail)
    if holds(timeline, txn.time, claim):
        txn.timeline = timeline
        return True
    txn.withdraw()
    return False


def _claim(
    ctx: TableContext,
    action: Action,
    attempt: str,
    *,
    planner: bool = False,
    reads: Callable[[Timeline], object] | None = None,
) -> Transaction:
    # What this process has listed is mostly newer than the tail that it remembers: below it no claim would stand.
    floor = ctx.newest_listed
    for _ in range(CLAIM_ATTEMPTS_MAX):
        tail = chain.known_tail(ctx)
        instant = Instant(draw_instant(ctx, max(tail.max_instant, floor)), action, State.REQUESTED)
        floor = instant.time
        claim = planner_claim(instant.time) if planner else instant.file_name
        path = ctx.layout.timeline_path(claim)
        heartbeat = Heartbeat(ctx, instant.time)
        if not planner and not heartbeat.begin():
            continue
        try:
            ctx.storage.put_if_absent(path, b"")
        except (ObjectExistsError, OutcomeUnknownError):
            # A claim that may be another's is never used; if it was ours after all, recovery finds it.
            heartbeat.end()
            continue
        right = right_of(ctx, instant.time, claim, tail, is_own=not planner)
        try:
            # What is carried out on the way may wait for the lock.
            with heartbeat.beats_if_shown():
                timeline = decided_timeline(ctx, instant.time, claim, tail, _read_ahead(ctx, right, reads))
        except UnsupportedTableError:
            heartbeat.end()
            raise
        if not holds(timeline, instant.time, claim):
            retry.delete(ctx.storage, path)
            heartbeat.end()
            floor = max(floor, comparable_time(timeline.newest_time))
            continue
        _LOG.debug("%s: claimed, on a snapshot of %d instants that completed", instant.time, len(timeline.completed))
        return Transaction(ctx, instant, attempt, timeline, tail, right, heartbeat=heartbeat)
    raise UnavailableError(
        f"no instant could be claimed in {CLAIM_ATTEMPTS_MAX} attempts; many writers are at work, try again",
        base_path=ctx.base_path,
    )


def _read_ahead(
    ctx: TableContext, right: RightToWrite, reads: Callable[[Timeline], object] | None
) -> Callable[[Timeline], object]:
    """What a writer asks while its snapshot is confirmed. Nothing is decided by it, so what fails
    is asked again by who needs it."""

    def ask(timeline: Timeline) -> None:
        if reads is not None:
            read = reads
            with suppress(HudiError):
                shown = timeline.listed_at if right.claim in timeline.files else None
                at_once(ctx.storage, lambda: right.renew_if_due(shown), lambda: read(timeline))

    return ask


def _commit_empty(ctx: TableContext, claimed: Transaction) -> None:
    """Give up a claim on a table without completed writes, and commit an empty one, its schema the
    table's own.

    What is pending now was left by a failed first write: its files are deleted before they could be
    taken for committed ones. One of another engine that shows signs of life is waited for.

    Raises UnavailableError if that goes on for long.
    """
    claimed.withdraw()
    txn = _claim(ctx, write_action(ctx.config), f"{claimed.attempt}/founding")
    if txn.timeline.last_commit is not None:
        txn.withdraw()
        return
    other = live_first_write(ctx, txn.timeline, txn.right.claim)
    if other is not None:
        txn.withdraw()
        _await_first_commit(ctx, FIRST_COMMIT_SECONDS_MAX)
        if other in {i.time for i in list_timeline(ctx).pending}:
            raise under_way(ctx, other)
        return
    if not _recovered(ctx, txn, None, eager=True):
        return
    schema = ctx.config.create_schema
    txn.inflight()
    txn.commit(CommitMetadata("INSERT", (), {SCHEMA_KEY: schema} if schema else {}), ())


def _await_first_commit(ctx: TableContext, seconds: float) -> None:
    """Returns once the table has a completed write, or after so many seconds."""
    end = ctx.clock.boot_seconds() + seconds
    while ctx.clock.boot_seconds() < end and list_timeline(ctx).last_commit is None:
        ctx.clock.sleep(seconds / FIRST_COMMIT_LISTINGS)
