"""What the metadata tables of Hudi 0.15.0 list, against the folders of their tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import open_table
from hudi_table.metadata.reading import listed_files, listed_partitions, read_entries, read_listing
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import committed_files, differences
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.listing import list_data_files, partitions_in
from tests.support.golden import COPY_ON_WRITE, MERGE_ON_READ, unpack

WITHOUT = ("arch", "lc")
"""Golden tables that have no metadata table."""
TABLES = [name for name in (*COPY_ON_WRITE, *MERGE_ON_READ) if name not in WITHOUT]


def load(base: str) -> tuple[MetadataTable, object]:
    ctx = open_table(base).context
    timeline = load_timeline(ctx)
    assert timeline.has_metadata
    table = MetadataTable.load(ctx, timeline)
    assert table is not None
    return table, (ctx, timeline)


@pytest.mark.parametrize("name", TABLES)
def test_it_lists_what_the_folders_hold(name, tmp_path):
    base = str(unpack(name, tmp_path).base)
    ctx = open_table(base).context
    timeline = load_timeline(ctx)
    table = MetadataTable.load(ctx, timeline)
    assert table is not None
    listing = read_listing(table)
    infos = list_data_files(ctx.storage)
    stored = {info.path: info.size for info in infos if "parquet" in info.path or ".log." in info.path}
    listed = listed_files(listing)
    assert listed_partitions(listing) == partitions_in(infos)
    assert listed.keys() == stored.keys()
    # A rollback's block lists a log of the failed write with a size that is not its own (measured): never above it.
    assert all(size <= stored[path] for path, size in listed.items())
    assert committed_files(infos, timeline).keys() <= {tuple(path.rpartition("/")[::2]) for path in listed}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_table_without_one_has_none(name, tmp_path):
    ctx = open_table(str(unpack(name, tmp_path).base)).context
    timeline = load_timeline(ctx)
    assert not timeline.has_metadata
    assert MetadataTable.load(ctx, timeline) is None
    assert differences(ctx) == []


def test_column_statistics_are_read_by_key_and_whole(tmp_path):
    ctx = open_table(str(unpack("wide", tmp_path).base)).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert table is not None
    whole = read_entries(table, MetadataPartition.COLUMN_STATS)
    assert whole is not None
    columns = pc.struct_field(whole["stats"], "column").to_pylist()
    assert len(columns) == len(set(columns))
    some = whole["key"].slice(0, 3).combine_chunks()
    found = read_entries(table, MetadataPartition.COLUMN_STATS, some)
    assert found is not None
    assert sorted(found["key"].to_pylist()) == sorted(some.to_pylist())


def test_a_partition_that_is_not_there_has_no_entries(tmp_path):
    ctx = open_table(str(unpack("nopart", tmp_path).base)).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert table is not None
    assert read_entries(table, MetadataPartition.RECORD_INDEX, pa.array(["k"])) is None


def test_a_file_that_is_gone_and_one_that_is_not_listed_are_told(tmp_path):
    base = unpack("mor1", tmp_path).base
    ctx = open_table(str(base)).context
    assert differences(ctx) == []
    victim = next(base.rglob("*.parquet"))
    moved = victim.with_name("x" + victim.name)
    victim.rename(moved)
    told = {(item.path, item.what) for item in differences(ctx)}
    assert told == {
        (str(victim.relative_to(base)), "is listed and is not there"),
        (str(moved.relative_to(base)), "is not listed"),
    }
