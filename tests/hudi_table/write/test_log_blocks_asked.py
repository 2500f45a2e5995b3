"""What rows of logs are written in, by `hoodie.logfile.data.block.format`."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.errors import InvalidOptionError
from tests.support.written import INDEXES, contents, new_table, rows, slices

PARQUET = {"hoodie.logfile.data.block.format": "parquet"}


def blocks(table: HudiTable) -> list[tuple[LogBlock, bytes]]:
    """Every block of the newest slices' logs, in order, with its content."""
    found = []
    for item in slices(table):
        for log in item.logs:
            data = table.context.storage.get(log.path)
            found += [
                (block, data[block.content_offset : block.content_offset + block.content_length])
                for block in scan_blocks(io.BytesIO(data), path=log.path)
            ]
    return found


@pytest.mark.parametrize("index", [INDEXES["bucket"], "Simple"])
def test_rows_of_logs_are_parquet_on_request(index: Any) -> None:
    table = new_table(index=index, type="MergeOnRead", ordering_fields="ts", merge_mode="EventTime")
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "x", 1)))
    table.upsert(rows(("a", "x", 2, 2), ("b", "x", 2, 2, True)), options=PARQUET)
    table.upsert(rows(("c", "x", 3, 2)), options={"hoodie.logfile.data.block.format": "AVRO"})
    table.upsert(
        rows(("a", "x", 0, 1), ("c", "x", 4, 3)), options=PARQUET | {"hoodie.parquet.compression.codec": "gzip"}
    )
    assert contents(table) == [("a", "x", 2), ("c", "x", 4)]
    kinds = {block.type for block, _ in blocks(table)}
    assert {BlockType.PARQUET, BlockType.AVRO} <= kinds
    codecs = {
        pq.read_metadata(io.BytesIO(content)).row_group(0).column(0).compression
        for block, content in blocks(table)
        if block.type is BlockType.PARQUET
    }
    assert "GZIP" in codecs
    table.compact()
    assert contents(table) == [("a", "x", 2), ("c", "x", 4)]


def test_values_of_every_kind_are_the_same_in_them() -> None:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("city", pa.string()),
            ("many", pa.list_(pa.int64())),
            ("deep", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
            ("by", pa.map_(pa.string(), pa.float64())),
            ("price", pa.decimal128(20, 3)),
            ("seen", pa.timestamp("us", "UTC")),
            ("raw", pa.binary()),
        ]
    )
    row = {
        "id": "a",
        "city": "x",
        "many": [1, None],
        "deep": {"a": 1, "b": ["p", None]},
        "by": [("k", 1.5)],
        "raw": b"\xff",
    }
    data = pa.Table.from_pylist([row, {"id": "b", "city": "x"}], schema=schema)
    table = new_table(index=INDEXES["bucket"], type="MergeOnRead", schema=schema)
    table.upsert(data, options=PARQUET)
    table.upsert(data, options=PARQUET)
    assert {block.type for block, _ in blocks(table)} == {BlockType.PARQUET}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == data.to_pylist()


def test_another_format_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'hfile' is none of avro, parquet"):
        new_table().upsert(rows(("a", "x", 1)), options={"hoodie.logfile.data.block.format": "hfile"})
