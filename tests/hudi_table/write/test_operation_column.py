"""`hoodie.allow.operation.metadata.field`: the column `_hoodie_operation`, and rows of logs that
delete by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.names import ALL_META_COLUMNS, OPERATION_COLUMN
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.commits import SCHEMA_KEY
from tests.support.changelog import blocks_of, tell_operations
from tests.support.written import contents, last_commit, new_table, rows, slices

WITH = {"hoodie.allow.operation.metadata.field": "true"}
FIRST = rows(("a", "x", 1), ("b", "x", 1), ("c", "x", 1), ("d", "y", 1))


def created(path: Path, type_: str, **more: Any) -> HudiTable:
    return new_table(f"{path}/t", type=type_, index={"type": "Bucket", "buckets": 1}, **more)


def stored_columns(path: Path) -> list[list[str]]:
    """Columns of each base file and each block of rows."""
    files = [pq.read_schema(file).names for file in path.rglob("*.parquet")]
    return files + [rows.schema.names for log in path.rglob(".*.log.*") for _, rows in blocks_of(log)]


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("type_", list(TableType))
def test_files_of_a_write_with_the_option_have_the_column_of_the_operation(
    tmp_path: Path, type_: TableType, blocks: str
) -> None:
    options = WITH | {"hoodie.logfile.data.block.format": blocks}
    table = created(tmp_path, type_.value)
    table.insert(FIRST, options=options)
    table.upsert(rows(("a", "x", 2), ("e", "y", 2)), options=options)
    table.delete(rows(("b", "x", 0)), options=options)
    assert contents(table) == [("a", "x", 2), ("c", "x", 1), ("d", "y", 1), ("e", "y", 2)]
    columns = stored_columns(tmp_path)
    assert columns
    for names in columns:
        assert names == [*ALL_META_COLUMNS, *FIRST.schema.names]
    assert OPERATION_COLUMN not in last_commit(table).extra_metadata[SCHEMA_KEY]
    assert table.schema().names == FIRST.schema.names
    found = table.scan(columns=["id", OPERATION_COLUMN]).to_arrow()
    logged = {"a": "U", "e": "U"} if type_ is TableType.MERGE_ON_READ else {}
    told = dict(zip(found["id"].to_pylist(), found[OPERATION_COLUMN].to_pylist(), strict=True))
    assert told == dict.fromkeys("acde") | logged
    assert not table.scan(filter=f"{OPERATION_COLUMN} = 'D'").to_arrow().num_rows


def test_a_write_without_the_option_drops_the_column_from_the_files_that_it_rewrites(tmp_path: Path) -> None:
    table = created(tmp_path, "CopyOnWrite")
    table.insert(FIRST, options=WITH)
    table.upsert(rows(("a", "x", 2)))
    table.insert(rows(("z", "y", 2)), options=WITH)
    assert contents(table) == [("a", "x", 2), ("b", "x", 1), ("c", "x", 1), ("d", "y", 1), ("z", "y", 2)]
    newest = {found.partition: found.base.path for found in slices(table) if found.base}
    assert OPERATION_COLUMN not in pq.read_schema(tmp_path / "t" / newest["x"]).names
    assert OPERATION_COLUMN in pq.read_schema(tmp_path / "t" / newest["y"]).names


def test_change_data_is_told_without_the_column(tmp_path: Path) -> None:
    table = created(tmp_path, "CopyOnWrite", options={"hoodie.table.cdc.enabled": "true"})
    table.insert(FIRST, options=WITH)
    table.upsert(rows(("a", "x", 2)), options=WITH)
    changes = table.changes(since="20000101").to_arrow().to_pylist()
    update = next(item for item in changes if item["op"] == "u")
    assert (update["before"]["value"], update["after"]["value"]) == (1, 2)
    assert OPERATION_COLUMN not in update["after"]


def test_services_keep_the_column_where_they_are_given_the_option(tmp_path: Path) -> None:
    table = created(tmp_path, "MergeOnRead")
    table.insert(FIRST, options=WITH)
    table.upsert(rows(("a", "x", 2)), options=WITH)
    tell_operations(tmp_path / "t", {"a": "U"})
    table = open_table(table.base_path)
    table.compact(WITH, force=True)
    found = table.scan(columns=["id", OPERATION_COLUMN]).to_arrow()
    told = dict(zip(found["id"].to_pylist(), found[OPERATION_COLUMN].to_pylist(), strict=True))
    assert told == {"a": "U", "b": None, "c": None, "d": None}


@pytest.mark.parametrize("service", ["none", "compaction", "log compaction"])
def test_rows_of_a_changelog_that_take_their_row_away_are_deletes(tmp_path: Path, service: str) -> None:
    table = created(tmp_path, "MergeOnRead")
    table.insert(FIRST)
    table.upsert(rows(("a", "x", 2), ("b", "x", 2), ("c", "x", 2)), options=WITH)
    tell_operations(tmp_path / "t", {"a": "D", "b": "-U", "c": "U"})
    table = open_table(table.base_path)
    table.upsert(rows(("n", "x", 3), ("d", "y", 3)))
    if service == "compaction":
        assert table.compact(force=True)
    elif service == "log compaction":
        assert table.compact_logs(force=True)
    assert contents(table) == [("c", "x", 2), ("d", "y", 3), ("n", "x", 3)]
    table.upsert(rows(("a", "x", 4)))
    assert contents(table) == [("a", "x", 4), ("c", "x", 2), ("d", "y", 3), ("n", "x", 3)]


def test_rows_with_the_column_are_taken_as_they_were_read_and_no_other_way(tmp_path: Path) -> None:
    table = created(tmp_path, "CopyOnWrite")
    table.insert(FIRST, options=WITH)
    read = table.scan(columns=[*ALL_META_COLUMNS, *FIRST.schema.names]).to_arrow()
    table.upsert(read.filter(pa.compute.equal(read["id"], "a")))
    assert table.schema().names == FIRST.schema.names
    alone = FIRST.append_column(OPERATION_COLUMN, pa.array(["D"] * len(FIRST)))
    with pytest.raises(InvalidSchemaError, match=r"'_hoodie_operation' .* would be lost"):
        table.upsert(alone)


def test_a_filter_by_the_operation_finds_rows_beside_statistics(tmp_path: Path) -> None:
    table = created(tmp_path, "MergeOnRead")
    table.insert(FIRST, options=WITH)
    table.upsert(rows(("a", "x", 2)), options=WITH)
    tell_operations(tmp_path / "t", {"a": "U"})
    table = open_table(table.base_path)
    table.compact(WITH | {"hoodie.metadata.enable": "true"}, force=True)
    table.build_metadata(["column_stats"])
    found = open_table(table.base_path).scan(["id"], filter=f"{OPERATION_COLUMN} = 'U' and value > 1").to_arrow()
    assert found["id"].to_pylist() == ["a"]


def status_line(table: HudiTable) -> dict[str, str | None]:
    found = table.scan(columns=["id", OPERATION_COLUMN]).to_arrow()
    return dict(zip(found["id"].to_pylist(), found[OPERATION_COLUMN].to_pylist(), strict=True))


@pytest.mark.parametrize("given", [WITH, {}], ids=["with the option", "without"])
@pytest.mark.parametrize("type_", list(TableType))
def test_clustering_keeps_every_row_and_the_column_only_if_it_is_told_to(
    tmp_path: Path, type_: TableType, given: dict[str, str]
) -> None:
    table = new_table(f"{tmp_path}/t", type=type_.value, index="Simple")
    table.insert(FIRST, options=WITH)
    table.insert(rows(("e", "x", 1)), options=WITH | {"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(("a", "x", 2)), options=WITH)
    assert table.cluster(given, force=True)
    assert contents(table) == [("a", "x", 2), ("b", "x", 1), ("c", "x", 1), ("d", "y", 1), ("e", "x", 1)]
    newest = [
        pq.read_schema(tmp_path / "t" / found.base.path).names
        for found in slices(table)
        if found.base and found.partition == "x"
    ]
    assert [OPERATION_COLUMN in names for names in newest] == [bool(given)]
    logged = {"a": "U"} if given and type_ is TableType.MERGE_ON_READ else {}
    assert status_line(table) == dict.fromkeys("abcde") | logged


@pytest.mark.parametrize("type_", list(TableType))
def test_a_new_column_comes_beside_that_of_the_operation(tmp_path: Path, type_: TableType) -> None:
    table = created(tmp_path, type_.value)
    table.insert(FIRST, options=WITH)
    wider = rows(("a", "x", 2)).append_column("more", pa.array([7], pa.int64()))
    table.upsert(wider, options=WITH)
    assert table.schema().names == [*FIRST.schema.names, "more"]
    found = table.scan(columns=["id", "more", OPERATION_COLUMN]).to_arrow().sort_by("id").to_pylist()
    logged = "U" if type_ is TableType.MERGE_ON_READ else None
    assert [tuple(row.values()) for row in found] == [
        ("a", 7, logged), ("b", None, None), ("c", None, None), ("d", None, None)
    ]  # fmt: skip
    if type_ is TableType.MERGE_ON_READ:
        assert table.compact(WITH, force=True)
        assert status_line(table) == {"a": "U", "b": None, "c": None, "d": None}
    assert table.scan(columns=["id", "more"], filter="more = 7").to_arrow()["id"].to_pylist() == ["a"]
