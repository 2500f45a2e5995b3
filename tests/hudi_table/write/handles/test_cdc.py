"""What writes log of their changes: which files, what is in them, and where the commit names
them."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import read_rows
from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE, Images
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.properties import create_properties
from tests.support.tables import memory_storage, reopen, simple_config

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("text", pa.string())])


def new_table(**more: Any) -> HudiTable:
    asked: dict[str, Any] = {"record_key": "id", "index": {"type": "Bucket", "buckets": 1}}
    asked |= {"options": {CDC_ENABLED: "true"}} | more
    return create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, **asked)


def rows(numbers: Any, n: int = 0) -> pa.Table:
    listed = list(numbers)
    return pa.table({"id": [f"k{i}" for i in listed], "n": [n] * len(listed), "text": ["same"] * len(listed)}, SCHEMA)


def stats(table: HudiTable) -> list[WriteStat]:
    """The write stats of the newest commit."""
    return list(commit_metadata(table.context, load_timeline(table.context).commits[-1]).stats)


def logged(table: HudiTable) -> list[dict[str, Any]]:
    """The changes that the newest commit logged; its stats name the files with their sizes."""
    found = []
    for stat in stats(table):
        for path, size in (stat.extra["cdcStats"] or {}).items():
            assert table.context.storage.head(path).size == size
            with table.context.storage.open_read(path) as source:
                for block in scan_blocks(source, path=path):
                    assert (block.type, block.instant) == (BlockType.CDC, load_timeline(table.context).commits[-1].time)
                    found += read_rows(source, block).to_pylist()
    return found


@pytest.mark.parametrize("images", Images)
def test_every_rewrite_logs_inserts_updates_and_deletes_with_the_images_of_the_tables_mode(images: Images) -> None:
    table = new_table(options={CDC_ENABLED: "true", CDC_MODE: images.value})
    table.upsert(rows([1, 2, 3]))
    assert logged(table) == [], "a new file holds inserts alone"
    found = table.upsert(rows([2, 4], n=5))
    old, new = ({"id": "k2", "n": n, "text": "same"} for n in (0, 5))
    inserted = {"id": "k4", "n": 5, "text": "same"}
    whole: list[dict[str, Any]] = [
        {"op": "u", "ts_ms": found.instant, "record_key": "k2", "before": old, "after": new},
        {"op": "i", "ts_ms": found.instant, "record_key": "k4", "before": None, "after": inserted},
    ]
    assert logged(table) == [{name: change[name] for name in images.columns} for change in whole]
    found = table.delete(rows([2, 9]).select(["id"]))
    gone = {"op": "d", "ts_ms": found.instant, "record_key": "k2", "before": new, "after": None}
    assert logged(table) == [{name: gone[name] for name in images.columns}]


def test_a_rewrite_that_changes_nothing_logs_an_empty_block() -> None:
    table = new_table()
    table.upsert(rows([1]))
    table.delete(rows([7]).select(["id"]))
    (path,) = stats(table)[0].cdc_files
    with table.context.storage.open_read(path) as source:
        assert [block.type for block in scan_blocks(source, path=path)] == [BlockType.CDC]
    assert logged(table) == []
    assert table.changes().to_arrow().num_rows == 1


def test_a_table_without_change_data_capture_logs_nothing() -> None:
    table = new_table(options={})
    table.upsert(rows([1]))
    table.upsert(rows([1], n=2))
    assert stats(table)[0].extra["cdcStats"] is None
    assert not [info.path for info in table.context.storage.list() if info.path.endswith(".cdc")]


def test_inserts_into_a_small_file_are_logged_beside_the_rows_that_stay() -> None:
    table = new_table(index="Simple")
    table.insert(rows([1, 2]))
    table.insert(rows([2, 3], n=1))
    assert [(change["op"], change["after"]["id"]) for change in logged(table)] == [("i", "k2"), ("i", "k3")]
    assert [row["op"] for row in table.changes().to_arrow().to_pylist()] == ["i"] * 4


def test_an_update_behind_a_delete_is_logged_with_its_own_rows() -> None:
    flagged = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", flagged, record_key="id", index={"type": "Bucket", "buckets": 1},
        options={CDC_ENABLED: "true"},
    )  # fmt: skip
    table.upsert(rows(range(6)).append_column("_hoodie_is_deleted", pa.array([None] * 6, pa.bool_())))
    gone = pa.array([True, False, True, False])
    table.upsert(rows([0, 1, 3, 5], n=7).append_column("_hoodie_is_deleted", gone))
    found = [(c["op"], (c["before"] or {}).get("id"), (c["after"] or {}).get("id")) for c in logged(table)]
    assert sorted(found, key=str) == [("d", "k0", None), ("d", "k3", None), ("u", "k1", "k1"), ("u", "k5", "k5")]


@pytest.mark.parametrize("options", [{}, {CDC_ENABLED: "true"}], ids=["compared", "logged"])
def test_rows_of_one_key_are_updated_and_deleted_each(options: dict[str, str]) -> None:
    table = new_table(index="Simple", options=options)
    table.insert(rows([1, 2]))
    table.insert(rows([1]))
    since = table.upsert(rows([1], n=5)).moment
    assert [(c["op"], c["after"]["n"]) for c in table.changes().to_arrow().to_pylist()][3:] == [("u", 5), ("u", 5)]
    table.delete(rows([1]).select(["id"]))
    assert [(c["op"], c["before"]["n"]) for c in table.changes(since).to_arrow().to_pylist()] == [("d", 5), ("d", 5)]


def test_a_merge_in_parts_with_little_memory_logs_every_change_in_several_blocks() -> None:
    table = new_table()
    table.upsert(rows(range(40_000)))
    table.write(rows(range(20_000, 60_000), n=1), operation="upsert", max_memory=1 << 20, engine=LocalEngine(1))
    found = logged(table)
    assert sorted(change["op"] for change in found) == ["i"] * 20_000 + ["u"] * 20_000
    assert {(change["before"] or {}).get("n") for change in found} == {0, None}
    assert {change["after"]["id"] for change in found} == {f"k{i}" for i in range(20_000, 60_000)}


def test_merge_on_read_logs_changes_where_a_base_file_is_rewritten_and_not_beside_logs() -> None:
    table = new_table(type="MergeOnRead", index="Simple")
    table.upsert(rows([1, 2]))
    table.upsert(rows([3]))
    assert [change["op"] for change in logged(table)] == ["i"], "a small file takes the insert"
    table.upsert(rows([1], n=4))
    assert logged(table) == []
    assert [change["op"] for change in table.changes().to_arrow().to_pylist()] == ["i", "i", "i", "u"]


def test_a_mode_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(InvalidOptionError, match="'data_after' is none of OP_KEY_ONLY"):
        new_table(options={CDC_ENABLED: "true", CDC_MODE: "data_after"})
    storage = memory_storage()
    create_properties(storage, simple_config(extra={CDC_ENABLED: "true", CDC_MODE: "DATA_AFTER"}))
    with pytest.raises(UnsupportedTableError, match="changes in mode DATA_AFTER"):
        HudiTable(reopen(storage)).upsert(rows([1]))


@pytest.mark.parametrize("images", Images)
def test_images_hold_vectors_which_come_back_as_such(images: Images) -> None:
    schema = pa.schema([("id", pa.string()), ("e", pa.list_(pa.float32(), 2))])
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", schema, record_key="id", version=9,
        options={CDC_ENABLED: "true", CDC_MODE: images.value},
    )  # fmt: skip
    old, new, other = {"id": "a", "e": [1.0, 2.0]}, {"id": "a", "e": [3.0, 4.0]}, {"id": "b", "e": None}
    for row in (old, new, other):
        table.upsert(pa.Table.from_pylist([row], schema))
    table.delete(pa.table({"id": ["a"]}))
    found = [(row["op"], row["before"], row["after"]) for row in table.changes().to_arrow().to_pylist()]
    assert found == [("i", None, old), ("u", old, new), ("i", None, other), ("d", new, None)]
