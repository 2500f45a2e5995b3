"""Scans: projection, filters, limits, counts, pinned snapshots, bounded reading ahead, every type,
and what is refused."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import HudiTable, create_table, open_table, write_hudi
from hudi_table.errors import CorruptTableError, InvalidOptionError, InvalidRequestError
from hudi_table.read.prefetch import in_order
from tests.support.scale import scaled

ROWS = pa.table(
    {
        "id": [f"k{i:03d}" for i in range(200)],
        "city": [("sf", "ny", "la")[i % 3] for i in range(200)],
        "n": range(200),
    }
)


def new_table(rows: pa.Table = ROWS, **options: Any) -> HudiTable:
    table = create_table(f"memory://{uuid.uuid4().hex}/flights", rows.schema, record_key="id", **options)
    write_hudi(table, rows)
    return table


@pytest.fixture(scope="module")
def table() -> HudiTable:
    return new_table(partition_by="city", index={"type": "Bucket", "buckets": 2})


def test_columns_come_in_the_order_that_was_asked_for(table: HudiTable) -> None:
    assert table.scan(["n", "id"]).schema.names == ["n", "id"]
    assert table.scan(["n", "id"]).to_arrow().sort_by("n").slice(0, 2).to_pylist() == [
        {"n": 0, "id": "k000"},
        {"n": 1, "id": "k001"},
    ]


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_an_expression_that_arrow_cannot_compute_is_refused_by_its_text(
    kind: Literal["CopyOnWrite", "MergeOnRead"],
) -> None:
    rows = pa.table({"id": ["a", "b"], "n": [1, 2**60 + 1]})
    made = new_table(rows, type=kind, partition_by="n")
    made.upsert(rows)
    with pytest.raises(InvalidOptionError, match=r"filter \(n > 1.5\) cannot be computed: .*; as text"):
        made.scan(filter=pc.field("n") > 1.5).to_arrow()
    assert made.scan(filter="n > 1.5").to_arrow()["id"].to_pylist() == ["b"]


def test_a_filter_may_use_columns_that_are_not_asked_for(table: HudiTable) -> None:
    found = table.scan(["id"], "n = 7 or city = 'sf' and n < 4").to_arrow()
    assert found.schema.names == ["id"]
    assert sorted(found["id"].to_pylist()) == ["k000", "k003", "k007"]


def test_no_columns_still_count_rows(table: HudiTable) -> None:
    assert table.scan([]).to_arrow().num_rows == 200
    assert table.scan([], "n < 10").to_arrow().num_rows == 10


@pytest.mark.parametrize("memory", [1, 1 << 30])
@pytest.mark.parametrize(
    "more",
    [{}, {"ordering_fields": "n"}, {"version": 6}, {"options": {"hoodie.populate.meta.fields": "false"}}],
    ids=["plain", "ordered", "version 6", "without meta columns"],
)
def test_no_columns_still_count_the_rows_of_merged_logs(more: dict[str, Any], memory: int) -> None:
    made = new_table(type="MergeOnRead", index={"type": "Bucket", "buckets": 2}, **more)
    made.upsert(ROWS.slice(0, 40))
    made.delete(ROWS.select(["id"]).slice(0, 5))
    scan = made.scan([], max_memory=memory)
    assert all(item.logs for item in scan.plan.slices)
    assert scan.to_arrow().num_rows == scan.count() == sum(len(batch) for batch in scan.to_batches()) == 195
    assert made.scan([], limit=7, max_memory=memory).to_arrow().num_rows == 7


@pytest.mark.parametrize("limit", [0, 1, 7, 199, 200, 1000])
def test_a_limit_bounds_rows_and_count(table: HudiTable, limit: int) -> None:
    scan = table.scan(limit=limit)
    assert scan.to_arrow().num_rows == scan.count() == min(limit, 200)
    assert table.scan(filter="n < 50", limit=limit).count() == min(limit, 50)


def test_count_reads_footers_alone_without_a_filter(table: HudiTable) -> None:
    assert table.scan().count() == 200
    assert table.scan(filter="city = 'sf'").count() == 67


def test_a_scan_keeps_its_snapshot_and_a_new_one_sees_the_new_rows() -> None:
    table = new_table()
    old = table.scan()
    assert old.count() == 200
    write_hudi(table, pa.table({"id": ["new"], "city": ["sf"], "n": [1000]}))
    assert old.count() == old.to_arrow().num_rows == 200
    assert table.scan().count() == 201
    assert table.scan(as_of=old.plan.instant).count() == 200


def test_a_stream_may_be_left_early_and_opened_again(table: HudiTable) -> None:
    scan = table.scan()
    before = threading.active_count()
    reader = scan.to_batches()
    assert reader.read_next_batch().num_rows
    reader.close()
    del reader
    assert threading.active_count() <= before
    assert scan.to_arrow().num_rows == scan.to_arrow().num_rows == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["idd"]}, "did you mean 'id'"),
        ({"columns": ["zzz"]}, "there are id, city, n"),
        ({"columns": "id"}, "give a list of names"),
        ({"columns": ["id", "id"]}, "name a column twice"),
        ({"limit": -1}, "limit is -1"),
        ({"query": "Snapshot", "since": "earliest"}, "query 'Snapshot' is not one of snapshot"),
        ({"filter": "idd = 1"}, "no column 'idd'"),
        ({"as_of": "yesterday"}, "as_of 'yesterday' is no moment"),
    ],
)
def test_what_cannot_be_scanned_is_refused(table: HudiTable, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        table.scan(**arguments).to_arrow()


def test_a_query_that_a_scan_does_not_answer_is_refused_before_anything_is_read(table: HudiTable) -> None:
    with pytest.raises(InvalidOptionError, match=r"query 'cdc' is not one of snapshot, .*: changes\(…\) gives"):
        table.scan(query="cdc")


def test_a_table_without_a_commit_has_columns_and_no_rows() -> None:
    table = create_table(f"memory://{uuid.uuid4().hex}/t", ROWS.schema, record_key="id")
    assert table.scan().to_arrow().schema.names == ["id", "city", "n"]
    assert table.scan().count() == 0
    assert table.history().num_rows == table.files().num_rows == 0


def test_timeline_history_and_files_are_arrow_tables(table: HudiTable) -> None:
    timeline, history, files = table.timeline(), table.history(), table.files()
    assert set(timeline["state"].to_pylist()) == {"completed"}
    newest = history.to_pylist()[0]
    assert newest["instant"] == timeline["instant"].to_pylist()[-1] == table.scan().plan.instant
    assert (newest["inserted"], newest["partitions"], newest["files"]) == (200, 3, 6)
    assert files.num_rows == 6
    assert files["latest"].to_pylist() == [True] * 6
    assert newest["bytes"] == sum(files["size_bytes"].to_pylist())


def test_the_plan_explains_itself(table: HudiTable) -> None:
    scan = table.scan(["id"], "city = 'sf'", limit=5)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in scan.explain().splitlines()[1:]}
    assert lines["columns"] == "id (1 of 3)"
    assert lines["filter"] == "city = 'sf'"
    assert lines["partitions"] == "1 of 3"
    assert lines["files"].startswith("2 of 6, ")
    assert lines["limit"] == "5 rows"
    assert scan.plan_files()["partition"].to_pylist() == ["sf", "sf"]
    assert repr(scan) == f"Scan('{table.base_path}', columns=['id'], filter=\"city = 'sf'\", limit=5)"


def test_notebooks_see_escaped_html() -> None:
    rows = pa.table({"id": ["a"], "city": ["<b>"]})
    table = create_table(f"memory://{uuid.uuid4().hex}/t", rows.schema, record_key="id", name="a<b>")
    assert "HudiTable a&lt;b&gt;" in table._repr_html_()
    assert "city = &#x27;&lt;b&gt;&#x27;" in table.scan(filter="city = '<b>'")._repr_html_()
    assert repr(table) == f"HudiTable('{table.base_path}', CopyOnWrite, record_key=['id'])"


def test_every_type_that_a_table_holds_comes_back() -> None:
    place = pa.struct([("zip", pa.int32()), ("tags", pa.list_(pa.string()))])
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("ok", pa.bool_()),
            ("i", pa.int32()),
            ("l", pa.int64()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("raw", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("small", pa.decimal128(9, 2)),
            ("large", pa.decimal128(38, 10)),
            ("list", pa.list_(pa.int64())),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("place", place),
        ]
    )
    full = {
        "id": "a",
        "ok": True,
        "i": -1,
        "l": 2**40,
        "f": 0.5,
        "d": 1e300,
        "raw": b"\x00\xff",
        "day": date(1969, 12, 31),
        "at": datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
        "small": Decimal("-1.10"),
        "large": Decimal("1234567890.0123456789"),
        "list": [1, None],
        "map": [("k", 1), ("l", None)],
        "place": {"zip": 1, "tags": ["x", None]},
    }
    rows = pa.Table.from_pylist([full, {"id": "b"}], schema=schema)
    table = new_table(rows)
    found = open_table(table.base_path).scan().to_arrow().sort_by("id")
    assert found.schema.names == schema.names
    assert found.to_pylist() == rows.to_pylist()
    assert table.scan(["id"], "place.zip = 1 and large > 1234567890.0123456788").count() == 1


class TestReadingAhead:
    """`in_order`: the order of its sources, bounded, and silent once nobody listens."""

    def test_items_keep_the_order_of_their_sources(self) -> None:
        def numbers(source: int) -> Iterator[tuple[int, int]]:
            return iter([(source, i) for i in range(source % 4)])

        sources = [lambda s=s: numbers(s) for s in range(20)]
        assert list(in_order(sources, ahead=3, depth=2)) == [(s, i) for s in range(20) for i in range(s % 4)]

    def test_no_more_items_exist_than_the_bound_allows(self) -> None:
        made = []

        def endless(source: int) -> Iterator[int]:
            for i in range(1000):
                made.append((source, i))
                yield i

        stream = in_order([lambda s=s: endless(s) for s in range(10)], ahead=3, depth=2)  # type: ignore[misc]
        next(stream)
        threading.Event().wait(0.3)
        # Of each source: those queued, and the one that waits to be; of the first also the one that was taken.
        assert len(made) <= 3 * (2 + 1) + 1
        assert {source for source, _ in made} == {0, 1, 2}
        stream.close()
        made.clear()
        threading.Event().wait(0.3)
        assert made == []

    def test_an_error_of_a_source_reaches_the_consumer_in_its_turn(self) -> None:
        def broken() -> Iterator[int]:
            yield 1
            raise ValueError("disk on fire")

        stream = in_order([lambda: iter([0]), broken, lambda: iter([2])], ahead=3, depth=1)
        assert [next(stream), next(stream)] == [0, 1]
        with pytest.raises(ValueError, match="disk on fire"):
            next(stream)


@given(
    rows=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    group=st.integers(1, 12),
    wanted=st.sets(st.integers(0, 6)),
    columns=st.sampled_from([None, ["id", "n"], ["text"], ["n"]]),
)
@settings(max_examples=scaled(60), deadline=None)
def test_a_filter_keeps_the_rows_of_every_row_group(
    rows: list[int], group: int, wanted: set[int], columns: list[str] | None
) -> None:
    data = pa.table(
        {
            "id": [f"k{i:02}" for i in range(len(rows))],
            "n": pa.array(rows, pa.int32()),
            "text": pa.array([None if n == 3 else f"{n}-{i}" for i, n in enumerate(rows)], pa.string()),
        }
    )
    table = create_table(f"memory://{uuid.uuid4().hex}/t", data.schema, record_key="id", index="Simple")
    table.insert(data, options={"hoodie.lakeops.row.group.rows": str(group)})
    values = pa.array(sorted(wanted), pa.int32())
    found = table.scan(columns, pc.field("n").isin(values)).to_arrow()
    expected = data.filter(pc.is_in(data["n"], value_set=values)).select(columns or data.column_names)
    assert sorted(found.select(expected.column_names).to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)


def test_other_columns_than_the_filters_are_read_only_where_it_keeps_a_row(tmp_path: Path) -> None:
    data = pa.table({"id": [f"k{i:04}" for i in range(0, 2000, 2)], "text": [f"text {i}" for i in range(1000)]})
    table = create_table(str(tmp_path / "t"), data.schema, record_key="id", index="Simple")
    table.insert(data, options={"hoodie.lakeops.row.group.rows": "500"})
    (file,) = (tmp_path / "t").glob("*.parquet")
    column = pq.read_metadata(file).row_group(1).column(pq.read_schema(file).names.index("text"))
    damaged = bytearray(file.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    damaged[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    file.write_bytes(damaged)
    assert table.scan(filter="id in ('k0100', 'k1001')").to_arrow()["text"].to_pylist() == ["text 50"]
    with pytest.raises(CorruptTableError):
        table.scan(filter="id in ('k0100', 'k1002')").to_arrow()


def test_planned_files_have_whole_paths_rows_and_ranges(tmp_path: Path) -> None:
    made = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id", partition_by="city")
    write_hudi(made, ROWS)
    assert "rows" not in made.scan().plan_files().schema.names
    found = made.scan(["id", "n"]).plan_files(statistics=True)
    assert all(Path(path).is_file() for path in found["path"].to_pylist())
    assert sum(found["rows"].to_pylist()) == 200
    for row in found.to_pylist():
        ours = ROWS.filter(pc.field("city") == row["partition"])
        assert (row["minimum"]["n"], row["maximum"]["n"]) == (
            pc.min(ours["n"]).as_py(),
            pc.max(ours["n"]).as_py(),
        )
        assert row["minimum"]["id"] == pc.min(ours["id"]).as_py()


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_moments_that_python_does_not_have_are_filtered_ordered_by_and_told_as_unknown(
    kind: Literal["CopyOnWrite", "MergeOnRead"],
) -> None:
    far, moments, days = 253_402_300_800_000_000, pa.timestamp("us", "UTC"), pa.date32()
    rows = pa.table(
        {
            "id": ["future", "epoch", "past"],
            "at": pa.array([far, 0, -(2**63)], moments),
            "day": pa.array([2**31 - 1, 0, -800_000], days),
            "n": [1, 2, 3],
        }
    )
    made = create_table(
        f"memory://{uuid.uuid4().hex}/t", rows.schema, record_key="id", type=kind, ordering_fields="at",
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    made.write(rows, operation="bulk_insert")
    made.upsert(rows.slice(0, 1).set_column(3, "n", [[10]]))
    assert dict(zip(*made.scan(["id", "n"]).to_arrow().to_pydict().values(), strict=True)) == {
        "future": 10, "epoch": 2, "past": 3,
    }  # fmt: skip
    assert made.scan(["id"], "at > '2020-01-01'").to_arrow()["id"].to_pylist() == ["future"]
    assert made.scan(["id"], "at < '1970-01-01' and day < '0001-01-01'").to_arrow()["id"].to_pylist() == ["past"]
    assert made.scan(filter="day >= '1970-01-01'").count() == 2
    (told,) = made.scan().plan_files(statistics=True).select(["rows", "minimum"]).to_pylist()
    assert (told["rows"], told["minimum"]["at"], told["minimum"]["day"], told["minimum"]["id"]) == (
        3, None, None, "epoch",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("duckdb", "to_duckdb")]
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, module: str, method: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    name = {"duckdb": "query"}.get(module, module)
    with pytest.raises(InvalidRequestError, match=rf"{module} is not installed: pip install 'hudi-table\[{name}\]'"):
        getattr(table.scan(), method)()


@pytest.mark.parametrize("method", ["to_table", "head", "count_rows", "to_batches", "take", "get_fragments"])
def test_what_duckdb_registers_is_no_data_set_of_pyarrow(table: HudiTable, method: str) -> None:
    with pytest.raises(InvalidRequestError, match="for DuckDB alone"):
        getattr(table.scan().duckdb_source(), method)()
