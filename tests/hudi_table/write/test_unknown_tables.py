"""Tables that other writers made, and of which rows would be wrong here: refused by name, before
anything is read or written."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidSchemaError, UnsupportedTableError
from hudi_table.model.timeline.instants import next_instant_time
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.view.listing import list_data_files
from tests.support.written import contents, keys, new_table
from tests.support.written import rows as plain

NESTED = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("s", pa.struct([("ts", pa.int64())])), ("v", pa.string())]
)


def rows(*items: tuple[str, int, str]) -> pa.Table:
    found = [{"id": key, "ts": ts, "s": {"ts": ts}, "v": text} for key, ts, text in items]
    return pa.Table.from_pylist(found, schema=NESTED)


def ordered_by_a_field_of_a_struct(version: int, fields: str = "s.ts", **more: Any) -> HudiTable:
    """A table of which k has a newer row and, later in the timeline, an older one."""
    told = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1}, "ordering_fields": "ts"}
    table = new_table(schema=NESTED, partitioned=False, version=version, **(told | more))
    table.upsert(rows(("k", 10, "newer")))
    table.upsert(rows(("k", 5, "older")))
    key = "hoodie.table.ordering.fields" if version == 9 else "hoodie.table.precombine.field"
    replace_properties(table.context, {key: fields})
    return open_table(table.base_path)


WRITES: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda table: table.upsert(rows(("k", 7, "x"))),
    "delete": lambda table: table.delete(pa.table({"id": ["k"]})),
    "compact": lambda table: table.compact(force=True),
    "compact logs": lambda table: table.compact_logs(force=True),
    "cluster": lambda table: table.cluster(force=True),
}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_are_not_compared_by_a_field_of_a_struct(version: int) -> None:
    """The older row was read, and a compaction kept it alone."""
    table = ordered_by_a_field_of_a_struct(version)
    with pytest.raises(
        UnsupportedTableError, match=r"orders rows by 's\.ts', a field of a struct.*query='read_optimized'"
    ):
        table.scan().to_arrow()
    with pytest.raises(UnsupportedTableError, match=r"orders rows by 's\.ts'"):
        table.changes().to_arrow()
    for write in WRITES.values():
        with pytest.raises(UnsupportedTableError, match=r"orders rows by 's\.ts', a field of a struct"):
            write(table)
    table.scan(query="read_optimized").to_arrow()


def test_nor_by_one_of_several_fields_that_is_of_a_struct() -> None:
    with pytest.raises(UnsupportedTableError, match=r"orders rows by 's\.ts'"):
        ordered_by_a_field_of_a_struct(9, "ts,s.ts").scan().to_arrow()


def test_where_such_a_field_is_not_compared_rows_are_read() -> None:
    """By commit time versions 8 and 9 compare nothing, and files of a copy-on-write table are
    merged already."""
    table = ordered_by_a_field_of_a_struct(9, merge_mode="CommitTime")
    assert table.scan(["v"]).to_arrow()["v"].to_pylist() == ["older"]
    table.upsert(rows(("k", 1, "last")))
    assert table.scan(["v"]).to_arrow()["v"].to_pylist() == ["last"]
    table = ordered_by_a_field_of_a_struct(9, type="CopyOnWrite")
    assert table.scan(["v"]).to_arrow()["v"].to_pylist() == ["newer"]
    with pytest.raises(UnsupportedTableError, match=r"orders rows by 's\.ts'"):
        table.upsert(rows(("k", 7, "x")))


@pytest.mark.parametrize("fields", [["s.ts"], ["ts", "s.ts"]])
def test_no_table_is_made_that_compares_a_field_of_a_struct(fields: list[str]) -> None:
    """It was made, and every write of it failed."""
    with pytest.raises(InvalidSchemaError, match=r"ordering_fields names 's\.ts', a field of a struct"):
        create_table(f"memory://{uuid.uuid4().hex}/t", NESTED, record_key="id", ordering_fields=fields, version=9)


def in_another_format(table: HudiTable, ending: str) -> None:
    """Its base files under the names of another format's."""
    storage = table.context.storage
    for info in list_data_files(storage):
        if info.path.endswith(".parquet"):
            storage.put(info.path.removesuffix("parquet") + ending, storage.get(info.path))
            storage.delete(info.path)


ASKED: dict[str, Callable[[HudiTable], object]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "read-optimized": lambda table: table.scan(query="read_optimized").to_arrow(),
    "changes": lambda table: table.changes().to_arrow(),
    "upsert": lambda table: table.upsert(plain(("a", "x", 3))),
    "delete": lambda table: table.delete(keys(("a", "x"))),
    "cluster": lambda table: table.cluster(force=True),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("ending", ["orc", "lance", "hfile"])
def test_a_base_file_in_another_format_is_named_by_whoever_would_pass_over_its_rows(ending: str, asked: str) -> None:
    """The table was read as empty, and written on."""
    table = new_table()
    table.upsert(plain(("a", "x", 1)))
    table.upsert(plain(("a", "x", 2)))
    in_another_format(table, ending)
    with pytest.raises(UnsupportedTableError, match=rf"x/.*\.{ending} is a base file in another format than Parquet"):
        ASKED[asked](open_table(table.base_path))


def test_a_base_file_in_another_format_counts_as_soon_as_its_commit_does() -> None:
    table = new_table(version=9)
    table.upsert(plain(("a", "x", 1)))
    assert contents(table) == [("a", "x", 1)]
    other = "20200101000000000"
    stray = f"x/{uuid.uuid4()}-0_0-1-2_{next_instant_time(load_timeline(table.context).commits[-1].time)}.orc"
    table.context.storage.put(stray, b"ORC")
    assert contents(open_table(table.base_path)) == [("a", "x", 1)]
    table.context.storage.put(f"x/{uuid.uuid4()}-0_0-1-2_{other}.orc", b"ORC")
    with pytest.raises(UnsupportedTableError, match="another format"):
        contents(open_table(table.base_path))


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_may_have_base_files_in_several_formats_is_refused(version: int) -> None:
    table = new_table(version=version)
    table.upsert(plain(("a", "x", 1)))
    key = "hoodie.table.multiple.base.file.formats.enable"
    replace_properties(table.context, {key: "true"})
    for name in ("scan", "changes", "upsert", "delete"):
        with pytest.raises(UnsupportedTableError, match="base files in several formats"):
            ASKED[name](open_table(table.base_path))
    replace_properties(table.context, {key: "false"})
    open_table(table.base_path).upsert(plain(("a", "x", 2)))
