"""Rows that lack what the table requires, where an option lets its schema follow them."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.arguments import TableTypeName
from hudi_table.errors import InvalidSchemaError

EVOLVE = {"hoodie.lakeops.schema.evolve": "true"}
PLACE = pa.struct([pa.field("city", pa.string(), nullable=False), ("zip", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        ("place", PLACE),
        ("tags", pa.list_(pa.field("element", PLACE))),
    ]
)


def row(key: str, **more: Any) -> dict[str, Any]:
    place = {"city": "x", "zip": 1}
    return {"id": key, "n": 1, "at": 1, "place": place, "tags": [place], **more}


def filled(kind: TableTypeName, version: int) -> HudiTable:
    table = create_table(
        f"memory://{uuid.uuid4().hex}",
        SCHEMA,
        record_key=["id"],
        ordering_fields=["at"],
        type=kind,
        version=version,
        index={"type": "Bucket", "buckets": 1},
        name="t",
    )
    table.upsert(pa.Table.from_pylist([row("a"), row("b")], SCHEMA))
    return table


def rows_of(table: HudiTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(SCHEMA.names).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_required_column_that_rows_lack_is_null_and_required_no_longer(kind: TableTypeName, version: int) -> None:
    table = filled(kind, version)
    less = pa.Table.from_pylist([row("b"), row("c")], SCHEMA).drop_columns(["n"])
    with pytest.raises(InvalidSchemaError, match="column 'n'"):
        table.upsert(less, options={"hoodie.write.set.null.for.missing.columns": "true"})
    table.upsert(less, options=EVOLVE)
    assert [(each["id"], each["n"]) for each in rows_of(table)] == [("a", 1), ("b", None), ("c", None)]
    schema = table.schema()
    assert schema is not None
    assert {field.name for field in schema if not field.nullable} == {"id", "at"}


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_fields_of_structs_may_be_missing_too_wherever_the_structs_lie(kind: TableTypeName) -> None:
    table = filled(kind, 6)
    less = pa.struct([("zip", pa.int32())])
    schema = pa.schema([*list(SCHEMA)[:3], ("place", less), ("tags", pa.list_(pa.field("element", less)))])
    table.upsert(pa.Table.from_pylist([row("b", place={"zip": 2}, tags=[{"zip": 3}])], schema), options=EVOLVE)
    assert [(each["place"], each["tags"]) for each in rows_of(table)] == [
        ({"city": "x", "zip": 1}, [{"city": "x", "zip": 1}]),
        ({"city": None, "zip": 2}, [{"city": None, "zip": 3}]),
    ]


@pytest.mark.parametrize("column", ["id", "at"])
def test_what_finds_or_orders_rows_may_not_be_missing(column: str) -> None:
    table = filled("CopyOnWrite", 6)
    with pytest.raises(InvalidSchemaError, match=f"'{column}'"):
        table.upsert(pa.Table.from_pylist([row("b")], SCHEMA).drop_columns([column]), options=EVOLVE)
    assert len(rows_of(table)) == 2
