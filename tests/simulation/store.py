"""The simulated store: objects in memory, each change at one moment, and listings that are no moment.

Every request takes effect at a moment of its own between its sending and its reply, whatever becomes of the sender in between. A listing comes in
pages, each as the store is when the page is made. What happens to a request, `faults.py` says.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO
from zlib import crc32

import pyarrow as pa

from hudi_table.errors import HudiError, ObjectExistsError, ObjectNotFoundError, UnavailableError
from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.chain import sequence_of
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage
from tests.simulation.faults import Reply, Requests
from tests.simulation.scheduler import Scheduler

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = 1_000
"""Names in a page of a listing that is one moment, as long as a folder is no longer."""


@dataclass
class SimStore:
    """What all processes see. `decided`: the entries of the decision chain in the order of their creation, with the moment."""

    scheduler: Scheduler
    order: str = "ascending"
    page: int = WHOLE
    objects: dict[str, bytes] = field(default_factory=dict)
    infos: dict[str, ObjectInfo] = field(default_factory=dict)
    decided: list[tuple[float, int, bytes]] = field(default_factory=list)
    full_until: float = 0.0
    resting_until: float = 0.0
    digest: Any = field(default_factory=hashlib.sha256)
    told: Callable[[str], None] | None = None
    _names: list[str] = field(default_factory=list)

    def trace(self, line: str) -> None:
        """One line of the run: its bytes are what a replay is held against."""
        self.digest.update(line.encode())
        if self.told is not None:
            self.told(line)

    def put(self, path: str, data: bytes) -> None:
        if path not in self.objects:
            insort(self._names, path)
        self.objects[path] = data
        modified = EPOCH + timedelta(seconds=self.scheduler.now)
        self.infos[path] = ObjectInfo(path, len(data), modified)

    def create(self, path: str, data: bytes) -> None:
        if path in self.objects:
            raise ObjectExistsError(f"{path} is there", path=path)
        self.put(path, data)
        if path.startswith(CHAIN) and (number := sequence_of(path)) is not None:
            self.decided.append((self.scheduler.now, number, data))

    def delete(self, path: str) -> None:
        if self.objects.pop(path, None) is not None:
            del self.infos[path]
            del self._names[bisect_left(self._names, path)]

    def get(self, path: str) -> bytes:
        found = self.objects.get(path)
        if found is None:
            raise ObjectNotFoundError(f"no object {path}", path=path)
        return found

    def head(self, path: str) -> ObjectInfo:
        self.get(path)
        return self.infos[path]

    def below(self, prefix: str, start_after: str | None = None, limit: int | None = None) -> list[str]:
        """Names below a folder, in their order, from the first after `start_after` on."""
        folder = f"{prefix}/" if prefix else ""
        begin = bisect_left(self._names, folder)
        end = bisect_left(self._names, f"{prefix}0") if prefix else len(self._names)
        if start_after is not None:
            begin = max(begin, bisect_right(self._names, start_after))
        return self._names[begin : end if limit is None else min(end, begin + limit)]

    def in_folder(self, prefix: str) -> tuple[Names, Names]:
        """(sub-folders, objects) directly in a folder."""
        skipped = len(prefix) + 1 if prefix else 0
        end = bisect_left(self._names, f"{prefix}0") if prefix else len(self._names)
        at = bisect_left(self._names, f"{prefix}/" if prefix else "")
        folders: Names = []
        files: Names = []
        while at < end:
            name = self._names[at]
            slash = name.find("/", skipped)
            if slash < 0:
                files.append(name)
                at += 1
            else:
                folders.append(name[:slash])
                at = bisect_left(self._names, f"{name[:slash]}0", at)
        return folders, files

    def place(self, name: str) -> Any:
        """Where a name comes in a listing."""
        return crc32(name.encode()) if self.order == "shuffled" else name


class SimStorage:
    """The store as one process reaches it."""

    def __init__(self, store: SimStore, requests: Requests, base: str) -> None:
        self.store, self.requests, self._base = store, requests, base

    @property
    def base_path(self) -> str:
        return self._base

    def get(self, path: str) -> bytes:
        return self.requests.read("get", path, lambda: self.store.get(path))

    def head(self, path: str) -> ObjectInfo:
        return self.requests.read("head", path, lambda: self.store.head(path))

    def open_read(self, path: str) -> Any:
        return pa.BufferReader(self.requests.read("open_read", path, lambda: self.store.get(path)))

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        names = self._listed("list", prefix, lambda: ([], self.store.below(prefix, start_after, limit)))[1]
        return sorted(names, key=lambda info: info.path)[:limit]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        folders, files = self._listed("list_dir", prefix, lambda: self.store.in_folder(prefix))
        return sorted(folders), sorted(files, key=lambda info: info.path)

    def put(self, path: str, data: bytes) -> None:
        self.requests.write("put", path, lambda: self._room(path) or self.store.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.requests.write("put_if_absent", path, lambda: self._room(path) or self.store.create(path, data))

    def delete(self, path: str) -> None:
        self.requests.write("delete", path, lambda: self.store.delete(path))

    def delete_all(self, paths: Iterable[str]) -> None:
        """One request for all; of one that is lost any part may have been done."""
        wanted = list(paths)
        if not wanted:
            return

        def all_of_them() -> None:
            for path in wanted:
                self.store.delete(path)

        def a_part() -> None:
            for path in wanted[: 1 + len(wanted) // 2]:
                self.store.delete(path)

        self.requests.write("delete_all", wanted[0], all_of_them, part=a_part)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        sink = io.BytesIO()
        yield sink
        data = sink.getvalue()
        self.requests.write("close_write", path, lambda: self._room(path) or self.store.put(path, data))

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self

    def _room(self, path: str) -> None:
        if self.store.full_until > self.store.scheduler.now:
            self.requests.fired("full store")
            raise UnavailableError(f"{path}: no space left", path=path)

    def _listed(self, method: str, prefix: str, look: Callable[[], tuple[Names, Names]]) -> tuple[Names, Objects]:
        """All pages: what is listed is what each page found, what the store held all the while is among it."""
        store, found = self.store, dict[str, ObjectInfo]()
        folders: Names = []
        is_down = store.order == "descending"
        last: Any = None

        def page() -> bool:
            """Take in the next page; whether it is the last."""
            nonlocal folders, last
            seen, names = look()
            folders = seen if last is None else sorted({*folders, *seen})
            if len(names) > store.page or last is not None:
                names = sorted(names, key=store.place, reverse=is_down)
                if last is not None:
                    names = [name for name in names if (store.place(name) < last if is_down else store.place(name) > last)]
            more = names[store.page :]
            for name in names[: store.page]:
                found[name] = store.infos[name]
            if more:
                last = store.place(names[store.page - 1])
                self.requests.counts["listing in pages"] += 1
            return not more

        while not self.requests.read(method, prefix, page):
            pass
        return folders, list(found.values())


def problem(error: BaseException) -> str:
    """What a trace says of an error."""
    return error.name() if isinstance(error, HudiError) else type(error).__name__


__all__ = ["EPOCH", "WHOLE", "Reply", "SimStorage", "SimStore", "problem"]
