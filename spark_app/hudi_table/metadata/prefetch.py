"""A partition of the metadata table whose small files are fetched at once: one after the other each
would wait for the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hudi_table.errors import ObjectNotFoundError
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage, is_remote

FETCHED_AT_ONCE: Final = 16
WHOLE_MAX: Final = 1 << 20
"""Bytes up to which a file is fetched whole. Of a larger one a look-up reads a few blocks."""


def fetched_ahead(data: Storage, table: MetadataTable, partition: MetadataPartition) -> MetadataTable:
    """The same metadata table, with the small files of the newest slices of one partition in
    memory, if they lie behind a network. `data` is the storage of the data table."""
    if not is_remote(data):
        return table
    sizes = {info.path: info.size for info in table.files}
    slices = [group.latest for group in table.groups.get(partition, ()) if group.slices]
    files = [file.path for item in slices for file in (item.base, *item.logs) if file is not None]
    small = [path for path in files if sizes[path] <= WHOLE_MAX]
    storage = table.ctx.storage

    def fetched(path: str) -> bytes | None:
        try:
            return storage.get(path)
        except ObjectNotFoundError:
            # Cleaned since it was listed: who opens it is told.
            return None

    found = dict(zip(small, LocalEngine(FETCHED_AT_ONCE).map(fetched, small), strict=True))
    return replace(table, ctx=replace(table.ctx, storage=_Fetched(data, METADATA_TABLE, found)))


@dataclass(frozen=True, slots=True)
class _Fetched(StorageBelow):
    """The metadata table's folder, where some files are opened from memory."""

    fetched: Mapping[str, bytes | None] = field(default_factory=dict, repr=False)

    def open_read(self, path: str) -> Any:
        """The file. Raises ObjectNotFoundError."""
        found = self.fetched.get(path)
        return StorageBelow.open_read(self, path) if found is None else pa.BufferReader(found)
