"""Tables with columns of VECTOR and VARIANT: written, merged, rewritten, read back; and Hudi's own,
with BLOB among them, continued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import InvalidDataError, InvalidSchemaError, create_table, open_table
from hudi_table.codec.logical_types.vectors import vector_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.schemas import table_avro_schema
from tests.support.logical_types import SCHEMA, VARIANT, golden_rows, golden_table, rows_of

KINDS = ("CopyOnWrite", "MergeOnRead")
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
"""Of the golden tables, whose properties do not tell it."""
INDEXES: tuple[Any, ...] = ({"type": "Bucket", "buckets": 2}, "Simple", "RecordIndex")


def _rows(base: Path) -> list[dict[str, Any]]:
    return open_table(base).scan().to_arrow().sort_by("id").to_pylist()


def _expected(*parts: pa.Table) -> list[dict[str, Any]]:
    found = {row["id"]: row for part in parts for row in part.to_pylist()}
    return [found[key] for key in sorted(found)]


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index if isinstance(index, str) else "Bucket")
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_variants_come_back_through_merges_and_services(tmp_path: Path, kind: Any, index: Any) -> None:
    table = create_table(
        tmp_path / "t", SCHEMA, record_key="id", ordering_fields="ts", type=kind, version=9, index=index
    )
    first, second = rows_of(range(40), 1), rows_of(range(20, 60), 2)
    table.upsert(first)
    table.upsert(second)
    assert open_table(tmp_path / "t").schema().field("v").type == vector_of(pa.float32(), 3)
    expected = _expected(first, second)
    assert _rows(tmp_path / "t") == expected
    if kind == "MergeOnRead":
        table.compact()
        assert _rows(tmp_path / "t") == expected
    if isinstance(index, str):
        table.cluster()
        assert _rows(tmp_path / "t") == expected
    table.delete(second.select(["id", "ts"]).slice(0, 1))
    assert _rows(tmp_path / "t") == [row for row in expected if row["id"] != "k020"]


def test_engines_get_vectors_as_arrays(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", ordering_fields="ts", version=9, index="Simple")
    table.upsert(rows_of(range(2), 1))
    assert table.scan(["id", "v"]).to_duckdb().order("id").fetchall() == [
        ("k000", (0.0, 1.0, -0.5)),
        ("k001", (1.0, 1.0, -0.5)),
    ]
    frame = table.scan(["v"]).to_polars().collect()
    assert str(frame.schema["v"]) == "Array(Float32, shape=(3,))"
    assert sorted(map(list, frame["v"])) == [[0.0, 1.0, -0.5], [1.0, 1.0, -0.5]]


@pytest.mark.parametrize("version", [6, 8])
def test_a_list_of_a_fixed_size_stays_a_list_in_earlier_versions(tmp_path: Path, version: int) -> None:
    data = rows_of(range(3), 1).select(["id", "ts", "v", "x"])
    table = create_table(
        tmp_path / "t", data.schema, record_key="id", ordering_fields="ts", version=version, index="Simple"
    )
    table.upsert(data)
    assert pa.types.is_list(table.schema().field("v").type)
    assert _rows(tmp_path / "t") == _expected(data)


def test_a_list_column_of_version_9_takes_lists_of_a_fixed_size_and_stays_one(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.list_(pa.float32()))])
    table = create_table(tmp_path / "t", schema, record_key="id", version=9, index="Simple")
    table.upsert(pa.table({"id": ["a"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}))
    assert pa.types.is_list(table.schema().field("v").type)
    assert _rows(tmp_path / "t") == [{"id": "a", "v": [1.0, 2.0]}]


def test_a_column_of_vectors_takes_lists_of_its_length_and_is_added_by_a_write(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id", version=9, index="Simple")
    table.upsert(pa.table({"id": ["a"]}))
    table.upsert(pa.table({"id": ["b"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}))
    table.upsert(pa.table({"id": ["c"], "v": pa.array([[3.0, 4.0]], pa.list_(pa.float32()))}))
    assert _rows(tmp_path / "t") == [{"id": "a", "v": None}, {"id": "b", "v": [1.0, 2.0]}, {"id": "c", "v": [3.0, 4.0]}]
    with pytest.raises(InvalidDataError, match=r"Column 'v'.*a list of 1 elements is no VECTOR\(2\)"):
        table.upsert(
            pa.table(
                {"id": ["d"], "v": [[5.0]]}, schema=pa.schema([("id", pa.string()), ("v", pa.list_(pa.float32()))])
            )
        )
    with pytest.raises(InvalidSchemaError, match="column 'v' is string in the data"):
        table.upsert(pa.table({"id": ["d"], "v": ["5"]}))
    assert len(_rows(tmp_path / "t")) == 3


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudis_own_table_is_read_and_continued_and_keeps_what_its_schema_says(tmp_path: Path, kind: str) -> None:
    base, wanted = golden_table(kind, tmp_path), {row["id"]: row for row in golden_rows()}

    def check() -> None:
        for row in _rows(base):
            assert {name: row[name] for name in ("ts", "v", "w", "d", "b")} == {
                name: wanted[row["id"]][name]
                if name == "ts" or wanted[row["id"]][name] is None
                else pytest.approx(wanted[row["id"]][name])
                for name in ("ts", "v", "w", "d", "b")
            }
            inline = wanted[row["id"]]["p_bytes"]
            assert (row["p"] and row["p"]["data"]) == (inline and inline.encode())
        assert len(_rows(base)) == len(wanted)

    check()
    table = open_table(base)
    before = table_avro_schema(table.context, load_timeline(table.context))
    old = table.scan(filter="id = 'k1'").to_arrow()
    table.upsert(old.set_column(1, "ts", pa.array([3], pa.int64())), options=BUCKETS)
    wanted["k1"]["ts"] = 3
    check()
    new = old.set_column(0, "id", pa.array(["k9"])).append_column("z", pa.array([[1.0]], pa.list_(pa.float32(), 1)))
    table.upsert(new, options=BUCKETS)
    wanted["k9"] = {**wanted["k1"], "id": "k9", "ts": 2}
    check()
    after = table_avro_schema(table.context, load_timeline(table.context))
    assert before is not None
    assert after is not None
    assert before.rpartition("]")[0] in after.replace(", ", ","), "the words of the columns that stayed"
    if kind == "mor":
        table.compact()
        check()


def test_a_variant_that_is_shredded_or_none_of_two_binaries_is_a_struct_as_any(tmp_path: Path) -> None:
    shredded = pa.struct([*VARIANT, pa.field("typed_value", pa.int64())])
    schema = pa.schema([pa.field("id", pa.string()), pa.field("x", shredded, metadata=SCHEMA.field("x").metadata)])
    table = create_table(tmp_path / "t", schema, record_key="id", version=9, index="Simple")
    assert table.schema().field("x").type == shredded


class _Variant(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(VARIANT, "arrow.parquet.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _Variant:
        return cls()


@pytest.fixture
def registered() -> Iterator[None]:
    pa.register_extension_type(_Variant())
    yield
    pa.unregister_extension_type("arrow.parquet.variant")


@pytest.mark.usefixtures("registered")
def test_arrows_own_type_of_variants_is_taken(tmp_path: Path) -> None:
    storage = pa.array([{"metadata": b"\x01", "value": b"\x00"}], VARIANT)
    data = pa.table({"id": ["a"], "x": pa.ExtensionArray.from_storage(_Variant(), storage)})
    table = create_table(tmp_path / "t", data.schema, record_key="id", version=9, index="Simple")
    table.upsert(data)
    assert _rows(tmp_path / "t") == [{"id": "a", "x": {"metadata": b"\x01", "value": b"\x00"}}]
    text = table_avro_schema(table.context, load_timeline(table.context))
    assert '"logicalType":"variant"' in str(text)
