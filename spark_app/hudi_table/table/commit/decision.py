"""Steps 5 and 6 of `docs/explanation/commit-protocol.md`: deciding in the chain, and publishing
what was decided.

The decision is one exclusive create of a chain entry; everything before it can be thrown away,
everything after it can be done by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from hudi_table.errors import (
    CommitStateUnknownError,
    CorruptTableError,
    HudiError,
    ObjectExistsError,
    OutcomeUnknownError,
    UnavailableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Instant, parse_instant
from hudi_table.table.commit.beside.ahead import came_late, late, needs_to_be_ahead, refuse_late
from hudi_table.table.commit.beside.heartbeat import Heartbeat
from hudi_table.table.commit.beside.locking import lock_lost, may_decide, refuse_if_lost
from hudi_table.table.commit.beside.outcome import counts, taken_back_meanwhile
from hudi_table.table.commit.beside.turns import Place
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.foreign_writers import Neighbours, overtaken
from hudi_table.table.commit.publish import create_file_of, is_given_up, is_there, materialise
from hudi_table.table.commit.rollback import is_closed
from hudi_table.table.commit.write_permit import RightToWrite, planned_again
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import is_remote
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import ChainTail, TableContext
from hudi_table.table.timeline.instants import draw_completion
from hudi_table.table.timeline.timeline import Timeline

SLOT_ATTEMPTS_MAX = 1_000
WIDTH, WIDTH_MAX = 4, 16
"""Slots that are read at once behind one that another took: twice as many each time that all are
taken."""
LOOKS_MAX, LOOK_SECONDS = 4, 0.01
"""How often one looks at a store for what was decided before, before one publishes it oneself."""


@dataclass(slots=True)
class Decider:
    """Who decides: an attempt at an instant, from the chain's tail that it knows.

    `seen` are the timeline files of its snapshot: the decisions that made them exclude nothing any
    more. `rewrite` writes to the metadata table again, because a plan has moved what was written
    there, and returns what it touched. `neighbours` are the other engines on its timeline, None for
    what excludes nobody. `place`: that of a write among those that have lost attempts.
    `heartbeat`: by which other engines know that it is alive, if they look.
    """

    ctx: TableContext
    time: str
    attempt: str
    batch: str
    tail: ChainTail
    right: RightToWrite
    seen: Container[str]
    rewrite: Callable[[], frozenset[str]] | None = None
    neighbours: Neighbours | None = None
    place: Place | None = None
    heartbeat: Heartbeat | None = None
    passed: list[ChainEntry] = field(default_factory=list, init=False)
    _plan: str = field(default="", init=False, repr=False)
    _free: int = field(default=0, init=False, repr=False)
    _width: int = field(default=0, init=False, repr=False)

    def decide(self, kind: Kind, claimed: Claimed, file: Instant | str, data: bytes) -> tuple[ChainEntry, float]:
        """Create the next chain slot, walking every slot that others took first. `data` are the
        bytes of the file that it makes: of this name, or that of an instant that completes. Where
        writers share a lock, this thread holds it.

        Returns the entry and the boot-clock second before it was sent: its file may be created for
        H/2 from then on.
        """
        refuse_if_lost(self.ctx)
        self._plan = file if kind is Kind.PLAN and isinstance(file, str) else ""
        sequence, newest = self.tail.sequence, self.tail.max_instant
        seen = self.tail.seen_boot_seconds
        requested_at: float | None = None
        if sequence + 1 in self.ctx.entries:
            # Others were faster, as the proof of the right has shown: there may be more of them.
            self._width = WIDTH // 2
        if self.ctx.lock is not None and self.neighbours is not None:
            self.neighbours.forget_unlocked()
        for _ in range(SLOT_ATTEMPTS_MAX):
            seen = self._confirm_tail(seen, requested_at)
            occupant = self._slot(sequence + 1) if requested_at is None else None
            # A request that is out cannot be taken back: from then on the chain alone decides.
            if occupant is None and requested_at is None:
                occupant = self._check_neighbours(sequence, claimed)
            if occupant is None:
                seen = self._confirm_tail(seen, requested_at)
                entry = self._entry(kind, claimed, file, data, max(newest, self.time))
                self._refuse_if_lock_is_lost(requested_at)
                is_repeated = requested_at is not None
                requested_at = self.ctx.clock.boot_seconds() if requested_at is None else requested_at
                try:
                    chain.put_entry(self.ctx, sequence + 1, entry)
                    self._remember(sequence + 1, entry)
                    return entry, requested_at
                except (ObjectExistsError, OutcomeUnknownError):
                    occupant = self._lost_slot(sequence + 1)
                except HudiError as error:
                    if not is_repeated:
                        raise
                    # Of this request nothing comes; the one before it may be done yet.
                    raise self._unknown(
                        f"when a reply was lost, and the store refused to be asked again ({error.message})"
                    ) from error
            if occupant is None:
                continue
            if (occupant.instant, occupant.attempt, occupant.kind) == (self.time, self.attempt, kind):
                self._remember(sequence + 1, occupant)
                # Another executor of the plan decided it, who knows when, and it may have been given up behind that.
                return occupant, float("-inf") if requested_at is None else requested_at
            self._check(occupant, claimed)
            if requested_at is not None:
                # The slot is another's for ever, so what was asked of it is answered; and it was there just now.
                seen, requested_at = self.ctx.clock.boot_seconds(), None
            self._pass(occupant)
            sequence, newest = sequence + 1, max(newest, occupant.max_instant)
            if self.rewrite is not None and claimed.moved_by(occupant):
                claimed = replace(claimed, metadata=self.rewrite())
                self._forget_listing()
        raise UnavailableError(
            f"no chain slot could be taken in {SLOT_ATTEMPTS_MAX} attempts", base_path=self.ctx.base_path
        )

    def _pass(self, entry: ChainEntry) -> None:
        """Go on behind a decision of another.

        A commit is published by its writer, or behind the own decision: the next slot does not wait
        for it. A plan may have moved what is written to the metadata table, so it is there before
        that is written again; and what a lock is held for is seen to at once.
        """
        if entry.kind is Kind.COMMIT and self.ctx.lock is None:
            self.passed.append(entry)
        elif entry.kind is not Kind.ABORT:
            # That a plan's file is there says nothing of what was decided before it: a clean's is before its entry.
            self.publish_passed()
            materialise(self.ctx, entry)
            self._forget_listing()
        if self.neighbours is not None:
            self.neighbours.passed(entry)

    def _slot(self, number: int) -> ChainEntry | None:
        """Who has the slot, as far as it was read. Behind one that others took there may be more:
        to read them costs less than a lost request for each."""
        known = self.ctx.entries.get(number)
        return known if known is not None or not self._width or number == self._free else self._look(number)

    def _look(self, number: int) -> ChainEntry | None:
        """Read the slot, at once with those that follow, and with the listing that comes before the
        next decision."""
        self._width = min(2 * self._width or WIDTH, WIDTH_MAX)
        reads = [partial(chain.get_entry, self.ctx, n) for n in range(number, number + self._width)]
        found = at_once(self.ctx.storage, self._list_ahead, *reads)[1:]
        if None in found:
            self._free, self._width = number + found.index(None), WIDTH // 2
        return found[0]

    def _lost_slot(self, number: int) -> ChainEntry | None:
        try:
            return self._look(number)
        except CorruptTableError:
            raise
        except HudiError as error:
            raise CommitStateUnknownError(
                f"the store stopped answering while chain entry {number} was read ({error.message}): whether {self.time} is "
                "committed is not known here; read the timeline before writing again",
                base_path=self.ctx.base_path,
                instant=self.time,
            ) from error

    def _forget_listing(self) -> None:
        """What other engines did is listed behind whatever takes its time."""
        if self.neighbours is not None:
            self.neighbours.forget()

    def _list_ahead(self) -> None:
        if self.neighbours is not None and self.ctx.lock is None:
            # What fails is asked again before the decision.
            with suppress(UnavailableError):
                self.neighbours.relist_newest_ahead()

    def _entry(self, kind: Kind, claimed: Claimed, file: Instant | str, data: bytes, newest: str) -> ChainEntry:
        """The entry that is asked for. When a write completes is said by its slot: later than all
        before it, and the same whoever publishes it."""
        if isinstance(file, Instant) and self.ctx.layout.tells_completions:
            newest = draw_completion(self.ctx, newest)
        name = file if isinstance(file, str) else self.ctx.layout.completed(file, newest).file_name
        keys = claimed.conflict_keys
        return ChainEntry.of(kind, self.time, self.attempt, keys, name, data, max_instant=newest, batch=self.batch)

    def publish(self, entry: ChainEntry, requested_at: float) -> None:
        """Step 6. It is decided: if the store fails now, any later writer publishes it.

        A process that slept since it asked for the decision lists first: a helper may have
        published it long ago, and a completed file that comes back after its archiving moves the
        start of the timeline back. So does who has lost the lock, and takes it again first; and who
        has shown no sign of life for so long that another engine may have taken it back. Raises
        WriteConflictError if another engine has overtaken it meanwhile, WriteAbortedError if one
        has taken it back.
        """
        try:
            self.publish_passed()
            slept = self.ctx.clock.boot_seconds() - requested_at
            if slept <= self.ctx.settings.quarantine_seconds / 2 and self._is_timely(entry):
                stands = create_file_of(self.ctx, entry, requested_at)
                # No process can look at a clock and send in one step.
                is_certain = stands and self._was_alive()
            else:
                stands, is_certain = materialise(self.ctx, entry), False
            # Of a plan that is gone with its claim the chain alone tells that it was given up.
            is_doubtful = not is_certain if entry.kind is Kind.PLAN else not stands and self.ctx.lock is not None
            if is_doubtful and self._is_over(entry):
                ahead = needs_to_be_ahead(self.ctx, parse_instant(entry.name))
                raise (late if ahead else overtaken)(self.ctx, self.time)
            if not is_certain and entry.kind is Kind.COMMIT and not counts(self.ctx, entry):
                raise taken_back_meanwhile(self.ctx, self.time)
        except (WriteConflictError, CorruptTableError):
            raise
        except HudiError as error:
            raise CommitStateUnknownError(
                f"{self.time} is decided and was not published ({error.message}); the next write or `recover` publishes it, do not "
                "write these rows again",
                base_path=self.ctx.base_path,
                instant=self.time,
            ) from error

    def _is_timely(self, entry: ChainEntry) -> bool:
        """Whether its file may be created with no other look."""
        return self._was_alive() and not came_late(self.ctx, entry.name)

    def _was_alive(self) -> bool:
        """Whether no other engine can have taken the attempt for dead, nor have had the lock."""
        return may_decide(self.ctx) and not (self.heartbeat is not None and self.heartbeat.has_paused())

    def _is_over(self, entry: ChainEntry) -> bool:
        """Whether the entry was given up. The chain that says so may have been trimmed while its
        writer slept."""
        return is_given_up(self.ctx, self.time) or (entry.kind is Kind.COMMIT and is_closed(self.ctx, entry))

    def publish_passed(self) -> None:
        """Nothing is visible before what was decided before it: all of that is published, once the
        last of it is."""
        if not self.passed:
            return
        last = self.passed[-1]
        self.passed.clear()
        if is_remote(self.ctx.storage):
            # Its writer is about to do it: to look again costs less than to do it in its place.
            for _ in range(LOOKS_MAX):
                if is_there(self.ctx, last):
                    return
                self.ctx.clock.sleep(LOOK_SECONDS)
        materialise(self.ctx, last)

    def _check_neighbours(self, sequence: int, claimed: Claimed) -> ChainEntry | None:
        """Look for what other engines did since the snapshot. The next slot, if it is taken, may
        say what is new: its entry."""
        if self.neighbours is None:
            return None
        quiet = self.neighbours.is_quiet()
        if quiet is False:
            # What is new is another writer's of ours mostly, who was faster.
            occupant = self._look(sequence + 1)
            if occupant is not None:
                return occupant
        now = None if quiet else self.neighbours.relist(self._in_turn)
        if now is None:
            return None
        occupant = self._look(sequence + 1)
        if occupant is None:
            self.neighbours.check(now, claimed, sequence)
        return occupant

    def _in_turn(self, now: Timeline) -> None:
        if self.place is not None:
            self.place.refuse_before_others(now)
        refuse_late(self.ctx, self._plan, now)

    def _confirm_tail(self, seen: float, requested_at: float | None) -> float:
        """When the known tail was last seen: a tail may be trimmed, and then its next slot would be
        free again.

        `requested_at`: when a decision was sent of which nothing is known yet.
        """
        now = self.ctx.clock.boot_seconds()
        if now - seen <= self.ctx.settings.renew_seconds:
            return seen
        if requested_at is not None:
            raise self._unknown(f"{now - requested_at:.0f} s ago and the chain no longer records what came of it")
        self.right.prove()
        self._forget_listing()
        return now

    def _refuse_if_lock_is_lost(self, requested_at: float | None) -> None:
        if may_decide(self.ctx):
            return
        if requested_at is not None:
            raise self._unknown("when the lock was lost, and what came of the request is not known")
        raise lock_lost()

    def _unknown(self, what: str) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"{self.time} was to be decided {what}; read the timeline before writing again",
            base_path=self.ctx.base_path,
            instant=self.time,
        )

    def _check(self, entry: ChainEntry, claimed: Claimed) -> None:
        if entry.instant == self.time and entry.is_plan_of_instant:
            raise planned_again(self.ctx.base_path, self.time)
        if entry.instant == self.time and entry.kind is not Kind.PLAN:
            raise WriteAbortedError(
                f"instant {self.time} was taken for dead and aborted; nothing of it is visible, write again",
                base_path=self.ctx.base_path,
                instant=self.time,
            )
        if claimed.excluded_by(entry, self.seen):
            raise WriteConflictError(
                f"instant {entry.instant} {'plans to rewrite' if entry.kind is Kind.PLAN else 'changed'} the same file "
                f"groups since this write of {self.time} read them; nothing of this write is visible, write again on the "
                "new state",
                base_path=self.ctx.base_path,
                instant=self.time,
            )

    def _remember(self, sequence: int, entry: ChainEntry) -> None:
        self.ctx.tail = ChainTail(sequence, entry.max_instant, self.ctx.clock.boot_seconds())
