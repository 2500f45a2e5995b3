"""`AgedStorage`: any storage on which everything was written some time ago, but for what tells its
present."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage

PRESENT = ".hoodie/.txn/clock"
HOURS = 2 * 3600.0
"""Older than the quarantine of an hour."""
DAYS = 8 * 24 * 3600.0
"""Old enough for the chain to be trimmed."""


class AgedStorage:
    """Passes every call on; objects are listed as `seconds` older than they are."""

    def __init__(self, inner: Storage, seconds: float = HOURS) -> None:
        self.inner, self.seconds = inner, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def head(self, path: str) -> ObjectInfo:
        return self._older(self.inner.head(path))

    def list(self, prefix: str = "", **more: Any) -> Objects:
        return [self._older(info) for info in self.inner.list(prefix, **more)]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        folders, infos = self.inner.list_dir(prefix)
        return folders, [self._older(info) for info in infos]

    def reopen(self) -> Callable[[], Storage]:
        inner, seconds = self.inner.reopen(), self.seconds
        return lambda: AgedStorage(inner(), seconds)

    def _older(self, info: ObjectInfo) -> ObjectInfo:
        back = 0.0 if info.path == PRESENT else self.seconds
        return replace(info, modified=info.modified - timedelta(seconds=back))
