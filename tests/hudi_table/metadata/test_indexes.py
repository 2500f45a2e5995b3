"""The indexes in the metadata table: those of Hudi are read whole, and every write keeps them."""

from __future__ import annotations

import json
import uuid
import warnings
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.codec.hfile import HFile
from hudi_table.codec.metadata.entries import joined_file_ids
from hudi_table.codec.metadata.records import PARTITION_STATS
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.metadata.indexing import build_metadata
from hudi_table.metadata.lifecycle import MetadataDroppedWarning, kept
from hudi_table.metadata.reading import read_entries, slice_parts, widest_of
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.names import FILE_NAME, METADATA_TABLE, PARTITION_PATH, RECORD_KEY
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.write.checks.create_table import create
from tests.support import golden, metadata_files
from tests.support.crashes import (
    LATER,
    LATER_LOGS,
    LAYOUTS,
    LOG_LAYOUTS,
    OPERATIONS,
    Layout,
    new_store,
    opened,
    rows,
    spec,
)

TYPES = {MetadataPartition.COLUMN_STATS: 3, MetadataPartition.BLOOM_FILTERS: 4, MetadataPartition.RECORD_INDEX: 5}


def loaded(table: HudiTable) -> MetadataTable:
    found = MetadataTable.load(table.context, load_timeline(table.context))
    assert found is not None
    return found


def located(table: HudiTable) -> dict[str, tuple[str, str]]:
    """(partition, file id) of every key in the record index."""
    entries = read_entries(loaded(table), MetadataPartition.RECORD_INDEX)
    assert entries is not None
    where = entries["location"].combine_chunks()
    ids = joined_file_ids(where).to_pylist() if len(where) else []
    return dict(
        zip(entries["key"].to_pylist(), zip(where.field("partition").to_pylist(), ids, strict=True), strict=True)
    )


def stored(table: HudiTable) -> dict[str, tuple[str, str]]:
    """The same of every row, as a scan finds it."""
    found = table.scan(meta=True).to_arrow().to_pylist()
    return {row[RECORD_KEY]: (row[PARTITION_PATH], row[FILE_NAME].partition("_")[0]) for row in found}


def told_too_little(table: HudiTable) -> list[tuple[str, object]]:
    """Rows whose value the statistics of their partition leave out; none without such
    statistics."""
    if MetadataPartition.PARTITION_STATS not in kept(table.context):
        return []
    found = loaded(table)
    (group,) = found.groups[MetadataPartition.PARTITION_STATS]
    entries = widest_of(slice_parts(found, group.latest))
    assert entries["type"].unique().to_pylist() in ([], [PARTITION_STATS])
    stats = [each for each in entries["stats"].to_pylist() if each["column"] == "value"]
    bounds = {each["file_name"]: (each["min"]["number"], each["max"]["number"]) for each in stats}
    rows_now = table.scan(meta=True).to_arrow().to_pylist()
    return [
        (row[PARTITION_PATH], row["value"])
        for row in rows_now
        if not bounds[row[PARTITION_PATH]][0] <= row["value"] <= bounds[row[PARTITION_PATH]][1]
    ]


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_entries_are_those_that_hudi_reads(version: str, tmp_path: Path) -> None:
    table = open_table(str(metadata_files.table(version, tmp_path)))
    assert differences(table.context) == []
    theirs = metadata_files.rows_of_hudi(version)
    for partition, kind in TYPES.items():
        entries = read_entries(loaded(table), partition)
        assert entries is not None
        assert set(entries["key"].to_pylist()) == {row["key"] for row in theirs if row["type"] == kind}
    assert located(table) == stored(table)


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_the_record_index_of_hudi_is_kept(version: str, tmp_path: Path) -> None:
    base = str(metadata_files.table(version, tmp_path))
    table = open_table(base)
    simple = {"hoodie.index.type": "SIMPLE"}
    some = table.scan().to_arrow()
    table.write(some.slice(0, 5), operation="delete", options=simple)
    assert located(open_table(base)) == stored(open_table(base))
    table.write(some.slice(3, 9), operation="upsert", options=simple)
    assert located(open_table(base)) == stored(open_table(base))
    compact_metadata(table.context, 1)
    assert located(open_table(base)) == stored(open_table(base))
    table.write(some.slice(7, 3), operation="insert_overwrite", options=simple)
    assert located(open_table(base)) == stored(open_table(base))
    assert differences(open_table(base).context) == []
    assert set(open_table(base).context.config.metadata_partitions) == kept(table.context)


@pytest.mark.parametrize("layout", [LAYOUTS[0], LAYOUTS[2], LAYOUTS[4], *LOG_LAYOUTS, LATER, LATER_LOGS], ids=str)
def test_the_record_index_knows_every_row_after_every_operation(layout: Layout) -> None:
    store = new_store()
    create(store, spec(layout))
    assert build_metadata(opened(store).context, sorted(kept(opened(store).context)))
    opened(store).write(rows(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)), operation="upsert")
    for name in ("insert", "upsert", "delete", "bulk_insert", "insert_overwrite", "upsert", "delete_partition"):
        OPERATIONS[name][0](opened(store))
        table = opened(store)
        assert located(table) == stored(table), name
        assert differences(table.context) == []
        assert told_too_little(table) == []
    # Of new keys: one that is there already would end the index.
    opened(store).write(rows(("j", "x", 4), ("k", "z", 5)), operation="insert")
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    compact_metadata(opened(store).context, 1)
    if layout.index is not IndexType.BUCKET:
        opened(store).cluster({"hoodie.clustering.plan.strategy.small.file.limit": "1000000"}, force=True)
    assert located(opened(store)) == stored(opened(store))
    assert told_too_little(opened(store)) == []


def statistics(table: HudiTable) -> dict[tuple[str, str], dict[str, Any]]:
    """By partition and column what the statistics of partitions say."""
    found = loaded(table)
    (group,) = found.groups[MetadataPartition.PARTITION_STATS]
    stats = widest_of(slice_parts(found, group.latest))["stats"].to_pylist()
    return {(each["file_name"], each["column"]): each for each in stats}


@pytest.mark.parametrize("layout", [LATER, LATER_LOGS], ids=str)
@pytest.mark.parametrize("built", ["before", "after"])
def test_a_column_that_came_later_is_null_in_what_was_written_before(layout: Layout, built: str) -> None:
    store = new_store()
    create(store, spec(layout))
    opened(store).write(rows(("a", "x", 1), ("b", "y", 2)), operation="insert")
    wanted = [MetadataPartition.PARTITION_STATS]
    if built == "before":
        assert build_metadata(opened(store).context, wanted)
    wider = rows(("c", "x", 3)).append_column("more", pa.array([7], pa.int64()))
    opened(store).write(wider, operation="insert")
    if built == "after":
        assert build_metadata(opened(store).context, wanted)
        more = statistics(opened(store))
        # Of both files of the group.
        assert 0 < more["x", "more"]["null_count"] < more["x", "more"]["value_count"]
        assert (more["y", "more"]["null_count"], more["y", "more"]["value_count"]) == (1, 1)
        assert more["y", "more"]["min"] is None
    found = statistics(opened(store))
    assert found["x", "more"]["max"]["number"] == 7
    assert (found["x", "value"]["min"]["number"], found["x", "value"]["max"]["number"]) == (1, 3)
    assert found["x", "more"]["kind"]["ordinal"] == 4


def test_statistics_of_partitions_go_where_those_of_a_file_would_leave_rows_out() -> None:
    store = new_store()
    create(store, spec(LATER))
    opened(store).write(rows(("a", "x", 1)), operation="insert")
    build_metadata(opened(store).context, [MetadataPartition.PARTITION_STATS])
    noted = json.loads(store.get(DEFINITIONS))
    noted["indexDefinitions"]["column_stats"]["sourceFields"].append("nested.field")
    store.put(DEFINITIONS, json.dumps(noted).encode())
    with pytest.warns(MetadataDroppedWarning, match=r"partition_stats: x/.* has no statistics of nested\.field"):
        opened(store).write(rows(("b", "x", 2)), operation="insert")
    table = opened(store)
    assert set(table.context.config.metadata_partitions) == {"files", "column_stats"}
    assert table.scan().count() == 2
    assert differences(table.context) == []
    assert not store.list(f"{METADATA_TABLE}/partition_stats")


def test_an_index_that_is_not_kept_goes_with_its_definition_and_leaves_the_others(tmp_path: Path) -> None:
    base = golden.unpack("v9_expr_stats", tmp_path).base
    table = open_table(str(base))
    before = set(table.context.config.metadata_partitions)
    gone = {"expr_index_idx_bl", "expr_index_idx_dt"}
    assert gone < before
    noted = json.loads(table.context.storage.get(DEFINITIONS))
    for name in gone:
        noted["indexDefinitions"][name]["sourceFields"] = ["name", "ts"]
    table.context.storage.put(DEFINITIONS, json.dumps(noted).encode())
    data = table.scan().to_arrow()
    with pytest.warns(
        MetadataDroppedWarning, match="expr_index_idx_bl, expr_index_idx_dt: this release does not keep it"
    ):
        table.write(data.slice(0, 1), operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    table = open_table(str(base))
    assert set(table.context.config.metadata_partitions) == before - gone
    assert json.loads(table.context.storage.get(DEFINITIONS))["indexDefinitions"].keys() == {"column_stats"}
    assert not table.context.storage.list(f"{METADATA_TABLE}/expr_index_idx_bl")
    assert "expr_index_idx_bl" in table.context.config.extra[METADATA_DROPPED]
    assert differences(table.context) == []


def test_records_go_on_in_the_schema_that_a_metadata_table_has(tmp_path: Path) -> None:
    """That of 1.0.2 on a table of its own, that of 1.1.1 on a new one."""
    made = {"theirs": golden.unpack("v8_rli_sec", tmp_path).base, "ours": tmp_path / "ours"}
    table = create_table(made["ours"], rows().schema, record_key="id", version=8)
    table.upsert(rows(("a", "x", 1)), options={"hoodie.metadata.enable": "true"})
    for whose, base in made.items():
        table = open_table(str(base))
        some = table.scan().to_arrow().slice(0, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataDroppedWarning)
            table.write(some, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
        compact_metadata(table.context, 1)
        told = loaded(table)
        schemas = {commit_metadata(told.ctx, each).avro_schema or "" for each in told.timeline.commits[-2:]}
        assert {"valueType" in schema for schema in schemas} == {whose == "ours"}
        (group,) = told.groups["files"]
        with told.ctx.storage.open_read(group.latest.base.path if group.latest.base else "") as source:
            assert ("valueType" in HFile.open(source, path="").schema) == (whose == "ours")
        assert differences(open_table(str(base)).context) == []


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
def test_statistics_hold_dates_and_timestamps_of_any_year(
    version: int, type_: Literal["CopyOnWrite", "MergeOnRead"]
) -> None:
    """Python's calendar has the years 1 to 9999: the last second of 9999 in New York is no more of
    them."""
    days, moments = [-800_000, 2_932_897], [-(2**55), 253402318799 * 10**6]
    given = pa.table(
        {
            "id": ["a", "b"],
            "day": pa.array(days, pa.int32()).view(pa.date32()),
            "at": pa.array(moments, pa.int64()).view(pa.timestamp("us", "UTC")),
        }
    )
    table = create_table(f"memory://{uuid.uuid4().hex}/t", given.schema, record_key="id", type=type_, version=version)
    table.upsert(given.slice(0, 1))
    table.build_metadata(["column_stats"])
    table.upsert(given)
    assert differences(table.context) == []
    for column, numbers in (("day", days), ("at", moments)):
        far = given.column(column).combine_chunks()
        for place, number in enumerate(numbers):
            found = table.scan(filter=pc.field(column) == far[place]).to_arrow().column(column)
            assert found.cast(pa.int32() if column == "day" else pa.int64()).to_pylist() == [number]
