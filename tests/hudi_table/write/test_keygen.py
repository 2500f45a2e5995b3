"""Keys and partition paths against what Apache Hudi 0.15.0 wrote for the same values (upsert path)."""

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

from hudi_table.errors import InvalidDataError, InvalidOptionError, InvalidSchemaError, UnsupportedTableError
from hudi_table.model.names import DEFAULT_PARTITION, unescape_partition_value
from hudi_table.model.table_config import PartitionField, PartitionType, TableConfig, TableType
from hudi_table.model.table_properties import from_properties, generator_class, to_properties, with_timebased
from hudi_table.table.storage_paths import check_path
from hudi_table.write.key_text import java_float
from hudi_table.write.key_time import format_instants, path_texts, zone_name
from hudi_table.write.keygen import partition_paths, path_problem, record_keys, with_inputs

MILLIS = [1709210096789, -1, 1735689599999, 1577836799000]
TIMESTAMP = PartitionType.TIMESTAMP


def config(key: str = "k", *partitions: PartitionField | str, **changes: Any) -> TableConfig:
    fields = tuple(PartitionField(item) if isinstance(item, str) else item for item in partitions)
    return TableConfig("t", TableType.COPY_ON_WRITE, tuple(key.split(",")), fields, **changes)


def keys_of(columns: dict[str, Any], key: str = "k", **changes: Any) -> list[str]:
    return record_keys(pa.table(columns), config(key, **changes)).to_pylist()


def paths_of(columns: dict[str, Any], *partitions: PartitionField | str, **changes: Any) -> list[str]:
    found = partition_paths(pa.table(columns), config("k", *partitions, **changes))
    assert found.type == pa.dictionary(pa.int32(), pa.string())
    assert found.null_count == 0
    assert len(set(found.dictionary.to_pylist())) == len(found.dictionary)
    return found.to_pylist()


def instants(**settings: Any) -> PartitionField:
    return PartitionField("p", TIMESTAMP, **settings)


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


@pytest.mark.parametrize(("generator", "encoding"), [("class", "Raw"), ("type", "FieldPrefixed")])
def test_a_table_that_tells_no_encoding_has_that_of_the_release_that_made_it(generator: str, encoding: str) -> None:
    """0.15.0 stores the generator's class and writes `v`; 1.1.1 stores its type and writes `k:v`."""
    stored = to_properties(config("k", "p", "q"))
    for key in [key for key in stored if "keygen" in key]:
        del stored[key]
    name = {"class": "org.apache.hudi.keygen.ComplexKeyGenerator", "type": "COMPLEX"}[generator]
    stored[f"hoodie.table.keygenerator.{generator}"] = name
    table = from_properties(stored)
    assert table.key_encoding == encoding
    expected = {"Raw": "v", "FieldPrefixed": "k:v"}[encoding]
    assert record_keys(pa.table({"k": ["v"]}), table).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("columns", "key", "message"),
    [
        ({"k": ["a", None, "", "b"]}, "k", r"2 rows have null or '' in record key column 'k', the first at row 1"),
        ({"k": pa.array([1, None])}, "k", r"1 rows .* 'k', the first at row 1"),
        ({"k": pa.nulls(2)}, "k", r"2 rows .* the first at row 0"),
        ({"a": ["x", ""], "b": [1, None]}, "a,b", r"1 rows .* all record key columns 'a', 'b', the first at row 1"),
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
    with pytest.raises(InvalidDataError, match="2 rows, the first at row 1, have the partition path") as caught:
        paths_of({"p": ["fine", value, value]}, "p")
    assert what in str(caught.value)
    assert "(from p)" in str(caught.value)


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
    """Every value of any text either is refused as no folder's name, or names one folder that tells the value."""
    storable = [value for value in values if path_problem(paths_hint(value)) is None]
    paths = paths_of({"p": pa.array(storable, pa.string())}, "p", url_encode=True, hive_style=True)
    for path, value in zip(paths, storable, strict=True):
        assert check_path(path).count("/") == 0
        assert unescape_partition_value(path.removeprefix("p=")) == (value or DEFAULT_PARTITION)
    refused = [value for value in values if value not in storable]
    for value in refused:
        encodable = not any(0xD800 <= ord(c) < 0xE000 for c in value)
        assert not encodable or len(paths_hint(value).encode()) > 255


def paths_hint(value: str) -> str:
    """The folder that a value is expected to have, by the table in the format notes."""
    special = "\"#%'*/:=?[\\]^{\x7f" + "".join(map(chr, range(32)))
    return "p=" + (re.sub(f"[{re.escape(special)}]", lambda m: f"%{ord(m[0]):02X}", value) or DEFAULT_PARTITION)


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        (MILLIS, instants(format="yyyy/MM/dd", input="EPOCHMILLISECONDS"), "2024/02/29 1969/12/31 2024/12/31 2019/12/31"),
        (
            [value // 1000 for value in MILLIS],
            instants(format="yyyy-MM-dd-HH-mm-ss.SSS", input="UNIX_TIMESTAMP"),
            "2024-02-29-12-34-56.000 1969-12-31-23-59-59.000 2024-12-31-23-59-59.000 2019-12-31-23-59-59.000",
        ),
        (
            MILLIS,
            instants(format="yyyyMMddHHmm", input="EPOCHMILLISECONDS", timezone="GMT+8:00"),
            "202402292034 197001010759 202501010759 202001010759",
        ),
        (
            MILLIS,
            instants(format="yyyyMMddHHmm", input="EPOCHMILLISECONDS", timezone="America/New_York"),
            "202402290734 196912311859 202412311859 201912311859",
        ),
        (
            MILLIS,
            instants(format="'year='yyyy/'month='MM/'day='dd", input="EPOCHMILLISECONDS"),
            "year=2024/month=02/day=29 year=1969/month=12/day=31 year=2024/month=12/day=31 year=2019/month=12/day=31",
        ),
        (
            MILLIS[2:3],
            instants(
                format="yy-M-d-H-h-hh-a-E-EEEE-D-w-xxxx-MMM-MMMM-k-K-m-s-S-SS-Z-'ZZ'-e-YYYY",
                input="EPOCHMILLISECONDS",
            ),
            "24-12-31-23-11-11-PM-Tue-Tuesday-366-1-2025-Dec-December-23-11-59-59-9-99-+0000-ZZ-2-2024",
        ),
        ([10096, 99999, 89599, 36799], instants(format="yyyy/MM/dd", input="SCALAR", unit="days"), "1997/08/23 2243/10/16 2215/04/26 2070/10/02"),
        (
            [10096, 99999],
            instants(format="yyyy/MM/dd-HH-mm-ss", input="EPOCHMILLISECONDS"),
            "1970/01/01-00-00-10 1970/01/01-00-01-39",
        ),
        (
            [1709210096789.0, -1.0],
            instants(format="yyyy/MM/dd-HH-mm-ss.SSS", input="EPOCHMILLISECONDS"),
            "2024/02/29-12-34-56.789 1969/12/31-23-59-59.999",
        ),
        (
            [Decimal("1709210096789.000")],
            instants(format="yyyy/MM/dd-HH-mm-ss.SSS", input="EPOCHMILLISECONDS"),
            "2024/02/29-12-34-56.789",
        ),
        ([1709210096789, None], instants(format="yyyy/MM/dd", input="EPOCHMILLISECONDS"), "2024/02/29 1970/01/01"),
    ],
)  # fmt: skip
def test_instants_become_the_path_that_hudi_gives_them(values: list[Any], field: PartitionField, expected: str) -> None:
    assert paths_of({"p": values}, field) == expected.split(" ")


@given(
    st.lists(st.integers(-(2**45), 2**45)),
    st.sampled_from(["yyyy/MM/dd", "yyyyMMddHH", "HH:mm", "HH:mm:ss", "SSS", "yyyy-ww"]),
    st.sampled_from(
        ["UTC", "Europe/Amsterdam", "Asia/Kathmandu", "Africa/Monrovia", "Australia/Lord_Howe", "GMT-03:30"]
    ),
)
def test_formatting_few_instants_for_many_gives_each_its_own_text(values: list[int], pattern: str, zone: str) -> None:
    field = instants(format=pattern, input="EPOCHMILLISECONDS", timezone=zone)
    millis = pa.array(values, pa.int64())
    texts = path_texts(millis, field)
    assert texts.to_pylist() == format_instants(millis, pattern, zone_name(zone)).to_pylist()


PLAIN = ["2024-02-29 12:34:56", "1969-12-31 23:59:59", "2024-12-31 23:59:59", "2019-12-31 01:02:03", None]
ZONED = [
    "2024-02-29T12:34:56.789+0200",
    "1969-12-31T23:59:59.999Z",
    "2024-12-31T23:59:59.999-0500",
    "2019-12-31T01:02:03.000+0000",
]


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        (PLAIN, {"input_format": "yyyy-MM-dd HH:mm:ss"}, ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01", "1970/01/01-00"]),
        (
            PLAIN[:4],
            {"input_format": "yyyy-MM-dd HH:mm:ss", "input_timezone": "Asia/Tokyo"},
            ["2024/02/29-03", "1969/12/31-14", "2024/12/31-14", "2019/12/30-16"],
        ),
        (
            PLAIN[:4],
            {"input_format": "yyyy-MM-dd HH:mm:ss", "timezone": "GMT+8:00"},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (
            ZONED,
            {"input_format": "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "timezone": ""},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (
            ZONED,
            {"input_format": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ", "timezone": ""},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (ZONED, {"input_format": "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}, ["2024/02/29-10", "1969/12/31-23", "2025/01/01-04", "2019/12/31-01"]),
        (["20240229", "19700101"], {"input_format": "yyyyMMdd"}, ["2024/02/29-00", "1970/01/01-00"]),
        (["7/4/2024 3:05 PM"], {"input_format": "M/d/yyyy h:mm a"}, ["2024/07/04-15"]),
    ],
)  # fmt: skip
def test_text_is_read_by_the_input_format(values: list[Any], settings: dict[str, str], expected: list[str]) -> None:
    field = instants(format="yyyy/MM/dd-HH", input="DATE_STRING", **settings)
    assert paths_of({"p": values}, field) == expected


@pytest.mark.parametrize("text", ["2024-02-30", "2024-13-01", "yesterday", "2024-02-29 ", ""])
def test_text_that_does_not_fit_is_refused_with_count_and_row(text: str) -> None:
    field = instants(format="yyyy", input="DATE_STRING", input_format="yyyy-MM-dd")
    with pytest.raises(InvalidDataError, match=r"2 rows have text in partition field 'p'.*first at row 1: '"):
        paths_of({"p": ["2024-02-29", text, None, text]}, field)


def test_dates_and_timestamps_need_no_input() -> None:
    days = pa.array([dt.date(2024, 2, 29), dt.date(1969, 12, 31)])
    assert paths_of({"p": days}, instants(format="yyyy/MM/dd")) == ["2024/02/29", "1969/12/31"]
    moments = pa.array([1709210096789000, -1, None], pa.timestamp("us", "UTC"))
    field = instants(format="yyyy/MM/dd-HH.SSS", timezone="Asia/Tokyo")
    # The microsecond before 1970 is cut towards zero, as Java does.
    assert paths_of({"p": moments}, field) == ["2024/02/29-21.789", "1970/01/01-09.000", "1970/01/01-09.000"]
    resolved = with_inputs(config("k", field), pa.schema({"k": pa.string(), "p": moments.type}))
    stored = to_properties(resolved)
    assert stored["hoodie.keygen.timebased.timestamp.type"] == "SCALAR"
    assert stored["hoodie.keygen.timebased.timestamp.scalar.time.unit"] == "microseconds"
    assert from_properties(stored).partition_by == resolved.partition_by


@pytest.mark.parametrize(
    ("kind", "field", "message"),
    [
        (pa.int64(), instants(format="yyyy"), "say what it counts"),
        (pa.int64(), instants(input="EPOCHMILLISECONDS"), "give its format"),
        (pa.int64(), instants(format="yyyy", input="EPOCHS"), "'EPOCHS'"),
        (pa.int64(), instants(format="yyyy", input="SCALAR", unit="fortnights"), "'fortnights'"),
        (pa.string(), instants(format="yyyy"), "DATE_STRING"),
        (pa.string(), instants(format="yyyy", input="EPOCHMILLISECONDS", input_format="yyyy"), "DATE_STRING"),
        (pa.date32(), instants(format="yyyy", input="EPOCHMILLISECONDS"), "would misread it"),
        (pa.timestamp("us"), instants(format="yyyy", input="UNIX_TIMESTAMP"), "would misread it"),
    ],
)
def test_settings_that_would_misread_a_column_are_refused(
    kind: pa.DataType, field: PartitionField, message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        with_inputs(config("k", field), pa.schema({"k": pa.string(), "p": kind}))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (instants(format="yyyy'", input="EPOCHMILLISECONDS"), "unbalanced quote"),
        (instants(format="yyyy-qq", input="EPOCHMILLISECONDS"), "'qq'"),
        (instants(format="yyyy", input="EPOCHMILLISECONDS", timezone="Mars/Olympus"), "'Mars/Olympus'"),
    ],
)
def test_patterns_and_zones_that_nobody_knows_are_refused(field: PartitionField, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        paths_of({"p": [0]}, field)


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
    assert from_properties(one).partition_by[0].type is TIMESTAMP


def test_options_tell_what_hudi_did_not_store() -> None:
    """Hudi 0.15.0 stores of its timestamp key generator nothing but the output format."""
    stored = to_properties(config("k", instants(format="yyyy/MM/dd", timezone="")))
    assert [key for key in stored if "timebased" in key] == ["hoodie.keygen.timebased.output.dateformat"]
    foreign = from_properties(stored)
    rows = pa.table({"k": ["1"], "p": [MILLIS[0]]})
    with pytest.raises(InvalidOptionError, match="say what it counts"):
        partition_paths(rows, foreign)
    told = with_timebased(foreign, {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"})
    assert partition_paths(rows, told).to_pylist() == ["2024/02/29"]
    with pytest.raises(InvalidOptionError, match="'yyyy/MM/dd', not 'yyyy'"):
        with_timebased(foreign, {"hoodie.keygen.timebased.output.dateformat": "yyyy"})


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
