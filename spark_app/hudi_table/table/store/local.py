"""Storage on local disk.

obstore's local store is not used, for three measured reasons (0.12.1): it never syncs, it follows
symbolic links out of the base, and it can neither write nor list names ending in `#` and digits,
which Hudi can. How files appear: see `local_files`. Folders are kept as long as they hold
something, as on object stores.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, BinaryIO

from hudi_table.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError, OutcomeUnknownError
from hudi_table.table.store.errors import ObjectChangedError, local_error
from hudi_table.table.store.local_files import NewFile, delete_file, replace_file, sync_folder, write_all
from hudi_table.table.store.paths import STAGING_SUFFIX, check_folder, check_path
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage

_BUFFER = 1 << 20


class LocalStorage:
    """Files below one folder, which the first write makes. See `Storage` for what each method
    promises."""

    def __init__(self, base: str, *, fsync: bool, reopen: Callable[[], Storage]) -> None:
        self._base = base
        self._root = os.path.realpath(base)
        self._fsync = fsync
        self._reopen = reopen

    @property
    def base_path(self) -> str:
        """The absolute path, as it was given."""
        return self._base

    def __repr__(self) -> str:
        return f"LocalStorage({self._base!r})"

    def __reduce__(self) -> tuple[Callable[[], Storage], tuple[()]]:
        return self._reopen, ()

    def reopen(self) -> Callable[[], Storage]:
        """Opens the same folder, in any process of this machine."""
        return self._reopen

    def get(self, path: str) -> bytes:
        """The whole file."""
        with self._errors(path):
            full = self._existing(path)
            _file_status(full)
            with open(full, "rb", buffering=0) as file:
                return file.readall()

    def head(self, path: str) -> ObjectInfo:
        """Size and age."""
        with self._errors(path):
            return _info(path, _file_status(self._existing(path)))

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        """All files below the folder; a symbolic link that leaves the base is refused."""
        check_folder(prefix, base_path=self._base)
        found: Objects = []
        folders = [prefix]
        after = start_after or ""
        while folders:
            folder = folders.pop()
            if limit is None and folder and after.startswith(f"{folder}/"):
                below, files, _ = self._look(folder, partial(_reaching, after[len(folder) + 1 :]))
                files = [info for info in files if info.path > after]
            else:
                below, files = self._scan(folder, after, limit)
            folders += below
            found += files
        found.sort(key=lambda info: info.path)
        return found[:limit]

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """(sub-folders, files) directly in the folder; an empty folder that others made is listed
        too."""
        check_folder(prefix, base_path=self._base)
        folders, files = self._scan(prefix)
        return sorted(folders), sorted(files, key=lambda info: info.path)

    def list_news(self, prefix: str, known: Iterable[str]) -> tuple[Names, Objects, int]:
        """(sub-folders, files, number of the others) directly in the folder, where at the files of
        `known` names nobody looks: they are there, and are what they were. Of a folder of
        thousands, looking at each costs far more than their names."""
        check_folder(prefix, base_path=self._base)
        return self._look(prefix, lambda names: list(set(names).difference(known)))

    def open_read(self, path: str) -> Any:
        """A `pyarrow.OSFile`: native positional reads, no Python between pyarrow and the file."""
        import pyarrow as pa

        with self._errors(path):
            full = self._existing(path)
            _file_status(full)
            return pa.OSFile(full, "rb")

    def put(self, path: str, data: bytes) -> None:
        """Create or replace by rename."""
        with self._errors(path, writes=True):
            full = self._writable(path)
            replace_file(full, data, fsync=self._fsync)
            self._sync_name(full, path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create exclusively, by a hard link of the finished file."""
        with self._errors(path, writes=True):
            full = self._writable(path)
            file = NewFile(full, fsync=self._fsync)
            try:
                write_all(file.descriptor, data)
                file.publish()
            finally:
                file.close()
            self._sync_name(full, path)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        """Replace by rename what is still as it was seen."""
        with contextlib.suppress(ObjectNotFoundError):
            if self.head(seen.path) == seen:
                self.put(seen.path, data)
                return
        raise ObjectChangedError(f"{seen.path!r} was just replaced or deleted; try again", path=seen.path)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """A buffered sink. The file gets its name when the context ends well, and then replaces
        what has that name."""
        with self._errors(path, writes=True):
            full = self._writable(path)
            file = NewFile(full, fsync=self._fsync)
        try:
            sink = io.BufferedWriter(_Sink(file.descriptor, lambda error: self._error(error, path)), _BUFFER)
            try:
                yield sink
                sink.flush()
            finally:
                sink.detach()
            with self._errors(path, writes=True):
                file.publish(replace=True)
                self._sync_name(full, path)
        finally:
            file.close()

    def delete(self, path: str) -> None:
        """Delete the file, and the folders that it leaves empty."""
        with self._errors(path, writes=True):
            delete_file(self._writable(path), root=self._root, fsync=self._fsync)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete the files, one after the other."""
        for path in paths:
            self.delete(path)

    def staging_files(self) -> Objects:
        """Unfinished files, which no listing shows: of writers at work, and of such as were
        killed."""
        return [
            _info(os.path.relpath(full, self._root), status)
            for folder, _, names in os.walk(self._root)
            for name in names
            if name.endswith(STAGING_SUFFIX) and (status := _status_if_there(full := f"{folder}/{name}")) is not None
        ]

    def discard_staging(self, path: str) -> None:
        """Delete an unfinished file that nobody finishes any more."""
        folder, _, name = path.rpartition("/")
        parent = (
            self._root
            if not folder
            else self._writable(f"{folder}/{name.removesuffix(STAGING_SUFFIX)}").rpartition("/")[0]
        )
        if name.endswith(STAGING_SUFFIX):
            with self._errors(path, writes=True):
                delete_file(f"{parent}/{name}", root=self._root, fsync=self._fsync)

    def _existing(self, path: str) -> str:
        """Full path for a read: links are followed as long as they stay below the base."""
        full = f"{self._root}/{check_path(path, base_path=self._base)}"
        return self._inside(os.path.realpath(full), path)

    def _writable(self, path: str) -> str:
        """Full path for a write: links to folders inside the base are followed, the file itself is
        what is named."""
        folder, _, name = check_path(path, base_path=self._base).rpartition("/")
        parent = self._inside(os.path.realpath(f"{self._root}/{folder}"), path) if folder else self._root
        return f"{parent}/{name}"

    def _inside(self, real: str, path: str) -> str:
        if real == self._root or real.startswith(f"{self._root}/"):
            return real
        raise InvalidRequestError(
            f"{path!r} leads out of {self._base} through a symbolic link (to {real}): remove the link",
            path=path,
        )

    def _error(self, error: OSError, path: str) -> Exception:
        return local_error(error, path=path, base=self._base, writes=True)

    @contextlib.contextmanager
    def _errors(self, path: str, *, writes: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise local_error(error, path=path, base=self._base, writes=writes) from error

    def _sync_name(self, full: str, path: str) -> None:
        if not self._fsync:
            return
        try:
            sync_folder(os.path.dirname(full))
        except OSError as error:
            message = (
                f"{path!r} was written below {self._base}, but its folder could not be synced ({error}): read it back"
            )
            raise OutcomeUnknownError(message, path=path) from error

    def _scan(self, folder: str, after: str = "", limit: int | None = None) -> tuple[Names, Objects]:
        """Sub-folders and files; of the files no more than `limit` and only those after `after` are
        looked at."""
        folders: Names = []
        files: Objects = []
        with self._errors(folder):
            try:
                full = self._existing(folder) if folder else self._root
                with os.scandir(full) as scanned:
                    for entry in scanned if limit is None else sorted(scanned, key=lambda entry: entry.name):
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        listed = path > after and len(files) != limit
                        if not entry.is_file(follow_symlinks=False):
                            if listed or entry.is_dir(follow_symlinks=False):
                                self._sort_in(entry.name, entry.path, path, folders, files)
                        elif listed and not path.endswith(STAGING_SUFFIX):
                            # The plain case, of which a timeline has thousands.
                            try:
                                files.append(_info(path, entry.stat(follow_symlinks=False)))
                            except FileNotFoundError:  # deleted since the folder was read
                                continue
            except (FileNotFoundError, NotADirectoryError):
                return [], []
        return folders, files

    def _look(self, folder: str, choose: Callable[[Names], Names]) -> tuple[Names, Objects, int]:
        """(sub-folders, files, number of the others) directly in the folder, where those that are
        chosen by their names alone are looked at."""
        folders: Names = []
        files: Objects = []
        with self._errors(folder):
            try:
                full = self._existing(folder) if folder else self._root
                names = os.listdir(full)
            except (FileNotFoundError, NotADirectoryError):
                return [], [], 0
            chosen = sorted(choose(names))
            for name in chosen:
                self._sort_in(name, f"{full}/{name}", f"{folder}/{name}" if folder else name, folders, files)
        return folders, files, len(names) - len(chosen)

    def _sort_in(self, name: str, full: str, path: str, folders: Names, files: Objects) -> None:
        if name.endswith(STAGING_SUFFIX):
            return
        status = _status_if_there(full)  # None: deleted since the folder was read
        if status is not None and stat.S_ISLNK(status.st_mode):
            if os.path.isdir(self._inside(os.path.realpath(full), path)):
                message = f"{path!r} below {self._base} is a symbolic link to a folder, which no listing follows: remove the link"
                raise InvalidRequestError(message, path=path)
            with contextlib.suppress(FileNotFoundError):
                files.append(_info(path, os.stat(full)))
        elif status is not None and stat.S_ISDIR(status.st_mode):
            folders.append(path)
        elif status is not None:
            files.append(_info(path, status))


class _Sink(io.FileIO):
    """A descriptor whose write errors say what they mean wherever the sink is passed to."""

    def __init__(self, descriptor: int, translate: Callable[[OSError], Exception]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._translate = translate

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self._translate(error) from error


def _reaching(after: str, names: Names) -> Names:
    """Of a folder's names those that come after `after`, and those of folders that may hold some
    that do."""
    return [name for name in names if name > after or after.startswith(name)]


def _status_if_there(full: str) -> os.stat_result | None:
    try:
        return os.lstat(full)
    except FileNotFoundError:
        return None


def _file_status(full: str) -> os.stat_result:
    """Raises CorruptTableError for what is neither file nor folder: to open a FIFO would wait for
    its other end."""
    status = os.stat(full)
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISDIR(status.st_mode):
        raise FileNotFoundError
    raise CorruptTableError(f"{full} is a FIFO, a socket or a device, where a table has files: remove it", path=full)


def _info(path: str, status: os.stat_result) -> ObjectInfo:
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return ObjectInfo(path, status.st_size, modified, f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}")
