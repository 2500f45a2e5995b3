"""Inserts that look for stored keys: rows of keys that are there are dropped, or the write
fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, write_hudi
from hudi_table.errors import InvalidDataError, InvalidOptionError, WriteConflictError
from tests.hudi_table.write.test_conflicts import write_beside
from tests.support.written import INDEXES, contents, last_commit, new_table, rows

DROP = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
POLICY = "hoodie.datasource.insert.dup.policy"
LOOKED_UP: dict[str, Any] = {
    **INDEXES,
    "bloom": "Bloom",
    "global bloom": "GlobalBloom",
    "record index": "RecordIndex",
}
LAYOUTS = [(kind, index) for kind in ("CopyOnWrite", "MergeOnRead") for index in LOOKED_UP]


@pytest.fixture(params=LAYOUTS, ids="-".join)
def table(request: pytest.FixtureRequest) -> HudiTable:
    kind, index = request.param
    made = new_table(index=LOOKED_UP[index], type=kind)
    metadata = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
    made.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)), options=metadata if index == "record index" else {})
    return made


def test_an_insert_drops_rows_whose_key_is_stored(table: HudiTable) -> None:
    for given in (DROP, {POLICY: "DROP"}):
        table.insert(rows(("a", "x", 2), ("c", "y", 2), ("n", "x", 2), ("m", "z", 2)), options=given)
        assert contents(table) == [("a", "x", 1), ("b", "x", 1), ("c", "y", 1), ("m", "z", 2), ("n", "x", 2)]


def test_an_insert_fails_by_name_and_leaves_nothing_behind(table: HudiTable) -> None:
    before = contents(table), last_commit(table)
    with pytest.raises(InvalidDataError, match=r"record key 'a' is stored already, and .*dup\.policy=fail"):
        table.insert(rows(("n", "x", 2), ("a", "x", 2)), options={POLICY: "fail"})
    assert (contents(table), last_commit(table)) == before
    table.insert(rows(("n", "x", 2)), options={POLICY: "fail"})
    assert ("n", "x", 2) in contents(table)


def test_a_deleted_row_is_not_stored(table: HudiTable) -> None:
    table.delete(rows(("a", "x", 1)))
    table.insert(rows(("a", "x", 5, 5), ("b", "x", 5, 5)), options=DROP)
    assert contents(table) == [("a", "x", 5), ("b", "x", 1), ("c", "y", 1)]


def test_nothing_of_a_batch_may_be_new(table: HudiTable) -> None:
    before = contents(table)
    result = table.insert(rows(("a", "x", 2), ("c", "y", 2)), options=DROP, batch="one")
    assert (result.rows_written, contents(table)) == (0, before)
    assert table.insert(rows(("n", "x", 2)), options=DROP, batch="one").replayed


@pytest.mark.parametrize("index", ["Bloom", "GlobalBloom", "GlobalSimple"])
def test_a_key_of_another_partition_is_stored_if_the_index_is_global(index: str) -> None:
    table = new_table(index=index)
    table.insert(rows(("a", "x", 1)))
    table.insert(rows(("a", "y", 2)), options=DROP)
    assert contents(table) == [("a", "x", 1)] + ([] if index.startswith("Global") else [("a", "y", 2)])


@pytest.mark.parametrize("index", ["Simple", INDEXES["bucket"]])
def test_keys_that_the_table_does_not_store_are_made_of_its_fields(index: Any) -> None:
    table = new_table(index=index, options={"hoodie.populate.meta.fields": "false"})
    table.insert(rows(("a", "x", 1)))
    table.insert(rows(("a", "x", 2), ("b", "x", 2)), options=DROP)
    assert contents(table) == [("a", "x", 1), ("b", "x", 2)]


@pytest.mark.parametrize("index", ["Simple", INDEXES["bucket"]])
def test_rows_of_one_key_within_the_data_are_one_only_where_duplicates_are_dropped(index: Any) -> None:
    data = rows(("a", "x", 2), ("n", "x", 2), ("n", "x", 3))
    for given, expected in ((DROP, [("n", "x", 3)]), ({POLICY: "drop"}, [("n", "x", 2), ("n", "x", 3)])):
        table = new_table(index=index)
        table.insert(rows(("a", "x", 1)))
        table.insert(data, options=given)
        assert contents(table) == [("a", "x", 1), *expected]


def test_the_policy_wins_unless_it_is_none() -> None:
    table = new_table()
    table.insert(rows(("a", "x", 1)))
    table.insert(rows(("a", "x", 2)), options={**DROP, POLICY: "none"})
    assert contents(table) == [("a", "x", 1)]
    with pytest.raises(InvalidDataError, match="'a' is stored already"):
        table.insert(rows(("a", "x", 2)), options={**DROP, POLICY: "fail"})


def test_a_write_that_names_no_operation_is_then_an_insert() -> None:
    table = new_table()
    table.insert(rows(("a", "x", 1)))
    assert write_hudi(table, rows(("a", "x", 2), ("b", "x", 2)), options=DROP).operation == "insert"
    assert contents(table) == [("a", "x", 1), ("b", "x", 2)]


@pytest.mark.parametrize("operation", ["upsert", "delete", "bulk_insert", "insert_overwrite"])
def test_another_operation_is_refused(operation) -> None:
    table = new_table()
    with pytest.raises(InvalidOptionError, match=rf"=drop .* of operation insert, and this is {operation}"):
        table.write(rows(("a", "x", 2)), operation=operation, options=DROP)


@pytest.mark.parametrize(
    "theirs",
    [
        lambda other: other.upsert(rows(("n", "x", 9))),
        lambda other: other.insert(rows(("n", "x", 9)), options=DROP),
    ],
    ids=["upsert", "insert"],
)
def test_a_key_that_another_writer_inserts_meanwhile_is_a_conflict(
    table: HudiTable, theirs: Callable[[HudiTable], object]
) -> None:
    mine: pa.Table = rows(("n", "x", 2))
    with pytest.raises(WriteConflictError):
        write_beside(table, lambda **more: table.insert(mine, options=DROP, **more), theirs)
    once = {**DROP, "hoodie.write.num.retries.on.conflict.failures": "1"}
    other = rows(("m", "x", 2))
    write_beside(
        table,
        lambda **more: table.insert(other, options=once, **more),
        lambda them: them.upsert(rows(("m", "x", 9))),
    )
    assert {("n", "x", 9), ("m", "x", 9)} <= set(contents(table))
    assert len(contents(table)) == 5
