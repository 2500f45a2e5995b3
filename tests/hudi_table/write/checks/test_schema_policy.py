"""Which differences of columns each policy of an ingest takes, and what is said of those that it
does not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.arrow_types import normalise
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.job.jobspec import SchemaPolicy
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.write.checks.schema_evolution import evolve
from hudi_table.write.checks.schema_policy import LISTED_MAX, check_policy, check_rows, difference
from tests.support.arrow_types import tables
from tests.support.scale import scaled

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.list_(pa.field("element", pa.struct([("name", pa.string())])))),
    ]
)
STRICT, ADDS, WIDENS, EVOLVES = SchemaPolicy


def changed(**kinds: pa.DataType | None) -> pa.Schema:
    """The table's columns with some of another type, or none (None), and new ones behind them."""
    kept = [field.with_type(kinds.get(field.name, field.type)) for field in TABLE if kinds.get(field.name, 1)]
    return pa.schema([*kept, *((name, kind) for name, kind in kinds.items() if name not in TABLE.names)])


def takers(incoming: pa.Schema, *keys: str) -> list[str]:
    found = []
    for policy in SchemaPolicy:
        try:
            check_policy(policy, TABLE, incoming, keys=keys)
        except InvalidSchemaError:
            continue
        found.append(policy.value)
    return found


def refusal(policy: SchemaPolicy, incoming: pa.Schema) -> str:
    with pytest.raises(InvalidSchemaError) as caught:
        check_policy(policy, TABLE, incoming)
    return caught.value.message


@pytest.mark.parametrize(
    ("incoming", "by"),
    [
        (TABLE, [STRICT, ADDS, WIDENS, EVOLVES]),
        (pa.schema(list(TABLE)[::-1]), [STRICT, ADDS, WIDENS, EVOLVES]),
        (pa.schema([field.with_nullable(True) for field in TABLE]), [STRICT, ADDS, WIDENS, EVOLVES]),
        (changed(n=pa.null()), [STRICT, ADDS, WIDENS, EVOLVES]),
        (changed(new=pa.date32()), [ADDS, WIDENS, EVOLVES]),
        (changed(price=None), [ADDS, WIDENS, EVOLVES]),
        (changed(price=None, new=pa.string()), [ADDS, WIDENS, EVOLVES]),
        (changed(place=pa.struct([("city", pa.string()), ("zip", pa.int32()), ("at", pa.date32())])), [ADDS, WIDENS, EVOLVES]),
        (changed(n=pa.int64()), [WIDENS, EVOLVES]),
        (changed(n=pa.float64()), [WIDENS, EVOLVES]),
        (changed(price=pa.decimal128(8, 2)), [WIDENS, EVOLVES]),
        (changed(place=pa.struct([("city", pa.string()), ("zip", pa.int64())])), [WIDENS, EVOLVES]),
        (changed(n=pa.string()), []),
        (changed(n=pa.float32()), []),
        (changed(price=pa.decimal128(12, 2)), []),
        (changed(id=None), [EVOLVES]),
        (changed(ID=pa.string()), []),
        (changed(place=pa.struct([("city", pa.string())])), [EVOLVES]),
    ],
    ids=[
        "the same", "in another order", "all may be null", "a column of no type", "one more", "one less", "one more and one less", "one more in a struct",
        "a long", "a double", "a smaller decimal", "a long in a struct", "a text", "a float of an int", "a larger decimal", "a required one is missing",
        "another only by case", "one less in a struct",
    ],
)  # fmt: skip
def test_each_policy_takes_what_it_says_and_the_next_one_more(incoming: pa.Schema, by: list[SchemaPolicy]) -> None:
    assert takers(incoming) == [policy.value for policy in by]


def test_a_key_becomes_no_floating_point_under_any_policy() -> None:
    assert takers(changed(n=pa.float64()), "n") == []
    assert takers(changed(n=pa.int64()), "n") == ["Widen", "Evolve"]


@pytest.mark.parametrize("needs", ["keys", "orders"])
def test_what_finds_or_orders_rows_stays_required_under_any_policy(needs: str) -> None:
    with pytest.raises(InvalidSchemaError, match="column 'id' \\(string\\) is missing in the data and is required"):
        check_policy(EVOLVES, TABLE, changed(id=None), **{needs: ["id"]})


@settings(max_examples=scaled(50))
@given(tables(), tables())
def test_widen_takes_just_what_a_write_takes_that_fills_missing_columns(table: pa.Table, other: pa.Table) -> None:
    schemas = table.schema, other.schema
    try:
        evolve(*schemas, null_for_missing=True)
    except InvalidSchemaError:
        with pytest.raises(InvalidSchemaError):
            check_policy(WIDENS, *schemas)
    else:
        check_policy(WIDENS, *schemas)
    assert not difference(table.schema, table.schema)


@settings(max_examples=scaled(50))
@given(tables(), st.sampled_from([6, 9]))
def test_rows_of_any_types_do_not_differ_from_the_table_that_they_made(rows: pa.Table, version: int) -> None:
    config = TableConfig(name="t", type=TableType.COPY_ON_WRITE, record_key=("id",), version=version)
    made = normalise(rows.schema, logical_types=has_logical_types(version))
    check_rows(STRICT, config, made, rows.schema)


def test_a_refusal_tells_the_whole_difference_and_the_policy_that_takes_it() -> None:
    found = refusal(ADDS, changed(price=None, n=pa.int64(), new=pa.date32()))
    assert "schemaPolicy AddColumns takes new columns" in found
    assert "give schemaPolicy Widen, or correct the source" in found
    assert "added: new (date32[day]); missing: price (decimal128(10, 2)); changed: n int32 -> int64" in found
    assert "give schemaPolicy AddColumns" in refusal(STRICT, changed(new=pa.date32()))
    assert "give schemaPolicy Widen" in refusal(STRICT, changed(n=pa.int64()))
    assert "give schemaPolicy Evolve" in refusal(WIDENS, changed(id=None))


def test_what_no_policy_takes_is_said_so_with_the_reason() -> None:
    for policy in SchemaPolicy:
        assert "no policy takes it: correct the source, or shape its rows by a transform" in refusal(
            policy, changed(n=pa.string())
        )
    assert "column 'n' is string in the data and int32 in the table" in refusal(WIDENS, changed(n=pa.string()))
    assert "is required" in refusal(WIDENS, changed(id=None))


def test_nested_columns_are_told_by_their_paths() -> None:
    tags = pa.list_(pa.field("element", pa.struct([("name", pa.int32()), ("at", pa.date32())])))
    found = difference(TABLE, changed(tags=tags, place=pa.struct([("city", pa.string())])))
    assert str(found) == (
        "added: tags.element.at (date32[day]); missing: place.zip (int32); changed: tags.element.name string -> int32"
    )


def test_a_long_difference_is_told_by_its_first_columns_and_their_number() -> None:
    wide = pa.struct([(f"field_{i}", pa.string()) for i in range(1000)])
    found = str(difference(TABLE, changed(**{f"c{i}": wide for i in range(LISTED_MAX + 5)})))
    assert "and 5 more" in found
    assert len(found) < 4000
