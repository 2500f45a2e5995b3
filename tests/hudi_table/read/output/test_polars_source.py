"""`to_polars`: Polars reads base files itself where that comes to the rows of the scan, and asks
the scan for the rest."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from polars.testing import assert_frame_equal

from hudi_table import HudiTable, create_table, open_table
from hudi_table.errors import CorruptTableError, ExpiredError
from hudi_table.read.files import stream
from hudi_table.read.output import polars_source
from hudi_table.read.output.polars_files import frames
from hudi_table.read.plan import ScanPlan
from tests.hudi_table.read.output.test_duckdb_relation import ROWS, made
from tests.support.arrow_types import tables
from tests.support.scale import scaled


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """What was not left to Polars."""
    found: list[ScanPlan] = []

    def noted(context: Any, plan: ScanPlan, limit: int | None) -> Any:
        found.append(plan)
        return stream(context, plan, limit)

    monkeypatch.setattr(polars_source, "stream", noted)
    return found


def check_rows(table: HudiTable, predicate: pl.Expr | None = None, **scan: Any) -> None:
    """The frame's rows and types are those of the scan in memory."""
    frame, wanted = table.scan(**scan).to_polars(), pl.DataFrame(table.scan(**scan).to_arrow()).lazy()
    if predicate is not None:
        frame, wanted = frame.filter(predicate), wanted.filter(predicate)
    assert frame.collect_schema() == wanted.collect_schema()
    found, expected = (each.collect().sort("id") for each in (frame, wanted))
    assert_frame_equal(found, expected)


def slices(streamed: list[ScanPlan]) -> int:
    return sum(len(plan.slices) for plan in streamed)


@settings(max_examples=scaled(30), deadline=None)
@given(tables())
def test_every_type_comes_as_the_scan_gives_it(rows: pa.Table) -> None:
    rows = rows.append_column("id", pa.array([f"k{i}" for i in range(len(rows))], pa.string()))
    with tempfile.TemporaryDirectory() as folder:
        check_rows(made(Path(folder) / "t", rows, partition_by=None))


def test_files_without_logs_are_read_by_polars(tmp_path: Path, streamed: list[ScanPlan]) -> None:
    check_rows(made(tmp_path / "t"), meta=True)
    assert slices(streamed) == 0


@pytest.mark.parametrize(
    "predicate",
    [
        pl.col("ratio") > 3, pl.col("ratio").is_nan(), pl.col("ratio") >= float("nan"), pl.col("ratio") != 0.25,
        ~(pl.col("ratio") <= 14), pl.col("n").is_null() & (pl.col("city") == "ny"), (pl.col("city") == "sf") | (pl.col("n") == 1),
        pl.col("id").str.ends_with("7"), pl.col("city") == "nowhere",
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_gives_the_rows_that_polars_gives(
    tmp_path: Path, streamed: list[ScanPlan], predicate: pl.Expr
) -> None:
    check_rows(made(tmp_path / "t"), predicate)
    assert slices(streamed) == 0


def test_slices_with_logs_are_merged_beside_files_that_polars_reads(tmp_path: Path, streamed: list[ScanPlan]) -> None:
    table = made(tmp_path / "t", type="MergeOnRead")
    table.upsert(ROWS.filter(pa.compute.field("city") == "ny").set_column(2, "n", pa.array([-1] * 20, pa.int32())))
    check_rows(table)
    logged = slices(streamed)
    assert 0 < logged < len(table.scan().plan.slices)
    check_rows(table, pl.col("n") == -1)
    check_rows(table, pl.col("city") == "sf")
    assert table.scan().to_polars().head(45).collect().height == 45


def test_files_of_an_older_schema_have_the_columns_of_today(tmp_path: Path, streamed: list[ScanPlan]) -> None:
    table = made(tmp_path / "t", index={"type": "Simple"})
    table.upsert(
        pa.table(
            {"id": ["k1", "new"], "city": ["ny", "paris"], "n": pa.array([5_000_000_000, None], pa.int64()),
             "ratio": pa.array([0.1, 1e300], pa.float64()), "tag": ["a", None]}
        )
    )  # fmt: skip
    table = open_table(str(tmp_path / "t"))
    check_rows(table)
    check_rows(table, pl.col("tag").is_null())
    check_rows(table, pl.col("n") > 50)
    assert slices(streamed) == 0


@pytest.mark.parametrize("name", ["a*b", "a[x]b", "q?%20'q\"", "{a,b}", "**", "back\\slash", "new\nline", "é #;--"])
def test_a_folder_may_have_any_name(tmp_path: Path, streamed: list[ScanPlan], name: str) -> None:
    made(tmp_path / "axb", ROWS.slice(0, 3))
    check_rows(made(tmp_path / name, name="t"))
    assert slices(streamed) == 0


@pytest.mark.parametrize(
    "scan", [{"filter": "n > 3"}, {"query": "incremental", "since": "earliest"}], ids=["filter", "incremental"]
)
def test_what_chooses_rows_is_left_to_the_scan(tmp_path: Path, streamed: list[ScanPlan], scan: dict[str, Any]) -> None:
    check_rows(made(tmp_path / "t"), **scan)
    assert slices(streamed) > 0


def test_what_was_cleaned_before_the_first_row_is_read_in_its_newer_state(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    frame = table.scan().to_polars()
    for number in (10, 20, 30):
        table.delete(ROWS.slice(number, 10))
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    assert frame.collect().height == 30


def test_what_goes_while_rows_are_given_has_expired(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{i}" for i in range(400_000)], "city": [("sf", "ny")[i % 2] for i in range(400_000)]})
    table = made(tmp_path / "t", rows)
    plan = table.scan().plan
    like = pl.DataFrame(rows.slice(0, 0)).schema
    batches = frames(table.context, plan, like, _gone_after(plan, tmp_path), lambda _: iter(()))
    with pytest.raises(ExpiredError, match="while it was read"):
        list(batches)


def _gone_after(plan: ScanPlan, folder: Path) -> Any:
    """Makes a lazy frame that gives one frame of the first file, and then finds the others gone."""

    def finish(frame: pl.LazyFrame) -> pl.LazyFrame:
        def give(*_: object) -> Any:
            yield frame.head(1).collect()
            for item in plan.slices:
                os.unlink(folder / "t" / (item.base.path if item.base else ""))
            raise FileNotFoundError("gone")

        return pl.io.plugins.register_io_source(give, schema=frame.collect_schema())

    return finish


def test_a_damaged_file_is_our_error(tmp_path: Path) -> None:
    table = made(tmp_path / "t", partition_by=None)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises((CorruptTableError, pl.exceptions.PolarsError), match="check sum of its footer"):
        table.scan().to_polars().collect()


def test_a_file_that_means_something_else_is_left_to_the_scan(tmp_path: Path, streamed: list[ScanPlan]) -> None:
    table = create_table(
        str(tmp_path / "t"), pa.schema([("id", pa.string()), ("t", pa.timestamp("us"))]), record_key="id"
    )
    rows = pa.table({"id": ["a"], "t": pa.array([-62135596800000000], pa.timestamp("us"))})
    table.upsert(rows)
    path = Path(table.scan().plan_files()["path"][0].as_py())
    pq.write_table(rows, path, store_schema=False, use_deprecated_int96_timestamps=True)
    check_rows(table)
    assert slices(streamed) > 0
