"""`to_datafusion`: DataFusion reads base files itself where that comes to the rows of the scan, and
asks the scan for the rest, with the columns and conditions of its queries."""

from __future__ import annotations

import math
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame, SessionContext, col, lit
from datafusion import functions as f
from hypothesis import given, settings

from hudi_table import HudiTable, create_table, open_table
from hudi_table.errors import InvalidRequestError
from hudi_table.read.files import stream
from hudi_table.read.output import datafusion_frame, duckdb_source
from hudi_table.read.output.datafusion_source import in_sql
from hudi_table.read.plan import ScanPlan
from tests.hudi_table.read.output.test_duckdb_relation import ROWS, SCHEMA, made
from tests.hudi_table.read.output.test_duckdb_source import ROWS as EVERY_ROW
from tests.support.arrow_types import tables
from tests.support.scale import scaled

CONDITIONS = [
    "n = 3", "n <> 3", "n > 2 and n < 5", "n between -1 and 1", "n not between -1 and 1", "n in (1, 2, 3, 4, 5)",
    "n not in (1, 2, 3, 4, 5)", "n not in (1, 2)", "not (n in (1, 2, 3, 4) or big = 1)", "n in (1, 2, 3, null)", "not (n = 1)",
    "n is null", "n is not null", "n = 1 or n is null", "n is distinct from 1", "cast(n as varchar) = '1'", "n + 1 = 2", "n < big",
    "big = 5000000000000", "big > 9e13", "ratio > 30", "ratio = cast('nan' as double)", "ratio <> 2.5", "ratio < 3",
    "not (ratio <= 3)", "ratio in (0.25, 0.5, 0.75, 1.0)", "n < ratio", "price = 2.25", "price in (0.25, 1)", "price > 2.255",
    "day = date '2013-01-05'", "day >= date '2013-01-20'", "moment = timestamp '2013-01-05 04:00:00Z'",
    "moment > timestamp '2013-01-20 00:00:00+02:00'", "wall < timestamp '2013-01-03'", "ok", "not ok", "ok is null", "ok = false",
    "raw = x'01'", "place['gate'] = 'A'", "place['row'] in (1, 2) and place['gate'] = 'B'", "place is null", "city = 'sf'",
    "city in ('sf', 'rome') and n > 0", "city not in ('sf', 'a', 'b', 'c')", "city like 's%'", "city > 'ny'", "id = 'k7'",
    "id in ('k7', 'k8', 'k150', 'none')", "id = 'k7' or id = 'k9'", "id in (select max(id) from t)", "false", "true",
    "n = (select max(n) from t where city = 'ny')",
]  # fmt: skip


@pytest.fixture
def session() -> SessionContext:
    return SessionContext()


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """What was not left to DataFusion."""
    found: list[ScanPlan] = []

    def noted(context: Any, plan: ScanPlan) -> Any:
        found.append(plan)
        return stream(context, plan)

    monkeypatch.setattr(duckdb_source, "stream", noted)
    return found


def slices(streamed: list[ScanPlan]) -> int:
    return sum(len(plan.slices) for plan in streamed)


def files(frame: DataFrame) -> int:
    """How many files DataFusion reads by itself."""
    return frame.execution_plan().display_indent().count("file_type=parquet")


def check_rows(table: HudiTable, session: SessionContext, **scan: Any) -> DataFrame:
    """The frame, whose rows and types are those of the scan in memory."""
    frame, wanted = table.scan(**scan).to_datafusion(session), table.scan(**scan).to_arrow()
    assert frame.schema().remove_metadata() == wanted.schema.remove_metadata()
    assert sorted(map(str, frame.to_pylist())) == sorted(map(str, wanted.to_pylist()))
    return frame


@settings(max_examples=scaled(30), deadline=None)
@given(tables())
def test_every_type_comes_as_the_scan_gives_it(rows: pa.Table) -> None:
    rows = rows.append_column("id", pa.array([f"k{i}" for i in range(len(rows))], pa.string()))
    with tempfile.TemporaryDirectory() as folder:
        frame = check_rows(made(Path(folder) / "t", rows, partition_by=None), SessionContext())
        if len(rows) and not any(map(is_one_number, rows.columns)):
            assert files(frame) == 1


def is_one_number(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats has one value beside null and NaN."""
    if not pa.types.is_floating(column.type):
        return False
    return len({value for value in column.to_pylist() if value is not None and not math.isnan(value)}) == 1


NAN = math.nan


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("values", "left"),
    [
        ([1.5, NAN, 1.5, NAN], 1), ([1.5, 1.5, NAN, NAN], 1), ([NAN, NAN, 1.5, 1.5], 1), ([0.0, -0.0, NAN, 0.0], 1),
        ([1.5, NAN, 2.5, NAN], 0), ([NAN, NAN, NAN, NAN], 0), ([None, None, None, None], 0),
    ],
)  # fmt: skip
def test_nan_beside_one_value_stays_nan(
    tmp_path: Path, session: SessionContext, streamed: list[ScanPlan],
    kind: pa.DataType, groups: int, values: list[float | None], left: int,
) -> None:  # fmt: skip
    schema = pa.schema([("id", pa.string()), ("x", kind), ("place", pa.struct([("x", kind)]))])
    rows = [{"id": f"k{i}", "x": value, "place": {"x": value}} for i, value in enumerate(values)]
    table = made(tmp_path / "t", pa.Table.from_pylist(rows, schema), partition_by=None)
    (path,) = (tmp_path / "t").rglob("*.parquet")
    pq.write_table(pq.ParquetFile(path).read().replace_schema_metadata(), path, row_group_size=len(values) // groups)
    frame = check_rows(table, session)
    assert (slices(streamed), files(frame)) == (left, 1 - left)
    assert frame.filter(col("x") == lit(1.5)).count() == values.count(1.5)
    above = [value for value in values if value is not None and not value <= 1.5]
    assert frame.filter(col("x") > lit(1.5)).count() == len(above)


@pytest.mark.parametrize("meta", [False, True])
def test_files_without_logs_are_read_by_datafusion(
    tmp_path: Path, session: SessionContext, streamed: list[ScanPlan], meta: bool
) -> None:
    table = made(tmp_path / "t")
    assert files(check_rows(table, session, meta=meta)) == 3
    assert slices(streamed) == 0
    assert table.scan().to_datafusion(session).count() == 60


def test_columns_come_in_the_wanted_order(tmp_path: Path, session: SessionContext) -> None:
    frame = check_rows(made(tmp_path / "t"), session, columns=["ratio", "_hoodie_record_key", "id"])
    assert files(frame) == 3


def test_without_a_session_it_is_the_global_one(tmp_path: Path) -> None:
    frame = made(tmp_path / "t").scan().to_datafusion()
    SessionContext.global_ctx().register_view("rows_of_the_global_session", frame)
    assert frame.count() == 60


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    return made(tmp_path_factory.mktemp("bridge") / "t", EVERY_ROW, index={"type": "Bucket", "buckets": 4})


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """The same rows, of which those of one city have been written once more to logs."""
    table = made(tmp_path_factory.mktemp("logged") / "t", EVERY_ROW, type="MergeOnRead")
    table.upsert(EVERY_ROW.filter(pc.field("city") == "ny"))
    return table


@pytest.mark.parametrize("by", ["files", "files and logs", "scan"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_answer_is_that_over_the_rows_in_memory(
    plain: HudiTable, logged: HudiTable, session: SessionContext, condition: str, by: str
) -> None:
    query = f"select id, n, day, place from t where {condition} order by id"
    memory = SessionContext()
    memory.from_arrow(EVERY_ROW, "t")
    scan = {"files": plain.scan(), "files and logs": logged.scan(), "scan": plain.scan(filter="id is not null")}[by]
    frame = scan.to_datafusion(session)
    assert (files(frame) > 0) == (by != "scan")
    session.register_view("t", frame)
    assert session.sql(query).to_pylist() == memory.sql(query).to_pylist()


@pytest.mark.parametrize("query", [
    "select city, count(*), sum(n), min(day), max(price) from t group by city order by city",
    "select max(ratio), min(ratio), count(ratio) from t",
    "select id, ratio from t order by ratio desc nulls last, id limit 7",
    "select count(*) from t a join t b on a.big = b.big where b.n > 0",
    "select count(*) from t", "select distinct n from t order by n",
])  # fmt: skip
def test_aggregates_and_orders_are_those_over_the_rows_in_memory(
    logged: HudiTable, session: SessionContext, query: str
) -> None:
    memory = SessionContext()
    memory.from_arrow(EVERY_ROW, "t")
    session.register_view("t", logged.scan().to_datafusion(session))
    assert str(session.sql(query).to_pylist()) == str(memory.sql(query).to_pylist())


def test_columns_and_conditions_reach_the_files_and_the_merge(
    logged: HudiTable, session: SessionContext, streamed: list[ScanPlan]
) -> None:
    frame = logged.scan().to_datafusion(session).filter(col("id") == lit("k7")).select("n")
    plan = frame.execution_plan().display_indent()
    assert plan.count("predicate=id@0 = k7") == 2, plan
    assert plan.count("projection=[id, n], file_type=parquet") == 2, plan
    assert 'filter_expr=(id == "k7"), projection=[n]' in plan, plan
    frame.collect()
    (read,) = streamed
    assert read.schema.names == ["n"]
    assert read.bound is not None
    assert read.bound.columns == ("id",)


def test_slices_with_logs_are_merged_beside_files_that_datafusion_reads(
    tmp_path: Path, session: SessionContext, streamed: list[ScanPlan]
) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    table.upsert(ROWS.filter(pc.field("city") == "ny").set_column(2, "n", pa.array([-1] * 20, pa.int32())))
    frame = check_rows(table, session)
    assert files(frame) == 2
    assert slices(streamed) == 1
    found = frame.filter(col("n") == lit(-1)).aggregate([], [f.count(lit(1)).alias("c"), f.min(col("city")).alias("m")])
    assert found.to_pylist() == [{"c": 20, "m": "ny"}]
    assert frame.filter(col("city") == lit("sf")).count() == 20


def test_files_of_an_older_schema_have_the_columns_of_today(
    tmp_path: Path, session: SessionContext, streamed: list[ScanPlan]
) -> None:
    table = made(tmp_path / "t", index={"type": "Simple"})
    table.upsert(
        pa.table(
            {"id": ["k1", "new", "more"], "city": ["ny", "paris", "paris"],
             "n": pa.array([5_000_000_000, None, None], pa.int64()),
             "ratio": pa.array([0.1, 1e300, 0.5], pa.float64()), "tag": ["a", None, "b"]}
        )
    )  # fmt: skip
    frame = check_rows(open_table(str(tmp_path / "t")), session)
    assert (files(frame), slices(streamed)) == (4, 0)
    session.register_view("t", frame)
    for condition, rows in (
        ("tag = 'a'", 1),
        ("tag is null", 60),
        ("n > 4000000000", 1),
        ("n > 50", 8),
        ("ratio > 1e200", 13),
    ):
        assert session.sql(f"select count(*) c from t where {condition}").to_pylist() == [{"c": rows}], condition


def test_a_column_of_another_name_today_is_read_by_the_scan(tmp_path: Path, session: SessionContext) -> None:
    table = made(tmp_path / "t", partition_by=None, index={"type": "Simple"})
    path = Path(table.scan().plan_files()["path"][0].as_py())
    pq.write_table(ROWS.rename_columns(["id", "city", "N", "ratio"]), path, store_schema=False)
    assert files(check_rows(table, session)) == 0


@pytest.mark.parametrize(
    "name", ["a*b", "a[x]b", "q?%20'q\"", "{a,b}", "**", "back\\slash", "é #;--", "n=1", "new\nline"]
)
def test_a_folder_may_have_any_name(
    tmp_path: Path, session: SessionContext, streamed: list[ScanPlan], name: str
) -> None:
    made(tmp_path / "axb", ROWS.slice(0, 3))
    # DataFusion knows no path with a new line, and says so.
    handed = 0 if "\n" in name else 3
    assert files(check_rows(made(tmp_path / name, name="t"), session)) == handed
    assert slices(streamed) == 3 - handed


@pytest.mark.parametrize("name", ["A", "a.b", 'a"b', "a b", "'", "é", "select", "a[0]", "*"])
def test_a_column_may_have_any_name(tmp_path: Path, session: SessionContext, name: str) -> None:
    rows = pa.table({"id": ["a", "b"], name: [1.5, None]})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path)
    part = datafusion_frame.hidden(session.read_parquet(path, schema=rows.schema), rows.schema, pa.types.is_floating)
    assert part.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    "scan",
    [{"filter": "n > 3"}, {"query": "incremental", "since": "earliest"}, {"columns": []}],
    ids=["filter", "incremental", "no column"],
)
def test_what_chooses_rows_is_left_to_the_scan(tmp_path: Path, session: SessionContext, scan: dict[str, Any]) -> None:
    assert files(check_rows(made(tmp_path / "t"), session, **scan)) == 0


def test_null_is_neither_in_a_list_nor_out_of_it() -> None:
    rows = pa.table({"n": [1, 2, None], "m": [1, None, 1]})
    n, m = pc.field("n"), pc.field("m")
    assert rows.filter(in_sql(~n.isin([1]))).to_pylist() == [{"n": 2, "m": None}]
    assert rows.filter(in_sql(~(n.isin([1]) | (m == 2)))).to_pylist() == []
    assert rows.filter(in_sql(~n.isin([1]) | m.isin([1]))).to_pylist() == rows.to_pylist()
    whole = pc.sqrt(n) > 1
    assert in_sql(whole) is whole
    with pytest.raises(InvalidRequestError, match="not understood"):
        in_sql(whole & n.isin([1]))


def test_a_limit_counts_before_conditions(tmp_path: Path, session: SessionContext) -> None:
    scan = made(tmp_path / "t").scan(limit=10)
    wanted = scan.to_arrow().filter(pc.field("n") > 4).num_rows
    frame = scan.to_datafusion(session)
    assert (files(frame), frame.count()) == (0, 10)
    assert frame.filter(col("n") > lit(4)).count() == wanted


def test_a_past_snapshot_is_read_from_its_own_files(tmp_path: Path, session: SessionContext) -> None:
    table = made(tmp_path / "t")
    before = table.history()["instant"][0].as_py()
    table.delete(ROWS.slice(0, 30))
    frame = check_rows(table, session, as_of=before)
    assert (files(frame), frame.count()) == (3, 60)
    assert check_rows(table, session).count() == 30


def test_a_frame_keeps_to_the_snapshot_of_its_call(tmp_path: Path, session: SessionContext) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    table.upsert(ROWS.slice(0, 1))
    frame = table.scan().to_datafusion(session)
    table.delete(ROWS.slice(0, 30))
    assert [frame.count(), frame.count()] == [60, 60]
    assert table.scan().to_datafusion(session).count() == 30


@pytest.mark.parametrize("run", [
    lambda frame: frame.to_arrow_table(), lambda frame: frame.count(), lambda frame: frame.select("n").collect(),
    lambda frame: frame.filter(col("city") == lit("sf")).collect(), lambda frame: list(frame.execute_stream()),
    lambda frame: frame.aggregate([], [f.max(col("n"))]).collect(), lambda frame: frame.limit(1000).collect(),
    lambda frame: frame.sort(col("ratio").sort()).limit(50).collect(), lambda frame: frame.union(frame).collect(),
    lambda frame: frame.join(frame.select(col("id").alias("other")), left_on="id", right_on="other").collect(),
])  # fmt: skip
def test_a_file_that_goes_before_the_frame_is_run_is_named(
    tmp_path: Path, session: SessionContext, run: Callable[[DataFrame], object]
) -> None:
    table = made(tmp_path / "t")
    frame = table.scan().to_datafusion(session)
    path = Path(table.scan(filter="city = 'sf'").plan_files()["path"][0].as_py())
    run(frame)
    path.unlink()
    with pytest.raises(Exception, match=f"(?s){path.name} was taken back"):
        run(frame)


def test_what_was_cleaned_before_the_frame_is_run_has_expired(tmp_path: Path, session: SessionContext) -> None:
    table = made(tmp_path / "t")
    frame, unread = table.scan().to_datafusion(session), table.scan(filter="id is not null").to_datafusion(session)
    for number in (10, 20, 30):
        table.delete(ROWS.slice(number, 10))
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    with pytest.raises(Exception, match="was cleaned by the clean"):
        frame.collect()
    # What the scan reads is read in its newer state, as no row of it was given.
    assert unread.count() == 30


def test_an_error_of_the_scan_is_that_of_the_query(tmp_path: Path, session: SessionContext) -> None:
    table = made(tmp_path / "t", partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(Exception, match="check sum of its footer"):
        table.scan().to_datafusion(session).collect()


def test_what_ends_early_stops_the_reading_threads(tmp_path: Path, session: SessionContext) -> None:
    rows = pa.table({"id": [f"k{i}" for i in range(100_000)], "city": [("sf", "ny")[i % 2] for i in range(100_000)]})
    table = made(tmp_path / "t", rows)
    before = threading.active_count()
    frame = table.scan(filter="id is not null").to_datafusion(session)
    reader = frame.execute_stream()
    assert next(iter(reader)).to_pyarrow().num_rows > 0
    del reader
    assert frame.limit(3).collect()
    assert threading.active_count() <= before


def test_a_table_in_memory_gets_the_stream(session: SessionContext) -> None:
    table = create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id")
    table.upsert(ROWS)
    assert files(check_rows(table, session)) == 0


def test_very_many_files_are_pruned_by_the_scan(
    tmp_path: Path, session: SessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datafusion_frame, "FILES_MAX", 2)
    assert files(check_rows(made(tmp_path / "t"), session)) == 0


def test_a_table_without_rows_has_its_columns(tmp_path: Path, session: SessionContext) -> None:
    check_rows(create_table(str(tmp_path / "t"), SCHEMA, record_key="id"), session)


def test_without_the_library_the_error_names_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(InvalidRequestError, match=r"pip install 'hudi-table\[datafusion\]' brings it"):
        made(tmp_path / "t").scan().to_datafusion()
