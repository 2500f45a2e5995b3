"""Entries of the metadata table from what a write has: against those that Hudi 0.15.0 and 1.1.1
wrote for the same files.

Aspects: column statistics of Hudi's base files from their footers; filters; record locations; ids
and instants; what footers do not tell: NaN, long texts; rows of log files (hypothesis). Not here:
which files a commit has.
"""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec import bounds
from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.codec.log.rows import read_rows
from hudi_table.codec.metadata.column_stats import has_stats, indexed_columns, stats_of_file, stats_of_rows
from hudi_table.codec.metadata.entries import (
    bloom_entry,
    bloom_removal,
    column_stats_entries,
    column_stats_removals,
    instant_millis,
    joined_file_ids,
    record_index_entries,
    split_file_id,
)
from hudi_table.codec.metadata.records import decode_metadata, encode_metadata, metadata_schema
from hudi_table.model.names import META_COLUMNS, parse_base_file
from hudi_table.model.table.version_properties import RECORDS
from tests.support import metadata_files
from tests.support.scale import scaled

RECORD = RECORDS[6][0]

META_OF_015 = {"_hoodie_commit_seqno", "_hoodie_file_name"}


def comparable(schema: pa.Schema) -> list[str]:
    """The columns of which both versions of Hudi keep statistics."""
    return [field.name for field in schema if has_stats(field.type) and field.name not in META_OF_015]


def written_by_hudi(base: Path, column: str) -> dict[str, Any]:
    """Every record of a kind, by key."""
    found: dict[str, Any] = {}
    for _, file in metadata_files.hfiles(base):
        rows = file.read()
        records = decode_metadata(rows["value"], file.schema)[column].to_pylist()
        keys = rows["key"].cast(pa.string()).to_pylist()
        found |= {key: record for key, record in zip(keys, records, strict=True) if record is not None}
    return found


def base_files(base: Path) -> list[tuple[str, Path]]:
    return [(path.parent.name, path) for path in sorted(base.glob("city=*/*.parquet"))]


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_column_statistics_are_those_that_hudi_wrote(version: str, tmp_path: Path) -> None:
    base = metadata_files.table(version, tmp_path)
    theirs = written_by_hudi(base, "stats")
    ours: dict[str, Any] = {}
    for partition, path in base_files(base):
        file = pq.ParquetFile(path)
        entries = column_stats_entries(partition, stats_of_file(file, path.name, comparable(file.schema_arrow)))
        assert entries["key"].to_pylist() == sorted(entries["key"].to_pylist())
        ours |= dict(zip(entries["key"].to_pylist(), entries["stats"].to_pylist(), strict=True))
    left = {record["column"] for key, record in theirs.items() if key not in ours}
    assert left == (META_OF_015 if version == "0.15.0" else set())
    assert ours == {key: record for key, record in theirs.items() if key in ours}
    assert len(ours) == 180


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_statistics_of_log_files_are_those_that_hudi_wrote(version: str, tmp_path: Path) -> None:
    base = metadata_files.unpacked(f"mor-{version}", tmp_path)
    theirs = {key: record for key, record in written_by_hudi(base, "stats").items() if ".log" in record["file_name"]}
    compared = 0
    for path in base.glob("city=*/.*.log.*"):
        with path.open("rb") as source:
            (block,) = scan_blocks(source, path=path.name)
            rows = read_rows(source, block)
        columns = [name for name in comparable(rows.schema) if name != "nan"]
        entries = column_stats_entries(path.parent.name, stats_of_rows(rows, path.name, columns))
        for key, record in zip(entries["key"].to_pylist(), entries["stats"].to_pylist(), strict=True):
            assert record == theirs[key]
            compared += 1
    assert compared == 38


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_hudi_has_no_right_bounds_of_nan_and_of_long_texts(version: str, tmp_path: Path) -> None:
    """Why readers conclude nothing from either (`read/pruning/column_ranges.py`)."""
    base = metadata_files.unpacked(f"mor-{version}", tmp_path)
    found = [record for record in written_by_hudi(base, "stats").values() if ".parquet" in record["file_name"]]
    by_column = {name: [record for record in found if record["column"] == name] for name in ("nan", "long", "p3820")}
    ends = {(record["min"]["real"], record["max"]["real"]) for record in by_column["nan"]}
    assert (0.0, 0.0) in ends
    assert all(record["min"] is None and record["null_count"] == 10 for record in by_column["long"])
    assert len(by_column["p3820"]) == (2 if version == "0.15.0" else 0)


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_filters_are_those_that_hudi_wrote(version: str, tmp_path: Path) -> None:
    base = metadata_files.table(version, tmp_path)
    theirs = written_by_hudi(base, "bloom")
    ours = {}
    for partition, path in base_files(base):
        name = parse_base_file(path.name)
        assert name is not None
        text = pq.ParquetFile(path).metadata.metadata[b"org.apache.hudi.bloomfilter"].decode()
        entry = bloom_entry(partition, path.name, "SIMPLE", text, name.instant)
        ours[entry["key"][0].as_py()] = entry["bloom"][0].as_py()
    assert ours == theirs


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_locations_are_those_that_hudi_wrote(version: str, tmp_path: Path) -> None:
    base = metadata_files.table(version, tmp_path)
    theirs = written_by_hudi(base, "location")
    firsts: dict[str, dict[str, Any]] = {}
    for partition, path in base_files(base):
        name = parse_base_file(path.name)
        assert name is not None
        rows = pq.ParquetFile(path).read(["_hoodie_record_key", "_hoodie_commit_time"])
        entries = record_index_entries(rows["_hoodie_record_key"], partition, name.file_id, name.instant)
        for key, location in zip(entries["key"].to_pylist(), entries["location"].to_pylist(), strict=True):
            firsts.setdefault(key, location)
            if location["instant_millis"] < firsts[key]["instant_millis"]:
                firsts[key] = location
        assert set(joined_file_ids(entries["location"].combine_chunks()).to_pylist()) == {name.file_id}
    where = ("partition", "file_id_high", "file_id_low", "file_index", "file_id", "encoding")
    assert len(theirs) > 20
    for key, location in theirs.items():
        assert {name: location[name] for name in where} == {name: firsts[key][name] for name in where}
    assert any(location == firsts[key] for key, location in theirs.items())


def test_a_file_id_of_a_uuid_is_two_halves() -> None:
    file_id = "3d5b194b-eef0-4389-b0ef-d30620d94b1c-0"
    assert split_file_id(file_id) == (4421155273116238729, -5697102980326012132, 0, "", 0)
    assert instant_millis("20261121090714215") == 1795252034215
    assert instant_millis("20261121090714") == 1795252034999


@settings(max_examples=scaled(60), deadline=None)
@given(ids=st.lists(st.uuids().map(lambda u: f"{u}-3") | st.text("ab0-", max_size=9), min_size=1, max_size=6))
def test_any_file_id_comes_back(ids: list[str]) -> None:
    rows = [
        record_index_entries(pa.array([f"{at}", f"k{at}"]), "p", file_id, "1" * 14) for at, file_id in enumerate(ids)
    ]
    table = pa.concat_tables(rows)
    again = decode_metadata(encode_metadata(table, metadata_schema(RECORD)), metadata_schema(RECORD))
    found = joined_file_ids(again["location"].combine_chunks()).to_pylist()
    assert found == [file_id for file_id in ids for _ in range(2)]


def test_what_is_gone_has_the_key_of_what_was_there() -> None:
    stats = stats_of_rows(pa.table({"a": [1], "b": ["x"]}), "f.parquet", ["a", "b"])
    removed = column_stats_removals("p", "f.parquet", ["a", "b"])
    assert removed["key"] == column_stats_entries("p", stats)["key"]
    assert {record["deleted"] for record in removed["stats"].to_pylist()} == {True}
    gone = bloom_removal("p", "f.parquet", "1")
    assert gone["key"] == bloom_entry("p", "f.parquet", "SIMPLE", "text", "1")["key"]
    for table in (removed, gone):
        assert len(decode_metadata(encode_metadata(table, metadata_schema(RECORD)), metadata_schema(RECORD))) == len(
            table
        )


def of_columns(stats: pa.StructArray, kinds: pa.Schema) -> dict[str, tuple[Any, ...]]:
    """Column → (smallest, largest, values, nulls)."""
    found = {}
    for number, record in enumerate(stats.to_pylist()):
        kind = kinds.field(record["column"]).type
        ends = [bounds.values_of(stats.slice(number, 1).field(side), kind)[0].as_py() for side in ("min", "max")]
        found[record["column"]] = (*ends, record["value_count"], record["null_count"])
    return found


def test_what_a_footer_does_not_tell_is_looked_up(tmp_path: Path) -> None:
    long = "x" * 6000
    table = pa.table(
        {
            "nan": [1.0, math.nan, None, -4.0],
            "only_nan": pa.array([math.nan, None, None, None], pa.float32()),
            "long": [long + "b", long + "a", None, "short"],
            "void": pa.nulls(4, pa.int64()),
            "tags": [[1], None, [], [2]],
        }
    )
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, row_group_size=2, store_schema=False)
    file = pq.ParquetFile(path)
    assert indexed_columns(file.schema_arrow) == ["nan", "only_nan", "long", "void"]
    found = of_columns(stats_of_file(file, path.name, [*table.column_names, "absent"]), file.schema_arrow)
    assert found["nan"][0] == -4.0
    assert math.isnan(found["nan"][1])
    assert all(math.isnan(end) for end in found["only_nan"][:2])
    assert found["long"] == ("short", long + "b", 4, 1)
    assert found["void"] == (None, None, 4, 4)
    assert set(found) == {"nan", "only_nan", "long", "void"}


KINDS = {
    "b": (pa.bool_(), st.booleans()),
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "d": (pa.float64(), st.floats(allow_nan=False)),
    "s": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=6)),
    "raw": (pa.binary(), st.binary(max_size=6)),
    "day": (pa.date32(), st.integers(-100_000, 100_000)),
    "at": (pa.timestamp("us", tz="UTC"), st.integers(-(2**55), 2**55)),
    "dec": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3)),
    "wide": (pa.decimal128(30, 15), st.integers(-(10**14), 10**14).map(Decimal)),
}


@settings(max_examples=scaled(40), deadline=None)
@given(data=st.data(), count=st.integers(0, 12), groups=st.integers(1, 5))
def test_files_and_rows_have_the_extremes_of_their_columns(
    data: st.DataObject, count: int, groups: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    columns = {
        name: pa.array(data.draw(st.lists(st.none() | values, min_size=count, max_size=count)), kind)
        for name, (kind, values) in KINDS.items()
    }
    table = pa.table(columns)
    path = tmp_path_factory.getbasetemp() / f"{uuid.uuid4()}.parquet"
    pq.write_table(table, path, row_group_size=groups, store_schema=False)
    expected = {}
    for name, column in columns.items():
        ends = pc.min_max(column.cast(pa.binary()) if pa.types.is_string(column.type) else column)
        side = [pa.scalar(ends[s].as_py()).as_py() for s in ("min", "max")]
        if pa.types.is_string(column.type):
            side = [None if end is None else end.decode() for end in side]
        expected[name] = (*side, count, column.null_count)
    for stats in (
        stats_of_file(pq.ParquetFile(path), path.name, table.column_names),
        stats_of_rows(table, "log", table.column_names),
    ):
        assert of_columns(stats, table.schema) == expected
    path.unlink()


def test_columns_that_hudi_keeps_nothing_of_have_no_statistics() -> None:
    without = [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.time64("us"), pa.timestamp("ms"), pa.binary(4)]
    without += [pa.decimal128(20, 16), pa.decimal128(16, 0)]
    assert not any(has_stats(kind) for kind in without)


def test_a_file_tells_of_all_its_flat_columns_or_of_none() -> None:
    """Hudi 0.15.0 takes a column without statistics for null beside one that has them, and loses
    rows."""
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    told = [*meta, pa.field("id", pa.string()), pa.field("ts", pa.int64())]
    nested = pa.field("tags", pa.list_(pa.int32()))
    assert indexed_columns(pa.schema([*told, nested])) == [field.name for field in told]
    assert indexed_columns(pa.schema([*told, pa.field("at", pa.time64("us"))])) == []
