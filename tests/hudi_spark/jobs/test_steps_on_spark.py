"""Flatten and functions of transforms in tasks of Spark: the rows are those that one process
makes, and what is wrong with a function is said by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_table.api import open_table
from hudi_table.services.transforming.steps import GROUP
from tests.support import polled
from tests.support.index_package import shipped_package
from tests.support.polled import Polled

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session_as_it_was")]

PACKAGE = """
import pyarrow as pa
import pyarrow.compute as pc


def doubled(rows):
    return rows.set_column(rows.column_names.index("n"), "n", pc.multiply(rows["n"], 2))


def counted(rows):
    return rows.append_column("together", pa.array([len(rows)] * len(rows), pa.int64()))


def broken(rows):
    if len(rows):
        raise KeyError("oops")
    return rows


def turns(rows):
    return rows.rename_columns(["key", *rows.column_names[1:]]) if len(rows) else rows
"""
NAMES = ("doubled", "counted", "broken", "turns")
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "n": pa.array([1, 2, None, 4], pa.int64()),
        "at": pa.array([{"x": 1, "deep": {"y": "q"}}, None, {"x": None, "deep": None}, {"x": 4, "deep": {"y": None}}]),
    }
)


@pytest.fixture(autouse=True, scope="module")
def package(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In the driver, and in every task."""
    folder = tmp_path_factory.mktemp("steps")
    entries = "\n".join(f"{name} = steps_package:{name}" for name in NAMES)
    with shipped_package(spark, folder, "steps_package", PACKAGE, entries, GROUP):
        yield


def landed(folder: Path, engine: str) -> Polled:
    folder.mkdir()
    feed = polled.of_folder(folder)
    feed.engine, feed.operation = engine, "Upsert"
    for number in range(2):
        pq.write_table(ROWS.slice(2 * number, 2), folder / "landing" / f"{number}.parquet")
    return feed


def rows(feed: Polled) -> list[dict[str, Any]]:
    found = open_table(feed.location).scan().to_arrow()
    return (
        found.select([name for name in found.column_names if not name.startswith("_hoodie")]).sort_by("id").to_pylist()
    )


@pytest.mark.parametrize(
    "chain",
    [
        [{"flatten": {}}],
        [{"flatten": {"separator": "__"}}, {"sql": "SELECT id, n, at__deep__y AS y FROM source"}],
        [{"function": "doubled"}],
        [{"sql": "SELECT id, n + 1 AS n FROM source"}, {"function": "doubled"}, {"sql": "SELECT * FROM source"}],
    ],
    ids=["flatten", "flatten and SQL", "function", "SQL and function"],
)
def test_the_rows_are_those_of_one_process(tmp_path: Path, chain: list[dict[str, Any]]) -> None:
    here, tasks = landed(tmp_path / "here", "Local"), landed(tmp_path / "tasks", "Spark")
    for feed in (here, tasks):
        done = feed.run(transform=chain)
        assert done.outcome == "Succeeded", done.message
    assert rows(tasks) == rows(here)
    mine, other = (open_table(feed.location).schema() for feed in (here, tasks))
    assert mine is not None
    assert mine.equals(other)


def test_a_function_is_given_the_rows_of_a_task_at_once(tmp_path: Path) -> None:
    """Each file is read by a task of its own."""
    feed = landed(tmp_path / "tasks", "Spark")
    assert feed.run(transform=[{"function": "counted"}]).outcome == "Succeeded"
    assert [row["together"] for row in rows(feed)] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("broken", "InvalidData", "transform function 'broken' fails: KeyError: 'oops'"),
        ("turns", "InvalidSchema", "gives key, n, at of rows, and id, n, at of none"),
        ("nobody", "InvalidRequest", "there is no transform function 'nobody' installed"),
    ],
)
def test_what_is_wrong_with_a_function_is_said_and_leaves_nothing(
    tmp_path: Path, name: str, error: str, said: str
) -> None:
    feed = landed(tmp_path / "tasks", "Spark")
    failed = feed.run(transform=[{"function": name}])
    assert (failed.error_class, said in failed.message) == (error, True), failed.message
    assert not (tmp_path / "tasks" / "lake" / "orders" / ".hoodie" / "hoodie.properties").exists()
