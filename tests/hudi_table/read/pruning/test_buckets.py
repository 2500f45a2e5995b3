"""Bucket pruning: no matching row lies in a bucket that is left out, and what is left out is not
read.

Keys of one and of several columns, hashed whole and in part; text with the characters that Hudi's
key texts give a meaning to, whole numbers, dates, booleans; both rules for colons; conditions
joined by and, or and not, in all three forms.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import HudiTable, create_table
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.table.config import IndexSpec, IndexType, PartitionField, TableConfig, TableType
from hudi_table.read.filter.expression_tree import Call, Constant, Reference, tree
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.pruning.buckets import possible_buckets
from hudi_table.table.keys.record_keys import record_keys
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write import functions
from tests.support.scale import scaled

SCHEMA = pa.schema(
    [("id", pa.string()), ("line", pa.int32()), ("day", pa.date32()), ("ok", pa.bool_()), ("n", pa.int64())]
)
TEXTS = ["a", "b", "A1", "é😀", "a,b", "a:b", "id:a", "x,id:b", "__null__", "__empty__", "1", "-1", " a", ","]
ROW = st.fixed_dictionaries(
    {
        "id": st.sampled_from(TEXTS),
        "line": st.sampled_from([None, -1, 0, 1, 7, 2**31 - 1]),
        "day": st.sampled_from([None, date(1969, 12, 31), date(2024, 2, 29), date(2013, 1, 1)]),
        "ok": st.sampled_from([None, True, False]),
        "n": st.integers(0, 3),
    }
)
TEST = st.one_of(
    st.tuples(st.just("id"), st.sampled_from(["=", "!=", ">"]), st.sampled_from(TEXTS)),
    st.tuples(st.just("id"), st.just("in"), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3)),
    st.tuples(st.just("line"), st.sampled_from(["=", "<"]), st.sampled_from([-1, 0, 1, 7, 2**40])),
    st.tuples(st.just("line"), st.just("in"), st.lists(st.sampled_from([0, 1, 7]), min_size=1)),
    st.tuples(st.just("day"), st.sampled_from(["=", ">="]), st.sampled_from([date(2024, 2, 29), date(1969, 12, 31)])),
    st.tuples(st.just("ok"), st.just("="), st.booleans()),
    st.tuples(st.just("n"), st.just("="), st.integers(0, 3)),
    st.tuples(st.sampled_from(["id", "line"]), st.just("is"), st.none()),
)
CONDITIONS = st.one_of(TEST, st.lists(TEST, min_size=1, max_size=4), st.lists(st.lists(TEST, min_size=1), min_size=1))
KEYS = [("id",), ("line",), ("id", "line"), ("line", "day", "ok"), ("line", "id"), ("day", "id", "line")]


@settings(max_examples=scaled(400), deadline=None)
@given(
    rows=st.lists(ROW, min_size=1, max_size=10),
    key=st.sampled_from(KEYS),
    encoding=st.sampled_from(["Raw", "FieldPrefixed"]),
    rule=st.sampled_from(["0.15", "1.x"]),
    condition=CONDITIONS,
    data=st.data(),
)
def test_no_matching_row_lies_in_a_bucket_that_is_left_out(
    rows: list[dict[str, Any]], key: tuple[str, ...], encoding: str, rule: str, condition: object, data: st.DataObject
) -> None:
    hashed = tuple(data.draw(st.lists(st.sampled_from(key), unique=True)))
    fields = (PartitionField("n"), PartitionField("ok")) if len(key) == 1 else ()
    config = TableConfig(
        "t", TableType.COPY_ON_WRITE, key, fields, key_encoding=encoding, index=IndexSpec(IndexType.BUCKET, 5, hashed)
    )
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    filled = [row[name] is not None for row in rows for name in key]
    table = table.filter(pa.array([any(filled[i * len(key) : (i + 1) * len(key)]) for i in range(len(rows))]))
    if data.draw(st.booleans(), "whether a stored row is asked for"):
        row = data.draw(st.sampled_from(rows))
        names = hashed or tuple(data.draw(st.lists(st.sampled_from(key), min_size=1, unique=True)))
        condition = [(name, "=", row[name]) for name in names if row[name] is not None] or condition
    found = Filter.of(condition)
    assert found is not None
    for form in (found, Filter.of(found.bind(SCHEMA).expression)):
        assert form is not None
        bound = form.bind(SCHEMA)
        possible = possible_buckets(bound, config, SCHEMA, config.index.buckets if config.index else None)
        if possible is None:
            continue
        assert possible <= set(range(5))
        matching = table.filter(bound.expression)
        keys = record_keys(matching, config)
        buckets = BucketIndex(5, key, hashed or key, rule).buckets_of(keys, "")
        assert set(buckets.tolist()) <= possible, (keys.to_pylist(), bound.expression)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Orders of several lines in two partitions of 16 buckets, hashed by the order alone."""
    made = create_table(
        str(tmp_path_factory.mktemp("pruned") / "lines"),
        pa.schema([("order", pa.string()), ("line", pa.int32()), ("city", pa.string()), ("n", pa.int64())]),
        record_key=["order", "line"], partition_by="city",
        index={"type": "Bucket", "buckets": 16, "hashFields": ["order"]},
    )  # fmt: skip
    rows = [(f"o{i // 3}", i % 3, ("sf", "ny")[i % 2], i) for i in range(900)]
    made.upsert(
        pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=["order", "line", "city", "n"])
    )
    return made


@pytest.mark.parametrize(
    "condition",
    [
        "\"order\" = 'o7'",
        "\"order\" in ('o7', 'o200') and city = 'sf'",
        "(\"order\" = 'o7' or \"order\" = 'o8') and n > 3",
        [("order", "in", ["o1", "o2", "o3"]), ("line", "=", 1)],
        (pc.field("order") == "o7") & (pc.field("line") < 2),
    ],
)
def test_a_filter_on_the_hash_fields_reads_their_buckets_only(lines: HudiTable, condition: object) -> None:
    scan = lines.scan(filter=condition, meta=True)
    files, everything = scan.plan_files(), lines.scan(meta=True)
    assert files.num_rows <= 6 < everything.plan_files().num_rows == 32
    found = Filter.of(condition)
    assert found is not None
    wanted = everything.to_arrow().filter(found.bind(everything.schema).expression)
    assert wanted.num_rows > 0
    assert scan.to_arrow().sort_by("n").equals(wanted.sort_by("n"))
    kept = scan.plan.buckets or frozenset()
    assert set(kept) == {bucket_of_file_id(file_id) for file_id in files["file_id"].to_pylist()}
    assert f"buckets     {len(kept)} of 16" in scan.explain()


def test_what_fixes_no_key_reads_every_bucket(lines: HudiTable) -> None:
    for condition in ("n = 3", "\"order\" > 'o7'", "\"order\" = 'o7' or n = 3", "not \"order\" = 'o7'", "line = 1"):
        scan = lines.scan(filter=condition)
        assert (scan.plan_files().num_rows, scan.plan.buckets) == (32, None)
        assert "  buckets " not in scan.explain()


def test_a_key_whose_texts_may_hold_commas_is_read_in_every_bucket() -> None:
    """The generator of the stored keys takes them apart at commas and colons."""
    made = create_table(
        "memory://pruned/labels",
        pa.schema([("order", pa.string()), ("label", pa.string())]),
        record_key=["order", "label"], index={"type": "Bucket", "buckets": 16, "hashFields": ["order"]},
    )  # fmt: skip
    labels = [f"{i},order:o{i + 1}" for i in range(40)]
    made.upsert(pa.table({"order": [f"o{i}" for i in range(40)], "label": labels}))
    scan = made.scan(filter="\"order\" = 'o7'")
    assert scan.plan.buckets is None
    assert scan.to_arrow()["label"].to_pylist() == ["7,order:o8"]
    both = made.scan(filter="\"order\" = 'o7' and label = '7'")
    assert both.plan.buckets is not None


@pytest.mark.parametrize("index", ["Bucket", "ConsistentBucket"])
def test_keys_of_a_generator_of_ones_own_are_read_in_every_bucket(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(functions._key_generators, "lower", lambda rows: pc.utf8_lower(rows["id"]))
    table = create_table(
        tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id", key_generator="lower",
        type="MergeOnRead", index={"type": index, "buckets": 7},
    )  # fmt: skip
    names = [f"Key{n}" for n in range(12)]
    table.upsert(pa.table({"id": names}))
    assert [name for name in names if table.scan(filter=f"id = '{name}'").count() != 1] == []


def test_filters_that_polars_hands_down_prune_buckets_too(lines: HudiTable, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = lines.scan().to_polars().filter(polars.col("order") == "o7").select("n")
    assert sorted(frame.collect()["n"].to_list()) == [21, 22, 23]


def test_the_parts_of_an_expression_are_told() -> None:
    expression = (pc.field("a") == 1) & pc.field("b", "c").is_valid()
    found = tree(expression)
    assert isinstance(found, Call)
    assert found.function == "and_kleene"
    assert found.parts[0] == Call("equal", (Reference("a"), Constant(pa.scalar(1))))
    assert found.parts[1] == Call("is_valid", (None,))
    assert tree(pc.field("odd' \n: name")) == Reference("odd' \n: name")


def by_partition() -> dict[str, Any]:
    return {"type": "Bucket", "buckets": 2, "partitionBuckets": [{"partitions": "^sf", "buckets": 8}]}


def on_rings() -> dict[str, Any]:
    return {"type": "ConsistentBucket", "buckets": 4, "minBuckets": 1, "maxBuckets": 8}


@pytest.mark.parametrize("index", [by_partition(), on_rings()], ids=["numbers by partition", "rings"])
def test_every_partition_is_pruned_by_its_own_buckets(tmp_path: Path, index: dict[str, Any]) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
    table = create_table(
        str(tmp_path / "t"), schema, record_key="id", partition_by="city", type="MergeOnRead", index=index
    )
    numbers = list(range(300))
    rows = pa.table({"id": [f"k{i}" for i in numbers], "city": [("sf", "ny")[i % 2] for i in numbers], "n": numbers})
    table.upsert(rows)
    before = load_timeline(table.context).commits[-1].time
    if index["type"] == "ConsistentBucket":
        table.cluster({"hoodie.parquet.max.file.size": "1", "hoodie.bucket.index.merge.threshold": "0"}, force=True)
        table.upsert(rows.slice(0, 100))
    files = table.scan().plan_files().num_rows
    assert files == (10 if index["type"] == "Bucket" else 16)
    for number in range(0, 300, 23):
        for moment in (None, before):
            scan = table.scan(filter=[("id", "=", f"k{number}")], as_of=moment)
            assert scan.to_arrow()["n"].to_pylist() == [number]
            assert scan.plan_files().num_rows == 2
        both = table.scan(filter=[("id", "=", f"k{number}"), ("city", "=", ("sf", "ny")[number % 2])])
        assert (both.to_arrow().num_rows, both.plan_files().num_rows) == (1, 1)
    polars = pytest.importorskip("polars")
    frame = table.scan().to_polars().filter(polars.col("id") == "k23").select("n")
    assert frame.collect()["n"].to_list() == [23]
