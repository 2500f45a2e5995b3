"""Required fields of null structs in base files: structs in structs, lists and maps, and slices.

Omitted: that DuckDB and other readers of Parquet see the same; that writes, compaction, clustering
and exports pass them (`tests/hudi_table/write/test_input.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.conform import conform
from hudi_table.codec.hidden_nulls import without_hidden_nulls
from hudi_table.codec.parquet import read_batches
from tests.hudi_table.codec.test_parquet import written
from tests.support.scale import scaled

INNER = pa.struct(
    [
        pa.field("n", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("ok", pa.bool_(), nullable=False),
        pa.field("id", pa.binary(80), nullable=False),
        pa.field("price", pa.decimal128(20, 2), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("many", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("free", pa.float64()),
    ]
)
REQUIRED = {
    "a struct": INNER,
    "a required struct of one": pa.struct([pa.field("s", INNER, nullable=False)]),
    "a struct of one": pa.struct([pa.field("s", INNER)]),
    "a list": pa.list_(pa.field("element", INNER)),
    "a list of lists": pa.list_(pa.field("element", pa.list_(pa.field("element", INNER)))),
    "a map": pa.map_(pa.string(), INNER),
    "a struct of maps": pa.struct([pa.field("m", pa.map_(pa.string(), INNER), nullable=False)]),
}
VALUES = st.fixed_dictionaries(
    {
        "n": st.integers(-9, 9), "text": st.text("aé", max_size=3), "ok": st.booleans(), "id": st.just(b"x" * 80),
        "price": st.decimals(-9, 9, places=2), "at": st.just(datetime(2024, 1, 2, tzinfo=UTC)),
        "many": st.lists(st.integers(0, 9), max_size=2), "free": st.none() | st.floats(0, 1),
    }
)  # fmt: skip


def required_values(kind: pa.DataType, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a type around INNER, with nulls wherever a type takes one."""
    if kind == INNER:
        return inner
    if pa.types.is_struct(kind):
        (child,) = kind
        values = required_values(child.type, inner)
        return st.fixed_dictionaries({child.name: values if not child.nullable else st.none() | values})
    values = st.none() | required_values(kind.item_type if pa.types.is_map(kind) else kind.value_type, inner)
    return st.lists(st.tuples(st.text("ab"), values) if pa.types.is_map(kind) else values, max_size=3)


@pytest.mark.parametrize("name", REQUIRED)
@settings(max_examples=scaled(30))
@given(data=st.data(), start=st.integers(0, 3), length=st.integers(0, 5))
def test_required_fields_of_null_structs_are_written_and_the_rows_come_back(
    name: str, data: st.DataObject, start: int, length: int
) -> None:
    kind = REQUIRED[name]
    values = data.draw(st.lists(st.none() | required_values(kind, VALUES), max_size=6))
    # Arrow itself makes children of null structs null.
    table = pa.table([pa.array(values, kind)], schema=pa.schema([pa.field("v", kind)])).slice(start, length)
    sink, _ = written(table, schema=table.schema, avro_schema=arrow_to_avro(table.schema, table_name="t"))
    back = pa.concat_tables([pq.read_table(sink).cast(table.schema)])
    back.validate(full=True)
    assert back.to_pylist() == table.to_pylist()
    ours = [conform(batch, table.schema) for batch in read_batches(sink)]
    assert pa.Table.from_batches(ours, schema=table.schema).to_pylist() == table.to_pylist()


def test_a_null_of_a_required_field_that_nothing_hides_is_written_by_nobody() -> None:
    kind = pa.struct([pa.field("n", pa.int32(), nullable=False)])
    values = pa.StructArray.from_arrays(
        [pa.array([None, None, 1], pa.int32())], fields=list(kind), mask=pa.array([True, False, False])
    )
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        written(pa.table({"v": values}), schema=pa.schema([("v", kind)]))


def test_columns_in_which_nothing_is_hidden_stay_the_arrays_that_they_are() -> None:
    kind = pa.list_(pa.struct([pa.field("n", pa.int32(), nullable=False)]))
    column = pa.array([[{"n": 1}], None, []], kind)
    shown = without_hidden_nulls(pa.table({"v": column})).column("v").chunk(0)
    assert shown.values.field(0).buffers()[1].address == column.values.field(0).buffers()[1].address
