"""What a write may change in a table's schema: new nullable columns and wider types; all else is
listed and refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidSchemaError
from hudi_table.write.checks.schema_evolution import evolve
from tests.support.arrow_types import tables
from tests.support.scale import scaled

US = pa.timestamp("us", tz="UTC")


def one(kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("c", kind, nullable)])


def items(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


@settings(max_examples=scaled(50))
@given(tables(), tables())
def test_a_table_takes_its_own_schema_unchanged_and_new_columns_as_nullable(table: pa.Table, other: pa.Table) -> None:
    assert not evolve(table.schema, table.schema).changed
    added = [pa.field(f"new_{field.name}", field.type, nullable=False) for field in other.schema]
    evolved = evolve(table.schema, pa.schema([*added, *table.schema]))
    assert evolved.changed
    assert evolved.schema.names == [*table.schema.names, *(field.name for field in added)]
    assert all(evolved.schema.field(field.name).nullable for field in added)
    old = conform(table, evolved.schema)
    assert old.select(table.schema.names).equals(table)
    assert all(old.column(field.name).null_count == len(table) for field in added)


@pytest.mark.parametrize(
    ("have", "given_", "want"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(5, 2), pa.decimal128(10, 2)),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int64())])),
        (items(pa.int32()), items(pa.int64()), items(pa.int64())),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float64())),
        (
            items(pa.struct([("a", pa.int32())])),
            items(pa.struct([("b", US), ("a", pa.int32())])),
            items(pa.struct([("a", pa.int32()), ("b", US)])),
        ),
    ],
    ids=str,
)
def test_the_wider_of_two_types_is_kept(have: pa.DataType, given_: pa.DataType, want: pa.DataType) -> None:
    evolved = evolve(one(have), one(given_))
    assert evolved.schema.field("c").type == want
    assert evolved.changed == (have != want)


@pytest.mark.parametrize(
    ("have", "given_"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.bool_(), pa.int32()),
        (US, pa.date32()),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.string(), pa.binary()),
        (items(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32())),
    ],
    ids=str,
)
def test_any_other_change_of_type_is_refused_with_both_types(have: pa.DataType, given_: pa.DataType) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        evolve(one(have), one(given_))
    assert f"column 'c' is {given_} in the data and {have} in the table: cast it" in str(caught.value)


def test_every_difference_is_listed_at_once_by_path() -> None:
    table = pa.schema([("a", pa.int32()), ("gone", pa.string()), ("s", pa.struct([("x", pa.int32()), ("y", US)]))])
    data = pa.schema([("a", pa.string()), ("s", pa.struct([("x", pa.string())]))])
    with pytest.raises(InvalidSchemaError) as caught:
        evolve(table, data)
    for part in ("'a' is string", "'gone' (string) is missing", "'s.x' is string", "'s.y'"):
        assert part in str(caught.value)


def test_a_missing_nullable_column_is_null_only_if_that_was_asked_for() -> None:
    table = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    with pytest.raises(InvalidSchemaError, match=r"set hoodie\.write\.set\.null\.for\.missing\.columns"):
        evolve(table, pa.schema([("a", pa.int32())]))
    assert not evolve(table, pa.schema([("a", pa.int32())]), null_for_missing=True).changed


def test_a_missing_required_column_is_always_refused() -> None:
    table = pa.schema([("a", pa.int32()), pa.field("b", pa.int32(), nullable=False)])
    with pytest.raises(InvalidSchemaError, match=r"'b'.*required"):
        evolve(table, pa.schema([("a", pa.int32())]), null_for_missing=True)


def test_a_required_column_stays_required_and_a_nullable_one_nullable() -> None:
    for nullable in (True, False):
        table, data = one(pa.int32(), nullable=nullable), one(pa.int32(), nullable=not nullable)
        assert evolve(table, data).schema.equals(table)


def test_a_new_column_that_differs_by_case_alone_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="'C' differs from 'c'"):
        evolve(one(pa.int32()), pa.schema([("c", pa.int32()), ("C", pa.int32())]))
    nested = pa.struct([("x", pa.int32()), ("X", pa.int32())])
    with pytest.raises(InvalidSchemaError, match=r"'c\.X' differs from 'x'"):
        evolve(one(pa.struct([("x", pa.int32())])), one(nested))


def test_a_key_column_may_become_a_wider_integer_but_no_floating_point() -> None:
    assert evolve(one(pa.int32()), one(pa.int64()), keys={"c"}).schema.field("c").type == pa.int64()
    for have in (pa.int32(), pa.float32()):
        with pytest.raises(InvalidSchemaError, match="'c' is part of keys"):
            evolve(one(have), one(pa.float64()), keys={"c"})
        assert evolve(one(have), one(pa.float64())).changed
