"""The entries of a file group as tables, oldest first, and what they make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hfile import HFile
from hudi_table.codec.log.blocks import BlockType, LogBlock
from hudi_table.codec.log.hfile import read_hfile
from hudi_table.codec.log.rows import read_deletes
from hudi_table.codec.metadata.records import METADATA_SCHEMA, PARTITION_STATS, decode_metadata
from hudi_table.errors import UnsupportedTableError
from hudi_table.metadata.merging import DELETED, LISTED, latest, listed, widest
from hudi_table.metadata.table import CountedInstants, MetadataTable
from hudi_table.model.metadata_table import (
    ALL_PARTITIONS,
    AnyPartition,
    MetadataPartition,
    group_file_id,
    is_expression,
    partition_of_key,
)
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.log_scan import ShownInstants, slice_blocks
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_groups import FileSlice

GROUPS_AHEAD = 8
"""File groups looked into at once: they wait for the store."""


def slice_parts(table: MetadataTable, item: FileSlice, keys: pa.Array | None = None) -> list[pa.Table]:
    """The entries of a slice, of all keys or of the given ones, the base file's first: columns
    `key` and those of `decode_metadata`, and in each part of a delete block `_deleted`.

    Raises CorruptTableError, ObjectNotFoundError for a file that was cleaned meanwhile.
    """
    return parts_of(table.ctx.storage, item, table.counted, keys)


def parts_of(
    storage: Storage,
    item: FileSlice,
    counted: ShownInstants,
    keys: pa.Array | None = None,
    *,
    by_prefix: bool = False,
) -> list[pa.Table]:
    """The same of a slice whose files are in `storage`, where the blocks of the instants `counted`
    count; `by_prefix`: of all keys that begin with the given ones. Raises ObjectNotFoundError
    too."""
    chosen = _Chosen(keys, by_prefix)
    base = [] if item.base is None else [_base(storage.open_read(item.base.path), item.base.path, chosen)]
    blocks: list[pa.Table | _Encoded] = []
    for block in slice_blocks(storage, item.logs, counted):
        with storage.open_read(block.path) as source:
            blocks.append(_block(source, block, chosen))
    return base + _decoded(blocks)


def read_listing(table: MetadataTable, keys: pa.Array | None = None) -> pa.Table:
    """Every file that the partition `files` lists, or those under the given keys (sorted strings),
    sorted: columns `key` (the data partition, `.` if there is none), `name` and `size`; and under
    the key `__all_partitions__` every partition."""
    group = table.group(MetadataPartition.FILES, group_file_id(MetadataPartition.FILES, 0))
    if group is None:
        return LISTED.empty_table()
    return listed(slice_parts(table, group.latest, keys))


def listed_partitions(listing: pa.Table) -> list[str]:
    """The partition paths of a listing, sorted."""
    names = listing.filter(pc.equal(listing["key"], ALL_PARTITIONS))["name"].to_pylist()
    return sorted(partition_of_key(name) for name in names)


def listed_files(listing: pa.Table) -> dict[str, int]:
    """Path, relative to the data table's base, and size of every file of a listing."""
    files = listing.filter(pc.not_equal(listing["key"], ALL_PARTITIONS))
    folders = pc.if_else(pc.equal(files["key"], "."), "", pc.binary_join_element_wise(files["key"], "", "/"))
    paths = pc.binary_join_element_wise(folders, files["name"], "")
    return dict(zip(paths.to_pylist(), files["size"].to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class PartitionSlices:
    """The newest slices of a partition other than `files`, as one listing shows them; picklable:
    whoever has the metadata table's storage reads entries, and lists nothing."""

    slices: tuple[FileSlice, ...]
    counted: CountedInstants

    @classmethod
    def of(cls, table: MetadataTable, partition: AnyPartition) -> PartitionSlices | None:
        """Those of this listing; None if the partition has no group."""
        slices = tuple(group.latest for group in table.groups.get(partition, ()) if group.slices)
        return cls(slices, table.counted) if slices else None

    def read(self, storage: Storage, keys: pa.Array | None = None) -> pa.Table:
        """The entries of all keys, or of the given ones. Raises CorruptTableError, also for a file
        that was cleaned meanwhile."""

        def merged(item: FileSlice) -> pa.Table:
            return latest_of(parts_of(storage, item, self.counted, keys))

        return pa.concat_tables(LocalEngine(GROUPS_AHEAD).map(merged, self.slices))


def read_entries(table: MetadataTable, partition: AnyPartition, keys: pa.Array | None = None) -> pa.Table | None:
    """The entries of a partition other than `files`, of all its groups; None if it has no group."""
    found = PartitionSlices.of(table, partition)
    return None if found is None else found.read(table.ctx.storage, keys)


def latest_of(parts: Sequence[pa.Table]) -> pa.Table:
    """The last entry of each key in the parts of a slice, sorted by key, without those that are
    deleted."""
    return latest(_aligned(parts)).drop_columns([DELETED])


def widest_of(parts: Sequence[pa.Table]) -> pa.Table:
    """The same of statistics of partitions, which are put together."""
    return widest(_aligned(parts)).drop_columns([DELETED])


def merged_of(partition: str, parts: Sequence[pa.Table]) -> pa.Table:
    """The entries that the parts of a slice of a partition other than `files` leave, sorted by key:
    of an index of an expression those of files by the last one, those of partitions put
    together."""
    if partition == MetadataPartition.PARTITION_STATS:
        return widest_of(parts)
    if not is_expression(partition):
        return latest_of(parts)
    aligned = _aligned(parts)
    kinds = pa.concat_tables([part.select(["key", "type"]) for part in aligned])
    wide = kinds.filter(pc.equal(kinds["type"], PARTITION_STATS))["key"].combine_chunks().unique()
    if not len(wide):
        return latest(aligned).drop_columns([DELETED])
    marks = [pc.is_in(part["key"], value_set=wide) for part in aligned]
    of_files = latest([part.filter(pc.invert(mark)) for part, mark in zip(aligned, marks, strict=True)])
    of_partitions = widest([part.filter(mark) for part, mark in zip(aligned, marks, strict=True)])
    return pa.concat_tables([of_files, of_partitions]).drop_columns([DELETED]).sort_by("key").combine_chunks()


def _aligned(parts: Sequence[pa.Table]) -> list[pa.Table]:
    """Parts with one schema: those of delete blocks get empty columns."""
    schema = pa.schema([("key", pa.string()), *METADATA_SCHEMA, (DELETED, pa.bool_())])
    done = []
    for part in parts:
        columns = [
            part[field.name]
            if field.name in part.column_names
            else pa.nulls(len(part), field.type)
            if field.name != DELETED
            else pa.repeat(pa.scalar(False), len(part))
            for field in schema
        ]
        done.append(pa.Table.from_arrays(columns, schema=schema))
    return done or [schema.empty_table()]


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Entries of an HFile: columns `key` and `value`, whose values are Avro of `schema`."""

    entries: pa.Table
    schema: str

    def decoded(self) -> pa.Table:
        found = decode_metadata(self.entries["value"].combine_chunks(), self.schema)
        return found.add_column(0, "key", self.entries["key"].cast(pa.string()))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which entries are read: all, those of the keys, or those whose keys begin so."""

    keys: pa.Array | None
    by_prefix: bool

    def of(self, file: HFile) -> pa.Table:
        if self.keys is None:
            return file.read()
        return file.prefix(self.keys) if self.by_prefix else file.lookup(self.keys)

    def among(self, deleted: pa.Array) -> pa.Array:
        """Those of deleted keys; all of them where a prefix is asked for, which harm nothing."""
        if self.keys is None or self.by_prefix:
            return deleted
        return deleted.filter(pc.is_in(deleted, value_set=self.keys.cast(deleted.type)))


def _base(source: pa.NativeFile, path: str, chosen: _Chosen) -> pa.Table:
    with source:
        file = HFile.open(source, path=path)
        return _Encoded(chosen.of(file), file.schema).decoded()


def _block(source: pa.NativeFile, block: LogBlock, chosen: _Chosen) -> pa.Table | _Encoded:
    if block.type is BlockType.DELETE:
        deleted = chosen.among(read_deletes(source, block).keys)
        return pa.table({"key": deleted, DELETED: pa.repeat(pa.scalar(True), len(deleted))})
    if block.type is not BlockType.HFILE:
        raise UnsupportedTableError(f"a {block.type.name} block in a log of the metadata table", path=block.path)
    file = read_hfile(source, block)
    return _Encoded(chosen.of(file), block.schema or file.schema)


def _decoded(blocks: Sequence[pa.Table | _Encoded]) -> list[pa.Table]:
    """The blocks as tables. Those of one schema are decoded at once: a block is a commit's, of a
    few entries, and a call costs as much as some thousand of them."""
    tables: dict[int, pa.Table] = {}
    by_schema: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        if isinstance(block, _Encoded):
            by_schema.setdefault(block.schema, []).append(number)
        else:
            tables[number] = block
    for schema, numbers in by_schema.items():
        entries = [block.entries for number in numbers if isinstance(block := blocks[number], _Encoded)]
        table, start = _Encoded(pa.concat_tables(entries), schema).decoded(), 0
        for number, part in zip(numbers, entries, strict=True):
            tables[number], start = table.slice(start, len(part)), start + len(part)
    return [tables[number] for number in range(len(blocks))]
