"""Listing the data side of a table: partitions and their files, without `.hoodie/`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from hudi_table.model.names import HOODIE, PARTITION_METADATA
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import ObjectInfo, Storage


def list_data_files(storage: Storage) -> list[ObjectInfo]:
    """Every object outside `.hoodie/`, sorted by path: one listing of the base folder, then one per
    top-level folder, at once."""
    folders, files = storage.list_dir("")
    inner = [partial(storage.list, folder) for folder in folders if folder.rpartition("/")[2] != HOODIE]
    found = [*files, *chain.from_iterable(all_at_once(storage, inner))]
    return sorted(found, key=lambda info: info.path)


def list_partitions(storage: Storage, partitions: Sequence[str]) -> dict[str, list[ObjectInfo]]:
    """The objects of each partition's own folder, sorted by path: one listing each, at once. Of a
    folder that is not there, nothing."""

    def listed(partition: str) -> list[ObjectInfo]:
        return [] if partition.partition("/")[0] == HOODIE else storage.list_dir(partition)[1]

    return dict(zip(partitions, all_at_once(storage, [partial(listed, name) for name in partitions]), strict=True))


def partitions_in(files: list[ObjectInfo]) -> list[str]:
    """Partition paths among listed objects: the folders that hold `.hoodie_partition_metadata`."""
    found = set()
    for info in files:
        folder, _, name = info.path.rpartition("/")
        if name.startswith(PARTITION_METADATA):
            found.add(folder)
    return sorted(found)
