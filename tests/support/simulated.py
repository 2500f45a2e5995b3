"""A store whose objects are as old as a simulated clock says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from hudi_table.table.ports import Clock, Names, ObjectInfo, Objects, Storage


@dataclass
class SimulatedStorage:
    """Hands every call on; ages are those of `clock` at the object's last change."""

    inner: Storage
    clock: Clock
    ages: dict[str, datetime] = field(default_factory=dict)

    @property
    def base_path(self) -> str:
        return self.inner.base_path

    def get(self, path: str) -> bytes:
        return self.inner.get(path)

    def head(self, path: str) -> ObjectInfo:
        return self._aged(self.inner.head(path))

    def list(self, prefix: str = "", **more: Any) -> Objects:
        return [self._aged(info) for info in self.inner.list(prefix, **more)]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        folders, files = self.inner.list_dir(prefix)
        return folders, [self._aged(info) for info in files]

    def open_read(self, path: str) -> Any:
        return self.inner.open_read(path)

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)
        self.ages[path] = self.clock.now()

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        self.ages[path] = self.clock.now()

    def delete(self, path: str) -> None:
        self.inner.delete(path)
        self.ages.pop(path, None)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        with self.inner.open_write(path) as sink:
            yield sink
        self.ages[path] = self.clock.now()

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self

    def _aged(self, info: ObjectInfo) -> ObjectInfo:
        return ObjectInfo(info.path, info.size, self.ages[info.path], info.etag)
