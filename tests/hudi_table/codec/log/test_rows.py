"""Rows and deletes in log blocks: the columnar codec against fastavro, and Hudi's own bytes."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.avro.decode import MalformedError, decode_flat
from hudi_table.codec.avro.encode import encode_flat, varints
from hudi_table.codec.avro.schema import arrow_to_avro, meta_fields
from hudi_table.codec.avro.types import flat_fields
from hudi_table.codec.log.blocks import INSTANT_TIME, SCHEMA, BlockType, encode_block, rollback_block, scan_blocks
from hudi_table.codec.log.rows import avro_block, delete_block, parquet_block, read_deletes, read_rows
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from tests.support import golden

FLAT = pa.schema(
    [
        *meta_fields(),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("count", pa.int32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("day", pa.date32()),
        pa.field("name", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("wide", pa.decimal128(38, 18)),
        pa.field("ratio", pa.float64()),
        pa.field("small", pa.float32()),
        pa.field("good", pa.bool_()),
    ]
)
WIDE = Context(prec=60)
TEXT = st.text(max_size=30)
ROW = st.fixed_dictionaries(
    {
        **{field.name: st.none() | TEXT for field in meta_fields()},
        "id": st.integers(-(2**63), 2**63 - 1),
        "count": st.none() | st.integers(-(2**31), 2**31 - 1),
        "at": st.none() | st.integers(-(2**62), 2**62),
        "day": st.none() | st.dates(),
        "name": st.none() | TEXT,
        "raw": st.none() | st.binary(max_size=30),
        "price": st.none() | st.decimals("-99999999.99", "99999999.99", places=2),
        "wide": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18, WIDE)),
        "ratio": st.none() | st.floats(allow_nan=False),
        "small": st.none() | st.floats(allow_nan=False, width=32),
        "good": st.none() | st.booleans(),
    }
)
NESTED = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("sizes", pa.map_(pa.string(), pa.int32())),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("note", pa.string())])),
    ]
)


def table(rows: list[dict[str, Any]], schema: pa.Schema = FLAT) -> pa.Table:
    with localcontext(WIDE):
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def only_block(data: bytes) -> tuple[io.BytesIO, Any]:
    source = io.BytesIO(data)
    (block,) = scan_blocks(source, path="a.log")
    return source, block


def fastavro_content(rows: pa.Table, schema: str) -> bytes:
    parsed = fastavro.parse_schema(json.loads(schema))
    parts = []
    for record in rows.to_pylist():
        sink = io.BytesIO()
        plain = {k: v.value if isinstance(v, pa.Scalar) else v for k, v in record.items()}
        fastavro.schemaless_writer(sink, parsed, plain)
        parts.append(len(sink.getvalue()).to_bytes(4, "big") + sink.getvalue())
    return (3).to_bytes(4, "big") + len(parts).to_bytes(4, "big") + b"".join(parts)


@settings(max_examples=200)
@given(st.lists(ROW, max_size=20))
def test_flat_rows_have_the_bytes_of_fastavro_and_come_back(rows: list[dict[str, Any]]) -> None:
    given_rows = table(rows)
    # As plain microseconds: datetime cannot hold every timestamp that Arrow and Avro can.
    schema = arrow_to_avro(FLAT, table_name="t")
    assert flat_fields(schema) is not None
    source, block = only_block(avro_block(given_rows, schema, "1"))
    assert (block.type, block.instant, block.schema) == (BlockType.AVRO, "1", schema)
    content = source.getvalue()[block.content_offset :][: block.content_length]
    position = given_rows.schema.get_field_index("at")
    plain = given_rows.set_column(position, "at", given_rows.column("at").cast(pa.int64()))
    assert content == fastavro_content(plain, schema)
    assert read_rows(source, block).equals(given_rows)


ON_BYTES = json.dumps(
    {
        "type": "record",
        "name": "t",
        "fields": [
            {"name": name, "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": p, "scale": s}]}
            for name, p, s in (("price", 10, 2), ("wide", 38, 18))
        ],
    }
)
"""Decimals as Confluent's serializers and schema providers of Hudi's streamer have them."""


@settings(max_examples=200)
@given(st.lists(ROW, min_size=1, max_size=20))
def test_decimals_on_bytes_are_numbers_to_fastavro_and_come_back(rows: list[dict[str, Any]]) -> None:
    given_rows = table(rows).select(["price", "wide"])
    source, block = only_block(avro_block(given_rows, ON_BYTES, "1"))
    records, parsed = (
        io.BytesIO(source.getvalue()[block.content_offset + 8 :]),
        fastavro.parse_schema(json.loads(ON_BYTES)),
    )
    found = []
    for _ in rows:
        records.read(4)
        with localcontext(WIDE):
            found.append(fastavro.schemaless_reader(records, parsed, None))
    assert found == given_rows.to_pylist()
    assert read_rows(source, block).equals(given_rows)


@pytest.mark.parametrize(
    ("number", "stored"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"), (-256, "ff00"), (51, "33")],
)
def test_a_decimal_on_bytes_is_as_short_as_java_has_it(number: int, stored: str) -> None:
    fields = flat_fields(ON_BYTES)
    assert fields is not None
    price = pa.array([None, Decimal(number).scaleb(-2)], pa.decimal128(10, 2)).slice(1)
    (record,) = encode_flat(pa.table({"price": price}), fields[:1])
    assert record.as_py()[2:].hex() == stored


def test_digits_and_numbers_beyond_the_precision_of_a_decimal_on_bytes_are_told_apart() -> None:
    fields = flat_fields(ON_BYTES)
    assert fields is not None

    def read(number: bytes) -> pa.Table:
        record = bytes([2, 2 * len(number)]) + number
        return decode_flat(pa.py_buffer(record), np.array([0]), np.array([len(record)]), fields[:1], {"price"})

    assert read(b"12").to_pylist() == [{"price": Decimal("125.94")}]
    assert read(b"").to_pylist() == [{"price": Decimal("0.00")}]
    for beyond in ((10**10).to_bytes(5, "big"), bytes(17)):
        with pytest.raises(MalformedError, match="price holds a decimal"):
            read(beyond)


@given(st.lists(ROW, min_size=1, max_size=5), st.lists(st.sampled_from([*FLAT.names, "other"]), unique=True))
def test_only_the_wanted_columns_are_given_in_their_order(rows: list[dict[str, Any]], names: list[str]) -> None:
    source, block = only_block(avro_block(table(rows), arrow_to_avro(FLAT, table_name="t"), "1"))
    found = read_rows(source, block, names)
    assert found.schema.names == [name for name in names if name != "other"]
    assert found.num_rows == len(rows) or not found.schema.names
    for name in found.schema.names:
        assert found.column(name).equals(table(rows).column(name))


@pytest.mark.parametrize("write", [avro_block, parquet_block])
def test_nested_rows_come_back(write: Any) -> None:
    rows = pa.Table.from_pylist(
        [
            {"id": 1, "tags": ["a", None], "sizes": [("k", 1), ("ø", None)], "place": {"x": 1.5, "note": None}},
            {"id": None, "tags": None, "sizes": None, "place": None},
            {"id": 2, "tags": [], "sizes": [], "place": {"x": None, "note": "n"}},
        ],
        schema=NESTED,
    )
    source, block = only_block(write(rows, arrow_to_avro(NESTED, table_name="t"), "1"))
    assert read_rows(source, block).equals(rows)
    assert read_rows(source, block, ["place", "id"]).equals(rows.select(["place", "id"]))


@pytest.mark.parametrize("write", [avro_block, parquet_block])
def test_moments_of_any_year_come_back_beside_lists_and_inside_them(write: Any) -> None:
    far, day = (
        pa.array([-(2**62), None, 253402300800 * 10**6], pa.int64()),
        pa.array([-800_000, 2932897, None], pa.int32()),
    )
    at, date = far.view(pa.timestamp("us", tz="UTC")), day.view(pa.date32())
    struct = pa.StructArray.from_arrays([at, date], fields=[pa.field("at", at.type), pa.field("day", date.type)])
    listed = pa.ListArray.from_arrays([0, 2, 2, 3], at, pa.list_(pa.field("element", at.type)))
    mapped = pa.MapArray.from_arrays([0, 1, 3, 3], pa.array(["a", "b", "c"]), date)
    names = ["at", "day", "inside", "listed", "mapped"]
    rows = pa.Table.from_arrays([at, date, struct, listed, mapped], names=names)
    source, block = only_block(write(rows, arrow_to_avro(rows.schema, table_name="t"), "1"))
    found = read_rows(source, block)
    assert found.equals(rows.cast(found.schema))
    assert found.column("at").equals(rows.column("at"))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_zigzag_varints(numbers: list[int]) -> None:
    def expected(number: int) -> bytes:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, "long", number)
        return sink.getvalue()

    assert varints(np.array(numbers, dtype=np.int64)).to_pylist() == [expected(number) for number in numbers]


@given(st.binary(max_size=120), st.integers(0, 5))
def test_damaged_content_is_an_error_that_names_the_file_and_never_wrong_rows(junk: bytes, count: int) -> None:
    schema = arrow_to_avro(FLAT, table_name="t")
    data = encode_block(
        BlockType.AVRO,
        {INSTANT_TIME: "1", SCHEMA: schema},
        (3).to_bytes(4, "big") + count.to_bytes(4, "big") + junk,
    )
    source, block = only_block(data)
    try:
        found = read_rows(source, block)
    except CorruptTableError as damage:
        said = damage.message
    else:
        found.validate(full=True)
        said = f"a.log holds {found.num_rows} rows"
        assert found.num_rows == count
    assert "a.log" in said


def test_a_uuid_is_its_text_beside_a_list_too() -> None:
    rows = pa.table({"id": ["0b9b9c6c-7a8e-4a56-9b5c-111111111111"], "n": [[1]]})
    fields = [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": {"type": "array", "items": "long"}},
    ]
    source, block = only_block(avro_block(rows, json.dumps({"type": "record", "name": "r", "fields": fields}), "1"))
    assert read_rows(source, block).to_pylist() == rows.to_pylist()


def test_a_block_without_rows_and_a_delete_list_of_java_are_refused_by_name() -> None:
    source, block = only_block(rollback_block("2", "1"))
    with pytest.raises(UnsupportedTableError, match="COMMAND"):
        read_rows(source, block)
    source, block = only_block(encode_block(BlockType.DELETE, {INSTANT_TIME: "1"}, (2).to_bytes(4, "big") + b"abcd"))
    with pytest.raises(UnsupportedTableError, match="version 2"):
        read_deletes(source, block)


ORDERINGS = [
    ("LongWrapper", pa.array([5, None, -7], pa.int64()), pa.int64()),
    ("LongWrapper", pa.array([5, None, -7], pa.timestamp("us", tz="UTC")), pa.int64()),
    ("IntWrapper", pa.array([5, None, -7], pa.int32()), pa.int32()),
    ("StringWrapper", pa.array(["b", None, "ø"]), pa.string()),
    ("DoubleWrapper", pa.array([1.5, None, -2.5]), pa.float64()),
    ("DateWrapper", pa.array([date(2026, 1, 2), None, date(1969, 1, 1)]), pa.date32()),
    (
        "DecimalWrapper",
        pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
        pa.decimal128(30, 15),
    ),
]


@pytest.mark.parametrize(("wrapper", "ordering", "kind"), ORDERINGS, ids=[f"{w}-{o.type}" for w, o, _ in ORDERINGS])
def test_deletes_carry_their_ordering_in_the_wrapper_of_its_java_class(
    wrapper: str, ordering: pa.Array, kind: pa.DataType
) -> None:
    keys = pa.array(["a", "", "ø" * 20])
    source, block = only_block(delete_block(keys, "p=1", "1", ordering))
    found = read_deletes(source, block)
    assert found.keys.equals(keys)
    assert found.partitions.to_pylist() == ["p=1"] * 3
    assert found.ordering.type == kind
    assert found.ordering.is_valid().to_pylist() == [True, False, True]
    content = source.getvalue()[block.content_offset + 8 :]
    assert wrapper.encode() not in content  # a number in the union names it
    assert found.ordering.drop_null().cast(ordering.type).equals(ordering.drop_null()) or kind == pa.int64()


@pytest.mark.parametrize(
    ("kinds", "wide"),
    [
        ([pa.int32(), pa.int64()], pa.int64()),
        ([pa.int64(), pa.int32(), pa.int32()], pa.int64()),
        ([pa.int32(), pa.float64()], pa.float64()),
        ([pa.float64(), pa.float32()], pa.float64()),
    ],
    ids=str,
)
def test_numbers_of_several_widths_in_one_block_are_read_as_the_widest(
    kinds: list[pa.DataType], wide: pa.DataType
) -> None:
    """As a log compaction of Hudi's writes them behind a column that became wider."""
    body = b""
    for number, kind in enumerate(kinds):
        source, block = only_block(delete_block(pa.array(["a"]), "", "1", pa.array([number + 1], kind)))
        # Without the end of the array, so that the next one goes on.
        body += source.getvalue()[block.content_offset + 8 :][: block.content_length - 9]
    content = (3).to_bytes(4, "big") + (len(body) + 1).to_bytes(4, "big") + body + b"\0"
    found = read_deletes(*only_block(encode_block(BlockType.DELETE, {INSTANT_TIME: "1"}, content))).ordering
    assert found.equals(pa.array(range(1, len(kinds) + 1), pa.int64()).cast(wide))


def test_further_ordering_values_that_are_null_stay_so_beside_others() -> None:
    """They are written as the integer 0."""
    values = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([-5, None], pa.int64())], ["ts", "n"])
    found = read_deletes(*only_block(delete_block(pa.array(["a", "b"]), "", "1", values)))
    assert (found.ordering.to_pylist(), [more.to_pylist() for more in found.then_by]) == ([1, 2], [[-5, None]])


def test_deletes_without_ordering_are_unconditional() -> None:
    source, block = only_block(delete_block(pa.array(["a", "b"]), "", "1"))
    assert read_deletes(source, block).ordering.null_count == 2
    source, block = only_block(delete_block(pa.array([], pa.string()), "", "1"))
    assert len(read_deletes(source, block).keys) == 0


@pytest.mark.parametrize("name", golden.MERGE_ON_READ)
def test_avro_blocks_of_hudi_are_written_the_same_again(name: str, tmp_path: Path) -> None:
    base = golden.unpack(name, tmp_path).base
    logs = [path for path in base.rglob(".*.log.*") if ".hoodie" not in path.parts and not path.name.endswith(".crc")]
    for path in logs:
        source = io.BytesIO(path.read_bytes())
        for block in scan_blocks(source, path=str(path)):
            if block.type is not BlockType.AVRO:
                continue
            assert block.schema is not None
            rows = read_rows(source, block)
            again, other = only_block(avro_block(rows, block.schema, block.instant))
            mine = again.getvalue()[other.content_offset :][: other.content_length]
            assert mine == source.getvalue()[block.content_offset :][: block.content_length]
