"""What each operation does, on every index, partitioned or not, in memory and on local disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, create_table, open_table, write_hudi
from hudi_table.arguments import SortModeName
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.names import bucket_of_file_id
from tests.support.written import INDEXES, contents, keys, last_commit, meta_rows, new_table, rows, slices

FIRST = (("a", "x", 1), ("b", "x", 2), ("c", "y", 3))


CASES = [(name, flag, "memory") for name in INDEXES for flag in (True, False)]
CASES += [("bucket", True, "disk"), ("simple", False, "disk")]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{'parts' if case[1] else 'flat'}-{case[2]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    """A table that holds FIRST."""
    name, partitioned, place = request.param
    uri = str(tmp_path / "t") if place == "disk" else None
    made = new_table(uri, index=INDEXES[name], partitioned=partitioned)
    made.insert(rows(*FIRST))
    return made


def partitioned(table: HudiTable) -> bool:
    return bool(table.context.config.partition_by)


def test_inserted_rows_can_be_read(table: HudiTable) -> None:
    assert contents(table) == list(FIRST)


def test_an_upsert_updates_known_keys_and_inserts_new_ones(table: HudiTable) -> None:
    result = table.upsert(rows(("a", "x", 10), ("d", "z", 4)))
    assert contents(table) == [("a", "x", 10), *FIRST[1:], ("d", "z", 4)]
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (1, 1, 0)


def test_untouched_rows_keep_commit_time_and_sequence_number_while_the_file_name_is_rewritten(table: HudiTable) -> None:
    before = meta_rows(table)
    result = table.upsert(rows(("a", "x", 10)))
    after = meta_rows(table)
    assert after["a"]["_hoodie_commit_time"] == result.instant
    assert after["a"]["_hoodie_commit_seqno"].startswith(f"{result.instant}_")
    for key in "bc":
        for column in ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"):
            assert after[key][column] == before[key][column]
    names = {item.base.name for item in slices(table) if item.base}
    assert {row["_hoodie_file_name"] for row in after.values()} <= names


def test_a_delete_removes_known_keys_and_ignores_unknown_ones(table: HudiTable) -> None:
    result = table.delete(keys(("b", "x"), ("nobody", "x")))
    assert contents(table) == [FIRST[0], FIRST[2]]
    assert result.rows_deleted == 1


def test_deleting_every_row_leaves_an_empty_table_that_takes_rows_again(table: HudiTable) -> None:
    table.delete(keys(*(row[:2] for row in FIRST)))
    assert contents(table) == []
    table.upsert(rows(("a", "x", 7)))
    assert contents(table) == [("a", "x", 7)]


def test_a_flagged_row_deletes_and_is_never_inserted(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 0, 1, True), ("ghost", "x", 0, 1, True)))
    assert contents(table) == list(FIRST[1:])
    table.insert(rows(("ghost", "x", 0, 1, True), ("d", "x", 4)))
    assert contents(table) == [*FIRST[1:], ("d", "x", 4)]


def test_an_insert_keeps_a_second_row_of_a_key_as_hudi_does(table: HudiTable) -> None:
    table.insert(rows(("a", "x", 10)))
    assert contents(table) == [("a", "x", 1), ("a", "x", 10), *FIRST[1:]]


def test_rows_of_one_key_in_an_upsert_become_the_last_one(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 5), ("n", "x", 1), ("a", "x", 6), ("n", "x", 2)))
    assert contents(table) == [("a", "x", 6), *FIRST[1:], ("n", "x", 2)]


def test_bulk_insert_adds_rows_in_every_sort_mode(table: HudiTable) -> None:
    modes: tuple[SortModeName, ...] = ("none", "global", "partition")
    for number, mode in enumerate(modes):
        table.write(rows((f"{mode}2", "x", number), (f"{mode}1", "x", number)), operation="bulk_insert", sort_mode=mode)
    assert {row[0] for row in contents(table)} == {
        "a",
        "b",
        "c",
        *(f"{m}{n}" for m in ("none", "global", "partition") for n in "12"),
    }


def test_insert_overwrite_replaces_the_partitions_that_it_writes(table: HudiTable) -> None:
    result = table.write(rows(("h", "x", 8)), operation="insert_overwrite")
    assert contents(table) == ([FIRST[2], ("h", "x", 8)] if partitioned(table) else [("h", "x", 8)])
    assert result.groups_replaced > 0
    assert set(last_commit(table).replaced or {}) == ({"x"} if partitioned(table) else {""})


def test_insert_overwrite_table_replaces_everything(table: HudiTable) -> None:
    table.write(rows(("h", "z", 8)), operation="insert_overwrite_table")
    assert contents(table) == [("h", "z", 8)]
    table.upsert(rows(("a", "x", 1)))
    assert contents(table) == [("a", "x", 1), ("h", "z", 8)]


def test_delete_partition_hides_its_rows_and_the_partition_can_be_filled_again(table: HudiTable) -> None:
    name = "x" if partitioned(table) else ""
    table.write(None, operation="delete_partition", partitions=[name])
    assert contents(table) == ([FIRST[2]] if partitioned(table) else [])
    table.upsert(rows(("a", "x", 9)))
    assert ("a", "x", 9) in contents(table)
    assert len(contents(table)) == (2 if partitioned(table) else 1)


def test_an_upsert_of_nothing_commits_nothing_but_the_commit(table: HudiTable) -> None:
    result = table.upsert(rows())
    assert result.instant
    assert (result.files_written, contents(table)) == (0, list(FIRST))
    assert last_commit(table).avro_schema


def test_an_upsert_of_nothing_leaves_no_trace_if_the_options_say_so(table: HudiTable) -> None:
    before = [info.path for info in table.context.storage.list("")]
    result = table.upsert(rows(), options={"hoodie.allow.empty.commit": "false"})
    assert (result.instant, result.files_written) == ("", 0)
    assert [info.path for info in table.context.storage.list("")] == before


def test_a_batch_that_was_committed_is_not_written_again(table: HudiTable) -> None:
    first = table.upsert(rows(("d", "x", 4)), batch="file-1")
    table.upsert(rows(("d", "x", 5)))
    again = table.upsert(rows(("d", "x", 4)), batch="file-1")
    assert (again.replayed, again.instant) == (True, first.instant)
    assert ("d", "x", 5) in contents(table)


def test_extra_metadata_stands_in_the_commit(table: HudiTable) -> None:
    table.upsert(rows(("d", "x", 4)), extra_metadata={"checkpoint": "f1,f2"})
    assert last_commit(table).extra_metadata["checkpoint"] == "f1,f2"


def test_every_stat_tells_what_became_of_its_file(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 10), ("b", "x", 0, 1, True), ("d", "x", 4)))
    stats = last_commit(table).stats
    assert sum(s.num_update_writes for s in stats) == 1
    assert sum(s.num_deletes for s in stats) == 1
    assert sum(s.num_inserts for s in stats) == 1
    for stat in stats:
        data = table.context.storage.get(stat.path)
        assert stat.file_size_in_bytes == stat.total_write_bytes == len(data)
        assert pq.read_metadata(pa.BufferReader(data)).num_rows == stat.num_writes
        assert stat.prev_commit == "null" or stat.prev_commit < stat.path.rpartition("_")[2]


def test_every_partition_is_marked_before_it_has_files(table: HudiTable) -> None:
    for item in slices(table):
        folder = f"{item.partition}/" if item.partition else ""
        text = table.context.storage.get(f"{folder}.hoodie_partition_metadata").decode()
        assert f"commitTime={item.instant}" in text
        assert f"partitionDepth={1 if item.partition else 0}" in text


def test_a_table_on_local_disk_is_written_by_its_path(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    new_table(uri, index=INDEXES["bucket"])
    write_hudi(uri, rows(*FIRST), operation="insert")
    write_hudi(Path(uri), rows(("a", "x", 9)))
    assert contents(open_table(uri)) == [("a", "x", 9), *FIRST[1:]]


def test_a_bucket_table_has_one_file_group_per_bucket_through_every_operation() -> None:
    table = new_table(index=INDEXES["bucket"])
    many = rows(*((f"k{i}", "x", i) for i in range(50)))
    for operation in (
        "insert",
        "bulk_insert",
        "upsert",
        "insert_overwrite",
        "upsert",
        "insert_overwrite_table",
        "insert",
    ):
        table.write(many, operation=operation)
        buckets = [bucket_of_file_id(item.file_id) for item in slices(table)]
        assert sorted(b for b in buckets if b is not None) == [0, 1, 2], operation


def test_a_global_index_moves_a_key_to_its_new_partition() -> None:
    table = new_table(index=INDEXES["global"])
    table.insert(rows(*FIRST))
    result = table.upsert(rows(("a", "y", 10), ("b", "new", 20), ("e", "x", 5)))
    assert contents(table) == [("a", "y", 10), ("b", "new", 20), FIRST[2], ("e", "x", 5)]
    assert (result.rows_deleted, result.rows_inserted) == (2, 3)


def test_a_global_index_keeps_one_row_of_a_key_that_comes_with_two_partitions() -> None:
    table = new_table(index=INDEXES["global"])
    table.upsert(rows(("a", "x", 1), ("a", "y", 2)))
    assert contents(table) == [("a", "y", 2)]


def test_a_global_index_deletes_a_key_wherever_it_is() -> None:
    table = new_table(index=INDEXES["global"])
    table.insert(rows(*FIRST))
    table.delete(pa.table({"id": ["a", "c", "nobody"]}))
    assert contents(table) == [FIRST[1]]


def test_a_simple_index_takes_one_key_in_two_partitions_for_two_rows() -> None:
    table = new_table(index=INDEXES["simple"])
    table.insert(rows(*FIRST))
    table.upsert(rows(("a", "y", 10)))
    assert contents(table) == [("a", "x", 1), ("a", "y", 10), *FIRST[1:]]


@pytest.mark.parametrize("index", list(INDEXES))
def test_every_row_of_a_key_that_inserts_left_in_several_files_is_updated_and_deleted(index: str) -> None:
    table = new_table(index=INDEXES[index])
    for value in (1, 2, 3):
        table.insert(rows(("a", "x", value), ("b", "x", value)), options={"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(("a", "x", 9)))
    assert contents(table) == [("a", "x", 9)] * 3 + [("b", "x", 1), ("b", "x", 2), ("b", "x", 3)]
    result = table.delete(keys(("a", "x"), ("b", "x")))
    assert (contents(table), result.rows_deleted) == ([], 6)


def test_a_global_index_deletes_a_moving_key_from_every_file_that_holds_it() -> None:
    table = new_table(index=INDEXES["global"])
    for city in ("x", "x", "y"):
        table.insert(rows(("a", city, 1)), options={"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(("a", "z", 2)))
    assert contents(table) == [("a", "z", 2)]


def test_frames_of_pandas_and_polars_are_rows(table: HudiTable) -> None:
    import pandas as pd
    import polars as pl

    frame = rows(("p", "x", 1), ("q", "x", 2), ("r", "x", 3)).to_pandas()
    table.upsert(frame[frame["value"] > 1])
    table.upsert(pl.from_arrow(rows(("s", "x", 4))))
    assert isinstance(frame, pd.DataFrame)
    assert [row for row in contents(table) if row not in FIRST] == [("q", "x", 2), ("r", "x", 3), ("s", "x", 4)]
    assert table.schema().names == rows().schema.names


def test_a_subset_of_a_composite_key_may_choose_the_bucket() -> None:
    index = {"type": "Bucket", "buckets": 8, "hashFields": ["id"]}
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("value", pa.int64())])
    table = create_table("memory://subset/t", schema, record_key=["id", "n"], index=index)
    many = pa.table({"id": ["a"] * 20, "n": list(range(20)), "value": [1] * 20})
    table.upsert(many)
    assert len(slices(table)) == 1, "equal hash fields share a bucket"
    table.upsert(pa.table({"id": ["a", "b"], "n": [3, 3], "value": [9, 9]}))
    found = {(row["id"], row["n"]): row["value"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {("a", n): 9 if n == 3 else 1 for n in range(20)} | {("b", 3): 9}
    assert set(meta_rows(table)) == {f"id:a,n:{n}" for n in range(20)} | {"id:b,n:3"}


def test_new_columns_are_null_in_older_rows_and_wider_types_hold_them(table: HudiTable) -> None:
    wider = rows(("d", "x", 4)).append_column("note", pa.array(["new"]))
    assert table.upsert(wider).schema_changed
    assert not table.upsert(wider).schema_changed
    found = {row["id"]: row["note"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {"a": None, "b": None, "c": None, "d": "new"}
    with pytest.raises(InvalidSchemaError, match=r"column 'note' \(string\) is missing"):
        table.upsert(rows(("a", "x", 9)))
    table.upsert(rows(("a", "x", 9)), options={"hoodie.write.set.null.for.missing.columns": "true"})
    assert ("a", "x", 9) in contents(table)


def test_a_narrower_type_is_cast_to_the_stored_one(table: HudiTable) -> None:
    narrow = rows(("a", "x", 7))
    position = narrow.schema.get_field_index("value")
    table.upsert(narrow.set_column(position, "value", narrow["value"].cast(pa.int16())))
    assert ("a", "x", 7) in contents(table)
    assert table.schema().field("value").type == pa.int64()


def test_options_that_describe_the_table_as_it_is_change_nothing(table: HudiTable) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.partitionpath.field": "city:SIMPLE" if partitioned(table) else "",
        "hoodie.clean.automatic": "false",
    }
    table.upsert(rows(("a", "x", 9)), options=options)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_rows_of_one_key_in_an_insert_become_one_on_request(table: HudiTable, operation) -> None:
    double = rows(("d", "x", 4), ("e", "x", 5), ("d", "x", 6))
    table.write(double, operation=operation, options={"hoodie.combine.before.insert": "true"})
    assert [row for row in contents(table) if row[0] in "de"] == [("d", "x", 6), ("e", "x", 5)]


def test_an_insert_merges_with_the_file_that_it_goes_to_on_request(table: HudiTable) -> None:
    options = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    table.insert(rows(("a", "x", 9), ("d", "x", 4)), options=options)
    assert contents(table) == [("a", "x", 9), *FIRST[1:], ("d", "x", 4)]
