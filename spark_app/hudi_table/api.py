"""The public surface: `open_table` and what it returns."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.read.reader import Moment, TableReader
from hudi_table.table.properties import open_context
from hudi_table.table.storage import open_storage


class HudiTable(TableReader):
    """An opened table. It holds no connection and no lock; every call sees the newest completed state."""


def open_table(uri: str, *, as_of: Moment | None = None, storage_options: Mapping[str, str] | None = None) -> HudiTable:
    """Open the Hudi table at `uri` (a path, or a URI of local disk, memory or an object store).

    `as_of` (17 digits or a shorter prefix, an ISO date or time, a datetime) fixes the moment that reads see.
    `storage_options`: see `hudi_table.table.storage.open_storage`. Raises TableNotFoundError, UnsupportedTableError,
    CorruptTableError, InvalidOptionError, UnavailableError and AccessDeniedError.
    """
    return HudiTable(open_context(open_storage(str(uri), storage_options)), as_of)
