"""A store whose objects are as old as a simulated clock says."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from hudi_table.table.store.errors import ObjectChangedError
from hudi_table.table.store.ports import Clock, Names, ObjectInfo, Objects, Storage


@dataclass
class SimulatedStorage:
    """Hands every call on, but listings: those come from an index, since a store in memory walks
    all that it holds for each. Ages are those of `clock` at the object's last change."""

    inner: Storage
    clock: Clock
    infos: dict[str, ObjectInfo] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = sorted(self.infos)

    @property
    def base_path(self) -> str:
        return self.inner.base_path

    def get(self, path: str) -> bytes:
        return self.inner.get(path)

    def head(self, path: str) -> ObjectInfo:
        found = self.inner.head(path)
        return ObjectInfo(found.path, found.size, self.infos[path].modified, found.etag)

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        names = self._below(prefix, start_after)
        return [self.infos[name] for name in islice(names, limit)]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        skipped = len(prefix) + 1 if prefix else 0
        folders: list[str] = []
        files: list[ObjectInfo] = []
        names = self._below(prefix, None)
        while (name := next(names, None)) is not None:
            rest = name[skipped:]
            if "/" not in rest:
                files.append(self.infos[name])
                continue
            folders.append(name[:skipped] + rest.partition("/")[0])
            # What sorts after everything in the folder: the character after the slash.
            names = self._below(prefix, f"{folders[-1]}0", including=True)
        return folders, files

    def open_read(self, path: str) -> Any:
        return self.inner.open_read(path)

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)
        self._changed(path, len(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        self._changed(path, len(data))

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        if self.head(seen.path) != seen:
            raise ObjectChangedError("changed", path=seen.path)
        self.put(seen.path, data)

    def delete(self, path: str) -> None:
        self.inner.delete(path)
        if self.infos.pop(path, None) is not None:
            del self._names[bisect_left(self._names, path)]

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        with self.inner.open_write(path) as sink:
            yield sink
        self._changed(path, self.inner.head(path).size)

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self

    def _changed(self, path: str, size: int) -> None:
        if path not in self.infos:
            insort(self._names, path)
        self.infos[path] = ObjectInfo(path, size, self.clock.now())

    def _below(self, prefix: str, start: str | None, *, including: bool = False) -> Iterator[str]:
        """Names below a folder, from the first after `start` on."""
        folder = f"{prefix}/" if prefix else ""
        at = bisect_left(self._names, folder)
        if start is not None:
            at = max(at, bisect_left(self._names, start) if including else bisect_right(self._names, start))
        for number in range(at, len(self._names)):
            if not self._names[number].startswith(folder):
                return
            yield self._names[number]
