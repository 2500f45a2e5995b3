"""The right to write: a process proves it by seeing its own claim and a chain without a decision of
its instant.

Driver and task processes prove it before their first file, and again whenever the last proof is
older than H/4, so a recovery that waits H after its abort knows that nothing of the instant can
appear any more. A proof whose reply is lost is no proof. One serves all threads of a process.
Markers go before files: a file without one could never be found by a rollback.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from hudi_table.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    WriteAbortedError,
)
from hudi_table.model.names import CHAIN, TEMP, MarkerType, join, marker_path
from hudi_table.model.timeline.chain import ChainEntry as Entry
from hudi_table.model.timeline.chain import Kind, entry_path, sequence_of
from hudi_table.table.commit.markers import BATCHED, MARKER_TYPE, MarkedFile, Marks, batch_of, batch_path
from hudi_table.table.store import retry, threads
from hudi_table.table.store.at_once import all_at_once, at_once
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.context import ChainTail, TableContext

if TYPE_CHECKING:
    from hudi_table.table.commit.beside.early_conflicts import EarlyConflicts

_STATE = ("open_storage", "instant", "claim_path", "tail", "renew_seconds", "batched", "is_shared", "is_own", "early")
_NUMBERS = 1 << 31
_DRAWS_MAX = 10


@dataclass(slots=True)
class RightToWrite:
    """The right of one instant. Picklable: another process opens the storage anew and proves for
    itself.

    `claim_path` is the requested file, relative to the base path, `tail` the last chain entry known
    to hold no abort. `doubts` are files whose creation had no definite reply, `marks` the markers
    that this process has made. `batched`: they stand in Hudi's batched form. `is_shared`: another
    process may write for the instant, too. `is_own`: it was claimed for this attempt, so what it
    has not committed is nobody else's. `early`: what looks behind new markers for those of others.
    """

    open_storage: Callable[[], Storage]
    instant: str
    claim_path: str
    tail: int
    renew_seconds: float
    batched: bool = False
    is_shared: bool = False
    is_own: bool = False
    is_aborted: bool = False
    early: EarlyConflicts | None = None
    doubts: list[str] = field(default_factory=list, repr=False)
    marks: Marks = field(default_factory=Marks, repr=False)
    _storage: Storage | None = field(default=None, repr=False)
    _clock: Clock = field(default_factory=SystemClock, repr=False)
    _entries: MutableMapping[int, Entry] | None = field(default=None, repr=False)
    _proved_at: float | None = None
    _lock: threads.Lock = field(default_factory=lambda: threads.lock(), repr=False)  # noqa: PLW0108 - looked up when it is called

    def __getstate__(self) -> dict[str, Any]:
        self.is_shared = True
        return {name: getattr(self, name) for name in _STATE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.doubts, self.marks, self._lock, self.is_aborted = [], Marks(), threads.lock(), False
        self._storage, self._clock, self._entries, self._proved_at = None, SystemClock(), None, None

    @property
    def claim(self) -> str:
        """The name of the requested file."""
        return self.claim_path.rpartition("/")[2]

    @property
    def storage(self) -> Storage:
        """The storage of this process."""
        if self._storage is None:
            self._storage = self.open_storage()
        return self._storage

    def prove(self) -> None:
        """Prove the right by two reads. Raises WriteAbortedError if it is gone, UnavailableError if
        unproved.

        A new plan of the instant ends it for whoever executes an earlier one. A commit ends it too:
        a file that a stray attempt adds to a committed instant could outlive the clustering that
        replaced its group. So does a gap: an abort may have stood in what was trimmed.
        """
        with self._lock:
            self._prove()

    def _prove(self, claim_listed_at: float | None = None) -> None:
        begun = self._clock.boot_seconds() if claim_listed_at is None else claim_listed_at
        start = entry_path(self.tail - 1) if self.tail > 1 else None
        is_claimed, infos = at_once(
            self.storage,
            self._is_claimed if claim_listed_at is None else lambda: True,
            lambda: self.storage.list(CHAIN, start_after=start),
        )
        if not is_claimed:
            raise self._gone("its claim is gone")
        listed = (sequence_of(info.path) for info in infos)
        numbers = sorted(n for n in listed if n is not None and n >= self.tail)
        if numbers[:1] != ([max(self.tail, 1)] if self.tail or numbers else []):
            raise self._gone(f"chain entries after {self.tail} were trimmed since it began")
        new = [number for number in numbers if number != self.tail]
        for number, entry in zip(new, all_at_once(self.storage, [partial(self._entry, n) for n in new]), strict=True):
            if entry.instant == self.instant and entry.kind is Kind.ABORT:
                self.is_aborted = True
                raise self._gone(f"chain entry {number} aborts it")
            if entry.instant == self.instant and entry.kind is Kind.COMMIT:
                raise WriteAbortedError(
                    f"instant {self.instant} is committed by chain entry {number}: this attempt of a task came too late",
                    base_path=self.storage.base_path,
                    instant=self.instant,
                )
            if entry.instant == self.instant and entry.kind is Kind.PLAN and entry.name == self.claim:
                raise planned_again(self.storage.base_path, self.instant)
            self.tail = number
        # The proof is as old as its first read, not as its reply.
        self._proved_at = begun

    def _entry(self, number: int) -> Entry:
        entry = None if self._entries is None else self._entries.get(number)
        if entry is None:
            entry = Entry.from_json(self.storage.get(entry_path(number)))
            if self._entries is not None:
                self._entries[number] = entry
        return entry

    def renew_if_due(self, claim_listed_at: float | None = None) -> None:
        """Prove again if the last proof is older than H/4.

        `claim_listed_at`: when a listing that shows the claim began, by this process's clock. It is
        the first read of the proof then, which dates from it.
        """
        with self._lock:
            now = self._clock.boot_seconds()
            if self._proved_at is None or now - self._proved_at >= self.renew_seconds:
                self._prove(claim_listed_at)

    def _is_claimed(self) -> bool:
        try:
            self.storage.head(self.claim_path)
        except ObjectNotFoundError:
            return False
        return True

    def mark(self, files: Iterable[MarkedFile], *beside: Callable[[], object], batched: bool = False) -> None:
        """Markers of files that are about to be written, all at once, and at once with what is to
        be done `beside`.

        `batched`: in Hudi's batched form, two requests for any number of files. All markers of an
        instant have one form, so who has begun with it goes on with it. Whoever writes for an
        instant that others write for, too, takes the direct form. Raises WriteConflictError if
        conflicts are looked for early and another write is ahead.
        """
        new = [file for file in files if file.path not in self.marks.files]
        self.renew_if_due()
        puts: list[Callable[[], object]] = []
        if new and batched and not self.batched:
            self.batched = True
            puts.append(partial(self._put_marker, join(TEMP, self.instant, MARKER_TYPE), BATCHED))
            puts.append(partial(self._put_marker, batch_path(self.instant, 0), batch_of(new)))
        elif new and self.batched:
            puts.append(partial(self._put_batch, new))
        else:
            paths = (marker_path(self.instant, file.partition, file.name, file.kind) for file in new)
            puts += [partial(self._put_marker, path, b"") for path in paths]
        all_at_once(self.storage, [*beside, *puts])
        self.marks.files.update(file.path for file in new)
        if new and self.early is not None:
            self.early.refuse(self.storage, self.instant, new, tail=self.tail)

    def _put_marker(self, path: str, data: bytes) -> None:
        self.marks.objects.append(path)
        retry.put(self.storage, path, data)

    def _put_batch(self, files: list[MarkedFile]) -> None:
        """One more batch, whose number is drawn: another process may make one, too."""
        for _ in range(_DRAWS_MAX):
            path = batch_path(self.instant, random.randrange(1, _NUMBERS))  # noqa: S311 - no secret
            self.marks.objects.append(path)
            with suppress(ObjectExistsError, OutcomeUnknownError):
                self.storage.put_if_absent(path, batch_of(files))
                return
        raise UnavailableError(
            f"the markers of {self.instant} were not confirmed by the store in {_DRAWS_MAX} attempts"
        )

    def put_file(self, path: str, data: bytes) -> None:
        """Put a small file of this instant that needs no marker (`.hoodie_partition_metadata`)."""
        self.renew_if_due()
        retry.put(self.storage, path, data)

    @contextmanager
    def create_file(self, partition: str, name: str, kind: MarkerType) -> Iterator[BinaryIO]:
        """A sink for one data file of this instant: proof, marker, then the file, which appears
        whole or not at all.

        If the reply of the file's creation is lost it is read back: it counts as written if its
        size is right.
        """
        self.mark([MarkedFile(partition, name, kind)])
        path = join(partition, name)
        counter: _CountingSink | None = None
        try:
            with self.storage.open_write(path) as sink:
                counter = _CountingSink(sink)
                yield cast("BinaryIO", counter)
                self.renew_if_due()
        except UnavailableError:
            self.doubts.append(path)
            raise
        except OutcomeUnknownError as error:
            self.doubts.append(path)
            if counter is None or self._size_of(path) != counter.written:
                raise UnavailableError(f"{path} was not confirmed by the store and is not there whole") from error
        self._take_back_if_late(path)

    def _take_back_if_late(self, path: str) -> None:
        """A process may sleep between its proof and the moment at which its file appears, longer
        than a recovery waits. Who wakes finds out, and deletes the file of an instant that was
        given up: else its rows would appear once the timeline begins behind it."""
        assert self._proved_at is not None
        if self._clock.boot_seconds() - self._proved_at <= 2 * self.renew_seconds:
            return
        try:
            self.prove()
        except WriteAbortedError:
            if self.is_own or self.is_aborted:
                retry.delete(self.storage, path)
            raise

    def _size_of(self, path: str) -> int | None:
        try:
            return self.storage.head(path).size
        except ObjectNotFoundError:
            return None

    def _gone(self, why: str) -> WriteAbortedError:
        return WriteAbortedError(
            f"instant {self.instant} was taken for dead and aborted ({why}); nothing of it is visible, write again",
            base_path=self.storage.base_path,
            instant=self.instant,
        )


def right_of(ctx: TableContext, time: str, claim: str, tail: ChainTail, *, is_own: bool = False) -> RightToWrite:
    """The right of an instant by its claim, whose chain is known up to `tail`. `is_own`: the claim
    is this attempt's."""
    return RightToWrite(
        ctx.storage.reopen(), time, ctx.layout.timeline_path(claim), tail.sequence, ctx.settings.renew_seconds,
        is_own=is_own,
        _storage=ctx.storage, _clock=ctx.clock, _entries=ctx.entries,
    )  # fmt: skip


def planned_again(base_path: str, instant: str) -> WriteAbortedError:
    """What ends whoever executes a plan when another of the same instant stands behind it in the
    chain."""
    return WriteAbortedError(
        f"lost files of the plan of {instant} were given up, so it is not executed as it was; execute it again", base_path=base_path,
        instant=instant,
    )  # fmt: skip


class _CountingSink:
    """Passes bytes on and counts them."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self.written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        count = self._sink.write(data)
        size = memoryview(data).nbytes
        self.written += size
        return size if count is None else count

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Nothing to do: the object appears when its sink closes."""

    def close(self) -> None:
        """The storage closes the sink; a Parquet writer must not."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
