"""The right to write: a process proves it by seeing its own claim and a chain without a decision of its instant.

Driver and task processes prove it before each file, and again whenever the last proof is older than H/4, so a
recovery that waits H after its abort knows that nothing of the instant can appear any more. A proof whose reply
is lost is no proof. Markers go before files: a file without one could never be found by a rollback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

from hudi_table.errors import ObjectNotFoundError, OutcomeUnknownError, UnavailableError, WriteAbortedError
from hudi_table.model.names import CHAIN, MarkerType, join, marker_path
from hudi_table.model.timeline.chain import ChainEntry as Entry
from hudi_table.model.timeline.chain import Kind, entry_path, sequence_of
from hudi_table.table.store import retry
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.layout import timeline_path


@dataclass(slots=True)
class RightToWrite:
    """The right of one instant. Picklable: another process opens the storage anew and proves for itself.

    `claim` is the name of the requested file under `.hoodie/`, `tail` the last chain entry known to hold no abort.
    `doubts`, shared by all copies of one process, are files whose creation had no definite reply.
    """

    open_storage: Callable[[], Storage]
    instant: str
    claim: str
    tail: int
    renew_seconds: float
    doubts: list[str] = field(default_factory=list, repr=False)
    _storage: Storage | None = field(default=None, repr=False)
    _clock: Clock = field(default_factory=SystemClock, repr=False)
    _proved_at: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        names = ("open_storage", "instant", "claim", "tail", "renew_seconds")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.doubts = []
        self._storage, self._clock, self._proved_at = None, SystemClock(), None

    @property
    def storage(self) -> Storage:
        """The storage of this process."""
        if self._storage is None:
            self._storage = self.open_storage()
        return self._storage

    def for_thread(self) -> RightToWrite:
        """A copy for one task in this process: proofs are not shared between tasks."""
        return replace(self, _proved_at=None)

    def prove(self) -> None:
        """Prove the right by two reads. Raises WriteAbortedError if it is gone, UnavailableError if unproved.

        A new plan of the instant ends it for whoever executes an earlier one. A commit ends it too: a file that a stray attempt adds to a committed instant could outlive the clustering
        that replaced its group. So does a gap: an abort may have stood in what was trimmed.
        """
        begun = self._clock.boot_seconds()
        try:
            self.storage.head(timeline_path(self.claim))
        except ObjectNotFoundError:
            raise self._gone("its claim is gone") from None
        start = entry_path(self.tail - 1) if self.tail > 1 else None
        listed = (sequence_of(info.path) for info in self.storage.list(CHAIN, start_after=start))
        numbers = sorted(n for n in listed if n is not None and n >= self.tail)
        if numbers[:1] != ([max(self.tail, 1)] if self.tail or numbers else []):
            raise self._gone(f"chain entries after {self.tail} were trimmed since it began")
        for number in numbers:
            if number == self.tail:
                continue
            entry = Entry.from_json(self.storage.get(entry_path(number)))
            if entry.instant == self.instant and entry.kind is Kind.ABORT:
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

    def renew_if_due(self) -> None:
        """Prove again if the last proof is older than H/4."""
        now = self._clock.boot_seconds()
        if self._proved_at is not None and now - self._proved_at < self.renew_seconds:
            return
        self.prove()

    def put_file(self, path: str, data: bytes) -> None:
        """Put a small file of this instant that needs no marker (`.hoodie_partition_metadata`)."""
        self.renew_if_due()
        retry.put(self.storage, path, data)

    @contextmanager
    def create_file(self, partition: str, name: str, kind: MarkerType) -> Iterator[BinaryIO]:
        """A sink for one data file of this instant: proof, marker, then the file, which appears whole or not at all.

        If the reply of the file's creation is lost it is read back: it counts as written if its size is right.
        """
        self.prove()
        retry.put(self.storage, marker_path(self.instant, partition, name, kind), b"")
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


def planned_again(base_path: str, instant: str) -> WriteAbortedError:
    """What ends whoever executes a plan when another of the same instant stands behind it in the chain."""
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
