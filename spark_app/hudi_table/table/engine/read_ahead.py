"""Files that are about to be read, asked for before they are opened: one after the other each would
wait for the store.

A file of known size that is small is fetched whole, by one request. Of a larger one comes its end,
where Parquet keeps the footer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Protocol, Self

from hudi_table.model.names import is_skeleton
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage, is_remote

WHOLE_MAX: Final = 1 << 20
"""Bytes up to which a file is fetched whole: to transfer them takes about as long as to ask a
second time."""
AHEAD_BYTES: Final = 64 << 20
"""Of files that are held before they are opened; more wait until others have been read."""
_END_BYTES = 64 << 10


class SizedFile(Protocol):
    """What a listing tells of a file."""

    @property
    def path(self) -> str:
        """Relative to the base path."""
        ...

    @property
    def size(self) -> int:
        """In bytes."""
        ...


def open_sized(storage: Storage, path: str, size: int) -> Any:
    """`open_read` of a file of known size (0: unknown). Raises ObjectNotFoundError."""
    if not (0 < size <= WHOLE_MAX and is_remote(storage)) or is_skeleton(path):
        return storage.open_read(path)
    import pyarrow as pa

    return pa.BufferReader(storage.get(path))


class ReadAhead:
    """Groups of files that are read in this order, several groups at once. Closing it drops what
    nobody has opened.

    `within`: bytes that are fetched before their group is opened, 0 for none; what is on a local
    disk is read when it is opened.
    """

    def __init__(self, storage: Storage, groups: Sequence[Sequence[SizedFile]], *, within: int = AHEAD_BYTES) -> None:
        self._storage, self._groups, self._within = storage, groups, within
        self._next, self._begun = 0, set[int]()
        self._fetching: dict[int, dict[str, Future[Any]]] = {}
        self._held = 0
        self._lock = threads.lock()
        self._pool = threads.pool(REQUESTS_AT_ONCE, "hudi-io") if is_remote(storage) else None

    def __enter__(self) -> Self:
        with self._lock:
            self._go_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._next = len(self._groups)
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    @contextmanager
    def opened(self, number: int) -> Iterator[Storage]:
        """The storage, on which the files of a group are opened as they were fetched. They are held
        until the context ends."""
        if self._pool is None:
            yield self._storage
            return
        with self._lock:
            fetched = self._fetching.get(number) or self._fetch(number)
        try:
            yield _Fetched(self._storage, "", fetched)
        finally:
            with self._lock:
                if self._fetching.pop(number, None) is not None:
                    self._held -= self._bytes(number)
                self._go_on()

    def _go_on(self) -> None:
        while self._pool is not None and self._next < len(self._groups):
            if self._next not in self._begun:
                if self._held + self._bytes(self._next) > self._within:
                    return
                self._fetch(self._next)
            self._next += 1

    def _fetch(self, number: int) -> dict[str, Future[Any]]:
        assert self._pool is not None
        self._begun.add(number)
        self._held += self._bytes(number)
        storage = self._storage
        files = {
            file.path: self._pool.submit(storage.get if _is_whole(file) else storage.open_read, file.path)
            for file in self._groups[number]
        }
        self._fetching[number] = files
        return files

    def _bytes(self, number: int) -> int:
        return sum(file.size if _is_whole(file) else _END_BYTES for file in self._groups[number])


def _is_whole(file: SizedFile) -> bool:
    """Whether a file comes by one request; a skeleton is opened with its source."""
    return file.size <= WHOLE_MAX and not is_skeleton(file.path)


@dataclass(frozen=True, slots=True)
class _Fetched(StorageBelow):
    """The storage, on which some files are there already: small ones as bytes, of others the open
    file."""

    files: dict[str, Future[Any]] = field(default_factory=dict, repr=False)

    def open_read(self, path: str) -> Any:
        """The file. Raises ObjectNotFoundError."""
        fetched = self.files.get(path)
        if fetched is None:
            return self.outer.open_read(path)
        import pyarrow as pa

        found = fetched.result()
        if isinstance(found, bytes):
            return pa.BufferReader(found)
        # An open file has a position: whoever opens it again gets another.
        del self.files[path]
        return found
