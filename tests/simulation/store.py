"""The simulated store: objects in memory, each change at one moment, and listings that are no
moment.

Every request takes effect at a moment of its own between its sending and its reply, whatever
becomes of the sender in between. A listing comes in pages, each as the store is when the page is
made. What happens to a request, `faults.py` says.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, BinaryIO
from zlib import crc32

import pyarrow as pa

from hudi_table.errors import ObjectExistsError, ObjectNotFoundError, UnavailableError
from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.chain import sequence_of
from hudi_table.table.store.errors import ObjectChangedError
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage
from tests.simulation.faults import Requests
from tests.simulation.scheduler import Scheduler

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
PAGES_MAX = 6
WHOLE = 1_000
"""Names in a page of a listing that is one moment, as long as a folder is no longer."""


@dataclass
class SimStore:
    """What all processes see. `decided`: the entries of the decision chain in the order of their
    creation, with the moment."""

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
    _etag: int = 0
    _names: list[str] = field(default_factory=list)
    _folders: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    _sub_folders: dict[str, list[str]] = field(default_factory=dict)
    """Of what was listed, until a folder comes or goes."""

    def trace(self, line: str) -> None:
        """One line of the run: its bytes are what a replay is held against."""
        self.digest.update(line.encode())
        if self.told is not None:
            self.told(line)

    def put(self, path: str, data: bytes) -> None:
        if path not in self.objects:
            insort(self._names, path)
            folder, _, _ = path.rpartition("/")
            if folder not in self._folders:
                self._folders[folder] = []
                self._sub_folders.clear()
            insort(self._folders[folder], self.place(path))
        self.objects[path] = data
        modified = EPOCH + timedelta(seconds=self.scheduler.now)
        self._etag += 1
        self.infos[path] = ObjectInfo(path, len(data), modified, f'"{self._etag}"')

    def create(self, path: str, data: bytes) -> None:
        if path in self.objects:
            raise ObjectExistsError(f"{path} is there", path=path)
        self.put(path, data)
        if path.startswith(CHAIN) and (number := sequence_of(path)) is not None:
            self.decided.append((self.scheduler.now, number, data))

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        found = self.infos.get(seen.path)
        if found is None or found.etag != seen.etag:
            raise ObjectChangedError(f"{seen.path} was replaced", path=seen.path)
        self.put(seen.path, data)

    def delete(self, path: str) -> None:
        if self.objects.pop(path, None) is None:
            return
        del self.infos[path]
        del self._names[bisect_left(self._names, path)]
        folder, _, _ = path.rpartition("/")
        listed = self._folders[folder]
        del listed[bisect_left(listed, self.place(path))]
        if not listed:
            del self._folders[folder]
            self._sub_folders.clear()

    def get(self, path: str) -> bytes:
        found = self.objects.get(path)
        if found is None:
            raise ObjectNotFoundError(f"no object {path}", path=path)
        return found

    def head(self, path: str) -> ObjectInfo:
        self.get(path)
        return self.infos[path]

    def place(self, path: str) -> tuple[int, str]:
        """Where a name comes in a listing of its folder."""
        return (crc32(path.encode()) if self.order == "shuffled" else 0, path)

    def below(self, prefix: str, last: tuple[int, str] | None, limit: int | None) -> tuple[Names, list[str], bool]:
        """The next page of all names below a folder, behind `last`, in their order; and whether
        more follow. No sub-folders."""
        folder = f"{prefix}/" if prefix else ""
        begin = bisect_left(self._names, folder)
        end = bisect_left(self._names, f"{prefix}0") if prefix else len(self._names)
        if last is not None:
            begin = max(begin, bisect_right(self._names, last[1]))
        size = min(max(self.page, (end - begin) // PAGES_MAX), limit or end)
        return [], self._names[begin : min(end, begin + size)], begin + size < end

    def in_folder(self, prefix: str, last: tuple[int, str] | None) -> tuple[Names, list[str], bool]:
        """The sub-folders of a folder, the next page of its objects, and whether more follow."""
        if prefix not in self._sub_folders:
            self._sub_folders[prefix] = self._folders_in(prefix)
        folders = self._sub_folders[prefix]
        places = self._folders.get(prefix, [])
        size = max(self.page, len(places) // PAGES_MAX)
        if self.order == "descending":
            end = len(places) if last is None else bisect_left(places, last)
            return folders, [path for _, path in places[max(0, end - size) : end][::-1]], end > size
        begin = 0 if last is None else bisect_right(places, last)
        return folders, [path for _, path in places[begin : begin + size]], begin + size < len(places)

    def _folders_in(self, prefix: str) -> list[str]:
        folder = f"{prefix}/" if prefix else ""
        inner = (path for path in self._folders if path.startswith(folder) and path)
        return list({path[: path.find("/", len(folder)) if "/" in path[len(folder) :] else None] for path in inner})


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
        left = limit

        def page(last: tuple[int, str] | None) -> tuple[Names, Names, bool]:
            nonlocal left
            folders, names, more = self.store.below(prefix, last, left)
            left = None if left is None else left - len(names)
            return folders, names, more and left != 0

        first = None if start_after is None else (0, start_after)
        return self._listed("list", prefix, first, page)[1]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        return self._listed("list_dir", prefix, None, lambda last: self.store.in_folder(prefix, last))

    def put(self, path: str, data: bytes) -> None:
        self._put("put", path, self.store.put, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._put("put_if_absent", path, self.store.create, data)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        self._put("replace", seen.path, lambda _, new: self.store.replace(seen, new), data)

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
        self._put("close_write", path, self.store.put, sink.getvalue())

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self

    def _put(self, method: str, path: str, put: Callable[[str, bytes], None], data: bytes) -> None:
        def change() -> None:
            if self.store.full_until > self.store.scheduler.now:
                self.requests.fired("full store")
                raise UnavailableError(f"{path}: no space left", path=path)
            put(path, data)

        self.requests.write(method, path, change)

    def _listed(
        self,
        method: str,
        prefix: str,
        last: tuple[int, str] | None,
        page: Callable[[tuple[int, str] | None], tuple[Names, Names, bool]],
    ) -> tuple[Names, Objects]:
        """All pages. What is listed is what each page found: what the store held all the while is
        among it."""
        found: list[ObjectInfo] = []
        folders: set[str] = set()

        def look() -> bool:
            """Take in the next page; whether more follow."""
            nonlocal last
            seen, names, more = page(last)
            folders.update(seen)
            found.extend(map(self.store.infos.__getitem__, names))
            if more:
                last = self.store.place(names[-1])
                self.requests.counts["listing in pages"] += 1
            return more

        while self.requests.read(method, prefix, look):
            pass
        return sorted(folders), sorted(found, key=attrgetter("path"))
