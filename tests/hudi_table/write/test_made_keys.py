"""Merge-on-read tables that store no meta columns (`hoodie.populate.meta.fields=false`): keys of
rows in base files and in logs are made of their fields, and deletes in logs hold them.

Matrix: {6, 8, 9} × {bucket, simple, global simple, bloom}: each operation, reads of both kinds and
of the past, each service. Then composite keys with missing parts, ordering values, budgets, blocks
of Parquet, damage, and what is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import avro_block, read_deletes, read_rows
from hudi_table.codec.parquet import read_batches
from hudi_table.errors import CorruptTableError, InvalidOptionError, UnsupportedTableError
from hudi_table.model.names import META_COLUMNS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.properties import replace_properties
from tests.support.written import INDEXES, contents, keys, new_table, rows, slices

NONE = {"hoodie.populate.meta.fields": "false"}
SMALL = {"hoodie.clean.commits.retained": "1"}
ALL = {**INDEXES, "bloom": "Bloom"}
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def made(uri: str | None = None, **more: Any) -> HudiTable:
    return new_table(uri, type="MergeOnRead", options=NONE, **more)


def log_files(table: HudiTable) -> int:
    return sum(len(item.logs) for item in slices(table))


@pytest.mark.parametrize("index", ALL)
@VERSIONS
def test_every_operation_and_service_finds_rows_by_keys_that_are_not_stored(version: int, index: str) -> None:
    table = made(version=version, index=ALL[index])
    table.insert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    table.upsert(rows(("a", "x", 2), ("d", "x", 2)))
    second = load_timeline(table.context).last_commit
    table.delete(keys(("b", "x"), ("none", "x")))
    assert log_files(table) > 0
    assert contents(table) == [("a", "x", 2), ("c", "y", 1), ("d", "x", 2)]
    table.upsert(rows(("b", "x", 3), ("d", "x", 3)))
    now = [("a", "x", 2), ("b", "x", 3), ("c", "y", 1), ("d", "x", 3)]
    assert contents(table) == now
    assert second is not None
    past = table.scan(["id", "value"], as_of=second.time).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in past) == [("a", 2), ("b", 1), ("c", 1), ("d", 2)]
    for service in (table.compact_logs, table.compact):
        assert service(force=True)
        assert contents(table) == now
    assert log_files(table) == 0
    assert sorted(table.scan(["id"], query="read_optimized").to_arrow()["id"].to_pylist()) == ["a", "b", "c", "d"]
    table.upsert(rows(("a", "x", 4), ("c", "y", 4)))
    taken = table.upsert(rows(("a", "x", 5))).instant
    table.rollback(taken, writers_stopped=True)
    now = [("a", "x", 4), ("b", "x", 3), ("c", "y", 4), ("d", "x", 3)]
    assert contents(table) == now
    table.cluster(force=True) if index != "bucket" else table.resize_buckets(6)
    assert contents(table) == now
    table.write(rows(("e", "z", 5)), operation="bulk_insert")
    table.write(rows(("f", "x", 6)), operation="insert_overwrite")
    assert table.clean(SMALL, force=True)
    assert contents(table) == [("c", "y", 4), ("e", "z", 5), ("f", "x", 6)]
    assert table.doctor(keys=True, data=True) == ()


@VERSIONS
def test_files_hold_no_meta_columns_and_deletes_hold_keys(version: int, tmp_path: Path) -> None:
    table = made(str(tmp_path), version=version)
    table.insert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    table.delete(keys(("b", "x")))
    (item,) = slices(table)
    found: dict[BlockType, Any] = {}
    for log in item.logs:
        with table.context.storage.open_read(log.path) as source:
            for block in scan_blocks(source, path=log.path):
                read = read_deletes if block.type is BlockType.DELETE else read_rows
                found[block.type] = read(source, block)
    assert found[BlockType.AVRO].column_names[: len(META_COLUMNS)] == list(META_COLUMNS)
    assert found[BlockType.AVRO].select(META_COLUMNS).to_pylist() == [dict.fromkeys(META_COLUMNS)]
    assert found[BlockType.DELETE].keys.to_pylist() == ["b"]
    table.compact(force=True)
    (item,) = slices(table)
    assert item.base is not None
    with table.context.storage.open_read(item.base.path) as source:
        stored = list(read_batches(source, list(META_COLUMNS), path=item.base.path))
    none = dict.fromkeys(META_COLUMNS) | {"_hoodie_file_name": item.base.name}
    assert [row for batch in stored for row in batch.to_pylist()] == [none]


@VERSIONS
def test_a_composite_key_is_made_as_it_is_deleted_with_missing_parts_too(version: int) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("city", pa.string()), ("value", pa.int64())])

    def batch(value: int, *items: tuple[str | None, int | None]) -> pa.Table:
        return pa.Table.from_pylist(
            [{"id": key, "n": n, "city": "x", "value": value} for key, n in items], schema=schema
        )

    table = create_table(
        made().base_path + "-two", schema, record_key=["id", "n"], partition_by="city", index="Simple",
        type="MergeOnRead", version=version, options=NONE,
    )  # fmt: skip
    all_keys = [("a", 1), ("a", None), (None, 1), ("", 1), ("b,n:1", 2)]
    table.insert(batch(1, *all_keys))
    table.upsert(batch(2, *all_keys[1:]))
    table.delete(batch(0, ("a", None), ("", 1)))

    def seen() -> list[tuple[Any, ...]]:
        found = table.scan(["id", "n", "value"]).to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    expected = sorted([("a", 1, 1), (None, 1, 2), ("b,n:1", 2, 2)], key=repr)
    assert seen() == expected
    table.compact(force=True)
    assert seen() == expected


@pytest.mark.parametrize("memory", [1 << 30, 1 << 12], ids=["held", "in parts"])
@VERSIONS
def test_the_larger_ordering_value_wins_and_columns_that_make_the_key_need_not_be_asked_for(
    version: int, memory: int
) -> None:
    table = made(version=version, ordering_fields="ts", merge_mode="EventTime")
    table.insert(rows(*((f"k{n:03d}", "x", 1, 10) for n in range(300))))
    table.upsert(rows(*((f"k{n:03d}", "x", 2, 5 if n % 2 else 20) for n in range(100))))
    table.upsert(rows(*((f"k{n:03d}", "x", 3, 30) for n in range(10)), ("k200", "x", 3, 30, True)))
    found = table.scan(["value"], max_memory=memory).to_arrow()["value"].to_pylist()
    assert {value: found.count(value) for value in (1, 2, 3)} == {1: 244, 2: 45, 3: 10}
    assert table.scan(["value"], "id = 'k004'").to_arrow()["value"].to_pylist() == [3]
    assert table.scan(filter="id = 'k200'").count() == 0
    table.compact(force=True)
    assert table.scan().count() == 299


def test_the_column_that_makes_the_key_may_order_the_rows() -> None:
    schema = pa.schema([("id", pa.int64()), ("value", pa.int64())])
    table = create_table(
        made().base_path + "-numbers", schema, record_key="id", ordering_fields="id", merge_mode="EventTime",
        index="Simple", type="MergeOnRead", options=NONE,
    )  # fmt: skip
    table.insert(pa.table({"id": [1, 2], "value": [1, 1]}, schema))
    table.upsert(pa.table({"id": [2], "value": [2]}, schema))
    assert sorted(table.scan(["value"]).to_arrow()["value"].to_pylist()) == [1, 2]


def test_rows_in_blocks_of_parquet_have_made_keys_too() -> None:
    table, parquet = made(), {"hoodie.logfile.data.block.format": "parquet"}
    table.insert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "x", 2)), options=parquet)
    table.delete(keys(("b", "x")))
    assert contents(table) == [("a", "x", 2)]


@pytest.mark.parametrize("index", ["simple", "bucket"])
def test_an_insert_that_drops_stored_rows_looks_into_logs(index: str) -> None:
    table, drop = made(index=INDEXES[index]), {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    table.insert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("c", "x", 2)))
    table.delete(keys(("a", "x")))
    table.insert(rows(("a", "x", 3), ("b", "x", 3), ("c", "x", 3)), options=drop)
    assert contents(table) == [("a", "x", 3), ("b", "x", 1), ("c", "x", 2)]


@pytest.mark.parametrize("lacks", ["the column", "a value"])
def test_a_row_in_a_log_whose_key_cannot_be_made_is_damage_and_named(tmp_path: Path, lacks: str) -> None:
    table = made(str(tmp_path))
    table.insert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    ((log,),) = (item.logs for item in slices(table))
    block_rows = rows((None, "x", 3))
    if lacks == "the column":
        block_rows = block_rows.drop_columns(["id"])
    written = load_timeline(table.context).last_commit
    assert written is not None
    block = avro_block(block_rows, arrow_to_avro(block_rows.schema, table_name="t"), written.time)
    (tmp_path / log.path).write_bytes(block)
    with pytest.raises(CorruptTableError, match=r"'id' has null or '' in 1 row"):
        contents(open_table(tmp_path))


def test_what_needs_stored_meta_columns_is_refused_by_name() -> None:
    table = made()
    table.insert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    for ask in (lambda: table.scan(meta=True).to_arrow(), lambda: table.scan(["_hoodie_record_key"]).to_arrow()):
        with pytest.raises(InvalidOptionError, match="keeps no meta columns"):
            ask()
    for query in (table.scan(query="incremental"), table.changes()):
        with pytest.raises(InvalidOptionError, match="when a row changed is not known"):
            query.to_arrow()
    with pytest.raises(UnsupportedTableError, match="has a record index and stores no record keys"):
        made(index="RecordIndex")


KEYS_TOLD = "hoodie.write.complex.keygen.new.encoding"


def test_a_complex_key_of_one_field_of_version_6_is_its_text_alone(tmp_path: Path) -> None:
    table = made(str(tmp_path), partition_by=["city", "value"])
    table.insert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "x", 1, 2)))
    table.delete(rows(("b", "x", 1)))
    assert contents(table) == [("a", "x", 1)]
    # As 0.15.0 leaves it, which stores the class of the generator.
    replace_properties(table.context, {KEYS_TOLD: None})
    untold = open_table(tmp_path)
    assert contents(untold) == [("a", "x", 1)]
    untold.upsert(rows(("b", "x", 1)))
    assert contents(untold) == [("a", "x", 1), ("b", "x", 1)]
    replace_properties(untold.context, {KEYS_TOLD: "false"})
    prefixed = open_table(tmp_path)
    for ask in (lambda: contents(prefixed), lambda: prefixed.upsert(rows(("c", "x", 1))), prefixed.compact):
        with pytest.raises(UnsupportedTableError, match=r"a complex key of one field, .* `v` or as `id:v`"):
            ask()
    assert prefixed.scan(query="read_optimized").count() == 2


@pytest.mark.parametrize(("version", "told"), [(6, {KEYS_TOLD: "false"}), (8, {}), (9, {}), (9, {KEYS_TOLD: "true"})])
def test_a_complex_key_of_one_field_that_others_delete_otherwise_is_refused_before_a_table_is_made(
    version: int, told: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedTableError, match="give such a table one partition field"):
        new_table(partition_by=["city", "value"], type="MergeOnRead", version=version, options={**NONE, **told})


def test_generators_of_which_hudi_has_no_such_tables_are_refused_before_one_is_made() -> None:
    by_day = {"field": "ts", "type": "Timestamp", "format": "yyyy", "input": "EPOCHMILLISECONDS"}
    for fields in ([by_day], ["city", by_day]):
        with pytest.raises(UnsupportedTableError, match=r"has the key generator .*(TimestampBased|Custom)KeyGenerator"):
            made(partition_by=fields)
    for kind in ("CopyOnWrite", "MergeOnRead"):
        with pytest.raises(UnsupportedTableError, match="has a key generator of its own"):
            new_table(type=kind, options={**NONE, "hoodie.lakeops.key.generator": "mine"})
