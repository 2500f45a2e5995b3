"""Purging: everything below a table's location is deleted, the table first, then its files. Not a
service: it leaves no timeline.

The mark that it leaves in `.hoodie/.txn`, which Hudi ignores, is deleted last. So one that was
interrupted is known by it: until it has been completed nobody finds a table there, and it goes on,
while files of which nobody knows a table are never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.names import HOODIE, PROPERTIES, PROPERTIES_BACKUP
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage, has_object

MARK = f"{HOODIE}/.txn/purge"
PAGE = 10_000
"""How many objects are listed and deleted at once: the memory that it takes, whatever the table
holds."""
THREADS = 16


@dataclass(frozen=True, slots=True)
class Purged:
    """How many objects were deleted, and their bytes; after an interruption, those of the last
    attempt."""

    files: int = 0
    bytes: int = 0


def purge(storage: Storage, attempt: str, say: Callable[[str], None]) -> Purged:
    """Delete the table and all files at its location. Where nothing is, nothing is done. `say`:
    progress, a line each.

    Raises InvalidRequestError if there are files but no table. A writer that has not noticed may
    leave a file behind.
    """
    if not has_object(storage, MARK):
        if not has_object(storage, PROPERTIES) and not has_object(storage, PROPERTIES_BACKUP):
            if not storage.list(limit=1):
                return Purged()
            raise InvalidRequestError(
                f"there are files at {storage.base_path}, but no Hudi table: nothing is deleted",
                base_path=storage.base_path,
            )
        retry.put(storage, MARK, attempt.encode())
    # Without them there is no table. The backup goes first, or readers would take the table from it.
    for path in (PROPERTIES_BACKUP, PROPERTIES):
        retry.delete(storage, path)
    workers = LocalEngine(THREADS)
    files = size = 0
    while found := [info for info in storage.list(limit=PAGE) if info.path != MARK]:
        workers.map(lambda info: retry.delete(storage, info.path), found)
        files += len(found)
        size += sum(info.size for info in found)
        say(f"{counted(files, 'file')} deleted")
    retry.delete(storage, MARK)
    return Purged(files, size)
