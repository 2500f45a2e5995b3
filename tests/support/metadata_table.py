"""Tables for a metadata table, and what it should hold of their files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_table.codec.metadata.keys import bloom_keys, column_stats_keys
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileGroup, FileSystemView
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.crashes import SCHEMA, new_store, opened, rows


def table_of_keys(kind: str, index: str, **more: Any) -> Storage:
    """A table with keys in three partitions, of which some were written again and some are gone;
    `k2` has come to another partition, and is in both where the index is not global."""
    store = new_store()
    told: dict[str, Any] = {"partition_by": ["city"], "version": 6} | more
    create(store, TableSpec(SCHEMA, "id", index=index, name="t", type=kind, **told))
    table = opened(store)
    table.write(rows(*((f"k{n}", "xyz"[n % 3], n) for n in range(12))), operation="insert")
    table.write(rows(("k1", "y", 100), ("k2", "x", 200), ("new", "z", 1)), operation="upsert")
    table.write(rows(("k3", "x", 0), ("k4", "y", 0)), operation="delete")
    return store


def groups_by_folders(ctx: TableContext, timeline: Timeline, moment: str | None = None) -> list[FileGroup]:
    """The visible file groups as a listing of the folders makes them."""
    return FileSystemView(ctx, Timeline(timeline.instants, timeline.files), moment).groups()


def missing_entries(ctx: TableContext, columns: tuple[str, ...]) -> list[tuple[str, str]]:
    """(partition of the metadata table, path) of visible base files whose filter, or whose
    statistics of the record key or of one of the columns, are not there, though that partition is
    ready."""
    timeline = load_timeline(ctx)
    table = MetadataTable.load(ctx, timeline)
    assert table is not None
    slices = [item for group in groups_by_folders(ctx, timeline) for item in group.slices]
    bases = [item.base for item in slices if item.base is not None]
    partitions = pa.array([base.partition for base in bases], pa.string())
    names = pa.array([base.name for base in bases], pa.string())
    wanted = [(MetadataPartition.BLOOM_FILTERS, bloom_keys(partitions, names))]
    for column in (RECORD_KEY, *columns):
        column_names = pa.array([column] * len(bases), pa.string())
        wanted.append((MetadataPartition.COLUMN_STATS, column_stats_keys(column_names, partitions, names)))
    known = {}
    for partition in table.partitions.ready:
        entries = read_entries(table, MetadataPartition(partition)) if partition != MetadataPartition.FILES else None
        known[partition] = set() if entries is None else set(entries["key"].to_pylist())
    return [
        (partition, base.path)
        for partition, keys in wanted
        if partition in known
        for base, key in zip(bases, keys.to_pylist(), strict=True)
        if key not in known[partition]
    ]
