"""Arrow schemas and the Avro text in commits and footers.

Aspects: text equal to Hudi's, byte by byte; round trip of every stored type (hypothesis); what is
refused, by column name; what is stored as another type. Not here: values (test_conform,
test_parquet).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.codec.arrow_types import normal_type, normalise, unsupported_columns
from hudi_table.codec.avro.schema import (
    arrow_to_avro,
    avro_text_for,
    avro_to_arrow,
    decimal_bytes,
    with_meta,
    with_meta_text,
    without_meta,
)
from hudi_table.errors import CorruptTableError, InvalidSchemaError, InvariantError, UnsupportedTableError
from hudi_table.model.names import META_COLUMNS
from tests.support.arrow_types import tables
from tests.support.golden import COPY_ON_WRITE, MERGE_ON_READ, unpack

US = pa.timestamp("us", tz="UTC")
MOR1 = {
    "d": pa.date32(),
    "t": US,
    "dec": pa.decimal128(10, 2),
    "arr": pa.list_(pa.field("element", pa.string())),
    "m": pa.map_(pa.string(), pa.int32()),
    "st": pa.struct([("a", pa.int32()), ("b", pa.string())]),
}


def schemas_of(base: Path) -> list[str]:
    """Every schema text in the commits of a table."""
    texts = []
    for path in sorted((base / ".hoodie").glob("*commit")):
        text = json.loads(path.read_bytes())["extraMetadata"].get("schema")
        if text:
            texts.append(text)
    return texts


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ)
def test_the_schema_text_is_the_one_that_hudi_wrote_byte_for_byte(name: str, tmp_path: Path) -> None:
    texts = schemas_of(unpack(name, tmp_path).base)
    assert texts
    for text in texts:
        assert arrow_to_avro(avro_to_arrow(text), table_name=name) == text


def test_the_types_of_a_schema_that_hudi_wrote_are_understood(tmp_path: Path) -> None:
    schema = avro_to_arrow(schemas_of(unpack("mor1", tmp_path).base)[0])
    assert {name: schema.field(name).type for name in MOR1} == MOR1


@given(tables(rows_max=0))
def test_every_stored_type_survives_the_way_to_avro_and_back(table: pa.Table) -> None:
    text = arrow_to_avro(table.schema, table_name="any")
    assert avro_to_arrow(text).equals(table.schema)
    fastavro.parse_schema(json.loads(text))


@given(tables(rows_max=0))
def test_a_stored_type_is_stored_as_itself(table: pa.Table) -> None:
    assert normalise(table.schema).equals(table.schema)


def test_a_required_column_is_no_union_and_has_no_default() -> None:
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])
    text = arrow_to_avro(schema, table_name="t")
    assert json.loads(text)["fields"] == [{"name": "id", "type": "string"}]
    assert avro_to_arrow(text).equals(schema)


def test_nested_records_and_decimals_are_named_by_the_path_to_them() -> None:
    inner = pa.struct([("price", pa.decimal128(38, 0)), ("deep", pa.list_(pa.struct([("x", pa.int32())])))])
    record = json.loads(arrow_to_avro(pa.schema([("outer", inner)]), table_name="t"))
    outer = record["fields"][0]["type"][1]
    assert (outer["name"], outer["namespace"]) == ("outer", "hoodie.t.t_record")
    fixed = outer["fields"][0]["type"][1]
    assert (fixed["name"], fixed["namespace"], fixed["size"]) == ("fixed", "hoodie.t.t_record.outer.price", 16)
    deep = outer["fields"][1]["type"][1]["items"][1]
    assert (deep["name"], deep["namespace"]) == ("deep", "hoodie.t.t_record.outer")


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)])
def test_a_decimal_takes_the_fewest_bytes(precision: int, size: int) -> None:
    assert decimal_bytes(precision) == size


@pytest.mark.parametrize(("name", "sanitised"), [("my-table", "my__table"), ("1st", "__st"), ("a.b c", "a__b__c")])
def test_characters_that_avro_refuses_become_two_underscores_in_the_record_name(name: str, sanitised: str) -> None:
    record = json.loads(arrow_to_avro(pa.schema([("a", pa.int32())]), table_name=name))
    assert (record["name"], record["namespace"]) == (f"{sanitised}_record", f"hoodie.{sanitised}")


def test_meta_columns_are_added_in_front_once_and_taken_off_by_name() -> None:
    schema = pa.schema([("id", pa.string())])
    full = with_meta(schema)
    assert full.names == [*META_COLUMNS, "id"]
    assert with_meta(full).equals(full)
    assert without_meta(full).equals(schema)
    text = with_meta_text(arrow_to_avro(schema, table_name="t"))
    assert text == arrow_to_avro(full, table_name="t") == with_meta_text(text)


def test_an_unchanged_schema_keeps_its_text_word_for_word() -> None:
    text = arrow_to_avro(pa.schema([("id", pa.string())]), table_name="other").replace(
        '"name":"id"', '"name":"id","doc":"who"'
    )
    same, changed = pa.schema([("id", pa.string())]), pa.schema([("id", pa.string()), ("n", pa.int32())])
    assert avro_text_for(same, table_name="t", previous=text) == text
    assert avro_text_for(with_meta(same), table_name="t", previous=with_meta_text(text)) == text
    grown = arrow_to_avro(changed, table_name="t").replace('"name":"id"', '"name":"id","doc":"who"')
    assert avro_text_for(changed, table_name="t", previous=text) == grown
    assert avro_text_for(same, table_name="t", previous=None) == arrow_to_avro(same, table_name="t")


def record(*fields: Any) -> str:
    return json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(fields)]}
    )


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        (["int", "null"], pa.int32()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}, pa.decimal128(5, 1)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5}, pa.decimal128(5, 0)),
        ({"type": "fixed", "name": "f", "size": 3}, pa.binary(3)),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", tz="UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "unheard-of"}, pa.int64()),
        ({"type": {"type": "int"}}, pa.int32()),
        ("null", pa.null()),
    ],
)
def test_types_that_other_writers_use_are_read(avro: Any, arrow: pa.DataType) -> None:
    assert avro_to_arrow(record(avro)).field("f0").type == arrow


def test_a_named_type_may_be_used_again_by_its_name() -> None:
    inner = {"type": "record", "name": "in", "namespace": "x.y", "fields": [{"name": "a", "type": "int"}]}
    schema = avro_to_arrow(record(inner, "x.y.in", ["null", {"type": "array", "items": "x.y.in"}]))
    assert schema.field("f1").type == schema.field("f0").type
    assert schema.field("f2").type.value_type == schema.field("f0").type


@pytest.mark.parametrize(
    ("avro", "message"),
    [
        (["int", "string"], "f0.*several types"),
        ({"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"}, "f0.*duration"),
        (["null", "r"], "f0.*recursive"),
    ],
)
def test_what_arrow_does_not_hold_is_refused_by_column(avro: Any, message: str) -> None:
    with pytest.raises(UnsupportedTableError, match=message):
        avro_to_arrow(record(avro))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"int"', '{"type":"record"}', '{"type":"array","items":"int"}', record("nowhere")]
)
def test_a_text_that_is_no_record_schema_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptTableError):
        avro_to_arrow(text)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.uint64(), "int64"),
        (pa.float16(), "float32"),
        (pa.time32("s"), "string"),
        (pa.time64("us"), "string"),
        (pa.duration("s"), "int64"),
        (pa.month_day_nano_interval(), "integer columns"),
        (pa.dense_union([pa.field("a", pa.int32())]), "struct"),
        (pa.null(), "cast it"),
        (pa.decimal256(50, 2), "38 digits"),
        (pa.decimal128(5, -2), "scale"),
        (pa.map_(pa.int32(), pa.string()), "keys that are not strings"),
        (pa.struct([]), "without fields"),
        (pa.dictionary(pa.int32(), pa.uint64()), "int64"),
        (pa.list_(pa.float16()), "float32"),
        (pa.map_(pa.string(), pa.duration("s")), "int64"),
        (pa.uuid(), "extension"),
        (pa.json_(), "extension"),
    ],
    ids=str,
)
def test_a_type_that_hudi_cannot_hold_is_refused_by_column_with_what_to_do(kind: pa.DataType, reason: str) -> None:
    schema = pa.schema([("fine", pa.int32()), ("bad", kind)])
    ((column, said),) = unsupported_columns(schema)
    assert column == "bad"
    assert reason in said
    with pytest.raises(InvalidSchemaError, match="column 'bad'"):
        normalise(schema)


def test_a_nested_fault_is_named_by_its_path_and_all_faults_are_told_at_once() -> None:
    schema = pa.schema([("s", pa.struct([("ok", pa.int32()), ("t", pa.time32("s"))])), ("u", pa.uint64())])
    assert [path for path, _ in unsupported_columns(schema)] == ["s.t", "u"]


@pytest.mark.parametrize("name", ["a b", "1a", "a-b", "a.b", "größe", "", "a\n"])
def test_a_name_that_avro_refuses_is_refused(name: str) -> None:
    assert [path for path, _ in unsupported_columns(pa.schema([(name, pa.int32())]))] == [name]
    assert [path for path, _ in unsupported_columns(pa.schema([("s", pa.struct([(name, pa.int32())]))]))] == [
        f"s.{name}"
    ]


def test_names_that_differ_by_case_alone_or_not_at_all_are_refused() -> None:
    for second in ("ID", "id"):
        ((path, reason),) = unsupported_columns(pa.schema([("id", pa.int32()), (second, pa.int32())]))
        assert path == second
        assert "'id'" in reason


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("s"), US),
        (pa.timestamp("ms", tz="UTC"), US),
        (pa.timestamp("ns", tz="Europe/Berlin"), US),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), pa.int32()),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.list_(pa.string(), 3), pa.list_(pa.string())),
        (pa.list_view(pa.string()), pa.list_(pa.string())),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_other_widths_and_layouts_are_stored_as_the_plain_type(kind: pa.DataType, stored: pa.DataType) -> None:
    assert unsupported_columns(pa.schema([("c", kind)])) == []
    assert normal_type(kind) == stored
    arrow_to_avro(normalise(pa.schema([("c", kind)])), table_name="t")


@given(st.sampled_from([pa.int8(), pa.timestamp("ns"), pa.large_string(), pa.uint64()]))
def test_a_schema_that_was_not_normalised_is_a_bug_of_the_caller(kind: pa.DataType) -> None:
    with pytest.raises(InvariantError, match="'c'"):
        arrow_to_avro(pa.schema([("c", kind)]), table_name="t")


def test_a_column_that_the_table_has_keeps_the_type_that_it_has_there() -> None:
    ms, us, naive = pa.timestamp("ms", tz="UTC"), US, pa.timestamp("us")
    known = pa.schema(
        [("ms", ms), ("naive", naive), ("fixed", pa.binary(4)), ("time", pa.time64("us")), ("n", pa.int64())]
    )
    for kind in (us, naive, pa.timestamp("ns", tz="Asia/Tokyo")):
        given_ = pa.schema([("ms", kind), ("naive", kind), ("fixed", pa.large_binary()), ("time", pa.time64("us"))])
        assert normalise(given_, known=known).types == known.types[:4]
    nulls = pa.schema([pa.field(name, pa.null()) for name in known.names])
    assert normalise(nulls, known=known).equals(known)


def test_other_types_are_stored_as_without_a_table() -> None:
    known = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert normalise(pa.schema([("a", pa.int8()), ("new", pa.timestamp("s"))]), known=known).types == [pa.int32(), US]
    with pytest.raises(InvalidSchemaError, match=r"'b'.*'new'"):
        normalise(pa.schema([("b", pa.uint64()), ("new", pa.null())]), known=known)
