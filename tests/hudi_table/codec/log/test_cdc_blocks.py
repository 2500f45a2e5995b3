"""CDC blocks: our bytes are Hudi's and fastavro's, nested images included."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.avro.types import flat_fields
from hudi_table.codec.log.blocks import SCHEMA, BlockType, encode_block, scan_blocks
from hudi_table.codec.log.cdc_schema import cdc_avro_schema
from hudi_table.codec.log.rows import avro_block, read_rows
from hudi_table.model.names import META_COLUMNS
from hudi_table.model.table.cdc import Images
from hudi_table.table.rows.changes import change_schema
from tests.support import golden
from tests.support.scale import scaled

FLAT = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("price", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(20, 3)),
        ("count", pa.int32()),
        ("place", pa.struct([("x", pa.float64()), ("inner", pa.struct([("note", pa.string()), ("n", pa.int64())]))])),
    ]
)
LISTS = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string())), ("sizes", pa.map_(pa.string(), pa.int32()))])
INNER = st.none() | st.fixed_dictionaries(
    {"note": st.none() | st.text(max_size=9), "n": st.none() | st.integers(-9, 9)}
)
IMAGE = st.fixed_dictionaries(
    {
        "id": st.text(max_size=5),
        "price": st.none() | st.decimals("-999.99", "999.99", places=2),
        "wide": st.none() | st.decimals("-999.999", "999.999", places=3),
        "count": st.none() | st.integers(-(2**31), 2**31 - 1),
        "place": st.none()
        | st.fixed_dictionaries({"x": st.none() | st.floats(allow_nan=False, width=32), "inner": INNER}),
    }
)
CHANGE = st.fixed_dictionaries(
    {
        "op": st.sampled_from("iud"),
        "ts_ms": st.just("20260101000000000"),
        "record_key": st.text(max_size=5),
        "before": st.none() | IMAGE,
        "after": st.none() | IMAGE,
    }
)


def changes(rows: list[dict[str, Any]], image: pa.Schema, images: Images) -> pa.Table:
    schema = change_schema(image, images.columns)
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def content(data: bytes) -> tuple[io.BytesIO, Any, bytes]:
    source = io.BytesIO(data)
    (block,) = scan_blocks(source, path="a.log.cdc")
    return source, block, data[block.content_offset :][: block.content_length]


def records(rows: pa.Table, schema: str) -> bytes:
    parsed = fastavro.parse_schema(json.loads(schema))
    parts = []
    for record in rows.to_pylist(maps_as_pydicts="strict"):
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, record)
        parts.append(len(sink.getvalue()).to_bytes(4, "big") + sink.getvalue())
    return (3).to_bytes(4, "big") + len(parts).to_bytes(4, "big") + b"".join(parts)


@pytest.mark.parametrize("images", Images)
@settings(max_examples=scaled(40))
@given(rows=st.lists(CHANGE, max_size=8))
def test_changes_have_the_bytes_of_fastavro_and_come_back(images: Images, rows: list[dict[str, Any]]) -> None:
    schema = cdc_avro_schema(arrow_to_avro(FLAT, table_name="t"), images)
    assert flat_fields(schema) is not None, "records of flat fields are taken column by column"
    given_rows = changes(rows, FLAT, images)
    source, block, found = content(avro_block(given_rows, schema, "1", BlockType.CDC))
    assert (block.type, block.instant) == (BlockType.CDC, "1")
    assert found == records(given_rows, schema)
    assert read_rows(source, block).equals(given_rows)
    assert read_rows(source, block, ["op"]).equals(given_rows.select(["op"]))


def test_images_with_lists_and_maps_come_back() -> None:
    image = {"id": "a", "tags": ["x", None], "sizes": [("k", 1)]}
    rows = changes(
        [{"op": "u", "ts_ms": "1", "before": image, "after": {**image, "tags": None}}], LISTS, Images.DATA_BEFORE_AFTER
    )
    schema = cdc_avro_schema(arrow_to_avro(LISTS, table_name="t"), Images.DATA_BEFORE_AFTER)
    source, block, found = content(avro_block(rows, schema, "1", BlockType.CDC))
    assert found == records(rows, schema)
    assert read_rows(source, block).equals(rows)


def test_a_change_log_of_hudi_is_written_the_same_again(tmp_path: Path) -> None:
    base = golden.unpack("cdc", tmp_path).base
    (log,) = (path for path in base.rglob(".*.cdc"))
    (commit,) = (json.loads(path.read_text()) for path in base.glob(f".hoodie/{log.name.split('_')[1][:17]}.commit"))
    theirs = log.read_bytes()
    source, block, _ = content(theirs)
    schema = cdc_avro_schema(commit["extraMetadata"]["schema"], Images.DATA_BEFORE_AFTER)
    assert schema == block.schema
    rows = read_rows(source, block)
    assert [row["op"] for row in rows.to_pylist()] == ["u", "u"]
    assert rows.column("after").to_pylist()[0] == {"id": "k000", "name": "name0_1", "ts": 1001, "city": "sf"}
    assert not set(META_COLUMNS) & {field.name for field in rows.schema.field("before").type}
    ours = avro_block(rows, schema, block.instant, BlockType.CDC)
    source, mine, _ = content(ours)
    body = ours[mine.content_offset : mine.content_offset + mine.content_length]
    assert encode_block(mine.type, {**mine.header, SCHEMA: str(mine.schema)}, body) == theirs, "but for check sums"


def test_a_decimal_in_a_nested_record_keeps_its_digits() -> None:
    schema = pa.schema([("id", pa.string()), ("s", pa.struct([("d", pa.decimal128(38, 2))]))])
    text = arrow_to_avro(schema, table_name="t")
    rows = pa.Table.from_pylist([{"id": "a", "s": {"d": Decimal("-1.05")}}, {"id": "b", "s": None}], schema)
    source, block, _ = content(avro_block(rows, text, "1"))
    assert flat_fields(text) is not None
    assert read_rows(source, block).equals(rows)
