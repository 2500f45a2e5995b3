"""Listing the data side of a table: partitions and their files, without `.hoodie/`."""

from __future__ import annotations

from hudi_table.model.names import HOODIE, PARTITION_METADATA
from hudi_table.table.ports import ObjectInfo, Storage


def list_data_files(storage: Storage) -> list[ObjectInfo]:
    """Every object outside `.hoodie/`, sorted by path: one listing of the base folder, one per top-level folder."""
    folders, files = storage.list_dir("")
    found = list(files)
    for folder in folders:
        if folder.rpartition("/")[2] != HOODIE:
            found += storage.list(folder)
    return sorted(found, key=lambda info: info.path)


def partitions_in(files: list[ObjectInfo]) -> list[str]:
    """Partition paths among listed objects: the folders that hold `.hoodie_partition_metadata`."""
    found = set()
    for info in files:
        folder, _, name = info.path.rpartition("/")
        if name.startswith(PARTITION_METADATA):
            found.add(folder)
    return sorted(found)
