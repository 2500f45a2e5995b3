"""Flagged deletes in logs stay as old as they were when their ordering column becomes wider."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table

WIDER = [(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())]


def rows(ordering: pa.DataType, *items: tuple[str, Any, str | None, bool]) -> pa.Table:
    schema = pa.schema([("id", pa.string()), ("ts", ordering), ("v", pa.string()), ("_hoodie_is_deleted", pa.bool_())])
    return pa.Table.from_pylist([dict(zip(schema.names, item, strict=True)) for item in items], schema=schema)


def new_table(ordering: pa.DataType, index: Any = None, **more: Any) -> HudiTable:
    return create_table(
        f"memory://{uuid.uuid4().hex}/t", rows(ordering).schema, record_key="id", ordering_fields="ts", type="MergeOnRead",
        index=index or {"type": "Bucket", "buckets": 1}, **more,
    )  # fmt: skip


def values(table: HudiTable) -> list[str]:
    return sorted(open_table(table.base_path).scan(["v"]).to_arrow()["v"].to_pylist())


@pytest.mark.parametrize("narrow_and_wide", WIDER, ids=str)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_older_delete_of_before_a_column_was_widened_takes_nothing_away(
    version: int, narrow_and_wide: tuple[pa.DataType, pa.DataType]
) -> None:
    """It became unconditional, and rows that were committed were gone. On version 6 a delete takes
    the row of a base file in any case."""
    narrow, wide = narrow_and_wide
    table = new_table(narrow, version=version)
    table.upsert(rows(narrow, ("a", 10, "a10", False), ("b", 10, "b10", False)))
    if version == 6:
        table.upsert(rows(narrow, ("a", 12, "a10", False)))
    table.upsert(rows(narrow, ("a", 5, None, True)))
    assert values(table) == ["a10", "b10"]
    table.upsert(rows(wide, ("b", 11, "b11", False)))
    assert values(table) == ["a10", "b11"]
    table.compact_logs(force=True)
    assert values(table) == ["a10", "b11"]
    table.compact(force=True)
    assert values(table) == ["a10", "b11"]


@pytest.mark.parametrize("narrow_and_wide", WIDER, ids=str)
def test_a_newer_delete_of_before_a_column_was_widened_still_takes_rows_away(
    narrow_and_wide: tuple[pa.DataType, pa.DataType],
) -> None:
    narrow, wide = narrow_and_wide
    table = new_table(narrow, version=9)
    table.upsert(rows(narrow, ("a", 10, "a10", False), ("b", 10, "b10", False)))
    table.upsert(rows(narrow, ("a", 20, None, True)))
    table.upsert(rows(wide, ("a", 15, "a15", False), ("b", 11, "b11", False)))
    assert values(table) == ["b11"]
    table.upsert(rows(wide, ("a", 21, "a21", False)))
    assert values(table) == ["a21", "b11"]


@pytest.mark.parametrize("kind", [pa.decimal128(20, 0), pa.decimal128(38, 18)], ids=str)
@pytest.mark.parametrize("index", [{"type": "Bucket", "buckets": 1}, "RecordIndex", "Simple"], ids=str)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_flagged_delete_whose_ordering_no_delete_block_holds_takes_the_older_row_alone(
    version: int, index: Any, kind: pa.DataType
) -> None:
    """Change numbers of Oracle have such types. A delete block holds 15 digits before and behind
    the point."""

    def changed(*items: tuple[str, int, bool]) -> None:
        table.upsert(rows(kind, *((key, at(n), f"{key}{n}", gone) for key, n, gone in items)))

    def at(number: int) -> Any:
        return Decimal(10**16 + number) if kind.scale == 0 else Decimal(number).scaleb(-18)

    table = new_table(kind, version=version, index=index)
    changed(("a", 1, False), ("b", 1, False), ("c", 5, False))
    changed(("c", 6, False))
    changed(("a", 2, True), ("c", 2, True), ("d", 2, True))
    assert values(table) == ["b1", "c6"]
    changed(("a", 3, False), ("d", 3, False))
    assert values(table) == ["a3", "b1", "c6", "d3"]
    table.delete(pa.table({"id": ["b"]}))
    changed(("a", 4, True))
    table.compact_logs(force=True)
    assert values(table) == ["c6", "d3"]
    table.compact(force=True)
    assert values(table) == ["c6", "d3"]
