"""Arrow consumers: each reads a table and a scan through the Arrow stream, as often as it likes."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hudi_table import HudiTable, create_table, write_hudi
from hudi_table.errors import CorruptTableError
from hudi_table.read.files import stream

ROWS = pa.table(
    {
        "id": [f"k{i}" for i in range(90)],
        "city": [("sf", "ny", None)[i % 3] for i in range(90)],
        "n": range(90),
        "ratio": [float("nan") if i == 5 else i / 2 for i in range(90)],
    }
)
TOTAL = sum(range(90))


@pytest.fixture(scope="module")
def table() -> HudiTable:
    made = create_table(f"memory://{uuid.uuid4().hex}/t", ROWS.schema, record_key="id", partition_by="city")
    write_hudi(made, ROWS)
    return made


@pytest.fixture(params=["table", "scan"])
def source(request: pytest.FixtureRequest, table: HudiTable) -> Any:
    return table if request.param == "table" else table.scan(["n", "city"])


def test_pyarrow_reads_it_twice(source: Any) -> None:
    assert [sum(pa.table(source)["n"].to_pylist()) for _ in range(2)] == [TOTAL, TOTAL]
    assert pa.schema(source).names == pa.table(source).schema.names


def test_duckdb_joins_it_with_itself(source: Any) -> None:
    with duckdb.connect() as connection:
        connection.register("source", source)
        query = "select sum(a.n), count(*) from source a join source b on a.n = b.n"
        assert connection.sql(query).fetchall() == [(TOTAL, 90)]


def test_polars_reads_it(source: Any) -> None:
    assert pl.DataFrame(source)["n"].sum() == TOTAL


def test_pandas_reads_it(source: Any) -> None:
    # pandas 3 takes the stream itself, pandas 2 through pyarrow.
    read = getattr(pd.DataFrame, "from_arrow", lambda stream: pa.table(stream).to_pandas())
    assert read(source)["n"].sum() == TOTAL


def test_ibis_reads_it(source: Any) -> None:
    assert ibis.memtable(source).n.sum().execute() == TOTAL


class TestPolarsBridge:
    """`to_polars`: what is handed down reads fewer files, what is not understood still gives
    Polars' own answer."""

    @pytest.mark.parametrize(
        "predicate",
        [
            pl.col("city") == "sf",
            pl.col("city").is_null(),
            pl.col("city").is_not_null() & (pl.col("n") > 80),
            pl.col("n").is_between(3, 9),
            pl.col("city").is_in(["sf", "la"]),
            ~pl.col("city").is_in(["sf"]),
            ~(pl.col("city") == "sf"),
            (pl.col("n") % 2 == 0) & (pl.col("city") == "ny"),
            pl.col("city").str.starts_with("s"),
            pl.col("ratio") > 40,
            (pl.col("ratio") != 2.0) & (pl.col("n") < 6),
            (pl.col("city") == "sf") | (pl.col("n") == 1),
        ],
        ids=str,
    )
    def test_a_filter_gives_the_rows_that_polars_would_give(self, table: HudiTable, predicate: pl.Expr) -> None:
        lazy = table.scan().to_polars().filter(predicate).select("n", "city").sort("n")
        expected = pl.DataFrame(ROWS).filter(predicate).select("n", "city").sort("n")
        assert lazy.collect().equals(expected)

    def test_columns_filters_and_heads_are_handed_down(self, table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
        plans = []

        def recorded(context: Any, plan: Any, limit: int | None) -> Any:
            plans.append(plan)
            return stream(context, plan, limit)

        monkeypatch.setattr("hudi_table.read.output.polars_source.stream", recorded)
        lazy = table.scan().to_polars()
        assert lazy.filter(pl.col("city") == "sf").select("n").collect().height == 30
        assert sorted(plans[-1].schema.names) == ["city", "n"]
        assert {file.partition for file in plans[-1].slices} == {"sf"}
        assert lazy.head(7).collect().height == 7
        assert lazy.select(pl.len()).collect().item() == 90

    def test_a_limited_scan_is_limited_before_polars_filters(self, table: HudiTable) -> None:
        limited = table.scan(limit=40)
        expected = pl.DataFrame(limited.to_arrow()).filter(pl.col("city") == "sf").height
        assert limited.to_polars().filter(pl.col("city") == "sf").collect().height == expected

    def test_duckdb_pushes_through_the_lazy_frame(self, table: HudiTable) -> None:
        with duckdb.connect() as connection:
            connection.register("flights", table.scan().to_polars())
            assert connection.sql("select sum(n) from flights where city = 'ny'").fetchall() == [
                (sum(range(1, 90, 3)),)
            ]


def test_to_pandas_and_to_duckdb_give_the_rows(table: HudiTable) -> None:
    scan = table.scan(["n"], "city = 'sf'")
    assert scan.to_pandas()["n"].sum() == sum(range(0, 90, 3))
    with duckdb.connect() as connection:
        relation = scan.to_duckdb(connection)
        assert relation.aggregate("sum(n)").fetchall() == [(sum(range(0, 90, 3)),)]
        assert relation.filter("n > 80").order("n").fetchall() == [(81,), (84,), (87,)]


def test_an_error_while_reading_reaches_the_consumer(tmp_path: Path) -> None:
    table = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id")
    write_hudi(table, ROWS)
    scan = table.scan()
    (path,) = scan.plan_files()["path"].to_pylist()
    broken = Path(path)
    broken.write_bytes(b"PAR1" + bytes(broken.stat().st_size - 8) + b"PAR1")
    with pytest.raises(CorruptTableError, match=broken.name):
        scan.to_arrow()
    with pytest.raises((pa.ArrowException, OSError, CorruptTableError), match="not readable Parquet"):
        pa.table(scan)


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import hudi_table", ["pyspark", "py4j", "pandas", "pyarrow", "numpy", "obstore"]),
        (
            "import hudi_table; hudi_table.open_table",
            ["pyspark", "py4j", "pandas", "pyarrow.dataset", "polars", "duckdb"],
        ),
    ],
)
def test_importing_loads_nothing_heavy(statement: str, unwanted: list[str]) -> None:
    code = f"{statement}; import sys; print([name for name in {unwanted!r} if name in sys.modules])"
    root = Path(__file__).parents[3] / "spark_app"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"
