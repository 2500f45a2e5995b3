"""The archived timeline of table versions 8 and 9: its manifests, and the files that the newest one
names.

Facts (measured on Hudi 1.0.2 and 1.1.1): `manifest_<n>` is JSON of the files that count; others in
the folder were merged into these. `_version_` holds the number of the newest. A manifest is created
before `_version_` tells it, by who has put its files before; so the greatest number counts,
whatever `_version_` says. A file is called `<min>_<max>_<level>.parquet` by its instants, after an
upgrade `<max>_<min>_0`. Files are merged and deleted beside readers, which then begin anew. Their
footers have the bounds of each column, whoever wrote them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hudi_table.errors import CorruptTableError, ObjectExistsError, ObjectNotFoundError, UnavailableError
from hudi_table.model.digits import whole
from hudi_table.model.json_text import parse_json
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.store import retry
from hudi_table.table.store.ports import ObjectInfo, Storage

if TYPE_CHECKING:
    from hudi_table.codec.lsm_entries import Entry, LsmFooter

VERSION = "_version_"
MANIFEST = "manifest_"
_LISTINGS_MAX = 10
_SECOND = 14
"""Moments are compared with the bounds of a file by their seconds: they may have milliseconds, or
not."""
_NEVER = "99991231235959999"
_SAME_MAX = 3
"""So many newest manifests that name a file which is not there prove damage: what was merged
meanwhile a newer one leaves out."""


@dataclass(frozen=True, slots=True)
class LsmFile:
    """A file of the archive, as a manifest names it: `size` in bytes."""

    name: str
    size: int

    @property
    def span(self) -> tuple[str, str]:
        """Its least and greatest instant."""
        first, last, *_ = [*self.name.split("_"), "", ""]
        return min(first, last), max(first, last)

    @property
    def level(self) -> int:
        """How often its instants were merged."""
        return whole(self.name.removesuffix(".parquet").rpartition("_")[2]) or 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """The newest manifest: its number, 0 if there is none, the files that count, and whatever else
    lies in the folder."""

    number: int = 0
    files: tuple[LsmFile, ...] = ()
    listed: tuple[ObjectInfo, ...] = ()

    @property
    def others(self) -> list[int]:
        """The numbers of all manifests, the newest last."""
        found = (manifest_number(info.path) for info in self.listed)
        return sorted(number for number in found if number)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which archived instants somebody asks for: those that completed from `since` on and up to
    `until` (moments; '' is open), and those whose times are `times`."""

    since: str = ""
    until: str = ""
    times: frozenset[str] = frozenset()

    @classmethod
    def of(cls, times: frozenset[str]) -> Asked:
        """Who asks for these times alone."""
        return cls(_NEVER, times=times)

    def may_be_in(self, footer: LsmFooter) -> bool:
        """Whether a file with this footer may hold one."""
        if footer.completions is None or footer.instants is None:
            return True
        first, last = footer.completions
        below = self.until and first[:_SECOND] > self.until[:_SECOND]
        if last[:_SECOND] >= self.since[:_SECOND] and not below:
            return True
        return any(footer.instants[0] <= time <= footer.instants[1] for time in self.times)


def manifest_number(path: str) -> int:
    """The number of a manifest, 0 of another file."""
    name = path.rpartition("/")[2]
    return (whole(name.removeprefix(MANIFEST)) or 0) if name.startswith(MANIFEST) else 0


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """The newest manifest. Raises ObjectNotFoundError if it has gone meanwhile,
    CorruptTableError."""
    _, infos = storage.list_dir(folder)
    number = max((manifest_number(info.path) for info in infos), default=0)
    files = read_files(storage, f"{folder}/{MANIFEST}{number}") if number else ()
    return Manifest(number, files, tuple(infos))


def read_files(storage: Storage, path: str) -> tuple[LsmFile, ...]:
    """The files that a manifest names. Raises ObjectNotFoundError, CorruptTableError."""
    try:
        named = parse_json(storage.get(path))["files"] or ()
        return tuple(LsmFile(str(file["fileName"]), int(file.get("fileLen") or 0)) for file in named)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{path} is no manifest of an archive: {error}", base_path=storage.base_path, path=path
        ) from error


def empty_archive(folder: str) -> dict[str, bytes]:
    """The files of an archive that holds nothing yet, in the order in which they are made. Trino
    476 does not read a table whose folder of the archive holds no file."""
    return {f"{folder}/{MANIFEST}1": b'{"files":[]}', f"{folder}/{VERSION}": b"1"}


def begin_archive(storage: Storage, folder: str) -> None:
    """Make an archive that holds nothing yet, if there is none."""
    for path, data in empty_archive(folder).items():
        with suppress(ObjectExistsError):
            retry.until_confirmed(partial(storage.put_if_absent, path, data))


def lsm_entries(storage: Storage, folder: str, asked: Asked | None = None) -> Iterator[list[Entry]]:
    """The entries of each file, that with the newest instant first; only of files that may hold
    what is asked for. Raises CorruptTableError, UnavailableError."""
    from hudi_table.codec.lsm_entries import read_lsm_entries

    seen: set[str] = set()
    for path, data in _files(storage, folder, holds=None if asked is None else asked.may_be_in):
        entries = [entry for entry in read_lsm_entries(data, path=path) if entry["commitTime"] not in seen]
        # Of a file that was merged meanwhile its instants come again.
        seen.update(entry["commitTime"] for entry in entries)
        yield entries


def lsm_completions(
    storage: Storage, folder: str, within: tuple[str, str] | None = None, asked: Asked | None = None
) -> dict[str, str]:
    """When each archived instant completed, by its time. `within`: only of files that may hold
    instants from the first to the second; `asked`: only of those that may hold what is asked for.
    Raises CorruptTableError, UnavailableError."""
    from hudi_table.codec.lsm_entries import read_lsm_times

    found: dict[str, str] = {}
    for path, data in _files(storage, folder, within, holds=None if asked is None else asked.may_be_in):
        found |= read_lsm_times(data, path=path)
    return found


def lsm_latest(storage: Storage, folder: str) -> str:
    """The latest moment at which an archived instant completed, '' if there is none. Of a file that
    cannot hold it the footer alone is read. Raises CorruptTableError, UnavailableError."""
    from hudi_table.codec.lsm_entries import read_lsm_times

    found: dict[str, str] = {}

    def may_be_later(footer: LsmFooter) -> bool:
        return Asked(max(found.values(), default="")).may_be_in(footer)

    for path, data in _files(storage, folder, holds=may_be_later):
        found |= read_lsm_times(data, path=path)
    return max(found.values(), key=comparable_time, default="")


def _meet(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _fetched(storage: Storage, path: str, holds: Callable[[LsmFooter], bool] | None) -> bytes | None:
    """The bytes of a file; None if by its footer it `holds` nothing that is asked for. The end of a
    file comes with the request that opens it, and so does the whole of a small one."""
    from hudi_table.codec.lsm_entries import read_lsm_footer

    if holds is None:
        return storage.get(path)
    with storage.open_read(path) as source:
        if not holds(read_lsm_footer(source, path=path)):
            return None
        source.seek(0)
        return bytes(source.read())


def _files(
    storage: Storage,
    folder: str,
    within: tuple[str, str] | None = None,
    *,
    holds: Callable[[LsmFooter], bool] | None = None,
) -> Iterator[tuple[str, bytes]]:
    read: set[str] = set()
    missed: Counter[str] = Counter()
    for _ in range(_LISTINGS_MAX):
        try:
            files = sorted(read_manifest(storage, folder).files, key=lambda file: file.span[1], reverse=True)
            for name in (file.name for file in files if not within or _meet(file.span, within)):
                if name not in read:
                    path = f"{folder}/{name}"
                    data = _fetched(storage, path, holds)
                    read.add(name)
                    if data is not None:
                        yield path, data
        except ObjectNotFoundError as missing:
            path = missing.path or folder
            missed[path] += 1
            if missed[path] >= _SAME_MAX and manifest_number(path) == 0:
                raise CorruptTableError(
                    f"{path} is part of the archive and is not there: {_SAME_MAX} manifests named it; bring it back from a copy",
                    base_path=storage.base_path,
                    path=path,
                ) from missing
            continue
        return
    raise UnavailableError(
        f"the archive changed during {_LISTINGS_MAX} listings; read again", base_path=storage.base_path
    )
