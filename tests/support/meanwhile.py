"""Storages by which somebody else does something in the middle of an operation: every interleaving
of two, at the calls of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage
from hudi_table.table.timeline.layout import TIMELINE_FOLDER

CALLS = frozenset(
    ["get", "head", "list", "list_dir", "put", "put_if_absent", "replace", "delete", "delete_all", "open_read"]
)


class Sleeper(SystemClock):
    """The clock of a process that stood still while others worked."""

    slept = 0.0

    def boot_seconds(self) -> float:
        return super().boot_seconds() + self.slept


class AtCall:
    """Something happens once, right before call number `at`; `calls` counts them."""

    def __init__(self, inner: Storage, at: int, happen: Callable[[], object]) -> None:
        self.inner, self.at, self.happen, self.calls = inner, at, happen, 0

    def __getattr__(self, name: str) -> Any:
        if name in CALLS:
            self.calls += 1
            if self.calls == self.at:
                self.happen()
        return getattr(self.inner, name)

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


class SlowListing:
    """A folder is listed entry by entry, ascending or descending by name; right before entry number
    `at` of listing number `listing` something happens, and what is gone by then is left out."""

    def __init__(
        self,
        inner: Storage,
        at: int,
        happen: Callable[[], object],
        *,
        ascending: bool = True,
        listing: int = 0,
        folder: str = TIMELINE_FOLDER,
    ) -> None:
        self.inner, self.at, self.ascending, self.left, self.folder = inner, at, ascending, listing, folder
        self.happen: Callable[[], object] | None = happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        folders, infos = self.inner.list_dir(prefix)
        return folders, self._torn(prefix, infos, lambda: self.inner.list_dir(prefix)[1])

    def list(self, prefix: str = "", **more: Any) -> Objects:
        return self._torn(prefix, self.inner.list(prefix, **more), lambda: self.inner.list(prefix, **more))

    def _torn(self, prefix: str, infos: Objects, again: Callable[[], Objects]) -> Objects:
        if prefix != self.folder or self.happen is None:
            return infos
        self.left -= 1
        if self.left >= 0:
            return infos
        happen, self.happen = self.happen, None
        happen()
        left = {info.path for info in again()}
        entries = sorted(infos, key=lambda info: info.path, reverse=not self.ascending)
        return [*entries[: self.at], *(info for info in entries[self.at :] if info.path in left)]

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


class AfterPut:
    """Something happens once, right after the first write to a path that holds `part`."""

    def __init__(self, inner: Storage, part: str, happen: Callable[[], object]) -> None:
        self.inner, self.part = inner, part
        self.happen: Callable[[], object] | None = happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)
        self._happens(path)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        self.inner.replace(seen, data)
        self._happens(seen.path)

    def _happens(self, path: str) -> None:
        if self.part in path and self.happen is not None:
            happen, self.happen = self.happen, None
            happen()

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


class AfterCreate(AfterPut):
    """The same, after the first exclusive one."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        self._happens(path)


class BeforePut(AfterPut):
    """The same, right before that write."""

    def put(self, path: str, data: bytes) -> None:
        self._happens(path)
        self.inner.put(path, data)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        self._happens(seen.path)
        self.inner.replace(seen, data)


class BeforeGet:
    """Something happens once, right before the first timeline file with this ending is read after
    `armed`."""

    def __init__(self, inner: Storage, ending: str, happen: Callable[[], object]) -> None:
        self.inner, self.ending, self.happen = inner, ending, happen
        self.armed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, path: str) -> bytes:
        if self.armed and path.endswith(self.ending):
            self.armed = False
            self.happen()
        return self.inner.get(path)

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self
