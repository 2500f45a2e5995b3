"""A storage narrowed to a folder of it, as the metadata table lies inside the data table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from hudi_table.model.names import join
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage


@dataclass(frozen=True, slots=True)
class _Reopen:
    """Opens the folder again, in another process too."""

    outer: Callable[[], Storage]
    folder: str

    def __call__(self) -> Storage:
        return StorageBelow(self.outer(), self.folder)


@dataclass(frozen=True, slots=True)
class StorageBelow:
    """Objects of `outer` below `folder`, by paths relative to that. Raises what the outer storage
    raises."""

    outer: Storage
    folder: str

    @property
    def base_path(self) -> str:
        """The folder's own location."""
        return join(self.outer.base_path, self.folder)

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self.outer.get(self._out(path))

    def head(self, path: str) -> ObjectInfo:
        """Size and age."""
        return self._in(self.outer.head(self._out(path)))

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        """All objects below a folder."""
        after = None if start_after is None else self._out(start_after)
        return [self._in(info) for info in self.outer.list(self._out(prefix), start_after=after, limit=limit)]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """(sub-folder paths, objects) directly in a folder."""
        folders, files = self.outer.list_dir(self._out(prefix))
        return [self._inner(path) for path in folders], [self._in(info) for info in files]

    def put(self, path: str, data: bytes) -> None:
        """Create or replace atomically."""
        self.outer.put(self._out(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create exclusively."""
        self.outer.put_if_absent(self._out(path), data)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        """Replace what is still as it was seen."""
        self.outer.replace(replace(seen, path=self._out(seen.path)), data)

    def delete(self, path: str) -> None:
        """Delete; no error if it is absent already."""
        self.outer.delete(self._out(path))

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete these; after an error some may be there yet."""
        self.outer.delete_all([self._out(path) for path in paths])

    def open_read(self, path: str) -> Any:
        """A seekable binary file."""
        return self.outer.open_read(self._out(path))

    def open_write(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A sink whose object appears whole, or not at all."""
        return self.outer.open_write(self._out(path))

    def reopen(self) -> Callable[[], Storage]:
        """A picklable function that opens the same folder elsewhere."""
        return _Reopen(self.outer.reopen(), self.folder)

    def _out(self, path: str) -> str:
        return join(self.folder, path)

    def _inner(self, path: str) -> str:
        return path.removeprefix(f"{self.folder}/")

    def _in(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, path=self._inner(info.path))
