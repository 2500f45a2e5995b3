"""The archived timeline of table versions 8 and 9: its manifests, and the files that the newest one names.

Facts (measured on Hudi 1.0.2 and 1.1.1): `_version_` holds the number of the newest `manifest_<n>`, JSON of the files that count; others in the
folder were merged into these. Without `_version_` the manifest with the greatest number counts. A file is called
`<min>_<max>_<level>.parquet` by its instants, after an upgrade `<max>_<min>_0`. Files are merged and deleted beside readers, which then begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnavailableError
from hudi_table.model.digits import whole
from hudi_table.model.json_text import parse_json
from hudi_table.table.store.ports import Storage

if TYPE_CHECKING:
    from hudi_table.codec.lsm_entries import Entry

_VERSION = "_version_"
_MANIFEST = "manifest_"
_LISTINGS_MAX = 10


def empty_archive(folder: str) -> dict[str, bytes]:
    """The files of an archive that holds nothing yet, in the order in which they are made. Trino 476 does not read a table whose folder of the
    archive holds no file."""
    return {f"{folder}/{_MANIFEST}1": b'{"files":[]}', f"{folder}/{_VERSION}": b"1"}


def lsm_entries(storage: Storage, folder: str) -> Iterator[list[Entry]]:
    """The entries of each file, that with the newest instant first. Raises CorruptTableError, UnavailableError."""
    from hudi_table.codec.lsm_entries import read_lsm_entries

    seen: set[str] = set()
    for path, data in _files(storage, folder):
        entries = [entry for entry in read_lsm_entries(data, path=path) if entry["commitTime"] not in seen]
        # Of a file that was merged meanwhile its instants come again.
        seen.update(entry["commitTime"] for entry in entries)
        yield entries


def lsm_completions(storage: Storage, folder: str) -> dict[str, str]:
    """When each archived instant completed, by its time. Raises CorruptTableError, UnavailableError."""
    from hudi_table.codec.lsm_entries import read_lsm_times

    found: dict[str, str] = {}
    for path, data in _files(storage, folder):
        found |= read_lsm_times(data, path=path)
    return found


def _files(storage: Storage, folder: str) -> Iterator[tuple[str, bytes]]:
    read: set[str] = set()
    for _ in range(_LISTINGS_MAX):
        try:
            for name in sorted(_named(storage, folder), key=_newest, reverse=True):
                if name not in read:
                    path = f"{folder}/{name}"
                    data = storage.get(path)
                    read.add(name)
                    yield path, data
        except ObjectNotFoundError:
            continue
        return
    raise UnavailableError(
        f"the archive changed during {_LISTINGS_MAX} listings; read again", base_path=storage.base_path
    )


def _named(storage: Storage, folder: str) -> list[str]:
    """The files that count. Raises ObjectNotFoundError if the manifest has gone meanwhile, CorruptTableError."""
    names = {info.path.rpartition("/")[2] for info in storage.list_dir(folder)[1]}
    numbers = [n for name in names if (n := whole(name.removeprefix(_MANIFEST))) is not None and name != str(n)]
    number = (
        whole(storage.get(f"{folder}/{_VERSION}").decode("ascii", "replace").strip()) if _VERSION in names else None
    )
    if number is None:
        number = max(numbers, default=None)
    if number is None:
        return []
    path = f"{folder}/{_MANIFEST}{number}"
    try:
        return [str(file["fileName"]) for file in parse_json(storage.get(path))["files"] or ()]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{path} is no manifest of an archive: {error}", base_path=storage.base_path, path=path
        ) from error


def _newest(name: str) -> str:
    return max(name.split("_")[:2])
