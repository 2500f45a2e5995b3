"""Listing the data side of a table: partitions and their files, without `.hoodie/`."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_table.model.names import HOODIE, PARTITION_METADATA
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import ObjectInfo, Storage, is_remote

LISTINGS_AHEAD = 16
"""Folders of an object store that are listed at once: they wait for its answers."""


def list_data_files(storage: Storage) -> list[ObjectInfo]:
    """Every object outside `.hoodie/`, sorted by path: one listing of the base folder, one per top-level folder."""
    folders, files = storage.list_dir("")
    found = list(files)
    for folder in folders:
        if folder.rpartition("/")[2] != HOODIE:
            found += storage.list(folder)
    return sorted(found, key=lambda info: info.path)


def list_partitions(storage: Storage, partitions: Sequence[str]) -> dict[str, list[ObjectInfo]]:
    """The objects of each partition's own folder, sorted by path: one listing each. Of a folder that is not there, nothing."""

    def listed(partition: str) -> list[ObjectInfo]:
        return [] if partition.partition("/")[0] == HOODIE else storage.list_dir(partition)[1]

    ahead = LISTINGS_AHEAD if is_remote(storage) else 1
    return dict(zip(partitions, LocalEngine(ahead).map(listed, partitions), strict=True))


def partitions_in(files: list[ObjectInfo]) -> list[str]:
    """Partition paths among listed objects: the folders that hold `.hoodie_partition_metadata`."""
    found = set()
    for info in files:
        folder, _, name = info.path.rpartition("/")
        if name.startswith(PARTITION_METADATA):
            found.add(folder)
    return sorted(found)
