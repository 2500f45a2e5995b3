"""A process that sleeps before one of its requests, or dies behind it, while others do what they
do: no threads, no chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import ObjectInfo, Storage


class Killed(BaseException):
    """The process is no more."""


class Patient(SystemClock):
    """Who waits loses no time."""

    slept = 0.0

    def boot_seconds(self) -> float:
        return super().boot_seconds() + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def waking(store: Any) -> HudiTable:
    return HudiTable(open_context(store, Patient()))


@dataclass
class Sleeps:
    """A store in which something happens right before the first request that is meant, or `behind`
    it; `dies`: then the process is killed."""

    inner: Any
    meant: Callable[[str, str, bytes], bool]
    happen: Callable[[], object]
    dies: bool = False
    behind: bool = False
    asleep: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def put(self, path: str, data: bytes) -> None:
        self._request("put", path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._request("put_if_absent", path, data)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        first = self._is_first("put", seen.path, data)
        try:
            self.inner.replace(seen, data)
        finally:
            if first:
                self._wakes()

    def delete(self, path: str) -> None:
        self._request("delete", path, b"")

    @contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        first = self._is_first("open_write", path, b"")
        with self.inner.open_write(path) as sink:
            yield sink
        if first:
            self._wakes()

    def _request(self, call: str, path: str, data: bytes) -> None:
        first = self._is_first(call, path, data)
        getattr(self.inner, call)(path, *([] if call == "delete" else [data]))
        if first:
            self._wakes()

    def _is_first(self, call: str, path: str, data: bytes) -> bool:
        if self.asleep or not self.meant(call, path, data):
            return False
        self.asleep = True
        if not self.behind:
            self.happen()
        return True

    def _wakes(self) -> None:
        if self.behind:
            self.happen()
        if self.dies:
            raise Killed

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self
