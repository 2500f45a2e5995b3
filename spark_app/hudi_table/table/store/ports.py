"""Ports: the few methods through which the library touches the world.

Each Protocol says what an implementer promises and raises. Faults are injected by wrapping a port,
so no other module may reach a store, a clock or a process by another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, Protocol, TypeVar

from hudi_table.errors import ObjectNotFoundError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: `path` relative to the base path, `size` in bytes, the store's own `modified`
    (UTC), `etag` and `version` if any."""

    path: str
    size: int
    modified: datetime
    etag: str | None = None
    version: str | None = None


Objects = list[ObjectInfo]
Names = list[str]


class Storage(Protocol):
    """Objects under one base path, named by relative paths ('' is the base itself).

    A path that leaves the base (`..`, absolute, empty segments, NUL) raises InvalidRequestError
    before any request. Every method may raise UnavailableError (not done, or only read),
    AccessDeniedError and, if it writes, OutcomeUnknownError (perhaps done). Transient replies are
    retried inside, bounded, except for conditional writes, whose lost reply must reach the caller.
    """

    @property
    def base_path(self) -> str:
        """The base as a URI or absolute path, for messages and for plans that hold absolute
        paths."""
        ...

    def get(self, path: str) -> bytes:
        """The whole object. Raises ObjectNotFoundError."""
        ...

    def head(self, path: str) -> ObjectInfo:
        """Size and age. Raises ObjectNotFoundError."""
        ...

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        """All objects below the folder `prefix`, recursively, sorted by path; empty if none.

        `limit`: no more than the first so many; a folder's marker may count, so fewer by one or two
        may come.
        """
        ...

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """(sub-folder paths, objects) directly in the folder `prefix`, each sorted by path."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace atomically: a reader sees the old or the new bytes."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create exclusively. Raises ObjectExistsError if there is an object, OutcomeUnknownError
        if the reply was lost."""
        ...

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        """Replace an object that is still as it was seen. Raises ObjectChangedError if it is not,
        OutcomeUnknownError if the reply was lost.

        A request that comes late replaces nothing newer, on stores that take conditions. The local
        one looks first, which is no condition, but its requests are never late.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete; no error if it is absent already."""
        ...

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete these, by few requests; after an error some may be there yet."""
        ...

    def open_read(self, path: str) -> Any:
        """A `pyarrow.NativeFile` (or seekable binary file) for Parquet. Raises
        ObjectNotFoundError."""
        ...

    def open_write(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A sink whose object appears whole when the context ends well, and not at all when it
        raises."""
        ...

    def reopen(self) -> Callable[[], Storage]:
        """A picklable function that opens the same storage in another process (no secrets in its
        repr)."""
        ...


class Clock(Protocol):
    """The one place that reads time."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""
        ...

    def boot_seconds(self) -> float:
        """Seconds on a clock that never goes back and counts suspension; only differences mean
        anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Engine(Protocol):
    """Where independent tasks run: threads here, Spark tasks elsewhere."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`function` of each item, in the order of the items; the first error is raised after the
        rest has stopped."""
        ...

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like `map`, lazily and in order, with a bounded number of tasks ahead."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        ...


def is_remote(storage: Storage) -> bool:
    """Whether requests travel over a network, so that one may take effect after its sender has
    given it up."""
    scheme, separator, _ = storage.base_path.partition("://")
    return bool(separator) and scheme not in ("file", "memory")


def plain(storage: Storage) -> Storage:
    """The storage behind one that only opens some files otherwise, else the storage itself."""
    found = getattr(storage, "plain", storage)
    return storage if found is storage else plain(found)


def has_object(storage: Storage, path: str) -> bool:
    """Whether there is an object. One request."""
    try:
        storage.head(path)
    except ObjectNotFoundError:
        return False
    return True
