"""Batches brought to a schema: by name, without ever changing a value.

Aspects: identity and slices of every stored type (hypothesis); order, missing and surplus columns;
widths and layouts; nested evolution; what is refused, with the column's name. Not here: which
schema a write uses (write/evolution).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.arrow_types import normalise
from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError
from tests.support.arrow_types import tables
from tests.support.scale import scaled

US = pa.timestamp("us", tz="UTC")


def column(values: Any, kind: pa.DataType, target: pa.DataType, *, nullable: bool = True) -> pa.Array:
    """`values` of type `kind` as a column of type `target`, through `conform` of a batch."""
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    batch = pa.RecordBatch.from_arrays([array], names=["c"])
    result = conform(batch, pa.schema([pa.field("c", target, nullable)]))
    result.validate(full=True)
    assert result.schema.field("c").type == target
    return result.column(0)


@settings(max_examples=scaled(60))
@given(tables(), st.integers(0, 3))
def test_a_slice_in_another_order_with_a_new_column_keeps_its_values(table: pa.Table, start: int) -> None:
    target = pa.schema([pa.field("new", pa.struct([("x", pa.int32())])), *reversed(list(table.schema))])
    part = table.slice(start)
    result = conform(part, target)
    result.validate(full=True)
    assert result.schema.equals(target)
    assert result.column("new").null_count == part.num_rows
    for name in table.schema.names:
        assert result.column(name).equals(part.column(name))


@settings(max_examples=scaled(60))
@given(tables(rows_max=4), st.integers(0, 2))
def test_views_large_layouts_and_dictionaries_come_back_plain(table: pa.Table, start: int) -> None:
    widened = [_other_layout(array).slice(start) for array in table.columns]
    other = pa.Table.from_arrays(widened, names=table.schema.names)
    result = conform(other, normalise(other.schema))
    result.validate(full=True)
    assert result.to_pylist() == table.slice(start).to_pylist()


def _other_layout(array: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = array.type
    if pa.types.is_string(kind):
        return array.dictionary_encode()
    if pa.types.is_binary(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_decimal(kind):
        return array.cast(pa.decimal256(kind.precision, kind.scale))
    if pa.types.is_list(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def test_a_batch_stays_a_batch_and_a_table_a_table() -> None:
    batch = pa.record_batch({"a": pa.array([1], pa.int32()), "drop": pa.array([2])})
    schema = pa.schema([("a", pa.int64())])
    assert isinstance(conform(batch, schema), pa.RecordBatch)
    table = conform(pa.Table.from_batches([batch, batch]), schema)
    assert isinstance(table, pa.Table)
    assert table.column("a").num_chunks == 2


def test_data_that_fits_is_passed_through_untouched() -> None:
    table = pa.table({"a": [1]})
    assert conform(table, table.schema) is table


def test_a_schema_of_no_columns_keeps_the_number_of_rows() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert conform(batch, pa.schema([])).num_rows == 3


# Without a zone on purpose.
NAIVE, NAIVE_SUMMER = datetime.fromisoformat("2024-01-02 03:00"), datetime.fromisoformat("2024-07-02 01:00")
BERLIN = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "kind", "target", "expected"),
    [
        ([1, None], pa.int8(), pa.int32(), [1, None]),
        ([2**32 - 1], pa.uint32(), pa.int64(), [2**32 - 1]),
        ([7], pa.int64(), pa.int32(), [7]),
        ([7], pa.int64(), pa.float64(), [7.0]),
        ([1.5], pa.float32(), pa.float64(), [1.5]),
        ([7], pa.int32(), pa.decimal128(12, 2), [Decimal("7.00")]),
        ([7], pa.int32(), pa.string(), ["7"]),
        ([Decimal("1.20")], pa.decimal128(5, 2), pa.decimal128(7, 3), [Decimal("1.200")]),
        ([b"A"], pa.binary(), pa.string(), ["A"]),
        ([b"AB"], pa.binary(2), pa.binary(), [b"AB"]),
        ([date(2024, 1, 2)], pa.date64(), pa.date32(), [date(2024, 1, 2)]),
        ([None, None], pa.null(), pa.struct([("a", pa.int32())]), [None, None]),
        ([NAIVE], pa.timestamp("ns"), US, [datetime(2024, 1, 2, 3, tzinfo=UTC)]),
        ([NAIVE], pa.timestamp("s"), US, [datetime(2024, 1, 2, 3, tzinfo=UTC)]),
        (
            [datetime(2024, 7, 2, 3, tzinfo=BERLIN)],
            pa.timestamp("ms", tz="Europe/Berlin"),
            US,
            [datetime(2024, 7, 2, 1, tzinfo=UTC)],
        ),
        (
            [datetime(2024, 7, 2, 3, tzinfo=BERLIN)],
            pa.timestamp("ms", tz="Europe/Berlin"),
            pa.timestamp("us"),
            [NAIVE_SUMMER],
        ),
    ],
)
def test_a_cast_that_keeps_the_value_is_made(
    values: list, kind: pa.DataType, target: pa.DataType, expected: list
) -> None:
    assert column(values, kind, target).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "kind", "target"),
    [
        ([2**31], pa.int64(), pa.int32()),
        ([2**53 + 1], pa.int64(), pa.float64()),
        ([2**63], pa.uint64(), pa.int64()),
        ([1.5], pa.float64(), pa.float32()),
        ([1.5], pa.float64(), pa.int64()),
        (["1"], pa.string(), pa.int64()),
        (["2024-01-01"], pa.string(), pa.date32()),
        ([1], pa.int64(), US),
        ([True], pa.bool_(), pa.int32()),
        ([Decimal("1.25")], pa.decimal128(5, 2), pa.decimal128(5, 1)),
        ([Decimal("999.99")], pa.decimal128(5, 2), pa.decimal128(4, 2)),
        ([b"\xff"], pa.binary(), pa.string()),
        ([1], pa.timestamp("ns"), US),
        ([[1]], pa.list_(pa.int32()), pa.int32()),
        ([{"a": 1}], pa.struct([("a", pa.int32())]), pa.list_(pa.int32())),
        ([1], pa.int32(), pa.struct([("a", pa.int32())])),
    ],
)
def test_a_cast_that_would_change_or_guess_a_value_is_refused_by_column(
    values: list, kind: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(InvalidDataError, match="Column 'c'"):
        column(values, kind, target)


def test_structs_in_lists_in_maps_gain_fields_and_widths() -> None:
    old = pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int32()), ("gone", pa.string())])))
    new = pa.map_(pa.string(), pa.list_(pa.field("element", pa.struct([("b", pa.string()), ("a", pa.int64())]))))
    values: list[object] = [[("k", [{"a": 1, "gone": "x"}, None])], None, [], [("l", None), ("m", [])]]
    expected: list[object] = [[("k", [{"b": None, "a": 1}, None])], None, [], [("l", None), ("m", [])]]
    array = pa.array(values, old)
    assert column(array, old, new).to_pylist() == expected
    assert column(array.slice(1, 3), old, new).to_pylist() == expected[1:4]


def test_a_null_struct_stays_null_when_its_fields_change() -> None:
    array = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))
    result = column(array, array.type, pa.struct([("a", pa.int64()), ("b", pa.string())]))
    assert result.to_pylist() == [{"a": 1, "b": None}, None]
    assert result.null_count == 1


def test_a_run_end_encoded_column_is_spread_out() -> None:
    encoded = pc.run_end_encode(pa.array([1, 1, None], pa.int16()))
    assert column(encoded, encoded.type, pa.int32()).to_pylist() == [1, 1, None]


def test_nulls_in_a_required_column_are_refused_and_counted() -> None:
    with pytest.raises(InvalidDataError, match="'c' is required and null in 2 rows"):
        column([1, None, None], pa.int32(), pa.int64(), nullable=False)
    assert column([1], pa.int32(), pa.int64(), nullable=False).to_pylist() == [1]


def test_nulls_are_found_in_a_required_column_of_the_right_type() -> None:
    table = pa.table({"c": pa.array([1, None], pa.int64())})
    with pytest.raises(InvalidDataError, match="'c' is required"):
        conform(table, pa.schema([pa.field("c", pa.int64(), nullable=False)]))


def test_a_missing_required_column_is_refused_by_name() -> None:
    with pytest.raises(InvalidDataError, match="'c' is required"):
        conform(pa.table({"a": [1]}), pa.schema([pa.field("c", pa.int64(), nullable=False)]))


def test_nulls_in_required_fields_lists_and_maps_are_refused_unless_the_parent_is_null() -> None:
    loose = pa.struct([("a", pa.int32())])
    strict = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    assert column([None, {"a": 1}], loose, strict).to_pylist() == [None, {"a": 1}]
    for values, kind, target in (
        ([{"a": None}], loose, strict),
        ([{}], pa.struct([("b", pa.int32())]), strict),
        ([[None]], pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int64(), nullable=False))),
        (
            [[("k", None)]],
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        ),
    ):
        with pytest.raises(InvalidDataError, match="'c'"):
            column(values, kind, target)
