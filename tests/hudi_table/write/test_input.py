"""Rows as other libraries hand them over: stored right, or refused by name before anything is
written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.cli import main
from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError
from hudi_table.model.names import META_COLUMNS

BAD_TEXT = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
PLAIN = pa.schema([("id", pa.string()), ("v", pa.int64())])


def new_table(path: Path, schema: pa.Schema, key: str | list[str] = "id", **more: Any) -> HudiTable:
    return create_table(str(path / "t"), schema, record_key=key, **more)


def files(table: HudiTable) -> list[str]:
    return [info.path for info in table.context.storage.list("")]


def refused(table: HudiTable, data: Any, message: str, kind: type[InvalidRequestError] = InvalidDataError) -> None:
    before = files(table)
    for operation in ("upsert", "insert", "bulk_insert"):
        with pytest.raises(kind, match=message):
            table.write(data, operation=operation)
    assert files(table) == before


VIEWS = """
import sys
import pyarrow as pa
from hudi_table.api import create_table, open_table
base = sys.argv[1]
lists = [[1, 2], None, [3], [], [4, 5, 6]]
ints, texts = pa.int64(), pa.string()
kinds = [pa.list_view(ints), pa.large_list_view(ints), pa.large_list(ints), pa.large_list_view(texts), pa.list_(pa.large_list_view(ints))]
for kind in kinds:
    values = [x if x is None or kind.value_type == ints else [str(y) for y in x] for x in lists]
    if pa.types.is_nested(kind.value_type):
        values = [x if x is None else [x] for x in lists]
    for name, column in (("plain", pa.array(values, kind)), ("sliced", pa.array([values[2], *values], kind).slice(1)),
                         ("struct", pa.StructArray.from_arrays([pa.array(values, kind)], ["s"]))):
        rows = pa.table({"id": list("abcde"), "v": column})
        table = create_table(f"{base}/{kinds.index(kind)}-{name}", rows.schema, record_key="id")
        table.upsert(rows)
        found = open_table(table.context.base_path).scan(columns=["id", "v"]).to_arrow().sort_by("id")["v"].to_pylist()
        want = values if name != "struct" else [{"s": x} for x in values]
        assert found == want, (kind, name, found)
odd = pa.LargeListViewArray.from_arrays(pa.array([2, 0, 1]), pa.array([1, 2, 2]), pa.array([10, 20, 30]))
table = create_table(f"{base}/odd", pa.schema([("id", texts), ("v", odd.type)]), record_key="id")
table.upsert(pa.table({"id": list("abc"), "v": odd}))
assert table.scan().to_arrow().sort_by("id")["v"].to_pylist() == [[30], [10, 20], [20, 30]]
print("right")
"""


def test_lists_of_every_layout_are_stored_with_their_values(tmp_path: Path) -> None:
    """In a process of its own: Arrow's own cast of such layouts ended by SIGSEGV."""
    done = subprocess.run([sys.executable, "-c", VIEWS, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "right"), done.stderr


@pytest.mark.parametrize("kind", [pa.string(), pa.int32()])
def test_a_mark_of_deletes_that_is_no_boolean_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.string()), ("_hoodie_is_deleted", kind)])
    with pytest.raises(InvalidSchemaError, match="'_hoodie_is_deleted' marks rows"):
        new_table(tmp_path, schema)
    table = new_table(tmp_path, PLAIN)
    data = pa.table({"id": ["a"], "v": [1], "_hoodie_is_deleted": pa.nulls(1, kind)})
    refused(table, data, "has to be bool", InvalidSchemaError)


@pytest.mark.parametrize("name", ["_hoodie_record_key", "_HOODIE_COMMIT_TIME", "_lakeops_delete"])
def test_columns_with_reserved_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSchemaError, match=name):
        new_table(tmp_path, PLAIN.append(pa.field(name, pa.int64())))
    table = new_table(tmp_path, PLAIN)
    refused(table, pa.table({"id": ["a"], "v": [1], name: ["x"]}), f"'{name}'", InvalidSchemaError)


def test_rows_read_with_hudis_columns_can_be_written_back(tmp_path: Path) -> None:
    table = new_table(tmp_path, PLAIN)
    table.upsert(pa.table({"id": ["a"], "v": [1]}))
    rows = open_table(table.context.base_path).scan(meta=True).to_arrow()
    assert set(META_COLUMNS) < set(rows.schema.names)
    table.upsert(rows)
    assert table.scan(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": "a", "v": 1}]


REQUIRED = pa.field("v", pa.int64(), nullable=False)
NESTED = {
    "column": (REQUIRED.type, REQUIRED, [1, None]),
    "field of a struct": (pa.struct([REQUIRED]), None, [{"v": 1}, {"v": None}]),
    "item of a list": (pa.list_(REQUIRED), None, [[1], [None]]),
    "value of a map": (pa.map_(pa.string(), REQUIRED), None, [[("a", 1)], [("a", None)]]),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("same_schema", [True, False])
def test_a_null_where_a_value_is_required_is_refused(tmp_path: Path, name: str, same_schema: bool) -> None:
    kind, own, values = NESTED[name]
    field = own or pa.field("v", kind)
    schema = pa.schema([pa.field("id", pa.string()), field])
    table = new_table(tmp_path, schema)
    column = pa.array(values, kind if name == "column" else loose(kind))
    if name != "column":
        column = retyped(column, kind)
    fields = schema if same_schema else pa.schema([pa.field("id", pa.large_string()), field])
    data = pa.Table.from_arrays([pa.array(["a", "b"], fields.field("id").type), column], schema=fields)
    refused(table, data, "required|non-nullable")


def loose(kind: pa.DataType) -> pa.DataType:
    """The type with nothing required."""
    inner = REQUIRED.with_nullable(True)
    if pa.types.is_struct(kind):
        return pa.struct([inner])
    return pa.list_(inner) if pa.types.is_list(kind) else pa.map_(pa.string(), inner)


def retyped(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers under a type that promises more than they keep."""
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([values.field(0)], fields=list(kind))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(values.offsets, values.values, type=kind)
    return pa.MapArray.from_arrays(values.offsets, values.keys, values.items, type=kind)


def test_nulls_that_belong_to_neighbours_of_a_slice_are_no_fault(tmp_path: Path) -> None:
    kind = pa.struct([REQUIRED])
    table = new_table(tmp_path, pa.schema([pa.field("id", pa.string()), pa.field("v", kind)]))
    values = pa.StructArray.from_arrays([pa.array([None, 1, None])], fields=list(kind))
    table.upsert(pa.table({"id": ["a"], "v": values.slice(1, 1)}))
    assert table.scan().count() == 1


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("index", [{"type": "Bucket", "buckets": 1}, "Simple"])
def test_required_fields_of_null_structs_pass_writes_compaction_and_clustering(
    tmp_path: Path, kind: Any, index: Any
) -> None:
    nested = pa.field("v", pa.struct([REQUIRED, pa.field("name", pa.string(), nullable=False)]))
    first = pa.schema([pa.field("id", pa.string())])
    more = pa.schema([*first, nested])
    table = create_table(tmp_path / "t", first, record_key="id", type=kind, index=index)
    table.insert(pa.table({"id": ["old", "a", "b"]}))
    value = {"v": 1, "name": "x"}
    table.upsert(pa.Table.from_pylist([{"id": "a", "v": value}, {"id": "b", "v": value}], schema=more))
    table.upsert(pa.Table.from_pylist([{"id": "a", "v": None}, {"id": "new", "v": None}], schema=more))
    wanted = {"old": None, "a": None, "b": value, "new": None}

    def rows() -> dict[str, Any]:
        found = open_table(tmp_path / "t").scan().to_arrow().to_pylist()
        return {row["id"]: row["v"] for row in found}

    assert rows() == wanted
    if kind == "MergeOnRead":
        table.compact(force=True)
        assert rows() == wanted
    if index == "Simple":
        table.cluster(force=True)
        table.upsert(pa.Table.from_pylist([{"id": "b", "v": None}], schema=more))
        assert rows() == wanted | {"b": None}
    assert main(["export", str(tmp_path / "t"), str(tmp_path / "out")]) == 0
    exported = pq.read_table(next((tmp_path / "out").rglob("*.parquet"))).to_pylist()
    assert {row["id"]: row["v"] for row in exported} == rows()


TWICE = [("k", 1), ("z", 1), ("k", 2)]
DOUBLED = {
    "v": (pa.map_(pa.string(), pa.int32()), TWICE),
    "v.m": (pa.struct([("m", pa.map_(pa.string(), pa.int32()))]), {"m": TWICE}),
    "v.element": (pa.list_(pa.map_(pa.string(), pa.int32())), [[("k", 1)], TWICE]),
    "v.value": (pa.map_(pa.string(), pa.map_(pa.string(), pa.int32())), [("a", None), ("b", TWICE)]),
}


@pytest.mark.parametrize("path", DOUBLED)
def test_a_key_that_a_map_has_twice_is_refused_with_its_column(tmp_path: Path, path: str) -> None:
    kind, value = DOUBLED[path]
    table = new_table(tmp_path, pa.schema([("id", pa.string()), ("v", kind)]), type="MergeOnRead")
    rows = pa.table({"id": ["a", "b", "c"], "v": pa.array([None, value, None], kind)})
    refused(table, rows, f"column '{path}' holds a map with the key 'k' twice")


def test_keys_that_only_other_maps_hold_too_are_no_fault(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.int32())
    table = new_table(tmp_path, pa.schema([("id", pa.string()), ("v", kind)]))
    values = [TWICE, [("k", 1), ("z", 2)], None, [("k", 3), ("a", 4)], []]
    table.upsert(pa.table({"id": list("abcd"), "v": pa.array(values, kind).slice(1)}))
    hidden = pa.MapArray.from_arrays(
        pa.array([0, 2, 4], pa.int32()),
        pa.array(list("kkkl")),
        pa.array([1, 2, 3, 4], pa.int32()),
        mask=pa.array([True, False]),
    )
    table.upsert(pa.table({"id": ["e", "f"], "v": hidden}))
    assert table.scan(columns=["v"]).to_arrow().column(0).to_pylist() == [*values[1:], None, [("k", 3), ("l", 4)]]


BAD = {
    "key": ("id", pa.table({"id": BAD_TEXT, "v": ["x"]})),
    "value": ("v", pa.table({"id": ["a"], "v": BAD_TEXT})),
    "dictionary": (
        "v",
        pa.table({"id": ["a"], "v": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), BAD_TEXT)}),
    ),
    "bytes": ("v", pa.table({"id": ["a"], "v": pa.array([b"\xff"])})),
}


@pytest.mark.parametrize("name", BAD)
def test_text_that_is_no_utf8_is_refused(tmp_path: Path, name: str) -> None:
    column, data = BAD[name]
    table = new_table(tmp_path, pa.schema([("id", pa.string()), ("v", pa.string())]))
    refused(table, data, f"'{column}'", InvalidRequestError)


def test_text_in_lists_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), BAD_TEXT)
    table = new_table(tmp_path, pa.schema([("id", pa.string()), ("v", lists.type)]))
    refused(table, pa.table({"id": ["a"], "v": lists}), r"'v\.element' holds text that is not UTF-8")


COMPOSITE = pa.schema([("a", pa.string()), ("b", pa.string()), ("v", pa.int64())])


@pytest.mark.parametrize("index", ["Simple", {"type": "Bucket", "buckets": 2}])
def test_composite_keys_whose_text_is_one_are_refused(tmp_path: Path, index: Any) -> None:
    table = new_table(tmp_path, COMPOSITE, ["a", "b"], index=index)
    rows = pa.table({"a": ["x,b:y", "x"], "b": ["z", "y,b:z"], "v": [1, 2]})
    refused(table, rows, "'a:x,b:y,b:z'")
    # Also where the two stand far from each other.
    stream = pa.Table.from_batches([pa.record_batch(b) for b in rows.to_batches(max_chunksize=1)])
    refused(table, stream, "'a:x,b:y,b:z'")


def test_composite_keys_that_only_look_alike_are_written(tmp_path: Path) -> None:
    table = new_table(tmp_path, COMPOSITE, ["a", "b"])
    rows = pa.table({"a": ["x,b:y", "x,b:y", "x", "x,c:1"], "b": ["z", "z", "y", None], "v": [1, 2, 3, 4]})
    table.upsert(rows)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2, 3, 4]


def test_composite_keys_of_two_partitions_are_two(tmp_path: Path) -> None:
    schema = COMPOSITE.append(pa.field("p", pa.string()))
    table = new_table(tmp_path, schema, ["a", "b"], partition_by="p")
    table.upsert(pa.table({"a": ["x,b:y", "x"], "b": ["z", "y,b:z"], "v": [1, 2], "p": ["p", "q"]}))
    assert table.scan().count() == 2


@pytest.mark.parametrize("word", ["__null__", "__empty__"])
def test_the_words_for_null_and_empty_are_no_keys(tmp_path: Path, word: str) -> None:
    table = new_table(tmp_path, COMPOSITE, ["a", "b"])
    refused(table, pa.table({"a": ["x"], "b": [word], "v": [1]}), f"'b' holds the text '{word}'")


CITIES = pa.schema([("id", pa.string()), ("city", pa.string())])


def cities(*values: str) -> pa.Table:
    return pa.table({"id": [f"k{value}" for value in values], "city": list(values)}, schema=CITIES)


@pytest.mark.parametrize("index", ["Simple", "GlobalSimple", {"type": "Bucket", "buckets": 1}])
@pytest.mark.parametrize(
    ("before", "values"),
    [([], ["x", "x/y"]), ([], ["x/y/z", "x"]), (["x"], ["x/y/z"]), (["x/y"], ["a", "x"]), (["x/y", "x/z"], ["x/y/z"])],
)
def test_a_partition_in_another_one_is_refused_for_other_readers_lose_its_rows(
    tmp_path: Path, index: Any, before: list[str], values: list[str]
) -> None:
    table = new_table(tmp_path, CITIES, partition_by="city", index=index)
    for value in before:
        table.upsert(cities(value))
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(
            InvalidDataError, match=r"partition 'x\S*' would lie (in|around) partition 'x.*url_encode=True"
        ):
            open_table(table.base_path).write(cities(*values), operation=operation)
    assert len(list((tmp_path / "t").rglob("*.parquet"))) == len(before)
    encoded = create_table(tmp_path / "encoded", CITIES, record_key="id", partition_by="city", url_encode=True)
    encoded.upsert(cities(*before, *values))
    assert encoded.scan().count() == len(before) + len(values)


def test_partitions_that_lie_beside_each_other_or_are_there_already_are_written(tmp_path: Path) -> None:
    table = new_table(tmp_path, CITIES, partition_by="city")
    table.upsert(cities("x/y", "x/z", "xy", "x y", "a/b/c"))
    table.upsert(cities("x/a", "a/b/d", "a b"))
    assert table.scan().count() == 8
    # As other writers leave a table.
    storage = table.context.storage
    storage.put("x/.hoodie_partition_metadata", storage.get("x/y/.hoodie_partition_metadata"))
    table.upsert(cities("x", "x/y", "x/z"))
    assert table.scan().count() == 9
