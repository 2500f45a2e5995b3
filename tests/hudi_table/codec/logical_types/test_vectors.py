"""Vectors as files hold them, and names of Avro types without a namespace."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.codec.arrow_types import normalise
from hudi_table.codec.avro.guard import parsed_schema
from hudi_table.codec.avro.schema import arrow_to_avro, avro_text_for, avro_to_arrow
from hudi_table.codec.conform import conform
from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.codec.log.rows import avro_block, read_rows
from hudi_table.codec.logical_types.vectors import as_stored, as_vectors, vector_of
from hudi_table.codec.parquet_writer import BaseFileWriter
from hudi_table.errors import InvalidDataError
from tests.support.logical_types import SCHEMA, rows_of

STORED = normalise(SCHEMA, logical_types=True)
OF_HUDI = {
    "type": "fixed", "name": "vector_float_3", "namespace": "", "size": 12, "logicalType": "vector", "dimension": 3,
    "elementType": "FLOAT", "storageBacking": "FIXED_BYTES",
}  # fmt: skip
"""As Hudi 1.2.0 writes it."""
VARIANT_OF_HUDI = {
    "type": "record", "name": "variant", "namespace": "",
    "fields": [
        {"name": "metadata", "type": "bytes", "doc": "Variant metadata component"},
        {"name": "value", "type": "bytes", "doc": "Variant value component"},
    ],
    "logicalType": "variant",
}  # fmt: skip
FLOATS = st.floats(width=32, allow_nan=False)


def test_the_avro_text_is_that_of_hudi_and_a_second_column_of_a_type_holds_its_name() -> None:
    columns = {column["name"]: column for column in json.loads(arrow_to_avro(STORED, table_name="t"))["fields"]}
    assert columns["v"]["type"] == ["null", OF_HUDI]
    assert columns["w"]["type"] == ["null", "vector_float_3"]
    assert columns["x"]["type"] == ["null", VARIANT_OF_HUDI]
    assert columns["y"]["type"] == ["null", "variant"]
    assert avro_to_arrow(arrow_to_avro(STORED, table_name="t")).equals(STORED)


def test_a_footer_names_its_vectors_as_hudi_does_and_parquet_holds_bytes_of_a_fixed_size() -> None:
    sink = io.BytesIO()
    with BaseFileWriter(sink, STORED, avro_schema=arrow_to_avro(STORED, table_name="t")) as writer:
        writer.write(conform(rows_of(range(5), 1), STORED))
    file = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    assert file.metadata.metadata[b"hoodie.vector.columns"] == (
        b"v:VECTOR(3),w:VECTOR(3),d:VECTOR(2, DOUBLE),b:VECTOR(2, INT8)"
    )
    assert [file.schema_arrow.field(name).type for name in "vdb"] == [pa.binary(12), pa.binary(16), pa.binary(2)]


@given(st.lists(st.none() | st.lists(FLOATS, min_size=3, max_size=3)), st.integers(0, 5))
def test_vectors_come_back_from_their_bytes_slices_too(vectors: list[Any], cut: int) -> None:
    whole = pa.table({"v": pa.array(vectors, vector_of(pa.float32(), 3))})
    rows = whole.slice(min(cut, len(whole)))
    stored = as_stored(rows)
    assert stored.schema.field("v").type == pa.binary(12)
    back = as_vectors(stored, rows.schema)
    back.validate(full=True)
    assert back.equals(rows)
    assert conform(stored, rows.schema).equals(rows)


@pytest.mark.parametrize("names", [["id", "ts", "v", "w", "d", "b"], SCHEMA.names, ["id", "ts", "v", "w", "tags"]])
def test_rows_with_vectors_come_back_from_a_log_block_flat_or_with_nested_columns(names: list[str]) -> None:
    rows = conform(rows_of(range(9), 2), STORED)
    rows = rows.append_column("tags", pa.array([["a", "b"]] * 9, pa.list_(pa.field("element", pa.string())))).select(
        names
    )
    text = arrow_to_avro(rows.schema, table_name="t")
    source = io.BytesIO(avro_block(rows, text, "20260101000000000"))
    (block,) = scan_blocks(source, path="log")
    assert read_rows(source, block).equals(rows)


def test_a_name_without_a_namespace_is_found_within_one_and_one_of_the_namespace_comes_first() -> None:
    def record(second: Any) -> str:
        inner = {"type": "fixed", "name": "f", "namespace": "", "size": 2}
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": ["null", second], "default": None}]
        return json.dumps({"type": "record", "name": "r", "namespace": "n.s", "fields": fields})

    assert parsed_schema(record("f"))["fields"][1]["type"][1].endswith(".f")
    own = {"type": "record", "name": "p", "fields": [
        {"name": "x", "type": {"type": "fixed", "name": "f", "size": 3}}, {"name": "y", "type": "f"}
    ]}  # fmt: skip
    found = parsed_schema(record(own))["fields"][1]["type"][1]
    assert found["fields"][1]["type"] == "n.s.f"


def test_a_schema_that_grows_keeps_the_words_of_columns_that_stay() -> None:
    had = json.loads(arrow_to_avro(STORED, table_name="t"))
    had["fields"][0]["doc"] = "what it is known by"
    grown = STORED.append(pa.field("more", vector_of(pa.float32(), 3)))
    found = json.loads(avro_text_for(grown, table_name="t", previous=json.dumps(had)))
    assert found["fields"][0]["doc"] == "what it is known by"
    assert found["fields"][-1]["type"] == ["null", "vector_float_3"]
    assert [each["name"] for each in found["fields"]] == grown.names


def test_a_column_whose_name_another_one_told_is_told_anew_where_that_one_changes() -> None:
    told = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    fields = [{"name": "a", "type": told}, {"name": "b", "type": "r"}]
    text = json.dumps({"type": "record", "name": "t", "namespace": "s", "fields": fields})
    schema = avro_to_arrow(text)
    wide = pa.schema([pa.field("a", pa.struct([pa.field("n", pa.int64(), False)]), False), schema.field("b")])
    assert avro_to_arrow(avro_text_for(wide, table_name="t", previous=text)).equals(wide)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), r"a list of 2 elements is no VECTOR\(3\)"),
        (pa.array([[1.0, None, 2.0]], pa.list_(pa.float32(), 3)), "an element of a vector is null"),
        (pa.array([[1.0, 2.0, 3.0], [1.0]], pa.list_(pa.float32())), r"a list of 1 elements is no VECTOR\(3\)"),
        (pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3)), "no conversion keeps the values"),
        (pa.array([b"12345678"], pa.binary(8)), r"8 bytes are no VECTOR\(3\)"),
        (pa.array(["abc"]), "it holds no lists"),
    ],
)
def test_what_is_no_vector_of_the_column_is_refused_by_its_name(values: pa.Array, said: str) -> None:
    with pytest.raises(InvalidDataError, match=f"Column 'v'.*{said}"):
        conform(pa.table({"v": values}), pa.schema([("v", vector_of(pa.float32(), 3))]))


def test_null_elements_of_a_null_vector_are_no_fault() -> None:
    kind = pa.list_(pa.float32(), 2)
    values = pa.FixedSizeListArray.from_arrays(
        pa.array([1.0, 2.0, None, None], pa.float32()), type=kind, mask=pa.array([False, True])
    )
    found = conform(pa.table({"v": values}), pa.schema([("v", vector_of(pa.float32(), 2))]))
    assert as_stored(found)["v"].to_pylist() == [b"\x00\x00\x80?\x00\x00\x00@", None]


@pytest.mark.parametrize("values", [[], [None], [None, None], [[1.0, 2.0], None, [3.0, 4.0]]])
def test_lists_become_vectors_also_where_there_are_none(values: list[Any]) -> None:
    wanted = pa.schema([("v", vector_of(pa.float32(), 2))])
    for given_ in (
        pa.array(values, pa.list_(pa.float32())),
        pa.array([[9.0, 9.0], *values], pa.list_(pa.float32())).slice(1),
    ):
        found = conform(pa.table({"v": given_}), wanted)
        found.validate(full=True)
        assert found["v"].to_pylist() == values
