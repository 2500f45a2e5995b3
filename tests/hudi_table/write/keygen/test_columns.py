"""Keys and partition paths against what Apache Hudi 0.15.0 wrote for the same values (upsert
path)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.errors import InvalidDataError, InvalidSchemaError, InvariantError, UnsupportedTableError
from hudi_table.model.names import DEFAULT_PARTITION, unescape_partition_value
from hudi_table.model.table.config import KeyEncoding, PartitionType, TableConfig
from hudi_table.model.table.properties import from_properties, generator_class, to_properties
from hudi_table.table.keys.java_text import java_float
from hudi_table.table.keys.record_keys import record_keys
from hudi_table.table.store.paths import STAGING_SUFFIX, check_path
from hudi_table.write.keygen.columns import partition_paths, path_problem, with_inputs
from tests.support.keys import config, instants, keys_of, paths_of

MILLIS = [1709210096789, -1, 1735689599999, 1577836799000]


UTC = dt.UTC
TEXTS: list[tuple[pa.Array, list[str]]] = [
    (pa.array(["a b", "x", "é中"]), ["a b", "x", "é中"]),
    (pa.array([True, False]), ["true", "false"]),
    (pa.array([1, -128], pa.int8()), ["1", "-128"]),
    (pa.array([-9223372036854775808, 9223372036854775807]), ["-9223372036854775808", "9223372036854775807"]),
    (
        pa.array([1.5, 1e-5, 1e10, 1e7, 0.1, 123456.789, np.nan, np.inf], pa.float32()),
        ["1.5", "1.0E-5", "1.0E10", "1.0E7", "0.1", "123456.79", "NaN", "Infinity"],
    ),
    (
        pa.array([1.5, 1e-5, 1e10, 1e7, 0.1, 123456.789, np.nan, -0.0]),
        ["1.5", "1.0E-5", "1.0E10", "1.0E7", "0.1", "123456.789", "NaN", "-0.0"],
    ),
    (
        pa.array([Decimal("1.5"), Decimal("-0.05"), Decimal("12345678.9"), Decimal(0)], pa.decimal128(10, 2)),
        ["1.50", "-0.05", "12345678.90", "0.00"],
    ),
    (
        pa.array(
            [Decimal("1E-10"), Decimal(0), Decimal("12345678901234.123456789"), Decimal(100)], pa.decimal128(24, 10)
        ),
        ["1E-10", "0E-10", "12345678901234.1234567890", "100.0000000000"],
    ),
    (
        pa.array([dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        ["2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31"],
    ),
    (
        pa.array(
            [dt.datetime(2024, 2, 29, 12, 34, 56, 789000, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
            pa.timestamp("us", "UTC"),
        ),
        ["1709210096789000", "-1"],
    ),
    (pa.array([-11676096000000000], pa.timestamp("us")), ["-11676096000000000"]),
]
TEXT_IDS = [str(values.type) for values, _ in TEXTS]


@pytest.mark.parametrize(("values", "expected"), TEXTS, ids=TEXT_IDS)
def test_a_single_key_has_the_text_that_hudi_gives_it(values: pa.Array, expected: list[str]) -> None:
    assert keys_of({"k": values}) == expected


@pytest.mark.parametrize(("values", "expected"), TEXTS, ids=TEXT_IDS)
def test_a_partition_value_has_the_text_that_hudi_gives_it(values: pa.Array, expected: list[str]) -> None:
    assert paths_of({"p": values}, "p") == expected


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_layouts_of_text_make_no_difference(kind: pa.DataType) -> None:
    values = pa.array(["a", "b", "a"]).cast(kind)
    assert keys_of({"k": values}) == ["a", "b", "a"]
    assert paths_of({"p": values}, "p") == ["a", "b", "a"]


def test_a_table_in_pieces_and_a_batch_give_the_same() -> None:
    whole = pa.table({"k": ["a", "b", "c"], "p": ["x", None, "x"]})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)])
    table = config("k", "p")
    for rows in (pieces, whole.to_batches()[0], whole.slice(0, 3)):
        assert record_keys(rows, table).to_pylist() == ["a", "b", "c"]
        assert partition_paths(rows, table).to_pylist() == ["x", DEFAULT_PARTITION, "x"]
    empty = whole.slice(0, 0)
    assert record_keys(empty, table).to_pylist() == []
    assert partition_paths(empty, table).to_pylist() == []
    assert partition_paths(whole.schema.empty_table(), table).to_pylist() == []


def test_a_key_of_several_fields_names_them() -> None:
    columns = {"s": ["a b", "x"], "dt": [dt.date(2024, 2, 29), dt.date(1969, 12, 31)], "f": [1.5, 1e-5]}
    assert keys_of(columns, "s,dt,f") == ["s:a b,dt:2024-02-29,f:1.5", "s:x,dt:1969-12-31,f:1.0E-5"]


def test_missing_parts_of_a_key_are_named() -> None:
    columns = {"a": ["x", "x", "x", None, ""], "b": ["y", None, "", "y", "y"]}
    assert keys_of(columns, "a,b") == [
        "a:x,b:y",
        "a:x,b:__null__",
        "a:x,b:__empty__",
        "a:__null__,b:y",
        "a:__empty__,b:y",
    ]
    assert keys_of({"a": ["__null__"], "b": ["__empty__"]}, "a,b") == ["a:__null__,b:__empty__"]


def test_a_single_field_of_a_complex_key_follows_the_recorded_encoding() -> None:
    rows = pa.table({"k": ["v"], "p": ["x"], "q": ["y"]})
    raw = config("k", "p", "q")
    assert generator_class(raw).endswith(".ComplexKeyGenerator")
    assert record_keys(rows, raw).to_pylist() == ["v"]
    prefixed = config("k", "p", "q", key_encoding="FieldPrefixed")
    assert record_keys(rows, prefixed).to_pylist() == ["k:v"]
    assert from_properties(to_properties(prefixed)).key_encoding == "FieldPrefixed"
    assert to_properties(raw)["hoodie.write.complex.keygen.new.encoding"] == "true"
    assert from_properties(to_properties(raw)).key_encoding == "Raw"
    assert keys_of({"k": ["v"]}, key_encoding="FieldPrefixed") == ["v"], "no other generator prefixes a single field"


@pytest.mark.parametrize("generator", ["class", "type"])
def test_of_a_table_that_tells_no_encoding_no_key_is_made_before_its_files_have_told(generator: str) -> None:
    """No release of Hudi stores it: 0.15.0 and 1.0.2 write `v`, 1.1.1 writes `k:v` unless it is
    told otherwise."""
    stored = to_properties(config("k", "p", "q"))
    for key in [key for key in stored if "keygen" in key]:
        del stored[key]
    name = {"class": "org.apache.hudi.keygen.ComplexKeyGenerator", "type": "COMPLEX"}[generator]
    stored[f"hoodie.table.keygenerator.{generator}"] = name
    table = from_properties(stored)
    assert table.key_encoding == KeyEncoding.UNKNOWN
    with pytest.raises(InvariantError, match="before its files have shown"):
        record_keys(pa.table({"k": ["v"]}), table)


@pytest.mark.parametrize(
    ("columns", "key", "message"),
    [
        ({"k": ["a", None, "", "b"]}, "k", r"record key column 'k' has null or '' in 2 rows, the first at row 1"),
        ({"k": pa.array([1, None])}, "k", r"'k' .* 1 row, the first at row 1"),
        ({"k": pa.nulls(2)}, "k", r"2 rows, the first at row 0"),
        ({"a": ["x", ""], "b": [1, None]}, "a,b", r"every record key column of 'a', 'b' .* 1 row, the first at row 1"),
    ],
)
def test_a_missing_key_is_refused_with_column_count_and_row(columns: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        keys_of(columns, key)


def test_a_missing_column_is_refused_by_name() -> None:
    with pytest.raises(InvalidSchemaError, match="no column 'nope'"):
        keys_of({"k": ["a"]}, "k,nope")
    with pytest.raises(InvalidSchemaError, match="no column 'nope'"):
        paths_of({"k": ["a"]}, "nope")
    with pytest.raises(InvalidSchemaError, match=r"no field 's\.nope'"):
        keys_of({"s": [{"x": 1}]}, "s.nope")


@pytest.mark.parametrize(
    "values", [pa.array([b"a"]), pa.array([{"x": 1}]), pa.array([[1]]), pa.array([b"abcd"], pa.binary(4))], ids=str
)
def test_a_type_without_text_is_refused_by_name(values: pa.Array) -> None:
    with pytest.raises(InvalidSchemaError, match="column 'k' is"):
        keys_of({"k": values})
    with pytest.raises(InvalidSchemaError, match="column 'p' is"):
        paths_of({"p": values}, "p")
    with pytest.raises(InvalidSchemaError, match="column 'k' is"):
        with_inputs(config(), pa.schema({"k": values.type}))


def test_a_field_of_a_struct_is_named_by_a_dot() -> None:
    columns = {"s": [{"x": "a", "y": {"z": 1}}, {"x": "b", "y": None}], "p.q": ["dotted", "dotted"]}
    assert keys_of(columns, "s.x") == ["a", "b"]
    assert paths_of(columns, "s.y.z", hive_style=True) == ["s.y.z=1", f"s.y.z={DEFAULT_PARTITION}"]
    assert paths_of(columns, "p.q") == ["dotted", "dotted"]


def test_partition_paths_join_their_fields() -> None:
    columns = {"a": ["x", "x", None, ""], "b": [1, 2, 1, None]}
    assert paths_of(columns, "a", "b") == [
        "x/1",
        "x/2",
        f"{DEFAULT_PARTITION}/1",
        f"{DEFAULT_PARTITION}/{DEFAULT_PARTITION}",
    ]
    assert paths_of(columns, "a", "b", hive_style=True)[:2] == ["a=x/b=1", "a=x/b=2"]
    assert paths_of({"a": [None, ""]}, "a", hive_style=True) == [f"a={DEFAULT_PARTITION}"] * 2
    assert paths_of({"a": ["x", "y"]}) == ["", ""]


@pytest.mark.parametrize(
    ("value", "plain", "escaped"),
    [
        ("a/b", "a/b", "a%2Fb"),
        ("a b", "a b", "a b"),
        ("a%b", "a%b", "a%25b"),
        ("é", "é", "é"),
        (" x ", " x ", " x "),
        ("{x}^=", "{x}^=", "%7Bx}%5E%3D"),
    ],
)
def test_values_are_escaped_as_hudi_escapes_them(value: str, plain: str, escaped: str) -> None:
    assert paths_of({"p": [value]}, "p") == [plain]
    assert paths_of({"p": [value]}, "p", url_encode=True) == [escaped]
    assert paths_of({"p": [value]}, "p", url_encode=True, hive_style=True) == [f"p={escaped}"]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("..", "'.' or '..'"),
        ("a/../../b", "'.' or '..'"),
        (".", "'.' or '..'"),
        ("/a", "absolute"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
        ("a\0b", "U+0000"),
        ("a\nb", "U+000A"),
        (".hoodie", "own folder"),
        (".hoodie/metadata", "own folder"),
        ("12:30", "':' in the first folder"),
        ("x" * 2048, "2048 bytes"),
        ("é" * 200, "400 bytes"),
    ],
)
def test_a_value_that_no_folder_can_have_is_refused_with_count_and_row(value: str, what: str) -> None:
    with pytest.raises(
        InvalidDataError, match=r"partition path .* of 2 rows, the first at row 1, cannot be written"
    ) as caught:
        paths_of({"p": ["fine", value, value]}, "p")
    assert what in str(caught.value)
    shown = value if len(value) <= 100 else f"{value[:100]}…"
    assert f"partition path {shown!r} (from p)" in str(caught.value)


def test_escaping_makes_most_of_them_storable() -> None:
    values = ["/a", "a/", "a//b", "a\0b", "a\nb", "12:30", "a/../../b"]
    paths = paths_of({"p": values}, "p", url_encode=True)
    assert paths == ["%2Fa", "a%2F", "a%2F%2Fb", "a%00b", "a%0Ab", "12%3A30", "a%2F..%2F..%2Fb"]


@given(
    st.lists(
        st.text(max_size=20) | st.sampled_from(["..", ".", "/", "%2F", "\0", ".hoodie", "", "x" * 300, "a\\..\\b"])
    )
)
def test_escaped_hive_paths_stay_below_the_base_and_round_trip(values: list[str]) -> None:
    """Every value of any text either is refused as no folder's name, or names one folder that tells
    the value."""
    storable = [value for value in values if path_problem(paths_hint(value)) is None]
    paths = paths_of({"p": pa.array(storable, pa.string())}, "p", url_encode=True, hive_style=True)
    for path, value in zip(paths, storable, strict=True):
        assert check_path(path).count("/") == 0
        assert unescape_partition_value(path.removeprefix("p=")) == (value or DEFAULT_PARTITION)
    refused = [value for value in values if value not in storable]
    for value in refused:
        encodable = not any(0xD800 <= ord(c) < 0xE000 for c in value)
        assert not encodable or len(paths_hint(value).encode()) > 255 or value.endswith(STAGING_SUFFIX)


def paths_hint(value: str) -> str:
    """The folder that a value is expected to have, by the table in the format notes."""
    special = "\"#%'*/:=?[\\]^{\x7f" + "".join(map(chr, range(32)))
    return "p=" + (re.sub(f"[{re.escape(special)}]", lambda m: f"%{ord(m[0]):02X}", value) or DEFAULT_PARTITION)


def test_a_custom_generator_mixes_both_kinds() -> None:
    table = config("k", "c", instants(format="yyyy-MM-dd", input="EPOCHMILLISECONDS"), hive_style=True)
    assert generator_class(table).endswith(".CustomKeyGenerator")
    rows = pa.table({"k": ["1", "2"], "c": ["p1", None], "p": [MILLIS[0], None]})
    assert partition_paths(rows, table).to_pylist() == ["c=p1/p=2024-02-29", f"c={DEFAULT_PARTITION}/p=1970-01-01"]
    stored = to_properties(table)
    assert stored["hoodie.table.partition.fields"] == "c,p", "Hudi 0.15.0 stores the fields without their types"
    again = from_properties(stored)
    assert again.partition_by == table.partition_by
    assert partition_paths(rows, again).to_pylist() == ["c=p1/p=2024-02-29", f"c={DEFAULT_PARTITION}/p=1970-01-01"]


def test_a_custom_table_that_tells_no_types_is_refused() -> None:
    stored = to_properties(config("k", "c", instants(format="yyyy", input="EPOCHMILLISECONDS")))
    del stored["hoodie.lakeops.partition.types"]
    foreign = from_properties(stored)
    with pytest.raises(UnsupportedTableError, match="which of its partition fields c, p are"):
        partition_paths(pa.table({"k": ["1"], "c": ["x"], "p": [0]}), foreign)
    one = to_properties(config("k,l", instants(format="yyyy", input="EPOCHMILLISECONDS")))
    del one["hoodie.lakeops.partition.types"]
    assert from_properties(one).partition_by[0].type is PartitionType.TIMESTAMP


def test_a_generator_of_the_users_own_is_refused_by_name() -> None:
    table = config("k", key_generator="com.example.OurKeyGenerator")
    with pytest.raises(UnsupportedTableError, match=r"com\.example\.OurKeyGenerator"):
        record_keys(pa.table({"k": ["a"]}), table)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (config("k"), "Nonpartitioned"),
        (config("k,l"), "Nonpartitioned"),
        (config("k", "p"), "Simple"),
        (config("k,l", "p"), "Complex"),
        (config("k", "p", "q"), "Complex"),
        (config("k", instants(format="yyyy", input="EPOCHMILLISECONDS")), "TimestampBased"),
        (config("k,l", instants(format="yyyy", input="EPOCHMILLISECONDS")), "Custom"),
        (config("k", "q", instants(format="yyyy", input="EPOCHMILLISECONDS")), "Custom"),
    ],
)
def test_the_class_is_hudis_and_loads_back(table: TableConfig, name: str) -> None:
    stored = to_properties(table)
    assert stored["hoodie.table.keygenerator.class"] == f"org.apache.hudi.keygen.{name}KeyGenerator"
    again = from_properties(stored)
    assert (again.record_key, again.partition_by) == (table.record_key, table.partition_by)
    assert to_properties(again) == stored


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_from_its_text(value: float) -> None:
    text = java_float(value, single=False)
    assert float(text) == value
    assert re.fullmatch(r"-?\d+\.\d+(E-?\d+)?", text)
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
