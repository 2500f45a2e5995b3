"""One attempt at one instant: claim, snapshot, files, decision, publication.

The steps are those of `docs/commit-protocol.md` section 2.1 and carry its numbers. The decision is one exclusive
create of a chain entry; everything before it can be thrown away, everything after it can be done by anybody.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hudi_table.errors import (
    CommitStateUnknownError,
    HudiError,
    ObjectExistsError,
    OutcomeUnknownError,
    UnavailableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.model.chain import ChainEntry, Kind
from hudi_table.model.commits import SCHEMA_KEY, CommitMetadata
from hudi_table.model.instants import Action, Instant, State, comparable_time
from hudi_table.model.names import HEARTBEAT, HOODIE, TEMP, join
from hudi_table.model.table_config import TableConfig, TableType
from hudi_table.model.touches import meet
from hudi_table.table import chain, recovery, settle
from hudi_table.table.context import ChainTail, TableContext
from hudi_table.table.instants import draw_instant
from hudi_table.table.materialise import create_file_of, materialise, materialise_predecessors
from hudi_table.table.right import RightToWrite
from hudi_table.table.timeline import Timeline, load_timeline

CLAIM_ATTEMPTS_MAX = 100
SLOT_ATTEMPTS_MAX = 1_000
BEAT_SECONDS_LEAST = 1.0


@dataclass(slots=True)
class Transaction:
    """A claimed instant and the snapshot that its work is based on. Made by `begin`, ended by `commit` or `abort`."""

    ctx: TableContext
    instant: Instant
    attempt: str
    timeline: Timeline
    tail: ChainTail
    right: RightToWrite
    batch: str = ""
    seed: uuid.UUID = field(default_factory=uuid.uuid4)
    beaten: bool = False

    @property
    def time(self) -> str:
        """The instant time T."""
        return self.instant.time

    def inflight(self, body: bytes = b"") -> None:
        """Step 4: create the inflight file. `body` is Hudi's workload JSON, or nothing."""
        settle.put(self.ctx.storage, f"{HOODIE}/{self.instant.with_state(State.INFLIGHT).file_name}", body)

    def commit(self, metadata: CommitMetadata, touches: Iterable[str]) -> None:
        """Steps 4 (reconcile) to 6: decide, publish, and clear the markers.

        Raises WriteConflictError or WriteAbortedError if the decision went against this attempt,
        CommitStateUnknownError if the store stopped answering between decision and publication.
        """
        recovery.reconcile_attempts(self.ctx, self.time, metadata.paths)
        keys = tuple(sorted(set(touches)))
        body = metadata.to_json()
        name = self.instant.with_state(State.COMPLETED).file_name
        entry, asked = self._decide(keys, name, body)
        self._publish(entry, asked)
        self._clear()

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Tell other processes that this attempt is alive, however long its work takes: a heartbeat file, renewed three
        times before they would take it for dead. Work shorter than that writes none."""
        done = threading.Event()
        pause = max(self.ctx.settings.suspect_after_seconds / 3, BEAT_SECONDS_LEAST)

        def beat() -> None:
            while not done.wait(pause):
                self.beaten = True
                # A beat that fails is made good by the next; a store that stays away ends the attempt elsewhere.
                with suppress(HudiError):
                    self.ctx.storage.put(f"{HEARTBEAT}/{self.time}", b"")

        thread = threading.Thread(target=beat, name=f"heartbeat-{self.time}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def abort(self, *, confirmed_dead: bool = True) -> None:
        """Give up: abort the instant in the chain and roll its files back.

        `confirmed_dead`: every process of this attempt has ended, so nothing late can appear and the quarantine
        is not needed. Nothing happens to an instant that was decided otherwise meanwhile.
        """
        recovery.abort_and_roll_back(self.ctx, self.instant, confirmed_dead=confirmed_dead)

    def _decide(self, touches: tuple[str, ...], name: str, body: bytes) -> tuple[ChainEntry, float]:
        """Step 5: create the next chain slot, walking every slot that others took first.

        Returns the entry and the boot-clock second before it was sent: the writer may publish for H/2 from then on.
        """
        sequence, newest = self.tail.sequence, self.tail.max_instant
        seen = self.tail.seen_boot_seconds
        asked: float | None = None
        settled = {i.time for i in self.timeline.commits}
        for _ in range(SLOT_ATTEMPTS_MAX):
            seen = self._confirm_tail(seen, asked)
            entry = ChainEntry(
                kind=Kind.COMMIT,
                instant=self.time,
                attempt=self.attempt,
                touches=touches,
                name=name,
                body=body.decode(),
                max_instant=max(newest, self.time),
                batch=self.batch,
            )
            asked = self.ctx.clock.boot_seconds() if asked is None else asked
            try:
                chain.put_entry(self.ctx, sequence + 1, entry)
                self._remember(sequence + 1, entry)
                return entry, asked
            except (ObjectExistsError, OutcomeUnknownError):
                found = self._read_slot(sequence + 1)
            if found is None:
                continue
            if found.instant == self.time and found.attempt == self.attempt and found.kind is Kind.COMMIT:
                self._remember(sequence + 1, found)
                return found, asked
            self._check(found, touches, settled)
            # The slot is another's for ever, so what was asked of it is answered; and it was there just now.
            seen, asked = self.ctx.clock.boot_seconds(), None
            materialise(self.ctx, found)
            sequence, newest = sequence + 1, max(newest, found.max_instant)
        raise UnavailableError(
            f"no chain slot could be taken in {SLOT_ATTEMPTS_MAX} attempts", base_path=self.ctx.base_path
        )

    def _confirm_tail(self, seen: float, asked: float | None) -> float:
        """When the known tail was last seen: a tail may be trimmed, and then its next slot would be free again.

        `asked`: when a decision was sent of which nothing is known yet.
        """
        now = self.ctx.clock.boot_seconds()
        if now - seen <= self.ctx.settings.renew_seconds:
            return seen
        if asked is not None:
            raise CommitStateUnknownError(
                f"{self.time} was to be decided {now - asked:.0f} s ago and the chain cannot tell any more what came of "
                "it; read the timeline before writing again",
                base_path=self.ctx.base_path,
                instant=self.time,
            )
        self.right.prove()
        return now

    def _read_slot(self, sequence: int) -> ChainEntry | None:
        try:
            return chain.get_entry(self.ctx, sequence)
        except UnavailableError as error:
            raise CommitStateUnknownError(
                f"the store stopped answering while chain entry {sequence} was read: whether {self.time} is committed "
                "is not known here; read the timeline before writing again",
                base_path=self.ctx.base_path,
                instant=self.time,
            ) from error

    def _check(self, found: ChainEntry, touches: tuple[str, ...], settled: set[str]) -> None:
        if found.instant == self.time:
            raise WriteAbortedError(
                f"instant {self.time} was taken for dead and aborted; nothing of it is visible, write again",
                base_path=self.ctx.base_path,
                instant=self.time,
            )
        if found.kind is not Kind.ABORT and found.instant not in settled and meet(touches, found.touches):
            raise WriteConflictError(
                f"instant {found.instant} changed the same file groups since this write of {self.time} read them; "
                "nothing of this write is visible, write again on the new state",
                base_path=self.ctx.base_path,
                instant=self.time,
            )

    def _remember(self, sequence: int, entry: ChainEntry) -> None:
        self.ctx.tail = ChainTail(sequence, entry.max_instant, self.ctx.clock.boot_seconds())

    def _publish(self, entry: ChainEntry, asked: float) -> None:
        """Step 6. The commit is decided: if the store fails now, any later writer publishes it.

        A process that slept since it asked for the decision lists first: a helper may have published it long ago, and
        a completed file that comes back after its archiving moves the start of the timeline back.
        """
        slept = self.ctx.clock.boot_seconds() - asked
        try:
            if slept <= self.ctx.settings.quarantine_seconds / 2:
                create_file_of(self.ctx, entry)
            else:
                materialise(self.ctx, entry)
        except UnavailableError as error:
            raise CommitStateUnknownError(
                f"{self.time} is decided but the store stopped answering before it was published; the next write or "
                "`recover` publishes it, do not write these rows again",
                base_path=self.ctx.base_path,
                instant=self.time,
            ) from error

    def _clear(self) -> None:
        """The markers have served; if they cannot be deleted now a later recovery deletes them."""
        try:
            recovery.delete_all(self.ctx, join(TEMP, self.time))
            if self.beaten:
                self.ctx.storage.delete(f"{HEARTBEAT}/{self.time}")
        except (UnavailableError, OutcomeUnknownError):
            return


def write_action(config: TableConfig) -> Action:
    """The action of a plain write: of a merge-on-read table a commit is the end of a compaction."""
    return Action.DELTA_COMMIT if config.type is TableType.MERGE_ON_READ else Action.COMMIT


def begin(
    ctx: TableContext,
    action: Action,
    *,
    requested_body: Callable[[], bytes] | None = None,
    attempt: str | None = None,
    batch: str = "",
) -> Transaction:
    """Steps 1 to 3: tail, claim, snapshot. Failed writes of others are recovered on the way.

    The table gets a founding commit of no files first if it has no completed write: without one, Hudi's readers
    take files of pending instants for committed ones as soon as a later instant completes.

    Raises UnavailableError if no instant can be claimed within the bound.
    """
    name = attempt or str(uuid.uuid4())
    txn = _claim(ctx, action, requested_body, name)
    while txn.timeline.last_commit is None:
        _found(ctx, txn)
        txn = _claim(ctx, action, requested_body, name)
    txn.batch = batch
    recovery.recover(ctx, txn.timeline, own=txn.instant)
    return txn


def _claim(ctx: TableContext, action: Action, requested_body: Callable[[], bytes] | None, attempt: str) -> Transaction:
    floor = ""
    for _ in range(CLAIM_ATTEMPTS_MAX):
        tail = chain.known_tail(ctx)
        instant = Instant(draw_instant(ctx, max(tail.max_instant, floor)), action, State.REQUESTED)
        floor = instant.time
        path = f"{HOODIE}/{instant.file_name}"
        try:
            ctx.storage.put_if_absent(path, requested_body() if requested_body else b"")
        except (ObjectExistsError, OutcomeUnknownError):
            # A claim that may be another's is never used; if it was ours after all, recovery finds it.
            continue
        timeline = load_timeline(ctx)
        if _holds(timeline, instant) and materialise_predecessors(ctx, timeline, instant.time, tail.sequence):
            timeline = load_timeline(ctx)
        if not _holds(timeline, instant):
            settle.delete(ctx.storage, path)
            floor = max(floor, comparable_time(timeline.newest_time))
            continue
        right = RightToWrite(
            ctx.storage.reopen(), instant.time, instant.file_name, tail.sequence, ctx.settings.renew_seconds,
            _storage=ctx.storage, _clock=ctx.clock,
        )  # fmt: skip
        return Transaction(ctx, instant, attempt, timeline, tail, right)
    raise UnavailableError(
        f"no instant could be claimed in {CLAIM_ATTEMPTS_MAX} attempts; many writers are at work, try again",
        base_path=ctx.base_path,
    )


def _holds(timeline: Timeline, instant: Instant) -> bool:
    """Whether the claim stands: still there, alone at its time, and newer than everything completed."""
    same = [i for i in timeline.instants if i.time == instant.time]
    if len(same) != 1 or same[0].action is not instant.action:
        return False
    newest = max((comparable_time(i.time) for i in timeline.completed), default="")
    return newest < instant.time


def _found(ctx: TableContext, claimed: Transaction) -> None:
    """Give up a claim on a table without completed writes, and commit an empty one, its schema the table's own.

    What is pending now was left by a failed first write: its files are deleted before they could be taken for
    committed ones.
    """
    settle.delete(ctx.storage, f"{HOODIE}/{claimed.instant.file_name}")
    txn = _claim(ctx, write_action(ctx.config), None, f"{claimed.attempt}/founding")
    if txn.timeline.last_commit is not None:
        settle.delete(ctx.storage, f"{HOODIE}/{txn.instant.file_name}")
        return
    recovery.recover(ctx, txn.timeline, own=txn.instant, eager=True)
    schema = ctx.config.create_schema
    txn.inflight()
    txn.commit(CommitMetadata("INSERT", (), {SCHEMA_KEY: schema} if schema else {}), ())
